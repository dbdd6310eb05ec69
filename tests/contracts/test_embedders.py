"""What every embedder must do. A new provider needs a line in CASES."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
import pytest

from kebab.config.settings import EmbeddingSettings
from kebab.core.ports import Embedder, EmbeddingKind
from kebab.embedding.models import models_for

TEXTS = [
    "how to set up version control",
    "git",
    "",
    " \n\t ",
    "새 노트북에 깃을 설치하는 방법",
    "バージョン管理の設定方法",
    "如何设置版本控制",
    "как настроить контроль версий",
    "mixed 한국어 and English, 2024년",
    "def add(a, b):\n    return a + b\n",
    "half a character \ud800 and \udfff another",
    "\ud83d",
    "e\u0301 Å ﬁ ½ 👩‍👩‍👧 \u200b\ufeff",
    "\x00\x01\x7f\x85",
    "\x0bat the ends\x85",
    "a" * 60,
    "<s> </s> [CLS] <unk> <mask>",
    "!!! ???",
    "Guide > Git > Setup\n\nInstall it, then say who you are.\n\nA second paragraph.",
    "\n\n\n\n",
    "A passage of some length, as they are in a corpus. " * 6,
    "긴 한국어 문단이다. 문서를 검색하는 방법을 설명한다. " * 8,
]
LONG = [
    "Every word of a long English text counts, also the last one. " * 60,
    "긴 글의 모든 낱말이 중요하다. " * 30,
    "no_space_anywhere" * 100,
    "가" * 400,
]


class Case(NamedTuple):
    """A model under test: the settings as a user writes them, and `number`, which of the setting's models it is."""

    settings: dict[str, Any]
    number: int = 0


CASES = {
    "bundled granite": Case({"model": "bundled", "threads": 1}),
    "bundled multilingual": Case({"model": "bundled", "threads": 1}, 1),
    "onnx folder": Case({"model": "onnx:FOLDER", "threads": 1}),
    "openai endpoint": Case({"model": "openai:some-model", "endpoint": "ENDPOINT/v1", "batch_size": 7}),
    "ollama endpoint": Case({"model": "ollama:some-model", "endpoint": "ENDPOINT", "batch_size": 7}),
}


class Made(NamedTuple):
    embedder: Embedder
    settings: dict[str, Any]
    number: int
    cache: Path

    def again(self) -> Embedder:
        """The same model in a new, unused embedder."""
        return made_of(self.settings, self.number, self.cache)


