"""The commands kb list, kb inspect, kb fetch and kb verify."""

from __future__ import annotations

from typing import Any

import click

from kebab.core.notices import Says
from kebab.core.records import NOT_CHECKED, SourceRecord
from kebab.core.search import SUSPICIOUS
from kebab.interfaces.cli.options import command, group, knowledge_base, option, within
from kebab.interfaces.cli.render import counted, follow_up, print_verbatim, printed_as_json, remark, say, table
from kebab.interfaces.cli.search import given, search_options
from kebab.search.filters import unmatched_filters
from kebab.search.lookup import Fetched
from kebab.search.options import FILTERS, LIST_LIMIT, OFFSET, SearchRequest
from kebab.wire.records import chunk_inspection_v1, doc_summary_v1, fetch_result_v1, list_v1, verify_report_v1

_NOTHING_YET = Says.EMPTY_CORPUS.sentence
_SHORT_COMMIT = 10


@group("list", example="kb list docs --tag rust\nkb list sources")
def list_command() -> None:
    """List documents, sources, tags or libraries."""


@command("libraries", within=list_command, example="kb list libraries --json")
@click.pass_context
def libraries_listed(context: click.Context) -> Any:
    """List the libraries whose documentation is indexed, as `kb lib list` does."""
    from kebab.interfaces.cli.lib import lib_list

    return context.invoke(lib_list)


@command("docs", within=list_command, example="kb list docs --type markdown --limit 20")
@search_options(
    *FILTERS,
    tags_any="With this tag.",
    tags_all="With all of these tags.",
    type="pdf, markdown, code or note.",
    format="md, txt, py, …",
    lang="In this language.",
    path="Paths like this one.",
    source="Of this source.",
    after="Not older.",
    before="Older than.",
)
@option("--limit", **within({**LIST_LIMIT, "default": None}), help="At most this many.")
@option("--offset", **within({**OFFSET, "default": 0}), help="Leave out this many.")
def list_docs(limit: int | None, offset: int, **options: Any) -> None:
    """List documents."""
    kb = knowledge_base()
    filters = kb.filters_of(SearchRequest.from_options(given(options)))
    documents = kb.documents(filters, limit=limit, offset=offset)
    total = kb.count_documents(filters)
    if printed_as_json(list_v1("docs", total, documents, offset=offset)):
        return
    table(
        ["id", "source", "path", "title", "type", "lang", "chunks", "tags"],
        [
            [d.doc_id, d.source, d.path, d.title, d.doc_type, d.lang, str(d.chunk_count), ",".join(d.tags)]
            for d in documents
        ],
        shorten={"path": "middle", "title": "end", "tags": "end"},
    )
    if not total:
        for notice in unmatched_filters(filters, kb.count_documents):
            remark(f"note: {notice.message}")
    remark(f"{len(documents)} of {total} documents" if total or kb.count_documents() else _NOTHING_YET)


@command("sources", within=list_command, example="kb list sources --json")
def list_sources() -> None:
    """List the folders, files and other places that were ingested."""
    sources = knowledge_base().sources()
    if printed_as_json(list_v1("sources", len(sources), sources)):
        return
    table(
        ["name", "kind", "documents", "chunks", "last ingest", "root", "repository", "notes"],
        [_source_row(source) for source in sources],
        shorten={"root": "middle", "repository": "end", "notes": "end"},
    )
    if not sources:
        remark(_NOTHING_YET)


def _repository(source: SourceRecord) -> str:
    """Name, branch and short commit of the repository of a source, as far as known: kebab main 1f0c9a7be2."""
    if source.repository is None:
        return ""
    name, branch, commit = source.repository
    return " ".join(part for part in (name, branch, commit and commit[:_SHORT_COMMIT]) if part)


def _source_row(source: SourceRecord) -> list[str]:
    notes = "; ".join(f"{note.folder}: {note.text}" if note.folder else note.text for note in source.notes)
    counts = [str(source.documents), str(source.chunks)]
    when, where = source.ingested_at or "never finished", source.root or ""
    return [source.name, source.kind, *counts, when, where, _repository(source), notes]


@command("tags", within=list_command, example="kb list tags")
def list_tags() -> None:
    """List tags, the most used first."""
    tags = knowledge_base().tags()
    if not printed_as_json(list_v1("tags", len(tags), tags)):
        table(["tag", "documents"], [[tag.tag, str(tag.documents)] for tag in tags])


@group("inspect", example="kb inspect doc git/setup.md\nkb inspect chunk 1f0c9a7be2")
def inspect_command() -> None:
    """Show what is stored about a document or chunk."""


