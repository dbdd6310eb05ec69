"""The MCP tools. To add one, write a function from Call to Answer, and list it in `tools_for`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kebab.core import deadline
from kebab.core.libraries import SNIPPET_KINDS
from kebab.core.search import SUSPICIOUS
from kebab.interfaces.mcp import texts
from kebab.interfaces.mcp.tool import ROOM, Answer, Call, Tool, how_many_fit
from kebab.interfaces.service import DEFAULT_LIBRARIES, MOST_DOCUMENTS, MOST_LIBRARIES
from kebab.library.docs import DEFAULT_TOKENS
from kebab.library.formatters import libraries_text, snippets_text
from kebab.search import options as search_options
from kebab.search.options import ALIASES, split_library
from kebab.wire.libraries import library_docs_v1, library_search_v1
from kebab.wire.reports import ingest_report_v1

if TYPE_CHECKING:
    from kebab.interfaces.service import Service
    from kebab.wire.search import SearchHitV1


def _whole(least: int, most: int, default: int, description: str) -> dict[str, Any]:
    bounds = {"minimum": least, "maximum": most, "default": default}
    return {"type": "integer", **bounds, "description": description}


_FETCH_TOKENS = 8000
_LIST_LIMIT = 50
_MOST_FAILED = 50
"""The most failed files, and the most warnings, that the answer to an ingest names."""
_MOST_COPIES = 20
"""The most duplicates that a hit names: a text that is in every file of a folder would make the answer too long."""
_TEXT: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 10_000}
_SEARCH_ALIASES = {**ALIASES, "q": "query", "question": "query", "limit": "k", "top_k": "k", "n_results": "k"}

_NAME: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 500}
_LIBRARY_ID = {
    **_NAME,
    "pattern": r"^/[^/]+/[^/]+([/@][^/]+)?$",
    "description": "/owner/project, or /owner/project/version, as resolve-library-id gives it.",
}
_ID_NAMES = ("context7CompatibleLibraryID", "libraryId", "libraryID", "libraryName", "library")
_BUDGET: dict[str, Any] = {
    "tokens": _whole(1, 10**6, DEFAULT_TOKENS, "Whole snippets up to so many."),
    "type": {"type": "string", "enum": list(SNIPPET_KINDS), "description": "Only code, or only prose."},
    "page": _whole(1, 10**6, 1, "The next snippets, up to the same budget."),
}


def tools_for(service: Service) -> list[Tool]:
    """The tools of this server. Tools that write are left out if writing is not allowed."""
    options = search_options.schemas()
    filters = {name: options[name] for name in search_options.FILTERS}
    tools = [
        Tool(
            "search",
            "Search documents",
            "Finds passages in the indexed notes, documents and code, by words and by meaning, each with its citation "
            "(path:L3-L9).",
            _search,
            "search_response",
            options=options,
            required=("query",),
            aliases=_SEARCH_ALIASES,
        ),
        Tool(
            "fetch",
            "Read indexed text",
            "The text of a citation (uri: path#L3-L9 or path:L3-L9), a document (uri: its path, or doc_id) or a "
            "passage (chunk_id).",
            _fetch,
            "fetch_result",
            arguments={
                "uri": {**_TEXT, "description": "A citation, or the path of a document."},
                "doc_id": {**_TEXT, "description": "A document, by its id or path."},
                "chunk_id": {**_TEXT, "description": "A passage, by the id that a hit has."},
                "max_tokens": _whole(1, 10**9, _FETCH_TOKENS, "At most about this many."),
                "offset": _whole(0, 10**9, 0, "Where to read on: next_offset of the page before."),
            },
            aliases={
                "id": "uri",
                "path": "uri",
                "citation": "uri",
                "document_id": "doc_id",
                "tokens": "max_tokens",
                "cursor": "offset",
            },
        ),
        Tool(
            "ask",
            "Answer a question",
            "An answer made of what is indexed, each statement with a marker, its citation and a verdict; or a refusal "
            "with a reason.",
            _ask,
            "answer",
            arguments={"question": {**_TEXT, "description": "In a sentence."}},
            options={name: schema for name, schema in options.items() if name != "query"},
            required=("question",),
            aliases={**ALIASES, "query": "question", "q": "question", "limit": "k", "top_k": "k"},
            waits=True,
        ),
        Tool(
            "list_documents",
            "List documents",
            "The indexed documents that pass the filters.",
            _list_documents,
            "list",
            arguments={
                "limit": _whole(1, MOST_DOCUMENTS, _LIST_LIMIT, "How many."),
                "cursor": _whole(0, 10**9, 0, "Where to read on: next_offset of the page before."),
            },
            options=filters,
            aliases={
                **{alias: name for alias, name in ALIASES.items() if name in filters},
                "offset": "cursor",
                "k": "limit",
            },
        ),
        Tool(
            "status",
            "What is indexed",
            "How much is indexed, of which sources, and whether this server may write.",
            _status,
            "status",
        ),
        *_LIBRARY_TOOLS,
        Tool(
            "ingest",
            "Index files",
            "Indexes what is new or changed below the paths on this machine, and drops what is gone; without paths, in "
            "every known source.",
            _ingest,
            "ingest_report",
            arguments={
                "paths": {"type": "array", "items": dict(_TEXT), "description": "Folders or files; absolute paths."},
                "name": {**_TEXT, "description": "What to call the source; one path only."},
                "embed": {"type": "boolean", "default": True, "description": "Whether to make vectors too."},
            },
            aliases={"path": "paths"},
            writes=True,
        ),
    ]
    return [tool for tool in tools if service.allow_write or not tool.writes]


def _search(call: Call) -> Answer:
    response = call.service.search(call.values, fitting=lambda answer: how_many_fit(_with_few_copies(answer.hits)))
    _with_few_copies(response.hits)
    return Answer(response, (texts.search_text(response),))


def _with_few_copies(hits: list[SearchHitV1]) -> list[SearchHitV1]:
    for hit in hits:
        hit.duplicates = hit.duplicates[:_MOST_COPIES]
    return hits


def _ask(call: Call) -> Answer:
    options = {name: value for name, value in call.values.items() if name != "question"}
    answer = call.service.ask(call.values["question"], options, stop=deadline.is_over)
    answer.candidates = answer.candidates[: how_many_fit(_with_few_copies(answer.candidates), ROOM // 2)]
    return Answer(answer, (texts.answer_text(answer),))


def _fetch(call: Call) -> Answer:
    fetched = call.service.fetch(**{"max_tokens": _FETCH_TOKENS, **call.values})
    return Answer(fetched, texts.fetch_texts(fetched))


def _list_documents(call: Call) -> Answer:
    filters = dict(call.values)
    limit, offset = filters.pop("limit", _LIST_LIMIT), filters.pop("cursor", 0)
    listed = call.service.documents(filters, limit=limit, offset=offset)
    room = how_many_fit(listed.items)
    if room < len(listed.items):
        listed = replace(listed, items=listed.items[:room], next_offset=offset + room)
    return Answer(listed, (texts.list_text(listed),))


def _status(call: Call) -> Answer:
    status = call.service.status()
    return Answer(status, (texts.status_text(status),))


def _ingest(call: Call) -> Answer:
    paths, name, embed = call.values.get("paths", []), call.values.get("name"), call.values.get("embed", True)
    report = ingest_report_v1(call.service.ingest(*paths, name=name, embed=embed, progress=call.progress))
    more = max(0, len(report.failed) - _MOST_FAILED)
    report = replace(report, failed=report.failed[:_MOST_FAILED], warnings=report.warnings[:_MOST_FAILED])
    return Answer(report, (texts.ingest_text(report, more),))


# --- libraries: names, arguments and texts are those of existing documentation servers, which agents know


def _resolve(call: Call) -> Answer:
    name, query = call.values["libraryName"], call.values.get("query")
    found = call.service.find_libraries(name, query, call.values.get("limit", DEFAULT_LIBRARIES))
    answer = library_search_v1(name, query, found)
    room = how_many_fit(answer.libraries)
    left_out, answer.libraries = len(found) - room, answer.libraries[:room]
    remarks = [SUSPICIOUS] if any(library.suspicious for library in answer.libraries) else []
    remarks += [f"{left_out} more were found; a longer name finds fewer."] if left_out else []
    return Answer(answer, (libraries_text(match.library for match in found[:room]), *remarks))


def _docs(call: Call) -> Answer:
    values = call.values
    # get-library-docs may be called without a topic: the name of the library is then the query.
    query = values.get("query") or split_library(values["libraryId"])[0].rpartition("/")[2]
    page = values.get("page", 1)
    docs = call.service.library_docs(
        values["libraryId"], query, tokens=values.get("tokens"), type=values.get("type"), page=page
    )
    # Notices and the reason for the version are only in the wire object, not in the text.
    remarks = [SUSPICIOUS] if docs.suspicious_rules or any(snippet.suspicious for snippet in docs.snippets) else []
    remarks += [f"There is more: page {page + 1}"] if docs.truncated else []
    if not docs.snippets:
        remarks.append("No snippet was found." if page == 1 else f"There is no page {page}.")
    text = snippets_text(docs.snippets, docs.rules)
    return Answer(library_docs_v1(query, docs), (*([text] if text else []), *remarks))


def _as_query_docs(values: dict[str, Any]) -> dict[str, Any]:
    renamed = {"context7CompatibleLibraryID": "libraryId", "topic": "query"}
    return {renamed.get(name, name): value for name, value in values.items()}


_LIBRARY_TOOLS = (
    Tool(
        "resolve-library-id",
        "Find a library",
        "Finds libraries whose documentation is indexed, by name; gives the library id that query-docs takes.",
        _resolve,
        "library_search",
        arguments={
            "libraryName": {**_NAME, "description": "What the library is called."},
            "query": {**_NAME, "description": "What is wanted of it: libraries that speak of this are found too."},
            "limit": _whole(1, MOST_LIBRARIES, DEFAULT_LIBRARIES, "How many libraries."),
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
        arguments={"libraryId": _LIBRARY_ID, "query": {**_NAME, "description": "What to look for."}, **_BUDGET},
        required=("libraryId", "query"),
        aliases={**dict.fromkeys(_ID_NAMES, "libraryId"), "userQuery": "query", "question": "query", "topic": "query"},
    ),
    Tool(
        "get-library-docs",
        "Documentation of a library (older name)",
        "The same as query-docs, under its older name.",
        lambda call: _docs(call._replace(values=_as_query_docs(call.values))),
        "library_docs",
        arguments={
            "context7CompatibleLibraryID": _LIBRARY_ID,
            "topic": {**_NAME, "description": "What to look for."},
            **_BUDGET,
        },
        required=("context7CompatibleLibraryID",),
        aliases={
            **dict.fromkeys(_ID_NAMES, "context7CompatibleLibraryID"),
            **dict.fromkeys(("query", "userQuery", "question"), "topic"),
        },
    ),
)
