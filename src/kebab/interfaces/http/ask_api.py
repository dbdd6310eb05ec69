"""/api/v1/ask: an answer as it is written, as server-sent events, or at once where JSON is asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from threading import Event
from typing import TYPE_CHECKING, Any

import anyio
from anyio.from_thread import run as in_the_loop
from starlette.responses import Response, StreamingResponse

from kebab.core import deadline, errors
from kebab.core.errors import Internal, KebabError, UsageError
from kebab.interfaces.http.api import json_response
from kebab.interfaces.http.endpoints import EVENTS, SEARCHING, Answer, Endpoint, Parameter
from kebab.interfaces.http.reading import given, json_body
from kebab.search import options as search_options
from kebab.search.request import ALIASES
from kebab.wire.errors import error_v1
from kebab.wire.objects import to_json

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectSendStream
    from starlette.requests import Request

    from kebab.interfaces.service import Service
    from kebab.interfaces.workers import Workers

_ANSWERS = (EVENTS, Answer("answer"))
_OPTIONS = (
    "mode",
    "k",
    *search_options.FILTERS,
    "doc",
    "library",
    "snippet_type",
    "match",
    "fusion",
    "max_tokens",
    "explain",
)
"""Of search options, those that make sense for what an answer rests on."""
_FAILS = (*SEARCHING, errors.ModelMissing)


class AskApi:
    def __init__(self, service: Service, workers: Workers) -> None:
        self._service = service
        self._workers = workers

    def endpoints(self) -> list[Endpoint]:
        question = {"type": "string", "pattern": search_options.SOMETHING, "description": "In a sentence."}
        options = {name: schema for name, schema in search_options.schemas().items() if name in _OPTIONS}
        in_json = {name: schema for name, schema in search_options.json_schemas().items() if name in _OPTIONS}
        parameters = {
            "question": Parameter(question, required=True),
            **{name: Parameter(schema) for name, schema in options.items()},
        }
        body = {
            "type": "object",
            "properties": {"question": question, **in_json},
            "required": ["question"],
            "additionalProperties": False,
        }
        summary = "An answer with checked citations, or why there is none; text, answer or error events, or JSON where that is accepted"
        return [
            Endpoint("GET", "/api/v1/ask", self.ask, summary, _ANSWERS, parameters, fails=_FAILS),
            Endpoint(
                "POST",
                "/api/v1/ask",
                self.ask_posted,
                summary,
                _ANSWERS,
                bodies={"application/json": body},
                fails=_FAILS,
            ),
        ]

    async def ask(self, request: Request) -> Response:
        return await self._answer(request, search_options.typed(given(request)))

    async def ask_posted(self, request: Request) -> Response:
        sent = await json_body(request)
        if not isinstance(sent, dict):
            raise UsageError(
                "The body is not a JSON object.", hint='For example {"question": "How do I undo a commit?"}.'
            )
        return await self._answer(request, sent)

    async def _answer(self, request: Request, options: dict[str, Any]) -> Response:
        question = options.pop("question", None)
        if not isinstance(question, str) or not question.strip():
            raise UsageError("There is no question.", hint="For example /api/v1/ask?question=How+do+I+undo+a+commit")
        for name in options:
            if ALIASES.get(name, name) not in _OPTIONS:
                raise UsageError(f"An answer has no option {name!r}.", hint=f"Options: {', '.join(_OPTIONS)}.")
        self._service.check_options(options)  # what is wrong with them is told by the status, not in the stream
        accepted = request.headers.get("accept", "")
        if "application/json" in accepted and EVENTS.media not in accepted:
            return json_response(await self._workers.run(self._service.ask, question, options, stop=deadline.is_over))
        return StreamingResponse(self._events(question, options), media_type=EVENTS.media)

    async def _events(self, question: str, options: dict[str, Any]) -> AsyncIterator[str]:
        """Pieces of text while a model writes, and one last event, the answer or an error."""
        stop = Event()
        send, receive = anyio.create_memory_object_stream[str](1000)  # a model that writes more than is read waits

        async def work() -> None:
            async with send:
                await send.send(await self._last_event(question, options, send, stop))

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(work)
                async with receive:
                    async for event in receive:
                        yield event
        finally:
            stop.set()  # whoever asked has gone

    async def _last_event(
        self, question: str, options: dict[str, Any], send: MemoryObjectSendStream[str], stop: Event
    ) -> str:
        def on_text(text: str) -> None:
            if not stop.is_set():
                in_the_loop(send.send, _event("text", {"text": text}))

        try:
            return _event(
                "answer",
                await self._workers.run(self._service.ask, question, options, on_text=on_text, stop=stop.is_set),
            )
        except KebabError as error:
            return _event("error", error_v1(error))
        except Exception as error:  # noqa: BLE001 - the status has been sent: a defect can only be told in the stream
            return _event("error", error_v1(Internal.of(error)))


def _event(name: str, wire_object: Any) -> str:
    return f"event: {name}\ndata: {to_json(wire_object)}\n\n"
