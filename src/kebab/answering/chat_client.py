"""Asks a model behind an endpoint that the user named: OpenAI's chat API, which many servers implement, or Ollama's.
The network is used only if `ask.model` says so. The answer arrives piece by piece and can be stopped at any moment.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kebab.answering.thoughts import WithoutThoughts, without_thoughts
from kebab.config.settings import AskSettings
from kebab.core.errors import ModelMismatch, ModelUnreachable
from kebab.core.ports import Message, Written
from kebab.core.text import estimate_tokens, whole_characters
from kebab.endpoints import Passing, endpoint
from kebab.http_client import Stopped

_SEED = 1
_LONGEST_LINE = 1 << 20
_LONGEST_ANSWER = 1 << 22
"""The most characters of an answer: a model that repeats itself without end is cut off."""
_CONTEXT_STEP = 2048
_THOUGHTS = ("thinking", "reasoning")
"""Names of the fields with a model's thoughts, which are not part of its answer."""


class Piece(NamedTuple):
    """The content of one line of a stream."""

    text: str = ""
    last: bool = False
    cut_off: bool = False
    """Whether the model stopped because it had written as much as it may."""


class ChatProtocol(NamedTuple):
    """How to ask one kind of endpoint, and how to read the lines of its answer."""

    name: str
    address: str
    path: str
    body: Callable[[str, list[dict[str, str]], int], dict[str, Any]]
    piece: Callable[[Any], Piece]


def _text(content: Any) -> str:
    """The text of a content field, which some servers send as a list of parts. TypeError if it is not text."""
    if isinstance(content, list):
        return "".join(_text_of_part(part) for part in content)
    if content is None or isinstance(content, str):
        return content or ""
    raise TypeError(f"content is {type(content).__name__}")


def _text_of_part(part: Any) -> str:
    if part["type"] in _THOUGHTS:
        return ""
    if part["type"] != "text" or not isinstance(part["text"], str):
        raise TypeError(f"a part of content is {part['type']!r}")
    return str(part["text"])


def _openai_piece(said: Any) -> Piece:
    choices = said["choices"]
    if not choices:  # statistics come in a piece of their own
        return Piece()
    choice = choices[0]
    whole = "message" in choice  # a server that does not stream
    text = _text((choice["message"] if whole else choice.get("delta") or {}).get("content"))
    reason = choice.get("finish_reason")
    return Piece(text, last=whole or reason is not None, cut_off=reason == "length")


def _ollama_piece(said: Any) -> Piece:
    return Piece(
        _text(said["message"].get("content")), last=bool(said.get("done")), cut_off=said.get("done_reason") == "length"
    )