def made_of(settings: dict[str, Any], number: int, cache: Path) -> Embedder:
    models = models_for(EmbeddingSettings(**settings), cache)
    assert models is not None
    return models.embedders[number]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server that speaks both protocols and makes vectors from hashes of the texts."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            assert 0 < len(texts) <= 7
            vectors = [[byte - 127.5 for byte in sha256(text.encode()).digest()] for text in texts]
            answers: dict[str, Any] = {
                "/v1/embeddings": {
                    "data": [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
                },
                "/api/embed": {"embeddings": vectors},
            }
            body = json.dumps(answers[self.path]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def folder(model_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sentence encoder as people download it: the bundled graph under another name."""
    made_of({"threads": 1}, 0, model_cache / "kebab").embed(["unpack"], "passage")
    target = tmp_path_factory.mktemp("folder") / "downloaded-model"
    target.mkdir()
    for name in ("model.onnx", "tokenizer.json"):
        (target / name).symlink_to(next((model_cache / "kebab").glob("granite-*")) / name)
    (target / "config.json").write_text('{"hidden_size": 384, "pad_token_id": 1}')
    return target


@pytest.fixture(scope="module", params=CASES)
def made(request: pytest.FixtureRequest, model_cache: Path, endpoint: str) -> Made:
    case = CASES[request.param]
    places = {"FOLDER": str(request.getfixturevalue("folder")) if "onnx" in request.param else "", "ENDPOINT": endpoint}
    settings = dict(case.settings)
    for name in ("model", "endpoint"):
        for word, place in places.items():
            settings[name] = settings.get(name, "").replace(word, place)
    cache = model_cache / "kebab"
    return Made(made_of(settings, case.number, cache), settings, case.number, cache)


def test_every_vector_has_length_1_and_the_promised_dimension(made: Made) -> None:
    """Texts that are empty, very long, in any script or with an unpaired surrogate have a vector with a direction."""
    for kind in get_args(EmbeddingKind):
        vectors = made.embedder.embed(TEXTS, kind)
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(TEXTS), made.embedder.dimension)
        np.testing.assert_allclose(np.linalg.norm(vectors.astype(np.float64), axis=1), 1, atol=1e-5)


def test_a_text_longer_than_the_model_reads_gets_a_vector(made: Made) -> None:
    vectors = made.embedder.embed(LONG, "passage")
    assert vectors.shape == (len(LONG), made.embedder.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(np.float64), axis=1), 1, atol=1e-5)


def test_a_text_gets_the_same_vector_in_a_batch_as_alone(made: Made) -> None:
    """Otherwise vectors could not be cached. "Alone" means an embedder that has seen no batch, because some use a
    shortcut for a few short texts.
    """
    texts = [*TEXTS, LONG[1][:300], LONG[0][:900]]
    fresh = made.again()
    alone = np.concatenate([fresh.embed([text], "passage") for text in texts])
    for order in (list(range(len(texts))), list(range(len(texts)))[::-1]):
        together = made.embedder.embed([texts[number] for number in order], "passage")
        assert np.abs(together - alone[order]).max() <= 1e-5


def test_the_same_text_twice_in_a_batch_has_the_same_vector(made: Made) -> None:
    first, _, again = made.embedder.embed(
        ["the same text", "another, longer one that comes between the two", "the same text"], "query"
    )
    assert np.abs(first - again).max() <= 1e-6


def test_another_process_gives_the_same_vectors_and_the_same_fingerprint(made: Made) -> None:
    code = """
import json, sys
from pathlib import Path
from kebab.config.settings import EmbeddingSettings
from kebab.embedding.models import models_for
settings, number, cache, texts = json.load(sys.stdin)
embedder = models_for(EmbeddingSettings(**settings), Path(cache)).embedders[number]
vectors = embedder.embed(texts, "passage")
print(json.dumps([embedder.fingerprint, list(vectors.shape), vectors.tobytes().hex()]))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        input=json.dumps([made.settings, made.number, str(made.cache), TEXTS]),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    fingerprint, shape, data = json.loads(done.stdout)
    assert fingerprint == made.embedder.fingerprint
    theirs = np.frombuffer(bytes.fromhex(data), np.float32).reshape(shape)
    assert np.abs(theirs - made.embedder.embed(TEXTS, "passage")).max() <= 1e-6


def test_the_fingerprint_is_model_version_and_dimension(made: Made) -> None:
    """The store compares only vectors with the same fingerprint."""
    embedder = made.embedder
    assert embedder.fingerprint == f"{embedder.name}@{embedder.version}:{embedder.dimension}"
    assert embedder.name
    assert embedder.version
    assert embedder.dimension == embedder.embed(["text"], "query").shape[1]


def test_different_texts_have_different_vectors(made: Made) -> None:
    one, other = made.embedder.embed(["how to set up version control", "새 노트북에 빵을 굽는다"], "passage")
    assert one @ other < 0.95


def test_no_texts_give_no_rows(made: Made) -> None:
    assert len(made.embedder.embed([], "passage")) == 0


def test_every_embedding_provider_has_a_case_in_this_file() -> None:
    """A provider without a case here would be untested."""
    from kebab.embedding.models import _PROVIDERS

    assert {case.settings["model"].partition(":")[0] for case in CASES.values()} == set(_PROVIDERS)
