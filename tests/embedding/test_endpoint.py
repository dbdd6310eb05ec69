"""Vectors from an endpoint: a real HTTP server on loopback that speaks both protocols and simulates failures."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from email.message import Message
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

from kebab.config.settings import EmbeddingSettings
from kebab.core.errors import ConfigError, ModelError, ModelMismatch, ModelUnreachable, TextRefused
from kebab.embedding.endpoint import OLLAMA, OPENAI, EndpointEmbedder, Protocol

if TYPE_CHECKING:
    from tests.embedding.conftest import Python

KEY = "sk-very-secret"


class Request(NamedTuple):
    path: str
    headers: Message
    body: dict[str, Any]


class Answer(NamedTuple):
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012 - read only
    delay_s: float = 0.0
    drip_s: float = 0.0
    """Seconds between two bytes of the body."""
    raw: bytes | None = None
    """These bytes instead of a response, followed by the end of the connection."""


def vector_of(text: str) -> list[float]:
    """A vector whose length is not 1, so that the embedder must normalise it."""
    return [byte - 127.5 for byte in sha256(text.encode()).digest()[:8]]


def right(request: Request, vectors: Sequence[Any] | None = None) -> Answer:
    """The answer in the protocol of this path; OpenAI's entries in reverse order, which their index allows."""
    vectors = [vector_of(text) for text in request.body["input"]] if vectors is None else vectors
    if request.path.endswith("/api/embed"):
        return Answer(json.dumps({"model": request.body["model"], "embeddings": vectors}).encode())
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    return Answer(json.dumps({"object": "list", "data": data[::-1]}).encode())


@dataclass
class Endpoint:
    """Answers each request with the next entry of `script`, and correctly after the last one."""

    address: str
    requests: list[Request] = field(default_factory=list)
    script: list[Answer | Callable[[Request], Answer]] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def answer(self, request: Request) -> Answer:
        self.requests.append(request)
        answer = self.script.pop(0) if self.script else right
        return answer if isinstance(answer, Answer) else answer(request)

    @property
    def batches(self) -> list[list[str]]:
        return [request.body["input"] for request in self.requests]


