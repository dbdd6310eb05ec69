"""The tools over documentation of libraries, with the names, arguments and text formats that agents already know."""

from __future__ import annotations

from typing import Any

from kebab.core.libraries import SNIPPET_KINDS
from kebab.core.search import SUSPICIOUS
from kebab.interfaces.mcp.tool import Answer, Call, Tool, how_many_fit
from kebab.library.docs import DEFAULT_TOKENS
from kebab.library.formatters import libraries_text, snippets_text
from kebab.search.request import split_library
from kebab.wire.libraries import library_docs_v1, library_search_v1

_TEXT: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 500}
_LIBRARY_ID = {
    **_TEXT,
    "pattern": r"^/[^/]+/[^/]+([/@][^/]+)?$",
    "description": "/owner/project, or /owner/project/version, as resolve-library-id gives it.",
}
_ID_ALIASES = {
    "context7CompatibleLibraryID": "libraryId",
    "libraryID": "libraryId",
    "libraryName": "libraryId",
    "library": "libraryId",
}
_BUDGET: dict[str, Any] = {
    "tokens": {
        "type": "integer",
        "minimum": 1,
        "maximum": 10**6,
        "default": DEFAULT_TOKENS,
        "description": "Whole snippets up to so many.",
    },
    "type": {"type": "string", "enum": list(SNIPPET_KINDS), "description": "Only code, or only prose."},
    "page": {
        "type": "integer",
        "minimum": 1,
        "maximum": 10**6,
        "default": 1,
        "description": "The next snippets, up to the same budget.",
    },
}


def _resolve(call: Call) -> Answer:
    name, query = call.values["libraryName"], call.values.get("query")
    found = call.service.find_libraries(name, query)
    answer = library_search_v1(name, query, found)
    room = how_many_fit(answer.libraries)
    left_out, answer.libraries = len(found) - room, answer.libraries[:room]
    remarks = [SUSPICIOUS] if any(library.suspicious for library in answer.libraries) else []
    remarks += [f"{left_out} more were found; a longer name finds fewer."] if left_out else []
    return Answer(answer, (libraries_text(match.library for match in found[:room]), *remarks))


def _docs(call: Call) -> Answer:
    values = call.values
    # The older tool may be asked for a library as a whole: then for what the library calls itself.
    query = values.get("query") or split_library(values["libraryId"])[0].rpartition("/")[2]
    page = values.get("page", 1)
    docs = call.service.library_docs(
        values["libraryId"], query, tokens=values.get("tokens"), type=values.get("type"), page=page
    )
    # Notices and the reason for a version are in the object; beside the known format stands only what must not be
    # missed.
    remarks = [SUSPICIOUS] if docs.suspicious_rules or any(snippet.suspicious for snippet in docs.snippets) else []
    remarks += [f"There is more: page {page + 1}"] if docs.truncated else []
    if not docs.snippets:
        remarks.append("No snippet was found." if page == 1 else f"There is no page {page}.")
    text = snippets_text(docs.snippets, docs.rules)
    return Answer(library_docs_v1(query, docs), (*([text] if text else []), *remarks))


LIBRARY_TOOLS = (
    Tool(
        "resolve-library-id",
        "Find a library",
        "Finds libraries whose documentation is indexed, by name; gives the library id that query-docs takes.",
        _resolve,
        "library_search",
        arguments={
            "libraryName": {**_TEXT, "description": "What the library is called."},
            "query": {**_TEXT, "description": "What is wanted of it: libraries that speak of this are found too."},
        },
        required=("libraryName",),
        aliases={"userQuery": "query", "question": "query", "name": "libraryName", "library": "libraryName"},
    ),
    Tool(
        "query-docs",
        "Documentation of a library",
        "Code examples and prose from the documentation of a library, of one version, that answer a question.",
        _docs,
        "library_docs",
        arguments={"libraryId": _LIBRARY_ID, "query": {**_TEXT, "description": "What to look for."}, **_BUDGET},
        required=("libraryId", "query"),
        aliases={**_ID_ALIASES, "userQuery": "query", "question": "query", "topic": "query"},
    ),
    Tool(
        "get-library-docs",
        "Documentation of a library (older name)",
        "The same as query-docs, under its older name.",
        lambda call: _docs(call._replace(values=_as_query_docs(call.values))),
        "library_docs",
        arguments={
            "context7CompatibleLibraryID": _LIBRARY_ID,
            "topic": {**_TEXT, "description": "What to look for."},
            **_BUDGET,
        },
        required=("context7CompatibleLibraryID",),
        aliases={
            "libraryId": "context7CompatibleLibraryID",
            "libraryID": "context7CompatibleLibraryID",
            "libraryName": "context7CompatibleLibraryID",
            "library": "context7CompatibleLibraryID",
            "query": "topic",
            "userQuery": "topic",
            "question": "topic",
        },
    ),
)


def _as_query_docs(values: dict[str, Any]) -> dict[str, Any]:
    renamed = {"context7CompatibleLibraryID": "libraryId", "topic": "query"}
    return {renamed.get(name, name): value for name, value in values.items()}
