"""The MCP tools: what a tool is, the checks of its arguments, and all tools. A tool is a function from Call to
Answer with the decorator `tool`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from kebab.core import deadline
from kebab.core.checking import KINDS, Schema, by_name, checked_argument, from_text, require, unknown
from kebab.core.errors import UsageError
from kebab.core.ports import Progress
from kebab.core.search import SUSPICIOUS
from kebab.core.text import estimate_tokens, one_line, whole_characters
from kebab.interfaces.service import Service
from kebab.library.formatters import libraries_text, remarks_on, snippets_text
from kebab.search import options as search_options
from kebab.search.options import ALIASES, FILTER_ALIASES, LIBRARY_LIMIT, LIST_LIMIT, split_library, unknown_option
from kebab.wire import to_json
from kebab.wire.answers import AnswerCitationV1, AnswerV1
from kebab.wire.errors import ErrorV1
from kebab.wire.libraries import library_docs_v1, library_search_v1
from kebab.wire.records import DocSummaryV1, FetchResultV1, ListV1
from kebab.wire.reports import IngestReportV1, ingest_report_v1
from kebab.wire.search import NeighbourV1, SearchHitV1, SearchResponseV1
from kebab.wire.serving import StatusV1

ROOM = 20_000
"""The most tokens of a structured answer if the caller gives no budget. Agents refuse more than 25,000."""
_NOTHING: Mapping[str, Any] = {}
_LARGEST = 2**63
"""Numbers of this size or more are refused first, because an error message cannot quote very long ones."""
_DEEPEST = 20


class Answer(NamedTuple):
    """A wire object, and the same answer as texts. Texts are separate to keep quotations and remarks apart."""

    wire_object: Any
    texts: tuple[str, ...]


class Call(NamedTuple):
    """The input of a tool's `run`."""

    service: Service
    values: dict[str, Any]
    """The checked arguments, by their names in the schema."""
    progress: Progress | None = None


_Run = Callable[[Call], Answer]


class Tool(NamedTuple):
    name: str
    title: str
    description: str
    run: _Run
    answers: str
    """The name of the wire object in a structured answer."""
    arguments: Mapping[str, Schema] = _NOTHING
    """Schemas of the arguments that `read` checks."""
    options: Mapping[str, Schema] = _NOTHING
    """Schemas of the search options, which SearchRequest checks."""
    required: tuple[str, ...] = ()
    aliases: Mapping[str, str] = _NOTHING
    writes: bool = False
    waits: bool = False
    """Whether it may wait for a remote model, and so gets more time."""

    @property
    def schemas(self) -> dict[str, Schema]:
        return {**self.options, **self.arguments}

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments. It does not forbid other names, because aliases are allowed."""
        properties = {name: dict(schema) for name, schema in self.schemas.items()}
        return {"type": "object", "properties": properties, "required": list(self.required)}

    @property
    def output_schema(self) -> dict[str, Any]:
        return _answer_or_error(self.answers)

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arguments for `run`: checked, and without aliases and nulls."""
        schemas = self.schemas
        values = by_name(_storable(given), schemas, self.aliases, refuse=self._unknown)
        for name, value in values.items():
            if isinstance(value, str):  # models sometimes send numbers and booleans as texts
                value = from_text(value, KINDS[schemas[name]["type"]])
            values[name] = checked_argument(name, value, schemas[name]) if name in self.arguments else value
        require(self.required, values)
        return values

    def _unknown(self, written: str) -> UsageError:
        if "mode" in self.options:  # a tool that searches
            return unknown_option(written, *self.arguments, *self.aliases)
        return unknown(written, self.schemas, self.aliases)


