"""The chat client with a real server on loopback, in both protocols: its requests, its results and its errors."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.answering.conftest import Reply

from kebab.answering.chat_client import ChatClient, chat_client
from kebab.config.settings import AskSettings
from kebab.core.errors import ConfigError, ModelMismatch, ModelUnreachable, TextRefused
from kebab.core.ports import Message

if TYPE_CHECKING:
    from tests.answering.conftest import ChatServer

TOLD = [Message("system", "Answer."), Message("user", "How long? 얼마나?")]
BOTH = pytest.mark.parametrize("protocol", ["openai", "ollama"])


def client(server: ChatServer, protocol: str, **settings: Any) -> ChatClient:
    made = chat_client(AskSettings(model=f"{protocol}:tiny", endpoint=server.address, **settings))
    assert made is not None
    return made


@BOTH
def test_the_answer_arrives_piece_by_piece(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["30 ", "seconds ", "[1].", " 끝 [2]."])]
    pieces: list[str] = []
    written = client(chat_server, protocol).write(TOLD, on_text=pieces.append)
    assert pieces == ["30 ", "seconds ", "[1].", " 끝 [2]."]
    assert written.text == "".join(pieces)
    assert not written.stopped
    assert not written.cut_off


@BOTH
def test_requests_use_a_fixed_seed_and_temperature_zero(chat_server: ChatServer, protocol: str) -> None:
    client(chat_server, protocol, api_key="sk-1", answer_tokens=99).write(TOLD)
    (request,) = chat_server.requests
    assert request.headers["Authorization"] == "Bearer sk-1"
    assert request.body["model"] == "tiny"
    assert request.body["stream"] is True
    assert request.body["messages"] == [{"role": message.role, "content": message.content} for message in TOLD]
    options = request.body if protocol == "openai" else request.body["options"]
    assert (options["temperature"], options["seed"]) == (0, 1)
    assert options["max_tokens" if protocol == "openai" else "num_predict"] == 99
    assert request.path == ("/chat/completions" if protocol == "openai" else "/api/chat")


def test_the_request_to_ollama_sets_a_context_length_for_all_sources(chat_server: ChatServer) -> None:
    """Ollama silently drops the beginning of a longer prompt."""
    client(chat_server, "ollama").write([Message("user", "word " * 10_000)])
    assert chat_server.requests[0].body["options"]["num_ctx"] > 12_000


@BOTH
def test_a_stream_that_breaks_off_is_an_error(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["It takes "], breaks_off=True)]
    with pytest.raises(ModelUnreachable, match="broke off in the middle"):
        client(chat_server, protocol).write(TOLD)


@BOTH
def test_a_slow_answer_is_read_until_the_time_limit(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["a", "b", "c"], wait_s=0.05), Reply(["a"] * 100, wait_s=0.1)]
    assert client(chat_server, protocol, timeout_s=5).write(TOLD).text == "abc"
    began = time.monotonic()
    with pytest.raises(ModelUnreachable, match=r"took longer than 0\.4 seconds"):
        client(chat_server, protocol, timeout_s=0.4).write(TOLD)
    assert time.monotonic() - began < 2


@BOTH
def test_a_request_can_be_stopped_while_the_server_sends_nothing(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["never", "seen", "at all"], wait_s=0.3)]
    began = time.monotonic()
    written = client(chat_server, protocol).write(TOLD, stop=lambda: time.monotonic() - began > 0.1)
    assert written.stopped
    assert written.text == ""
    assert time.monotonic() - began < 0.3
    assert chat_server.abandoned.wait(3), "the connection is closed, so that the model need not go on"


@BOTH
def test_text_written_before_a_stop_is_returned(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["first ", "second ", "third"], wait_s=0.05)]
    pieces: list[str] = []
    written = client(chat_server, protocol).write(TOLD, on_text=pieces.append, stop=lambda: bool(pieces))
    assert (written.text, written.stopped) == ("first ", True)


@BOTH
def test_a_response_that_ends_at_the_maximum_length_is_marked_as_cut_off(
    chat_server: ChatServer, protocol: str
) -> None:
    chat_server.script = [Reply(["and then "], cut_off=True)]
    assert client(chat_server, protocol).write(TOLD).cut_off


def error_body(text: str) -> bytes:
    return json.dumps({"error": {"message": text}}).encode()


@BOTH
def test_the_error_for_an_unknown_model_has_its_name_and_the_message_of_the_server(
    chat_server: ChatServer, protocol: str
) -> None:
    chat_server.script = [Reply(status=404, body=error_body("model 'tiny' not found"))]
    with pytest.raises(ModelUnreachable, match="model 'tiny' not found") as raised:
        client(chat_server, protocol).write(TOLD)
    assert "ask.model" in (raised.value.hint or "")


@BOTH
def test_a_response_about_too_long_text_raises_text_refused(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(status=400, body=error_body("This model's maximum context length is 4096 tokens."))]
    with pytest.raises(TextRefused, match="maximum context length"):
        client(chat_server, protocol).write(TOLD)


@BOTH
def test_a_refused_key_names_the_variable_and_never_the_key(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(status=401, body=error_body("bad key"))]
    with pytest.raises(ModelUnreachable) as raised:
        client(chat_server, protocol, api_key="sk-very-secret").write(TOLD)
    assert "KEBAB_ASK_API_KEY" in (raised.value.hint or "")
    assert "secret" not in raised.value.message


@BOTH
def test_an_error_object_in_the_middle_of_a_stream_is_an_error(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["So far "], error="out of memory")]
    with pytest.raises(ModelUnreachable, match="out of memory"):
        client(chat_server, protocol).write(TOLD)


@BOTH
@pytest.mark.parametrize(
    "body", [b"<html>It works!</html>", b"[1, 2]", b'{"data": []}', b'{"choices": 3, "message": 3}']
)
def test_a_server_that_is_no_model_endpoint_is_a_clear_error(
    chat_server: ChatServer, protocol: str, body: bytes
) -> None:
    chat_server.script = [Reply(body=body + b"\n")]
    with pytest.raises(ModelMismatch, match="not what a chat model"):
        client(chat_server, protocol).write(TOLD)


@BOTH
def test_parts_of_text_are_joined_and_thoughts_left_out(chat_server: ChatServer, protocol: str) -> None:
    parts = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "30 "},
        {"type": "text", "text": "seconds [1]."},
    ]
    chat_server.script = [Reply([parts, " End [2]."])]
    assert client(chat_server, protocol).write(TOLD).text == "30 seconds [1]. End [2]."


@BOTH
@pytest.mark.parametrize(
    "content", [7, True, {"text": "30"}, ["30"], [{"type": "image", "url": "x"}], [{"type": "text", "text": 3}], [{}]]
)
def test_content_of_a_wrong_type_is_an_error(chat_server: ChatServer, protocol: str, content: Any) -> None:
    chat_server.script = [Reply(["So far ", content])]
    with pytest.raises(ModelMismatch, match="not what a chat model"):
        client(chat_server, protocol).write(TOLD)


@pytest.mark.parametrize("indent", [None, 2])
def test_an_answer_from_a_server_that_does_not_stream_is_read(chat_server: ChatServer, indent: int | None) -> None:
    said = {"choices": [{"message": {"content": "All at once [1]."}, "finish_reason": "stop"}]}
    chat_server.script = [Reply(body=json.dumps(said, indent=indent).encode())]
    assert client(chat_server, "openai").write(TOLD).text == "All at once [1]."


def test_an_unfinished_object_is_an_error(chat_server: ChatServer) -> None:
    chat_server.script = [Reply(body=b'{"choices": [\n')]
    with pytest.raises(ModelUnreachable, match="broke off"):
        client(chat_server, "openai").write(TOLD)


@BOTH
def test_an_unreachable_endpoint_is_an_error_with_a_hint(protocol: str) -> None:
    made = chat_client(AskSettings(model=f"{protocol}:tiny", endpoint="http://127.0.0.1:9"))
    assert made is not None
    with pytest.raises(ModelUnreachable, match="cannot be reached") as raised:
        made.write(TOLD)
    assert "ask.endpoint" in (raised.value.hint or "")


def test_without_a_model_there_is_no_client() -> None:
    assert chat_client(AskSettings()) is None


def test_an_invalid_address_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(ConfigError, match=r"ask\.endpoint"):
        chat_client(AskSettings(model="openai:tiny", endpoint="ftp://somewhere"))
