"""/api/v1: what the command line does, over HTTP. Each address is said in `endpoints()`, served and documented from
there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import anyio
from starlette.responses import Response, StreamingResponse

from kebab.core import errors
from kebab.core.errors import TimedOut, UsageError
from kebab.interfaces.bulk import answer_line, line_id
from kebab.interfaces.http.endpoints import EVENTS, SEARCHING, Answer, Endpoint, Parameter
from kebab.interfaces.http.reading import given, json_body, only, required, whole_number
from kebab.interfaces.service import MOST_DOCUMENTS, MOST_OFFSET
from kebab.search import options as search_options
from kebab.search.request import SearchRequest
from kebab.wire.errors import error_v1
from kebab.wire.objects import to_json

if TYPE_CHECKING:
    from starlette.requests import Request

    from kebab.interfaces.http.ingest_jobs import IngestJobs
    from kebab.interfaces.service import Service
    from kebab.interfaces.workers import Workers
    from kebab.wire.errors import ErrorV1
    from kebab.wire.search import SearchResponseV1

JSON_LINES = "application/x-ndjson"
_MOST_QUERIES = 1000
_EVENT_SECONDS = 0.2
_TEXT = {"type": "string", "minLength": 1, "pattern": search_options.SOMETHING}
_PATH = {"type": "string", "pattern": rf"^[^\x00]*{search_options.SOMETHING}[^\x00]*$"}
_OFFSET = {"type": "integer", "minimum": 0, "maximum": MOST_OFFSET}


def json_response(wire_object: Any, status: int = 200) -> Response:
    return Response(to_json(wire_object), status, media_type="application/json")


class Api:
    def __init__(self, service: Service, jobs: IngestJobs, workers: Workers) -> None:
        self._service = service
        self._jobs = jobs
        self._workers = workers

    def endpoints(self) -> list[Endpoint]:
        options = search_options.schemas()
        searching = {name: Parameter(schema, required=name == "query") for name, schema in options.items()}
        filters = {name: Parameter(options[name]) for name in search_options.FILTERS}
        page = {
            "limit": Parameter({"type": "integer", "minimum": 1, "maximum": MOST_DOCUMENTS, "default": 100}),
            "offset": Parameter(_OFFSET),
        }
        budget = {
            "max_tokens": Parameter({"type": "integer", "minimum": 1, "maximum": MOST_OFFSET}),
            "offset": Parameter(_OFFSET),
        }
        key = Parameter(_TEXT, required=True)
        in_json = search_options.json_schemas()
        line = {
            "type": "object",
            "properties": {"id": {}, **in_json},
            "required": ["query"],
            "additionalProperties": False,
        }
        # Anything is answered: what is no query, with an error in its place.
        queries = {"type": "array", "maxItems": _MOST_QUERIES, "items": {"anyOf": [line, {}]}}
        for_all = {name: schema for name, schema in in_json.items() if name != "query"}
        defaults = {
            "type": "object",
            "properties": {"queries": queries, **for_all},
            "required": ["queries"],
            "additionalProperties": False,
        }
        bulk = {"anyOf": [queries, defaults]}
        ingest = {
            "type": "object",
            "properties": {
                "paths": {"type": "array", "items": _PATH, "description": "None: every known source."},
                "name": {**_TEXT, "description": "What to call the source; one path only."},
                "embed": {"type": "boolean", "default": True},
            },
            "additionalProperties": False,
        }
        not_found, ambiguous = errors.NotFound, errors.Ambiguous
        return [
            Endpoint(
                "GET",
                "/api/v1/search",
                self.search,
                "Passages that answer a query",
                (Answer("search_response"),),
                searching,
                fails=SEARCHING,
            ),
            Endpoint(
                "POST",
                "/api/v1/search/bulk",
                self.bulk,
                "Several queries at once; as JSON lines, each answer comes as soon as it is there",
                (Answer("bulk_response"), Answer({"type": "string"}, JSON_LINES)),
                bodies={"application/json": bulk, JSON_LINES: {"type": "string"}},
            ),
            Endpoint(
                "GET",
                "/api/v1/documents",
                self.documents,
                "Documents that pass filters",
                (Answer("list"),),
                {**filters, **page},
                fails=(not_found,),
            ),
            Endpoint(
                "GET",
                "/api/v1/documents/{doc_id}",
                self.document,
                "One document and its chunks, by id or path",
                (Answer("doc_summary"),),
                {"doc_id": key},
                fails=(not_found, ambiguous),
            ),
            Endpoint(
                "GET",
                "/api/v1/chunks/{chunk_id}",
                self.chunk,
                "One chunk, by its id or the beginning of it",
                (Answer("chunk_inspection"),),
                {"chunk_id": key},
                fails=(not_found, ambiguous),
            ),
            Endpoint(
                "GET",
                "/api/v1/spans",
                self.span,
                "Exactly the lines or the page that a citation names",
                (Answer("fetch_result"),),
                {"uri": Parameter({**_TEXT, "pattern": r"^[^\s#:][^#:]*#L[1-9][0-9]{0,6}$"}, required=True)},
                fails=(not_found, ambiguous),
            ),
            Endpoint(
                "GET",
                "/api/v1/fetch",
                self.fetch,
                "The text of a document (by id or path), or of a citation in it, within a budget of tokens",
                (Answer("fetch_result"),),
                {"uri": key, **budget},
                fails=(not_found, ambiguous),
            ),
            Endpoint("GET", "/api/v1/sources", self.sources, "The places that were ingested", (Answer("list"),)),
            Endpoint("GET", "/api/v1/tags", self.tags, "Tags, the most used first", (Answer("list"),)),
            Endpoint("GET", "/api/v1/status", self.status, "What this server serves", (Answer("status"),)),
            Endpoint("GET", "/api/v1/health", self.health, "Whether it answers and can read", (Answer("health"),)),
            Endpoint("GET", "/api/v1/ingest", self.ingests, "The ingests it was asked for", (Answer("ingest_jobs"),)),
            Endpoint(
                "POST",
                "/api/v1/ingest",
                self.start_ingest,
                "Index what is new or changed; refused unless the server may write",
                (Answer("ingest_job", status=202),),
                bodies={"application/json": ingest},
            ),
            Endpoint(
                "GET",
                "/api/v1/ingest/{job_id}",
                self.ingest,
                "One ingest",
                (Answer("ingest_job"),),
                {"job_id": key},
                fails=(not_found,),
            ),
            Endpoint(
                "GET",
                "/api/v1/ingest/{job_id}/events",
                self.ingest_events,
                "Its progress, event by event, until it is over",
                (EVENTS,),
                {"job_id": key},
                fails=(not_found,),
            ),
        ]

    # --- passages

    async def search(self, request: Request) -> Response:
        options = search_options.typed(given(request))
        if "query" not in options:
            raise UsageError("There is no query.", hint="For example /api/v1/search?query=install+git")
        return json_response(await self._workers.run(self._service.search, options))

    async def bulk(self, request: Request) -> Response:
        if JSON_LINES in request.headers.get("content-type", ""):
            # Only line feeds part them: a text in JSON may hold what else splitlines() takes for an end.
            lines: list[Any] = [
                line for line in (await request.body()).decode("utf-8", "replace").split("\n") if line.strip()
            ]
            _check_count(lines)
            return StreamingResponse(self._answer_lines(lines, SearchRequest()), media_type=JSON_LINES)
        sent = await json_body(request)
        options = dict(sent) if isinstance(sent, dict) else {"queries": sent}
        lines = options.pop("queries", None)
        if not isinstance(lines, list) or "query" in options:
            raise UsageError(
                "There are no queries.", hint='Send {"queries": [{"id": "q1", "query": "install git"}]}, or JSON lines.'
            )
        _check_count(lines)
        self._service.check_options(options)
        answers = [line async for line in self._answer_lines(lines, SearchRequest.from_options(options))]
        body = '{"schema_version": "bulk_response.v1", "responses": [' + ",".join(answers) + "]}"
        return Response(body, media_type="application/json")

    async def _answer_lines(self, lines: list[Any], defaults: SearchRequest) -> AsyncIterator[str]:
        for number, line in enumerate(lines, start=1):
            yield to_json(await self._answer_line(line, number, defaults)) + "\n"

    async def _answer_line(self, line: Any, number: int, defaults: SearchRequest) -> SearchResponseV1 | ErrorV1:
        try:
            return await self._workers.run(answer_line, line, number, defaults, self._service.kb.search)
        except TimedOut as error:  # one that takes too long does not take the others with it
            return error_v1(error, id=line_id(line))

    async def fetch(self, request: Request) -> Response:
        values = only(request, {"uri", "max_tokens", "offset"})
        uri = required(values, "uri")
        offset, budget = whole_number(values, "offset", 0), whole_number(values, "max_tokens")
        return json_response(await self._workers.run(self._service.fetch, uri=uri, max_tokens=budget, offset=offset))

    async def span(self, request: Request) -> Response:
        uri = required(only(request, {"uri"}), "uri")
        return json_response(await self._workers.run(self._service.span, uri))

    async def document(self, request: Request) -> Response:
        only(request, set())
        return json_response(await self._workers.run(self._service.document, request.path_params["doc_id"]))

    async def chunk(self, request: Request) -> Response:
        only(request, set())
        return json_response(await self._workers.run(self._service.chunk, request.path_params["chunk_id"]))

    # --- lists

    async def documents(self, request: Request) -> Response:
        parameters = given(request)
        page: dict[str, str] = {
            name: ",".join(parameters.pop(name)) for name in ("limit", "offset") if name in parameters
        }
        limit, offset = whole_number(page, "limit", 100), whole_number(page, "offset", 0)
        options = search_options.typed(parameters)
        return json_response(await self._workers.run(self._service.documents, options, limit=limit, offset=offset))

    async def sources(self, request: Request) -> Response:
        only(request, set())
        return json_response(await self._workers.run(self._service.sources))

    async def tags(self, request: Request) -> Response:
        only(request, set())
        return json_response(await self._workers.run(self._service.tags))

    # --- the server itself

    async def status(self, request: Request) -> Response:
        only(request, set())
        return json_response(await self._workers.run(self._service.status, ingest_running=self._jobs.is_running))

    async def health(self, request: Request) -> Response:
        only(request, set())
        return json_response(await self._workers.run(self._service.health))

    # --- ingest

    async def ingests(self, request: Request) -> Response:
        only(request, set())
        return json_response(self._jobs.all())

    async def start_ingest(self, request: Request) -> Response:
        self._service.require_write()
        sent = await json_body(request)
        if not isinstance(sent, dict) or set(sent) - {"paths", "name", "embed"}:
            raise UsageError(
                "An ingest takes paths, name and embed.", hint='For example {"paths": ["/home/me/notes"]}.'
            )
        paths, name, embed = sent.get("paths", []), sent.get("name"), sent.get("embed", True)
        if not isinstance(paths, list) or not all(
            isinstance(path, str) and path.strip() and "\0" not in path for path in paths
        ):
            raise UsageError("paths takes a list of texts.", hint='For example {"paths": ["/home/me/notes"]}.')
        if (name is not None and not (isinstance(name, str) and name.strip())) or not isinstance(embed, bool):
            raise UsageError(
                "name takes a text, and embed true or false.", hint='For example {"name": "notes", "embed": false}.'
            )
        return json_response(self._jobs.start(tuple(paths), name, embed), 202)

    async def ingest(self, request: Request) -> Response:
        only(request, set())
        return json_response(self._jobs.find(request.path_params["job_id"]).as_wire())

    async def ingest_events(self, request: Request) -> Response:
        only(request, set())
        job = self._jobs.find(request.path_params["job_id"])

        async def events() -> AsyncIterator[str]:
            shown = None
            while True:
                is_over, progress = job.is_over, job.progress
                if progress is not None and progress is not shown:
                    shown = progress
                    yield f"event: {progress.event}\ndata: {to_json(progress)}\n\n"
                if is_over:
                    return
                await anyio.sleep(_EVENT_SECONDS)

        return StreamingResponse(events(), media_type=EVENTS.media)


def _check_count(lines: list[Any]) -> None:
    if len(lines) > _MOST_QUERIES:
        raise UsageError(f"{len(lines)} queries are too many at once.", hint=f"Send at most {_MOST_QUERIES}.")
