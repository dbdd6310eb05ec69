"""The chat client against a real server on loopback, in both protocols: what is sent, what is read, and what goes
wrong.
"""

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
def test_the_answer_comes_piece_by_piece(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["30 ", "seconds ", "[1].", " 끝 [2]."])]
    pieces: list[str] = []
    written = client(chat_server, protocol).write(TOLD, on_text=pieces.append)
    assert pieces == ["30 ", "seconds ", "[1].", " 끝 [2]."]
    assert written.text == "".join(pieces)
    assert not written.stopped
    assert not written.cut_off


@BOTH
def test_the_settings_are_those_that_give_the_same_answer_again(chat_server: ChatServer, protocol: str) -> None:
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


def test_ollama_is_given_room_for_all_sources(chat_server: ChatServer) -> None:
    """It would drop the beginning of a longer prompt without a word."""
    client(chat_server, "ollama").write([Message("user", "word " * 10_000)])
    assert chat_server.requests[0].body["options"]["num_ctx"] > 12_000


@BOTH
def test_a_stream_that_breaks_off_is_no_answer(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["It takes "], breaks_off=True)]
    with pytest.raises(ModelUnreachable, match="broke off in the middle"):
        client(chat_server, protocol).write(TOLD)


@BOTH
def test_slow_tokens_are_waited_for_until_the_time_is_up(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["a", "b", "c"], wait_s=0.05), Reply(["a"] * 100, wait_s=0.1)]
    assert client(chat_server, protocol, timeout_s=5).write(TOLD).text == "abc"
    began = time.monotonic()
    with pytest.raises(ModelUnreachable, match=r"took longer than 0\.4 seconds"):
        client(chat_server, protocol, timeout_s=0.4).write(TOLD)
    assert time.monotonic() - began < 2


@BOTH
def test_it_can_be_given_up_while_the_server_says_nothing(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["never", "seen", "at all"], wait_s=0.3)]
    began = time.monotonic()
    written = client(chat_server, protocol).write(TOLD, stop=lambda: time.monotonic() - began > 0.1)
    assert written.stopped
    assert written.text == ""
    assert time.monotonic() - began < 0.3
    assert chat_server.abandoned.wait(3), "the connection is closed, so that the model need not go on"


@BOTH
def test_what_was_written_before_it_was_given_up_is_kept(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["first ", "second ", "third"], wait_s=0.05)]
    pieces: list[str] = []
    written = client(chat_server, protocol).write(TOLD, on_text=pieces.append, stop=lambda: bool(pieces))
    assert (written.text, written.stopped) == ("first ", True)


@BOTH
def test_an_answer_that_was_cut_off_says_so(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["and then "], cut_off=True)]
    assert client(chat_server, protocol).write(TOLD).cut_off


def error_body(text: str) -> bytes:
    return json.dumps({"error": {"message": text}}).encode()


@BOTH
def test_a_wrong_model_is_named_with_what_the_server_says(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(status=404, body=error_body("model 'tiny' not found"))]
    with pytest.raises(ModelUnreachable, match="model 'tiny' not found") as raised:
        client(chat_server, protocol).write(TOLD)
    assert "ask.model" in (raised.value.hint or "")


@BOTH
def test_too_much_text_is_told_apart_from_other_errors(chat_server: ChatServer, protocol: str) -> None:
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
def test_an_error_in_the_middle_of_the_stream_is_one(chat_server: ChatServer, protocol: str) -> None:
    chat_server.script = [Reply(["So far "], error="out of memory")]
    with pytest.raises(ModelUnreachable, match="out of memory"):
        client(chat_server, protocol).write(TOLD)


@BOTH
@pytest.mark.parametrize(
    "body", [b"<html>It works!</html>", b"[1, 2]", b'{"data": []}', b'{"choices": 3, "message": 3}']
)
def test_something_else_behind_the_address_is_named(chat_server: ChatServer, protocol: str, body: bytes) -> None:
    chat_server.script = [Reply(body=body + b"\n")]
    with pytest.raises(ModelMismatch, match="not what a chat model"):
        client(chat_server, protocol).write(TOLD)


@BOTH
def test_parts_of_text_are_read_as_one_and_thoughts_are_not(chat_server: ChatServer, protocol: str) -> None:
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
def test_content_that_is_no_text_is_an_answer_that_cannot_be_read(
    chat_server: ChatServer, protocol: str, content: Any
) -> None:
    chat_server.script = [Reply(["So far ", content])]
    with pytest.raises(ModelMismatch, match="not what a chat model"):
        client(chat_server, protocol).write(TOLD)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_server_that_does_not_stream_is_understood(chat_server: ChatServer, indent: int | None) -> None:
    said = {"choices": [{"message": {"content": "All at once [1]."}, "finish_reason": "stop"}]}
    chat_server.script = [Reply(body=json.dumps(said, indent=indent).encode())]
    assert client(chat_server, "openai").write(TOLD).text == "All at once [1]."


def test_an_object_that_never_ends_is_an_answer_that_broke_off(chat_server: ChatServer) -> None:
    chat_server.script = [Reply(body=b'{"choices": [\n')]
    with pytest.raises(ModelUnreachable, match="broke off"):
        client(chat_server, "openai").write(TOLD)


@BOTH
def test_nobody_there_is_an_error_with_what_to_do(protocol: str) -> None:
    made = chat_client(AskSettings(model=f"{protocol}:tiny", endpoint="http://127.0.0.1:9"))
    assert made is not None
    with pytest.raises(ModelUnreachable, match="cannot be reached") as raised:
        made.write(TOLD)
    assert "ask.endpoint" in (raised.value.hint or "")


def test_without_a_model_there_is_no_client() -> None:
    assert chat_client(AskSettings()) is None


def test_an_address_that_is_none_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(ConfigError, match=r"ask\.endpoint"):
        chat_client(AskSettings(model="openai:tiny", endpoint="ftp://somewhere"))