@command("doc", within=inspect_command, example="kb inspect doc git/setup.md")
@click.argument("key", metavar="ID|PATH")
def inspect_doc(key: str) -> None:
    """One document and its chunks, by id, beginning of an id, path, SOURCE:path, or as notes link to it."""
    record, chunks = knowledge_base().document(key)
    if printed_as_json(doc_summary_v1(record, chunks)):
        return
    for name, value in record._asdict().items():
        say(f"{name}: {', '.join(value) if isinstance(value, tuple) else value}")
    for chunk in chunks:
        say(f"  {chunk.chunk_id}  {chunk.citation.text}  {' > '.join(chunk.heading_path)}")


@command("chunk", within=inspect_command, example="kb inspect chunk 1f0c9a7be2")
@click.argument("key", metavar="ID")
def inspect_chunk(key: str) -> None:
    """One chunk, by its id or the beginning of it."""
    chunk = knowledge_base().chunk(key)
    inspection = chunk_inspection_v1(chunk)
    if printed_as_json(inspection):
        return
    say(f"chunk_id: {chunk.chunk_id}")
    say(f"doc: {chunk.source}:{chunk.doc_path} ({chunk.title})")
    say(f"citation: {chunk.citation.text}")
    say(f"heading: {' > '.join(chunk.heading_path)}")
    if chunk.context:
        say(f"context: {' > '.join(chunk.context)}")
    say(f"ordinal: {chunk.ordinal}")
    say(f"characters: {chunk.start_offset} to {chunk.end_offset}")
    say()
    for line in chunk.text.splitlines():
        say(line.expandtabs(4))
    if inspection.suspicious:
        remark(f"note: {SUSPICIOUS}")


@group("fetch", example="kb fetch span git/setup.md#L10-L20\nkb fetch doc git/setup.md")
def fetch_command() -> None:
    """Print a document, a chunk or exact lines, as they were indexed."""


@command("doc", within=fetch_command, example="kb fetch doc git/setup.md")
@click.argument("key", metavar="ID|PATH")
def fetch_doc(key: str) -> None:
    """The whole text of a document."""
    _print_fetched(knowledge_base().fetch_document(key))


@command("chunk", within=fetch_command, example="kb fetch chunk 1f0c9a7be2")
@click.argument("key", metavar="ID")
def fetch_chunk(key: str) -> None:
    """The text of a chunk."""
    _print_fetched(knowledge_base().fetch_chunk(key))


@command("span", within=fetch_command, example="kb fetch span git/setup.md#L10-L20")
@click.argument("citation", metavar="PATH#L10-L20")
def fetch_span(citation: str) -> None:
    """Exactly the cited lines; a citation as any hit shows it."""
    _print_fetched(knowledge_base().fetch_span(citation))


def _print_fetched(fetched: Fetched) -> None:
    if not printed_as_json(fetch_result_v1(fetched)):
        print_verbatim(fetched.text)
        if fetched.suspicious:
            remark(f"note: {SUSPICIOUS}")


@command("verify", example="kb verify\nkb verify --strict && echo 'nothing moved'")
@option("--strict", is_flag=True, help="Exit with 1 when anything differs.")
def verify_command(strict: bool) -> int:
    """Check that every stored passage still stands where it is cited: ok, moved (within its file or with it), changed
    or gone.

    And that all that is stored fits together; if it does not, what is wrong and how to put it in order, and exit with
    3.
    """
    report = knowledge_base().verify()
    report.checks = [check._replace(hint=check.hint and follow_up(check.hint)) for check in report.checks]
    if not printed_as_json(verify_report_v1(report)):
        for difference in report.differences:
            now = f" -> {difference.now_at}" if difference.now_at else ""
            say(f"{difference.status}: {difference.source}:{difference.citation}{now}")
        if report.truncated:
            click.echo("… and more")
        names = ["ok", "moved", "changed", "gone", *(["unreadable"] if report.unreadable else []), "corrupt"]
        counts = ", ".join(f"{name} {getattr(report, name)}" for name in names)
        click.echo(f"{counted(report.documents, 'document')}; passages: {counts}")
        if report.moved or report.changed or report.gone:
            remark("Bring the index up to date with: kb ingest")
        if report.unreadable:
            remark("What cannot be read stays as it was indexed; check the permissions of those files.")
        unchecked = [check for check in report.checks if check.message.startswith(NOT_CHECKED)]
        for check in report.checks:
            if check.hint or check in unchecked:
                say(f"{check.name}: {check.message}")
            if check.hint:
                remark(check.hint)
        if report.checks and report.sound and not unchecked:
            click.echo("The store itself is whole.")
    return 3 if not report.sound else 1 if strict and not report.whole else 0
