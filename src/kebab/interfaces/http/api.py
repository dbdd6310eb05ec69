"""The REST interface below /api/v1: how an endpoint is described, how requests are read, and the endpoints.

`Api.endpoints()` and `Api.ask_endpoints()` list the addresses for the router and for the OpenAPI document.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, NamedTuple

import anyio
from anyio.from_thread import run as in_the_loop
from anyio.streams.memory import MemoryObjectSendStream
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from kebab.core import deadline, errors
from kebab.core.checking import KINDS, by_name, checked_argument, empty, from_text, repeated, require
from kebab.core.errors import Internal, KebabError, TimedOut, UsageError
from kebab.core.text import json_values
from kebab.interfaces.bulk import answer_line, line_id
from kebab.interfaces.http.ingest_jobs import IngestJobs
from kebab.interfaces.service import Service, Workers
from kebab.search import options as search_options
from kebab.search.options import LIST_LIMIT, MAX_TOKENS, OFFSET, SearchRequest
from kebab.wire import to_json
from kebab.wire.errors import error_v1

Schema = dict[str, Any]
Handler = Callable[["Request"], Awaitable["Response"]]


class Parameter(NamedTuple):
    """A parameter in an address: in the path if the endpoint's path names it, otherwise in the query."""

    schema: Schema
    required: bool = False


class Answer(NamedTuple):
    """A successful response. `schema` is the name of a wire object, or a JSON Schema."""

    schema: str | Schema
    media: str = "application/json"
    status: int = 200


EVENTS = Answer(
    {
        "type": "object",
        "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
        "required": ["event", "data"],
    },
    "text/event-stream",
)
"""A response of server-sent events. The data of each event is JSON."""


class Endpoint(NamedTuple):
    path: str
    """The path without the leading /api/."""
    handler: Handler
    summary: str
    answers: tuple[Answer, ...]
    parameters: Mapping[str, Parameter] = {}
    fails: tuple[type[errors.KebabError], ...] = ()
    """Errors that it may return besides those of ALWAYS."""
    bodies: Mapping[str, Schema] = {}
    """The schema of the request body by media type. An endpoint with a request body takes POST, any other GET."""

    @property
    def method(self) -> str:
        return "POST" if self.bodies else "GET"


ALWAYS: tuple[type[errors.KebabError], ...] = (
    *(errors.UsageError, errors.Refused, errors.Unauthorized, errors.NotFound),
    *(errors.TooLarge, errors.TooMany, errors.TimedOut, errors.Internal),
)
"""Errors that any request may return. NotFound is one of them because the database may be missing."""
SEARCHING: tuple[type[errors.KebabError], ...] = (
    *(errors.NotFound, errors.StaleCursor, errors.ModelUnreachable, errors.StillIndexing),
)


# --- reading requests


def texts_of(request: Request) -> dict[str, list[str]]:
    """The query parameters of a request, each with all its values."""
    parameters = request.query_params
    return {name: parameters.getlist(name) for name in parameters}


