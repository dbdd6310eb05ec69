"""Libraries over HTTP: /api/v1 with our objects, /api/v2 in the shapes that existing clients of documentation servers
read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse, Response

from kebab.core import errors
from kebab.core.errors import UsageError
from kebab.core.libraries import SNIPPET_KINDS
from kebab.interfaces.http.api import json_response
from kebab.interfaces.http.endpoints import Answer, Endpoint, Parameter
from kebab.interfaces.http.reading import only, required, whole_number
from kebab.interfaces.service import MOST_LIBRARIES
from kebab.library.formatters import snippets_text
from kebab.search.options import LIBRARY, SOMETHING
from kebab.wire.libraries import library_docs_v1, library_search_v1, library_v1

if TYPE_CHECKING:
    from starlette.requests import Request

    from kebab.interfaces.service import Service
    from kebab.interfaces.workers import Workers
    from kebab.wire.libraries import LibraryDocsV1, LibrarySnippetV1, LibraryV1

_MOST = 500
"""Characters of a name, an id or a query."""
_NAME = {"type": "string", "minLength": 1, "maxLength": _MOST, "pattern": SOMETHING}
_ID = {"type": "string", "maxLength": _MOST, "pattern": LIBRARY}
_FAILS = (errors.NotFound, errors.StillIndexing, errors.SourceError)
_STATES = {"pending": "initial", "indexing": "processing", "indexed": "finalized", "failed": "error"}
_TYPES = ("json", "txt")


class LibrariesApi:
    def __init__(self, service: Service, workers: Workers) -> None:
        self._service = service
        self._workers = workers

    def endpoints(self) -> list[Endpoint]:
        naming = {"libraryName": Parameter(_NAME, required=True), "query": Parameter(_NAME)}
        asking = {"libraryId": Parameter(_ID, required=True), "query": Parameter(_NAME, required=True)}
        limit = {"limit": Parameter({"type": "integer", "minimum": 1, "maximum": MOST_LIBRARIES, "default": 10})}
        paging = {
            "type": Parameter({"type": "string", "enum": list(SNIPPET_KINDS)}),
            "tokens": Parameter({"type": "integer", "minimum": 1, "maximum": 10**6, "default": 5000}),
            "page": Parameter({"type": "integer", "minimum": 1, "maximum": 10**6, "default": 1}),
        }
        shape = {"type": Parameter({"type": "string", "enum": list(_TYPES), "default": "txt"})}
        return [
            Endpoint("GET", "/api/v1/libraries", self.all, "The libraries that are indexed", (Answer("library_list"),)),
            Endpoint(
                "GET",
                "/api/v1/libraries/search",
                self.search,
                "Libraries by name",
                (Answer("library_search"),),
                {**naming, **limit},
            ),
            Endpoint(
                "GET",
                "/api/v1/libraries/docs",
                self.docs,
                "Snippets of a library's documentation, within a budget of tokens",
                (Answer("library_docs"),),
                {**asking, **paging},
                fails=_FAILS,
            ),
            Endpoint(
                "GET",
                "/api/v2/libs/search",
                self.search_v2,
                "Libraries by name, for existing clients",
                (Answer(_SEARCH_V2),),
                naming,
            ),
            Endpoint(
                "GET",
                "/api/v2/context",
                self.context_v2,
                "Snippets of a library's documentation, for existing clients",
                (Answer({"type": "string"}, "text/plain"), Answer(_CONTEXT_V2)),
                {**asking, **shape},
                fails=_FAILS,
            ),
        ]

    async def all(self, request: Request) -> Response:
        only(request, set())
        return json_response(await self._workers.run(self._service.libraries))

    async def search(self, request: Request) -> Response:
        values = _short(only(request, {"libraryName", "query", "limit"}))
        limit = whole_number(values, "limit", 10)
        name = required(values, "libraryName")
        query = values.get("query")
        return json_response(
            library_search_v1(name, query, await self._workers.run(self._service.find_libraries, name, query, limit))
        )

    async def docs(self, request: Request) -> Response:
        values = _short(only(request, {"libraryId", "query", "type", "tokens", "page"}))
        query = required(values, "query")
        found = await self._workers.run(
            self._service.library_docs,
            required(values, "libraryId"),
            query,
            tokens=whole_number(values, "tokens"),
            type=values.get("type"),
            page=whole_number(values, "page", 1),
        )
        return json_response(library_docs_v1(query, found))

    async def search_v2(self, request: Request) -> Response:
        values = _short(only(request, {"libraryName", "query"}))
        found = await self._workers.run(
            self._service.find_libraries, required(values, "libraryName"), values.get("query")
        )
        return json_response({"results": [_library_v2(library_v1(match.library)) for match in found]})

    async def context_v2(self, request: Request) -> Response:
        values = _short(only(request, {"libraryId", "query", "type"}))
        kind = values.get("type", "txt")
        if kind not in _TYPES:
            raise UsageError(f"There is no type {kind!r}.", hint=f"Valid: {', '.join(_TYPES)}.")
        docs = await self._workers.run(
            self._service.library_docs, required(values, "libraryId"), required(values, "query")
        )
        if kind == "json":
            return json_response(_context_v2(library_docs_v1(values["query"], docs)))
        return PlainTextResponse(snippets_text(docs.snippets, docs.rules))


def _short(values: dict[str, str]) -> dict[str, str]:
    for name, text in values.items():
        if len(text) > _MOST:
            raise UsageError(f"{name} is longer than {_MOST} characters.", hint="Ask in fewer words.")
    return values


def _library_v2(library: LibraryV1) -> dict[str, Any]:
    default = next((version for version in library.versions if version.version is None), None)
    return {
        "id": library.library_id,
        "title": library.title,
        "description": library.description,
        "state": _STATES[library.state],
        "lastUpdateDate": default.indexed_at if default else None,
        "totalSnippets": library.total_snippets,
        "stars": library.stars,
        "trustScore": library.trust_score,
        "versions": [version.version for version in library.versions if version.version is not None],
    }


def _context_v2(docs: LibraryDocsV1) -> dict[str, Any]:
    return {
        "codeSnippets": [_code_v2(snippet) for snippet in docs.snippets if snippet.type == "code"],
        "infoSnippets": [_info_v2(snippet) for snippet in docs.snippets if snippet.type == "info"],
        "rules": docs.rules,
    }


def _code_v2(snippet: LibrarySnippetV1) -> dict[str, Any]:
    return {
        "codeTitle": snippet.title,
        "codeDescription": snippet.description,
        "codeLanguage": snippet.language,
        "codeTokens": snippet.tokens,
        "codeId": snippet.url or snippet.citation.uri,
        "pageTitle": snippet.breadcrumb,
        "codeList": [{"language": snippet.language, "code": snippet.content}],
    }


def _info_v2(snippet: LibrarySnippetV1) -> dict[str, Any]:
    return {
        "pageId": snippet.url or snippet.citation.uri,
        "breadcrumb": snippet.breadcrumb,
        "content": snippet.content,
        "contentTokens": snippet.tokens,
    }


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


_STRING, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
_SEARCH_V2 = _object(
    results={
        "type": "array",
        "items": _object(
            id=_STRING,
            title=_STRING,
            description=_STRING,
            state={"enum": list(_STATES.values())},
            lastUpdateDate={"type": ["string", "null"]},
            totalSnippets=_COUNT,
            stars={"type": ["integer", "null"]},
            trustScore={"type": ["number", "null"]},
            versions={"type": "array", "items": _STRING},
        ),
    }
)
_CONTEXT_V2 = _object(
    codeSnippets={
        "type": "array",
        "items": _object(
            codeTitle=_STRING,
            codeDescription=_STRING,
            codeLanguage=_STRING,
            codeTokens=_COUNT,
            codeId=_STRING,
            pageTitle=_STRING,
            codeList={"type": "array", "items": _object(language=_STRING, code=_STRING)},
        ),
    },
    infoSnippets={
        "type": "array",
        "items": _object(pageId=_STRING, breadcrumb=_STRING, content=_STRING, contentTokens=_COUNT),
    },
    rules={"type": "array", "items": _STRING},
)