def _ollama_body(model: str, messages: list[dict[str, str]], max_tokens: int) -> dict[str, Any]:
    """The body of a request to Ollama. It sets a context length that holds everything, because Ollama silently drops
    the beginning of longer input.
    """
    needed = max_tokens + sum(estimate_tokens(message["content"]) for message in messages)
    room = -(-needed // _CONTEXT_STEP) * _CONTEXT_STEP
    options = {"temperature": 0, "seed": _SEED, "num_predict": max_tokens, "num_ctx": room}
    return {"model": model, "messages": messages, "stream": True, "options": options}


OPENAI = ChatProtocol(
    name="openai",
    address="https://api.openai.com/v1",
    path="/chat/completions",
    body=lambda model, messages, max_tokens: {
        "model": model,
        "messages": messages,
        "stream": True,
        "temperature": 0,
        "seed": _SEED,
        "max_tokens": max_tokens,
    },
    piece=_openai_piece,
)
OLLAMA = ChatProtocol(
    name="ollama", address="http://127.0.0.1:11434", path="/api/chat", body=_ollama_body, piece=_ollama_piece
)
_PROTOCOLS = {protocol.name: protocol for protocol in (OPENAI, OLLAMA)}


class ChatClient:
    """One model behind one endpoint. The same request asks for the same words every time."""

    def __init__(self, protocol: ChatProtocol, model: str, settings: AskSettings) -> None:
        self.name = f"{protocol.name}:{model}"
        self._model = model
        self._protocol = protocol
        self._settings = settings
        self._endpoint = endpoint(
            "ask",
            settings.endpoint or protocol.address,
            protocol.path,
            settings.api_key,
            settings.timeout_s,
            meanwhile="with an empty ask.model answers are quotations meanwhile",
            too_long="ask.max_tokens",
        )

    def write(
        self,
        messages: Sequence[Message],
        *,
        on_text: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Written:
        """Returns the whole answer, and passes each piece to `on_text` on arrival. ModelUnreachable if there is no
        answer or it breaks off; TextRefused if the question with its sources is too long for the model.
        """
        sent = [{"role": message.role, "content": whole_characters(message.content)} for message in messages]
        body = self._protocol.body(self._model, sent, self._settings.answer_tokens)
        accept = "text/event-stream, application/x-ndjson, application/json"
        ends = time.monotonic() + self._settings.timeout_s
        parts: list[str] = []
        thoughts = WithoutThoughts()
        received = 0

        def take(text: str) -> None:
            if text:
                parts.append(text)
                if on_text is not None:
                    on_text(text)

        unfinished = ""
        try:
            with self._endpoint.opened(body, accept=accept, stop=stop) as response:
                for line in response.lines(_LONGEST_LINE):
                    unfinished += line
                    if _may_go_on(unfinished):
                        continue
                    piece, unfinished = self._read(unfinished), ""
                    received += len(piece.text)
                    take(thoughts.shown(piece.text))
                    if piece.last or received > _LONGEST_ANSWER:
                        take(thoughts.rest())
                        return Written(without_thoughts("".join(parts)), cut_off=piece.cut_off or not piece.last)
        except Stopped:
            return Written("".join(parts), stopped=True)
        except (OSError, Passing) as error:
            if time.monotonic() > ends:
                raise ModelUnreachable(
                    f"{self._endpoint.address} took longer than {self._settings.timeout_s:g} seconds for its answer.",
                    hint="Raise ask.timeout_s, or lower ask.max_tokens.",
                ) from error
            if isinstance(error, Passing):
                raise error.error from error
            raise self._broke_off(f": {error}") from error
        raise self._broke_off("")

    def _broke_off(self, reason: str) -> ModelUnreachable:
        return ModelUnreachable(
            f"{self._endpoint.address} broke off in the middle of its answer{reason}.",
            hint="Ask again, or look at what the server says.",
        )

    def _read(self, line: str) -> Piece:
        said = line.removeprefix("data:").strip()
        if not said or said.startswith((":", "event:", "id:", "retry:")):
            return Piece()
        if said == "[DONE]":
            return Piece(last=True)
        try:
            told = json.loads(said)
            if told.get("error"):
                reason = told["error"].get("message") if isinstance(told["error"], dict) else told["error"]
                raise ModelUnreachable(
                    f"{self._endpoint.address} gave up: {' '.join(str(reason).split())[:200].rstrip('.')}.",
                    hint="Check ask.model and ask.endpoint; ask.max_tokens when the sources are too long for the model.",
                )
            return self._protocol.piece(told)
        except (KeyError, TypeError, AttributeError, IndexError, ValueError, RecursionError) as error:
            raise ModelMismatch(
                f"The answer of {self._endpoint.address} is not what a chat model of {self._protocol.name} says.",
                hint="Check that ask.endpoint speaks that protocol, and that ask.model names a chat model.",
            ) from error


def _may_go_on(text: str) -> bool:
    """Whether the text may be the beginning of a JSON object over several lines, as servers that do not stream send it."""
    if not text.startswith("{") or len(text) > _LONGEST_ANSWER:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False


def chat_client(settings: AskSettings) -> ChatClient | None:
    """The client for the model that `ask.model` names; None if answers are quotations."""
    name, _, model = settings.model.strip().partition(":")
    return ChatClient(_PROTOCOLS[name], model.strip(), settings) if name else None