def _storable(value: Any, depth: int = 0) -> Any:
    """The value with lone surrogates replaced. Too deep nesting and too large numbers raise UsageError."""
    if depth > _DEEPEST:
        raise UsageError("An argument is nested too deeply.", hint="Send texts, numbers, and lists of texts.")
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, list):
        return [_storable(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {whole_characters(key): _storable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, int) and abs(value) >= _LARGEST:
        raise UsageError("A number is larger than any that is taken here.", hint="Send a smaller one.")
    return value


@cache
def _answer_or_error(name: str) -> dict[str, Any]:
    """The JSON Schema of an answer or an error, because clients check both against the output schema."""
    from kebab.wire.schemas import DIALECT, schema

    answer, error = schema(name), schema("error")
    definitions = {**answer.pop("$defs", {}), **error.pop("$defs", {})}
    for one in (answer, error):
        one.pop("$schema")
    both = {"answer": answer, "error": error}
    return {
        "$schema": DIALECT,
        "type": "object",
        "anyOf": [{"$ref": f"#/$defs/{key}"} for key in both],
        "$defs": {**definitions, **both},
    }


def how_many_fit(items: list[Any], room: int = ROOM) -> int:
    """How many of these objects, from the first on, fit into `room` tokens. The first one always counts as fitting."""
    used = 0
    for number, item in enumerate(items):
        used += estimate_tokens(to_json(item), code=True)
        if number and used > room:
            return number
    return len(items)


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
_NEXT = {**search_options.OFFSET, "default": 0, "description": "Where to read on: next_offset of the page before."}
_BUDGET: dict[str, Any] = {
    "tokens": {**search_options.TOKENS, "description": "Whole snippets up to so many."},
    "type": {**search_options.SNIPPET_KIND, "description": "Only code, or only prose."},
    "page": {**search_options.PAGE, "description": "The next snippets, up to the same budget."},
}


_OPTIONS = search_options.schemas()
_FILTERS = {name: _OPTIONS[name] for name in search_options.FILTERS}
_TOOLS: list[Tool] = []


def tools_for(service: Service) -> list[Tool]:
    """The tools of this server. Tools that write are left out if writing is not allowed."""
    return [tool for tool in _TOOLS if service.allow_write or not tool.writes]


def tool(name: str, title: str, answers: str, **attributes: Any) -> Callable[[_Run], _Run]:
    """Makes a function a tool. Its docstring is the description that agents see."""

    def decorate(run: _Run) -> _Run:
        _TOOLS.append(Tool(name, title, " ".join((run.__doc__ or "").split()), run, answers, **attributes))
        return run

    return decorate


@tool("search", "Search documents", "search_response", options=_OPTIONS, required=("query",), aliases=_SEARCH_ALIASES)
def _search(call: Call) -> Answer:
    """Finds passages in the indexed notes, documents and code, by words and by meaning, each with its citation
    (path:L3-L9).
    """
    response = call.service.search(call.values, fitting=lambda answer: how_many_fit(_with_few_copies(answer.hits)))
    _with_few_copies(response.hits)
    return Answer(response, (search_text(response),))


def _with_few_copies(hits: list[SearchHitV1]) -> list[SearchHitV1]:
    for hit in hits:
        hit.duplicates = hit.duplicates[:_MOST_COPIES]
    return hits


@tool(
    "fetch",
    "Read indexed text",
    "fetch_result",
    arguments={
        "uri": {**_TEXT, "description": "A citation, or the path of a document."},
        "doc_id": {**_TEXT, "description": "A document, by its id or path."},
        "chunk_id": {**_TEXT, "description": "A passage, by the id that a hit has."},
        "max_tokens": {
            **search_options.MAX_TOKENS,
            "default": _FETCH_TOKENS,
            "description": "At most about this many.",
        },
        "offset": _NEXT,
    },
    aliases=dict.fromkeys(("id", "path", "citation"), "uri")
    | {"document_id": "doc_id", "tokens": "max_tokens", "cursor": "offset"},
)
def _fetch(call: Call) -> Answer:
    """The text of a citation (uri: path#L3-L9 or path:L3-L9), a document (uri: its path, or doc_id) or a passage
    (chunk_id).
    """
    fetched = call.service.fetch(**{"max_tokens": _FETCH_TOKENS, **call.values})
    return Answer(fetched, fetch_texts(fetched))


@tool(
    "ask",
    "Answer a question",
    "answer",
    arguments={"question": {**_TEXT, "description": "In a sentence."}},
    options={name: schema for name, schema in _OPTIONS.items() if name != "query"},
    required=("question",),
    aliases={**ALIASES, "query": "question", "q": "question", "limit": "k", "top_k": "k"},
    waits=True,
)
def _ask(call: Call) -> Answer:
    """An answer made of what is indexed, each statement with a marker, its citation and a verdict; or a refusal with a
    reason.
    """
    options = {name: value for name, value in call.values.items() if name != "question"}
    answer = call.service.ask(call.values["question"], options, stop=deadline.is_over)
    answer.candidates = answer.candidates[: how_many_fit(_with_few_copies(answer.candidates), ROOM // 2)]
    return Answer(answer, (answer_text(answer),))


@tool(
    "list_documents",
    "List documents",
    "list",
    arguments={
        "limit": {**LIST_LIMIT, "default": _LIST_LIMIT, "description": "How many."},
        "cursor": _NEXT,
    },
    options=_FILTERS,
    aliases={**FILTER_ALIASES, "offset": "cursor", "k": "limit"},
)
def _list_documents(call: Call) -> Answer:
    """The indexed documents that pass the filters."""
    filters = dict(call.values)
    limit, offset = filters.pop("limit", _LIST_LIMIT), filters.pop("cursor", 0)
    listed = call.service.documents(filters, limit=limit, offset=offset)
    room = how_many_fit(listed.items)
    if room < len(listed.items):
        listed = replace(listed, items=listed.items[:room], next_offset=offset + room)
    return Answer(listed, (list_text(listed),))


@tool("status", "What is indexed", "status")
def _status(call: Call) -> Answer:
    """How much is indexed, of which sources, and whether this server may write."""
    status = call.service.status()
    return Answer(status, (status_text(status),))


# --- libraries: names, arguments and texts are those of existing documentation servers, which agents know


@tool(
    "resolve-library-id",
    "Find a library",
    "library_search",
    arguments={
        "libraryName": {**_NAME, "description": "What the library is called."},
        "query": {**_NAME, "description": "What is wanted of it: libraries that speak of this are found too."},
        "limit": {**LIBRARY_LIMIT, "description": "How many libraries."},
    },
    required=("libraryName",),
    aliases={"userQuery": "query", "question": "query", "name": "libraryName", "library": "libraryName"},
)
def _resolve(call: Call) -> Answer:
    """Finds libraries whose documentation is indexed, by name; gives the library id that query-docs takes."""
    values = dict(call.values)
    name, query = values.pop("libraryName"), values.pop("query", None)
    found = call.service.kb.libraries.search(name, query, **values)
    answer = library_search_v1(name, query, found)
    room = how_many_fit(answer.libraries)
    left_out, answer.libraries = len(found) - room, answer.libraries[:room]
    remarks = [SUSPICIOUS] if any(library.suspicious for library in answer.libraries) else []
    remarks += [f"{left_out} more were found; a longer name finds fewer."] if left_out else []
    return Answer(answer, (libraries_text(match.library for match in found[:room]), *remarks))


@tool(
    "query-docs",
    "Documentation of a library",
    "library_docs",
    arguments={"libraryId": _LIBRARY_ID, "query": {**_NAME, "description": "What to look for."}, **_BUDGET},
    required=("libraryId", "query"),
    aliases={**dict.fromkeys(_ID_NAMES, "libraryId"), "userQuery": "query", "question": "query", "topic": "query"},
)
def _docs(call: Call) -> Answer:
    """Code examples and prose from the documentation of a library, of one version, that answer a question."""
    values = call.values
    # get-library-docs may be called without a topic: the name of the library is then the query.
    query = values.get("query") or split_library(values["libraryId"])[0].rpartition("/")[2]
    page = values.get("page", 1)
    docs = call.service.library_docs(
        values["libraryId"], query, tokens=values.get("tokens"), type=values.get("type"), page=page
    )
    # Notices and the reason for the version are only in the wire object, not in the text.
    text = snippets_text(docs.snippets, docs.rules)
    remarks = remarks_on(docs, f"There is more: page {page + 1}")
    return Answer(library_docs_v1(query, docs), (*([text] if text else []), *remarks))


@tool(
    "get-library-docs",
    "Documentation of a library (older name)",
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
)
def _docs_by_older_name(call: Call) -> Answer:
    """The same as query-docs, under its older name."""
    renamed = {"context7CompatibleLibraryID": "libraryId", "topic": "query"}
    return _docs(call._replace(values={renamed.get(name, name): value for name, value in call.values.items()}))


@tool(
    "ingest",
    "Index files",
    "ingest_report",
    arguments={
        "paths": {"type": "array", "items": dict(_TEXT), "description": "Folders or files; absolute paths."},
        "name": {**_TEXT, "description": "What to call the source; one path only."},
        "embed": {"type": "boolean", "default": True, "description": "Whether to make vectors too."},
    },
    aliases={"path": "paths"},
    writes=True,
)
def _ingest(call: Call) -> Answer:
    """Indexes what is new or changed below the paths on this machine, and drops what is gone; without paths, in every
    known source.
    """
    paths, name, embed = call.values.get("paths", []), call.values.get("name"), call.values.get("embed", True)
    report = ingest_report_v1(call.service.ingest(*paths, name=name, embed=embed, progress=call.progress))
    more = max(0, len(report.failed) - _MOST_FAILED)
    report = replace(report, failed=report.failed[:_MOST_FAILED], warnings=report.warnings[:_MOST_FAILED])
    return Answer(report, (ingest_text(report, more),))


# --- texts: citations, quoted passages, cursors; none of it is an instruction


_BETWEEN = " · "
_NEAREST = 3


def search_text(response: SearchResponseV1) -> str:
    lines = [line for hit in response.hits for line in _hit(hit)]
    lines += [f"note: {one_line(notice.message)}" for notice in response.notices]
    lines.append(f"returned: {response.returned}")
    if response.next_cursor is not None:
        lines.append(f"There are more hits: cursor {response.next_cursor}")
    return "\n".join(lines)


def _hit(hit: SearchHitV1) -> list[str]:
    heading = one_line(" > ".join(hit.heading_path)) or one_line(hit.title)
    about = [f"{hit.rank}. {one_line(hit.citation.text)}", heading, f"source {one_line(hit.source)}"]
    about += [f"score {hit.score:.2g}", "the file has changed since" if hit.stale else ""]
    before, after = (hit.neighbours.before, hit.neighbours.after) if hit.neighbours else ([], [])
    return [
        _BETWEEN.join(filter(None, about)),
        *(f"   context: {one_line(note)}" for note in hit.context),
        *_remark(hit.suspicious),
        *(line for neighbour in before for line in _neighbour(neighbour)),
        *quoted(hit.text),
        *(line for neighbour in after for line in _neighbour(neighbour)),
        "",
    ]


def _neighbour(neighbour: NeighbourV1) -> list[str]:
    place = one_line(neighbour.citation.text)
    return [f"   beside it: {place}", *_remark(neighbour.suspicious), *quoted(neighbour.text)]


def _remark(suspicious: bool) -> list[str]:
    return [f"   note: {SUSPICIOUS}"] if suspicious else []


def quoted(text: str) -> list[str]:
    """The lines of a text, each after a >, so that no quoted line looks like a line of the tool answer."""
    return [f"> {line}".rstrip() for line in text.strip("\n").splitlines()]


def answer_text(answer: AnswerV1) -> str:
    """The quoted answer, the citation of each marker, and the claims that are not supported. For a refusal: its reason
    and the nearest passages.
    """
    if answer.answer is None:
        hits = answer.candidates[:_NEAREST]
        nearest = [
            line for hit in hits for line in (f"nearest: {one_line(hit.citation.text)}", *_remark(hit.suspicious))
        ]
        return "\n".join([f"No answer ({answer.refusal_reason}): {one_line(answer.refusal_message or '')}", *nearest])
    places = dict.fromkeys("\n".join(_cited(citation)) for citation in answer.citations)
    doubts = [f"{claim.verdict}: {one_line(claim.text)}" for claim in answer.claims if claim.verdict != "supported"]
    notes = [f"note: {one_line(notice.message)}" for notice in answer.notices]
    return "\n".join([*quoted(answer.answer), "", *places, *doubts, *notes])


def _cited(cited: AnswerCitationV1) -> list[str]:
    place = one_line((cited.quoted_at or cited.citation).text)
    return [f"[{cited.marker}] {place}{_BETWEEN}source {one_line(cited.source)}", *_remark(cited.suspicious)]


def fetch_texts(fetched: FetchResultV1) -> tuple[str, ...]:
    """Parts of an answer: the citation and title, the verbatim text, and the offset of the rest if there is more."""
    place = fetched.citation.text if fetched.citation else fetched.doc_path
    head = _BETWEEN.join((one_line(place), one_line(fetched.title), f"source {one_line(fetched.source)}"))
    more = (f"There is more of it: offset {fetched.next_offset}",) if fetched.next_offset is not None else ()
    return ("\n".join([head, *_remark(fetched.suspicious)]), fetched.text, *more)


def list_text(listed: ListV1) -> str:
    lines = [_document(item) for item in listed.items if isinstance(item, DocSummaryV1)]
    lines.append(f"{len(lines)} of {listed.total} documents")
    if listed.next_offset is not None:
        lines.append(f"There are more: cursor {listed.next_offset}")
    return "\n".join(lines)


def _document(document: DocSummaryV1) -> str:
    parts = [one_line(document.doc_path), one_line(document.title), f"source {one_line(document.source)}"]
    parts += [document.doc_type, f"{document.lines} lines", document.date[:10], f"doc_id {document.doc_id}"]
    return _BETWEEN.join(filter(None, parts))


def status_text(status: StatusV1) -> str:
    stats = status.stats
    held = "nothing ingested yet"
    if stats:
        held = f"{stats.documents} documents, {stats.chunks} passages, {stats.embedded_chunks} with a vector"
    lines = [f"Kebab {status.version}: {held}", f"sources: {', '.join(map(one_line, status.sources)) or 'none'}"]
    lines += [f"libraries: {status.libraries}", "read-only" if status.read_only else "ingest is allowed"]
    return "\n".join([*lines, *(["an ingest is running"] if status.ingest_running else [])])


def ingest_text(report: IngestReportV1, more_failed: int) -> str:
    counts = f"{report.added} added, {report.updated} updated, {report.unchanged} unchanged, {report.removed} removed"
    lines = [
        f"{report.scanned} files: {counts}",
        f"{report.chunks} passages, {report.vectors_made} vectors made, {report.seconds:.1f} s",
    ]
    lines += [f"skipped {skipped.count}: {skipped.meaning}" for skipped in report.skipped]
    lines += [f"failed: {one_line(failed.path)}: {one_line(failed.message)}" for failed in report.failed]
    return "\n".join([*lines, *([f"and {more_failed} more failed"] if more_failed else [])])


def error_text(error: ErrorV1) -> str:
    hint = f"\n{error.hint}" if error.hint else ""
    return f"Error ({error.code}): {error.message}{hint}"
