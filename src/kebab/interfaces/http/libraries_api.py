"""REST endpoints for libraries: /api/v1 returns wire objects, /api/v2 the JSON that existing clients of documentation
servers read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from kebab.core import errors
from kebab.interfaces.http.api import Answer, Endpoint, Parameter, Schema, getting, json_response, values_given
from kebab.interfaces.service import Service, Workers
from kebab.library.formatters import snippets_text
from kebab.search.options import LIBRARY, LIBRARY_LIMIT, PAGE, SNIPPET_KIND, SOMETHING, TOKENS
from kebab.wire import libraries as wire

_MOST = 500
"""The most characters in a name, an id or a query."""
_NAME = {"type": "string", "minLength": 1, "maxLength": _MOST, "pattern": SOMETHING}
_ID = {"type": "string", "maxLength": _MOST, "pattern": LIBRARY}
_FAILS = (errors.NotFound, errors.StillIndexing, errors.SourceError)
_STATES = {"pending": "initial", "indexing": "processing", "indexed": "finalized", "failed": "error"}


_NAMING = {"libraryName": Parameter(_NAME, required=True), "query": Parameter(_NAME)}
_ASKING = {"libraryId": Parameter(_ID, required=True), "query": Parameter(_NAME, required=True)}
_PAGING = {"type": Parameter(SNIPPET_KIND), "tokens": Parameter(TOKENS), "page": Parameter(PAGE)}
_SHAPE = {"type": Parameter({"type": "string", "enum": ["json", "txt"], "default": "txt"})}


@dataclass
class LibrariesApi:
    service: Service
    workers: Workers

    def endpoints(self) -> list[Endpoint]:
        get = partial(getting, self.workers)
        context = (Answer({"type": "string"}, "text/plain"), Answer(_CONTEXT_V2))
        limited, paged, shaped = (
            {**_NAMING, "limit": Parameter(LIBRARY_LIMIT)},
            {**_ASKING, **_PAGING},
            {**_ASKING, **_SHAPE},
        )
        summary = "Snippets of a library's documentation, within a budget of tokens"
        summary_v2 = "Snippets of a library's documentation, for existing clients"
        return [
            get("v1/libraries", self.service.libraries, "The libraries that are indexed", "library_list"),
            get("v1/libraries/search", self._search, "Libraries by name", "library_search", limited),
            get("v1/libraries/docs", self._docs, summary, "library_docs", paged, _FAILS),
            get("v2/libs/search", self._search_v2, "Libraries by name, for existing clients", _SEARCH_V2, _NAMING),
            Endpoint("v2/context", self.context_v2, summary_v2, context, shaped, _FAILS),
        ]

    def _search(self, **values: Any) -> wire.LibrarySearchV1:
        name, query = values.pop("libraryName"), values.pop("query", None)
        return wire.library_search_v1(name, query, self.service.kb.libraries.search(name, query, **values))

    def _docs(self, **values: Any) -> wire.LibraryDocsV1:
        place, query = values.pop("libraryId"), values.pop("query")
        return wire.library_docs_v1(query, self.service.library_docs(place, query, **values))

    def _search_v2(self, **values: Any) -> Schema:
        found = self.service.kb.libraries.search(values["libraryName"], values.get("query"))
        return {"results": [_library_v2(wire.library_v1(match.library)) for match in found]}

    async def context_v2(self, request: Request) -> Response:
        values = values_given(request, {**_ASKING, **_SHAPE})
        docs = await self.workers.run(self.service.library_docs, values["libraryId"], values["query"])
        if values.get("type") == "json":
            return json_response(_context_v2(wire.library_docs_v1(values["query"], docs)))
        return PlainTextResponse(snippets_text(docs.snippets, docs.rules))


def _library_v2(library: wire.LibraryV1) -> dict[str, Any]:
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


def _context_v2(docs: wire.LibraryDocsV1) -> dict[str, Any]:
    return {
        "codeSnippets": [_code_v2(snippet) for snippet in docs.snippets if snippet.type == "code"],
        "infoSnippets": [_info_v2(snippet) for snippet in docs.snippets if snippet.type == "info"],
        "rules": docs.rules,
    }


def _code_v2(snippet: wire.LibrarySnippetV1) -> dict[str, Any]:
    return {
        "codeTitle": snippet.title,
        "codeDescription": snippet.description,
        "codeLanguage": snippet.language,
        "codeTokens": snippet.tokens,
        "codeId": snippet.url or snippet.citation.uri,
        "pageTitle": snippet.breadcrumb,
        "codeList": [{"language": snippet.language, "code": snippet.content}],
    }


def _info_v2(snippet: wire.LibrarySnippetV1) -> dict[str, Any]:
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