def serve() -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = served.answer(Request(self.path, self.headers, body))
            served.stopping.wait(answer.delay_s)
            try:
                if answer.raw is not None:
                    self.wfile.write(answer.raw)
                    return
                self.send_response(answer.status)
                for name, value in {"Content-Length": str(len(answer.body)), **answer.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                for byte in answer.body if answer.drip_s else ():
                    self.wfile.write(bytes([byte]))
                    if served.stopping.wait(answer.drip_s):
                        return
                if not answer.drip_s:
                    self.wfile.write(answer.body)
            except OSError:  # the client has closed the connection
                pass

        do_GET = do_POST  # noqa: N815 - a followed redirect would arrive as one

        def log_message(self, format: str, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    served = Endpoint(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.stopping.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    yield from serve()


@pytest.fixture
def elsewhere() -> Iterator[Endpoint]:
    yield from serve()


@dataclass
class Client:
    embedder: EndpointEmbedder
    waits: list[float]

    def embed(self, *texts: str) -> Any:
        return self.embedder.embed(texts, "passage")

    def refused(self, *texts: str) -> ModelError:
        with pytest.raises(ModelError) as caught:
            self.embed(*(texts or ("text",)))
        return caught.value


Connect = Callable[..., Client]


@pytest.fixture
def connect(endpoint: Endpoint) -> Connect:
    """An embedder for the endpoint that records waiting times instead of waiting."""

    def make(protocol: Protocol = OPENAI, **settings: Any) -> Client:
        waits: list[float] = []
        given = EmbeddingSettings(**{"endpoint": endpoint.address, "timeout_s": 10.0, **settings})
        return Client(EndpointEmbedder(protocol, "some-model", given, sleep=waits.append), waits)

    return make


def unit(texts: Sequence[str]) -> Any:
    vectors = np.array([vector_of(text) for text in texts])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# --- what is sent, and what is made of the answer


def test_requests_to_openai_follow_its_api(endpoint: Endpoint, connect: Connect) -> None:
    found = connect(api_key=KEY, endpoint=endpoint.address + "/v1").embed("one", "two", "셋")
    np.testing.assert_allclose(found, unit(["one", "two", "셋"]), atol=1e-6)
    (request,) = endpoint.requests
    assert request.path == "/v1/embeddings"
    assert request.body == {"model": "some-model", "input": ["one", "two", "셋"], "encoding_format": "float"}
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["Content-Type"] == "application/json"


def test_requests_to_ollama_follow_its_api_and_forbid_truncation(endpoint: Endpoint, connect: Connect) -> None:
    found = connect(OLLAMA).embed("one", "둘")
    np.testing.assert_allclose(found, unit(["one", "둘"]), atol=1e-6)
    (request,) = endpoint.requests
    assert request.path == "/api/embed"
    assert request.body == {"model": "some-model", "input": ["one", "둘"], "truncate": False}
    assert request.headers["Authorization"] is None


@pytest.mark.parametrize("written", ["", "/", "/v1", "/v1/", "/v1/embeddings", "/v1/embeddings/"])
def test_the_address_may_be_written_with_or_without_its_path(
    endpoint: Endpoint, connect: Connect, written: str
) -> None:
    connect(endpoint=endpoint.address + written).embed("text")
    assert endpoint.requests[0].path == ("/v1/embeddings" if "v1" in written else "/embeddings")


def test_the_default_addresses_are_those_of_the_services() -> None:
    assert OPENAI.address + OPENAI.path == "https://api.openai.com/v1/embeddings"
    assert OLLAMA.address + OLLAMA.path == "http://127.0.0.1:11434/api/embed"


def test_a_request_has_at_most_batch_size_texts_and_the_order_is_kept(endpoint: Endpoint, connect: Connect) -> None:
    texts = [f"text {number}" for number in range(8)]
    found = connect(batch_size=3).embed(*texts)
    assert endpoint.batches == [texts[:3], texts[3:6], texts[6:]]
    np.testing.assert_allclose(found, unit(texts), atol=1e-6)


@pytest.mark.parametrize(("kind", "sent"), [("query", "query: text"), ("passage", "passage: text")])
def test_queries_and_passages_are_embedded_with_their_prefixes(
    endpoint: Endpoint, connect: Connect, kind: Any, sent: str
) -> None:
    connect(query_prefix="query: ", passage_prefix="passage: ").embedder.embed(["text"], kind)
    assert endpoint.batches == [[sent]]


def test_an_empty_text_is_sent_as_a_space_and_half_a_character_as_a_question_mark(
    endpoint: Endpoint, connect: Connect
) -> None:
    found = connect().embed("", " \n", "a\ud800b")
    assert endpoint.batches == [[" ", " ", "a?b"]]
    assert np.isfinite(found).all()


def test_no_texts_are_no_request_once_the_dimension_is_known(endpoint: Endpoint, connect: Connect) -> None:
    client = connect()
    assert client.embed().shape == (0, 8)
    asked = len(endpoint.requests)
    assert client.embed().shape == (0, 8)
    assert len(endpoint.requests) == asked == 1


def test_the_fingerprint_has_the_dimension_of_the_first_answer(endpoint: Endpoint, connect: Connect) -> None:
    embedder = connect().embedder
    assert not endpoint.requests
    assert embedder.fingerprint == "some-model@openai-1:8"
    assert embedder.fingerprint == "some-model@openai-1:8"
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("protocol", [OPENAI, OLLAMA], ids=lambda protocol: protocol.name)
def test_the_same_model_name_under_another_protocol_is_another_model(connect: Connect, protocol: Protocol) -> None:
    assert connect(protocol).embedder.fingerprint == f"some-model@{protocol.name}-1:8"


def test_vectors_without_an_index_are_in_the_order_of_the_texts(endpoint: Endpoint, connect: Connect) -> None:
    """Regression: answers without indexes were refused."""
    texts = ["one", "two", "three"]
    endpoint.script = [Answer(json.dumps({"data": [{"embedding": vector_of(text)} for text in texts]}).encode())]
    np.testing.assert_allclose(connect().embed(*texts), unit(texts), atol=1e-6)


def test_another_prefix_of_passages_changes_the_fingerprint(connect: Connect) -> None:
    """It changes the stored vectors; a prefix of queries does not."""
    versions = [
        connect(**change).embedder.version
        for change in ({}, {"passage_prefix": "passage: "}, {"passage_prefix": "p: "})
    ]
    assert len(set(versions)) == 3
    assert connect(query_prefix="query: ").embedder.version == versions[0] == "openai-1"


# --- texts that are not taken


def at_most(characters: int) -> Callable[[Request], Answer]:
    """The answers of a server whose model refuses texts with more than this number of characters."""

    def answer(request: Request) -> Answer:
        too_long = any(len(text) > characters for text in request.body["input"])
        return Answer(b'{"error": "the input length exceeds the context length"}', 400) if too_long else right(request)

    return answer


@pytest.mark.parametrize("protocol", [OPENAI, OLLAMA], ids=lambda protocol: protocol.name)
def test_a_text_longer_than_the_model_reads_is_embedded_in_parts_and_other_texts_as_before(
    endpoint: Endpoint, connect: Connect, protocol: Protocol
) -> None:
    """No part of the text is dropped without notice."""
    long = " ".join(f"word{number}" for number in range(300))
    endpoint.script = [at_most(1500)] * 99
    client = connect(protocol)
    found = client.embed("one", long, "two")
    np.testing.assert_allclose(found[[0, 2]], unit(["one", "two"]), atol=1e-6)
    halves = [batch[0] for batch in endpoint.batches if len(batch) == 1 and batch[0] in long and batch[0] != long]
    assert " ".join(halves) == long
    parts = np.array([[len(half)] for half in halves]) * unit(halves)
    np.testing.assert_allclose(found[1], parts.sum(axis=0) / np.linalg.norm(parts.sum(axis=0)), atol=1e-5)
    np.testing.assert_allclose(client.embed(long)[0], found[1], atol=1e-6)


def test_a_short_text_that_is_refused_is_an_error_about_this_text(endpoint: Endpoint, connect: Connect) -> None:
    endpoint.script = [at_most(3)] * 9
    error = connect().refused("fine", "too")
    assert error.code == "text_refused"
    assert error.message.endswith("answered with status 400: the input length exceeds the context length.")


def test_a_server_that_fails_at_a_text_that_is_too_long_is_taken_to_refuse_it(
    endpoint: Endpoint, connect: Connect
) -> None:
    """Regression: some servers answer such a text with status 500, and were treated as unreachable."""

    def fails(request: Request) -> Answer:
        return (
            Answer(b"input is too large to process", 500)
            if any(len(text) > 1500 for text in request.body["input"])
            else right(request)
        )

    endpoint.script = [fails] * 99
    client = connect(retries=1)
    found = client.embed("one", "word " * 400, "two")
    np.testing.assert_allclose(found[[0, 2]], unit(["one", "two"]), atol=1e-6)
    assert client.waits == [0.5], "once for the whole, never for its parts"


def test_a_time_limit_holds_for_an_answer_that_comes_in_drops(endpoint: Endpoint, connect: Connect) -> None:
    """Regression: the limit applied to each read, so a server that sent single bytes never timed out."""

    def drops(request: Request) -> Answer:
        return Answer(right(request).body, drip_s=0.1)

    endpoint.script = [drops] * 2
    started = time.monotonic()
    error = connect(timeout_s=0.5, retries=0).refused()
    assert "timed out" in error.message
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("indices", [["0", "1"], [0, 0], [1, 2], [0.5, 1], [None, 1]])
def test_vectors_whose_indexes_do_not_match_the_texts_are_refused(
    endpoint: Endpoint, connect: Connect, indices: list[Any]
) -> None:
    """Regression: indexes in quotes were sorted as texts, so that texts got vectors of others."""
    data = [{"index": index, "embedding": [1, 2]} for index in indices]
    endpoint.script = [Answer(json.dumps({"data": data}).encode())]
    assert isinstance(connect().refused("one", "two"), ModelMismatch)


# --- passing trouble


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
def test_a_request_that_fails_temporarily_is_repeated(endpoint: Endpoint, connect: Connect, status: int) -> None:
    endpoint.script = [Answer(b"busy", status), Answer(b"busy", status)]
    client = connect()
    np.testing.assert_allclose(client.embed("text"), unit(["text"]), atol=1e-6)
    assert len(endpoint.requests) == 3
    assert client.waits == [0.5, 1.0]


@pytest.mark.parametrize(
    ("header", "wait"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("86400", 30.0),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.5),
        ("soon", 0.5),
        ("-3", 0.5),
        ("²", 0.5),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_obeyed_up_to_a_limit(
    endpoint: Endpoint, connect: Connect, status: int, header: str, wait: float
) -> None:
    endpoint.script = [Answer(b"", status, {"Retry-After": header})]
    client = connect()
    client.embed("text")
    assert client.waits == [wait]


def test_retries_wait_as_long_as_announced(endpoint: Endpoint) -> None:
    """The test waits for a second between the two requests, because nothing is replaced here."""
    endpoint.script = [Answer(b"", 429, {"Retry-After": "1"})]
    started = time.monotonic()
    EndpointEmbedder(OPENAI, "some-model", EmbeddingSettings(endpoint=endpoint.address)).embed(["text"], "query")
    assert 1.0 <= time.monotonic() - started < 10


def test_a_request_that_keeps_failing_is_an_error_after_the_last_retry(endpoint: Endpoint, connect: Connect) -> None:
    endpoint.script = [Answer(b'{"error": {"message": "Rate limit reached."}}', 429)] * 9
    client = connect(retries=2)
    error = client.refused()
    assert isinstance(error, ModelUnreachable)
    assert error.code == "model_unreachable"
    assert error.message == f"{endpoint.address}/embeddings answered with status 429: Rate limit reached."
    assert len(endpoint.requests) == 3


def test_without_retries_the_first_failure_is_an_error(endpoint: Endpoint, connect: Connect) -> None:
    endpoint.script = [Answer(b"", 503)]
    client = connect(retries=0)
    assert client.refused().message.endswith("answered with status 503.")
    assert (len(endpoint.requests), client.waits) == (1, [])


def test_an_answer_that_takes_too_long_is_an_error(endpoint: Endpoint, connect: Connect) -> None:
    endpoint.script = [Answer(delay_s=20)] * 2
    started = time.monotonic()
    error = connect(timeout_s=0.2, retries=1).refused()
    assert time.monotonic() - started < 5
    assert isinstance(error, ModelUnreachable)
    assert "timed out" in error.message
    assert len(endpoint.requests) == 2


def test_an_endpoint_that_is_down_is_a_clear_error(connect: Connect) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    client = connect(endpoint=address, retries=2)
    error = client.refused()
    assert isinstance(error, ModelUnreachable)
    assert error.message.startswith(f"{address}/embeddings cannot be reached: ")
    assert "Connection refused" in error.message
    assert error.hint == "Start the server or correct embedding.endpoint; text search works meanwhile (--mode lexical)."
    assert client.waits == [0.5, 1.0]


def test_only_the_first_question_waits_for_an_endpoint_that_is_down(
    endpoint: Endpoint, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.script = [Answer(b"", 503)] * 2
    client = connect(retries=1)
    first, *others = (client.refused() for _ in range(5))
    assert {(error.message, error.hint) for error in others} == {(first.message, first.hint)}
    assert (len(endpoint.requests), client.waits) == (2, [0.5])
    soon = time.monotonic() + 31
    monkeypatch.setattr(time, "monotonic", lambda: soon)
    np.testing.assert_allclose(client.embed("text"), unit(["text"]), atol=1e-6)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"this is no HTTP\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 xyz\r\n\r\n",
    ],
    ids=["nothing", "no HTTP", "breaks off", "bad chunk", "bad status"],
)
def test_a_request_is_repeated_if_its_answer_breaks_off_and_then_fails_with_a_clear_error(
    endpoint: Endpoint, connect: Connect, raw: bytes
) -> None:
    endpoint.script = [Answer(raw=raw)]
    np.testing.assert_allclose(connect().embed("text"), unit(["text"]), atol=1e-6)
    endpoint.script = [Answer(raw=raw)] * 2
    error = connect(retries=1).refused()
    assert isinstance(error, ModelUnreachable)
    assert "cannot be reached" in error.message
    assert "\n" not in error.message


# --- what stays wrong


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_not_tried_again_and_not_shown(endpoint: Endpoint, connect: Connect, status: int) -> None:
    endpoint.script = [Answer(b'{"error": {"message": "Incorrect API key provided."}}', status)]
    error = connect(api_key=KEY).refused()
    assert isinstance(error, ModelUnreachable)
    assert (
        error.message == f"{endpoint.address}/embeddings refused the key (status {status}): Incorrect API key provided."
    )
    assert error.hint == "Set KEBAB_EMBEDDING_API_KEY to a valid one."
    assert KEY not in f"{error.message}{error.hint}"
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    ("protocol", "body"),
    [
        (OLLAMA, b'{"error": "the input length exceeds the context length"}'),
        (OPENAI, b"the input length exceeds the context length"),
    ],
)
def test_a_text_that_is_refused_however_short_is_an_error_that_says_what_to_change(
    endpoint: Endpoint, connect: Connect, protocol: Protocol, body: bytes
) -> None:
    endpoint.script = [Answer(body, 400)] * 999
    error = connect(protocol).refused("long " * 10_000)
    assert isinstance(error, TextRefused)
    assert error.message.endswith("answered with status 400: the input length exceeds the context length.")
    assert error.hint is not None
    assert "chunking.max_tokens" in error.hint
    assert len(endpoint.requests) < 12, "one part is enough to know"


@pytest.mark.parametrize(
    "body",
    [b"<html>" + b"x" * 100_000, b"[]", b'"text"', b"{}", b'{"error": null}', b"\xff\xfe", b'{"error": {}}', b""],
)
def test_message_of_any_error_page_is_one_short_line(endpoint: Endpoint, connect: Connect, body: bytes) -> None:
    endpoint.script = [Answer(body, 404)]
    message = connect().refused().message
    assert "answered with status 404" in message
    assert len(message) < 400
    assert "\n" not in message


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(endpoint: Endpoint, elsewhere: Endpoint, connect: Connect, status: int) -> None:
    """Texts and key are sent only to the named address."""
    endpoint.script = [Answer(b"", status, {"Location": elsewhere.address + "/embeddings"})]
    error = connect(api_key=KEY).refused("private text")
    assert isinstance(error, ModelUnreachable)
    assert f"status {status}" in error.message
    assert elsewhere.requests == []
    assert len(endpoint.requests) == 1


def test_requests_to_this_machine_do_not_use_a_proxy(endpoint: Endpoint, elsewhere: Endpoint, python: Python) -> None:
    """A new process, because the environment is read when the module is loaded."""
    code = """
import sys
from kebab.config.settings import EmbeddingSettings
from kebab.embedding.endpoint import OPENAI, EndpointEmbedder
print(EndpointEmbedder(OPENAI, "m", EmbeddingSettings(endpoint=sys.argv[1], retries=0)).embed(["private text"], "query").shape)
"""
    proxied = {"http_proxy": elsewhere.address, "HTTP_PROXY": elsewhere.address, "no_proxy": "", "NO_PROXY": ""}
    assert python(code, endpoint.address, env=proxied).strip() == "(1, 8)"
    assert elsewhere.requests == []
    assert endpoint.batches == [["private text"]]


@pytest.mark.parametrize("body", [b"", b"<html>hello</html>", b"{", b"\xff\xfe", b"[" * 100_000])
def test_an_answer_that_is_not_json_is_a_clear_error(endpoint: Endpoint, connect: Connect, body: bytes) -> None:
    endpoint.script = [Answer(body)]
    error = connect().refused()
    assert isinstance(error, ModelUnreachable)
    assert error.message == f"{endpoint.address}/embeddings did not answer with JSON."
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize(
    "body",
    [b"null", b"[]", b"3", b'"text"', b"{}", b'{"data": null}', b'{"data": [1]}', b'{"data": [{"index": 0}]}', b'{"data": [{"index": "0", "embedding": [1]}, {"embedding": [1]}]}',
     b'{"data": [{"index": 0, "embedding": "AAAA"}]}', b'{"data": [{"index": 0, "embedding": 1}]}', b'{"data": [{"index": 0, "embedding": [[1]]}]}',
     b'{"data": [{"index": 0, "embedding": {"a": 1}}]}', b'{"error": {"message": "no"}}',
     b'{"data": [{"index": 0, "embedding": [1' + b"0" * 400 + b"]}]}"],
)  # fmt: skip
def test_json_without_vectors_is_a_clear_error(endpoint: Endpoint, connect: Connect, body: bytes) -> None:
    endpoint.script = [Answer(body)]
    error = connect().refused()
    assert isinstance(error, ModelMismatch)
    assert error.message == f"The answer of {endpoint.address}/embeddings has no vectors of one size in it."


@pytest.mark.parametrize("protocol", [OPENAI, OLLAMA], ids=["openai", "ollama"])
@pytest.mark.parametrize("vectors", [[[1, 2]], [[1, 2], [3, 4], [5, 6]], []])
def test_fewer_or_more_vectors_than_texts_are_refused(
    endpoint: Endpoint, connect: Connect, protocol: Protocol, vectors: list[list[int]]
) -> None:
    """It would be unknown which vector belongs to which text."""
    endpoint.script = [lambda request: right(request, vectors)]
    error = connect(protocol).refused("one", "two")
    assert isinstance(error, ModelMismatch)
    assert error.code == "model_mismatch"
    assert error.message.endswith(f" gave {len(vectors)} vectors for 2 texts.")


@pytest.mark.parametrize("protocol", [OPENAI, OLLAMA], ids=["openai", "ollama"])
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None, 1e39, 1e300])
def test_a_vector_with_nan_or_infinity_is_refused(
    endpoint: Endpoint, connect: Connect, protocol: Protocol, bad: float | None
) -> None:
    endpoint.script = [
        lambda request: right(request, [[bad, 1] if text == "two" else [1, 2] for text in request.body["input"]])
    ] * 9
    client = connect(protocol)
    error = client.refused("one", "two")
    assert isinstance(error, TextRefused), "the others are none the worse for it"
    assert client.embed("one").shape == (1, 2)
    assert "no direction (NaN, infinite or zero)" in error.message