def values_given(request: Request, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The checked parameters of the path and the query. Unknown, repeated, empty or missing ones raise UsageError."""
    known = {name: parameter for name, parameter in parameters.items() if name not in request.path_params}
    values = request.path_params | checked_texts(by_name(texts_of(request), known), known)
    require((name for name, parameter in parameters.items() if parameter.required), values)
    return values


def checked_texts(given: Mapping[str, list[str]], parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The checked values of parameters from an address. Repeated or empty ones raise UsageError."""
    values = {}
    for name, texts in given.items():
        if len(texts) > 1:
            raise repeated(name)
        if not texts[0].strip():
            raise empty(name)
        values[name] = checked_text(name, texts[0], parameters[name].schema)
    return values


def checked_text(name: str, text: str, schema: Schema) -> Any:
    """Converts a text from an address to the type in its schema, and checks it."""
    return checked_argument(name, from_text(text, KINDS[schema["type"]]), schema)


async def json_body(request: Request) -> Any:
    try:
        return json_values(await request.body())
    except (ValueError, RecursionError) as error:
        hint = "Send it as application/json, in UTF-8; JSON lines, where they are taken, as application/x-ndjson."
        raise UsageError(f"The body is not JSON: {error}.", hint=hint) from error


async def json_object(request: Request, example: str) -> dict[str, Any]:
    sent = await json_body(request)
    if not isinstance(sent, dict):
        raise UsageError("The body is not a JSON object.", hint=f"For example {example}.")
    return sent


JSON_LINES = "application/x-ndjson"
_MOST_QUERIES = 1000
_EVENT_SECONDS = 0.2
_TEXT = {"type": "string", "minLength": 1, "pattern": search_options.SOMETHING}
_PATH = {"type": "string", "pattern": rf"^[^\x00]*{search_options.SOMETHING}[^\x00]*$"}
_KEY = Parameter(_TEXT, required=True)
_PAGE = {"limit": Parameter(LIST_LIMIT), "offset": Parameter(OFFSET)}
_CITATION = Parameter({**_TEXT, "pattern": r"^[^\s#:][^#:]*#L[1-9][0-9]{0,6}$"}, required=True)
_QUESTION = {"type": "string", "pattern": search_options.SOMETHING, "description": "In a sentence."}
_NOTHING: Mapping[str, Parameter] = {}


def json_response(wire_object: Any, status: int = 200) -> Response:
    return Response(to_json(wire_object), status, media_type="application/json")


@dataclass
class Api:
    service: Service
    jobs: IngestJobs
    workers: Workers
    patient: Workers
    """Workers for `ask`, which may wait for a model."""

    def endpoints(self) -> list[Endpoint]:
        options = search_options.schemas()
        searching = {name: Parameter(schema, required=name == "query") for name, schema in options.items()}
        paged = {name: Parameter(options[name]) for name in search_options.FILTERS} | _PAGE
        found, listed = (Answer("search_response"),), (Answer("list"),)
        absent, cited = (errors.NotFound,), {"uri": _CITATION}
        service, jobs = self.service, self.jobs
        get = partial(getting, self.workers)
        one = partial(get, fails=(errors.NotFound, errors.Ambiguous))
        return [
            Endpoint("v1/search", self.search, "Passages that answer a query", found, searching, SEARCHING),
            Endpoint(
                "v1/search/bulk",
                self.bulk,
                "Several queries at once; as JSON lines, each answer comes as soon as it is there",
                (Answer("bulk_response"), Answer({"type": "string"}, JSON_LINES)),
                bodies={"application/json": _bulk_schema(), JSON_LINES: {"type": "string"}},
            ),
            Endpoint("v1/documents", self.documents, "Documents that pass filters", listed, paged, absent),
            one("v1/documents/{doc_id}", service.document, "One document and its chunks, by id or path", "doc_summary"),
            one(
                "v1/chunks/{chunk_id}", service.chunk, "One chunk, by its id or the beginning of it", "chunk_inspection"
            ),
            one("v1/spans", service.span, "Exactly the lines or the page that a citation names", "fetch_result", cited),
            one(
                "v1/fetch",
                service.fetch,
                "The text of a document (by id or path), or of a citation in it, within a budget of tokens",
                "fetch_result",
                {"uri": _KEY, "max_tokens": Parameter(MAX_TOKENS), "offset": Parameter(OFFSET)},
            ),
            get("v1/sources", service.sources, "The places that were ingested", "list"),
            get("v1/tags", service.tags, "Tags, the most used first", "list"),
            get(
                "v1/status", lambda: service.status(ingest_running=jobs.is_running), "What this server serves", "status"
            ),
            get("v1/health", service.health, "Whether it answers and can read", "health"),
            get("v1/ingest", jobs.all, "The ingests it was asked for", "ingest_jobs"),
            Endpoint(
                "v1/ingest",
                self.start_ingest,
                "Index what is new or changed; refused unless the server may write",
                (Answer("ingest_job", status=202),),
                bodies={"application/json": _INGEST},
            ),
            get("v1/ingest/{job_id}", lambda job_id: jobs.find(job_id).wire, "One ingest", "ingest_job", fails=absent),
            Endpoint(
                "v1/ingest/{job_id}/events",
                self.ingest_events,
                "Its progress, event by event, until it is over",
                (EVENTS,),
                {"job_id": _KEY},
                absent,
            ),
        ]

    def ask_endpoints(self) -> list[Endpoint]:
        names = [name for name in search_options.OPTIONS if name != "query"]
        parameters = {name: Parameter(schema) for name, schema in search_options.schemas(names).items()}
        body = _object({"question": _QUESTION, **search_options.json_schemas(names)}, required=["question"])
        summary = (
            "An answer with checked citations, or why there is none; text, answer or error events, "
            "or JSON where that is accepted"
        )
        answers, fails = (EVENTS, Answer("answer")), (*SEARCHING, errors.ModelMissing)
        asking = {"question": Parameter(_QUESTION, required=True), **parameters}
        posted = {"application/json": body}
        return [
            Endpoint("v1/ask", self.ask, summary, answers, asking, fails),
            Endpoint("v1/ask", self.ask_posted, summary, answers, fails=fails, bodies=posted),
        ]

    # --- passages

    async def search(self, request: Request) -> Response:
        options = search_options.read_texts(texts_of(request))
        if "query" not in options:
            raise UsageError("There is no query.", hint="For example /api/v1/search?query=install+git")
        return json_response(await self.workers.run(self.service.search, options))

    async def documents(self, request: Request) -> Response:
        parameters = texts_of(request)
        page = checked_texts({name: parameters.pop(name) for name in _PAGE if name in parameters}, _PAGE)
        options = search_options.read_texts(parameters)
        return json_response(await self.workers.run(self.service.documents, options, **page))

    async def bulk(self, request: Request) -> Response:
        if JSON_LINES in request.headers.get("content-type", ""):
            # Not splitlines(): it also splits at characters that may be inside JSON texts.
            lines: list[Any] = [
                line for line in (await request.body()).decode("utf-8", "replace").split("\n") if line.strip()
            ]
            _check_count(lines)
            return StreamingResponse(self._answer_lines(lines, SearchRequest()), media_type=JSON_LINES)
        sent = await json_body(request)
        options = dict(sent) if isinstance(sent, dict) else {"queries": sent}
        lines = options.pop("queries", None)
        if not isinstance(lines, list) or "query" in options:
            hint = 'Send {"queries": [{"id": "q1", "query": "install git"}]}, or JSON lines.'
            raise UsageError("There are no queries.", hint=hint)
        _check_count(lines)
        await self.workers.run(self.service.check_options, options)
        answers = [line async for line in self._answer_lines(lines, SearchRequest.from_options(options))]
        body = '{"schema_version": "bulk_response.v1", "responses": [' + ",".join(answers) + "]}"
        return Response(body, media_type="application/json")

    async def _answer_lines(self, lines: list[Any], defaults: SearchRequest) -> AsyncIterator[str]:
        for number, line in enumerate(lines, start=1):
            try:
                answer = await self.workers.run(answer_line, line, number, defaults, self.service.kb.search)
            except TimedOut as error:  # this line gets an error, and the other lines are still answered
                answer = error_v1(error, id=line_id(line))
            yield to_json(answer) + "\n"

    # --- answers

    async def ask(self, request: Request) -> Response:
        return await self._answer(request, search_options.read_texts(texts_of(request)))

    async def ask_posted(self, request: Request) -> Response:
        return await self._answer(request, await json_object(request, '{"question": "How do I undo a commit?"}'))

    async def _answer(self, request: Request, options: dict[str, Any]) -> Response:
        question = options.pop("question", None)
        if not isinstance(question, str) or not question.strip():
            raise UsageError("There is no question.", hint="For example /api/v1/ask?question=How+do+I+undo+a+commit")
        await self.workers.run(self.service.check_options, options)  # before the stream, to set the HTTP status
        accepted = request.headers.get("accept", "")
        if "application/json" in accepted and EVENTS.media not in accepted:
            return json_response(await self.patient.run(self.service.ask, question, options, stop=deadline.is_over))
        return StreamingResponse(self._events(question, options), media_type=EVENTS.media)

    async def _events(self, question: str, options: dict[str, Any]) -> AsyncIterator[str]:
        """Yields the pieces of text that a model writes as events, then one last event: the answer or an error."""
        stop = Event()
        send, receive = anyio.create_memory_object_stream[str](1000)  # if it is full, the model waits for the caller

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
            stop.set()  # the caller has disconnected

    async def _last_event(
        self, question: str, options: dict[str, Any], send: MemoryObjectSendStream[str], stop: Event
    ) -> str:
        def on_text(text: str) -> None:
            if not stop.is_set():
                in_the_loop(send.send, _event("text", {"text": text}))

        try:
            answer = self.patient.run(self.service.ask, question, options, on_text=on_text, stop=stop.is_set)
            return _event("answer", await answer)
        except Exception as error:  # noqa: BLE001 - the status is already sent, so an event reports it
            return _event("error", error_v1(Internal.of(error)))

    # --- ingest

    async def start_ingest(self, request: Request) -> Response:
        self.service.require_write()
        sent = await json_object(request, '{"paths": ["/home/me/notes"]}')
        schemas = _INGEST["properties"]
        values = {name: checked_argument(name, value, schemas[name]) for name, value in by_name(sent, schemas).items()}
        job = self.jobs.start(tuple(values.get("paths", ())), values.get("name"), values.get("embed", True))
        return json_response(job, 202)

    async def ingest_events(self, request: Request) -> Response:
        job = self.jobs.find(**values_given(request, {"job_id": _KEY}))

        async def events() -> AsyncIterator[str]:
            shown = None
            while True:
                is_over, progress = job.is_over, job.wire.progress
                if progress is not None and progress is not shown:
                    shown = progress
                    yield _event(progress.event, progress)
                if is_over:
                    return
                await anyio.sleep(_EVENT_SECONDS)

        return StreamingResponse(events(), media_type=EVENTS.media)


def getting(
    workers: Workers,
    path: str,
    call: Callable[..., Any],
    summary: str,
    answer: str | Schema,
    parameters: Mapping[str, Parameter] = _NOTHING,
    fails: tuple[type[KebabError], ...] = (),
) -> Endpoint:
    """An endpoint that passes its parameters, also those in its path, to `call` and sends the result as JSON."""
    parameters = {**dict.fromkeys(re.findall(r"{(\w+)}", path), _KEY), **parameters}

    async def handle(request: Request) -> Response:
        return json_response(await workers.run(call, **values_given(request, parameters)))

    return Endpoint(path, handle, summary, (Answer(answer),), parameters, fails)


def _check_count(lines: list[Any]) -> None:
    if len(lines) > _MOST_QUERIES:
        raise UsageError(f"{len(lines)} queries are too many at once.", hint=f"Send at most {_MOST_QUERIES}.")


def _event(name: str, wire_object: Any) -> str:
    return f"event: {name}\ndata: {to_json(wire_object)}\n\n"


def _object(properties: Schema, required: list[str] | None = None) -> Schema:
    needed = {"required": required} if required else {}
    return {"type": "object", "properties": properties, **needed, "additionalProperties": False}


def _bulk_schema() -> Schema:
    in_json = search_options.json_schemas()
    line = _object({"id": {}, **in_json}, ["query"])
    # The schema allows any item, because a wrong item gets an error of its own in the response.
    queries = {"type": "array", "maxItems": _MOST_QUERIES, "items": {"anyOf": [line, {}]}}
    del in_json["query"]
    return {"anyOf": [queries, _object({"queries": queries, **in_json}, ["queries"])]}


_INGEST = _object(
    {
        "paths": {"type": "array", "items": _PATH, "description": "None: every known source."},
        "name": {**_TEXT, "description": "What to call the source; one path only."},
        "embed": {"type": "boolean", "default": True},
    }
)