@pytest.mark.parametrize("zero", [[0, 0], [], [-0.0, 0.0]])
def test_a_zero_vector_is_refused(endpoint: Endpoint, connect: Connect, zero: list[float]) -> None:
    endpoint.script = [lambda request: right(request, [zero])]
    assert isinstance(connect().refused(), TextRefused)


def test_vectors_of_several_sizes_in_one_answer_are_refused(endpoint: Endpoint, connect: Connect) -> None:
    endpoint.script = [lambda request: right(request, [[1, 2], [1, 2, 3]])]
    assert isinstance(connect().refused("one", "two"), ModelMismatch)


def test_vectors_of_another_size_than_before_are_refused_between_batches_and_between_calls(
    endpoint: Endpoint, connect: Connect
) -> None:
    endpoint.script = [right, lambda request: right(request, [[1, 2, 3]])]
    client = connect(batch_size=1)
    error = client.refused("one", "two")
    assert isinstance(error, ModelMismatch)
    assert error.message.endswith(" gave vectors of 3 dimensions, before of 8.")
    endpoint.script = [lambda request: right(request, [[1, 2, 3]])]
    assert isinstance(client.refused("three"), ModelMismatch)
    assert client.embed("four").shape == (1, 8)


# --- settings


@pytest.mark.parametrize("address", ["localhost:11434", "ftp://host/", "file:///etc/passwd", "//host", "http:/host"])
def test_a_faulty_address_is_refused(connect: Connect, address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(endpoint=address)
    assert "is not an address" in caught.value.message
    assert caught.value.hint == "It begins with http:// or https://."


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:abc",
        "http:///v1",
        "http://127.0.0.1/a b",
        "http://" + "a" * 70,
        "http://한국/",
        "http://a..b",
        "http://[::1",
    ],
)
def test_an_impossible_address_is_a_clear_error(connect: Connect, address: str) -> None:
    error = connect(endpoint=address, retries=0).refused()
    assert isinstance(error, ModelUnreachable)
    assert "cannot be reached" in error.message


@pytest.mark.parametrize("key", ["two\nlines", "열쇠", "nul\0"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(connect: Connect, key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        connect(api_key=key)
    assert key not in f"{caught.value.message}{caught.value.hint}"


def test_the_end_of_line_after_a_key_is_left_out(endpoint: Endpoint, connect: Connect) -> None:
    """Keys are read from files."""
    connect(api_key=KEY + "\n").embed("text")
    assert endpoint.requests[0].headers["Authorization"] == f"Bearer {KEY}"
