"""kb list, kb inspect, kb fetch, kb verify"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kebab.core.search import SUSPICIOUS
from kebab.interfaces.cli.follow_up import follow_up
from kebab.interfaces.cli.options import command, global_options, group, knowledge_base, wants_json
from kebab.interfaces.cli.render import print_json, print_verbatim, remark, say
from kebab.interfaces.cli.table import table

if TYPE_CHECKING:
    from kebab.core.records import SourceRecord
    from kebab.search.fetching import Fetched

_NOTHING_YET = "Nothing has been ingested yet. Begin with: kb ingest FOLDER"
_SHORT_COMMIT = 10


@group("list", example="kb list docs --tag rust\nkb list sources")
def list_command() -> None:
    """List documents, sources, tags or libraries."""


@list_command.command("libraries", epilog="Example:\n\n\b\n  kb list libraries --json")
@global_options
def libraries_listed() -> int:
    """List the libraries whose documentation is indexed, as `kb lib list` does."""
    from kebab.interfaces.cli.lib import list_libraries

    return list_libraries()


@list_command.command("docs", epilog="Example:\n\n\b\n  kb list docs --type markdown --limit 20")
@global_options
@click.option("--tag", "tags_any", multiple=True, help="With this tag.")
@click.option("--tags", "tags_all", metavar="A,B", help="With all of these tags.")
@click.option("--type", multiple=True, help="pdf, markdown, code or note.")
@click.option("--format", multiple=True, help="md, txt, py, …")
@click.option("--trust-min", help="primary, secondary or generated.")
@click.option("--lang", help="In this language.")
@click.option("--path", metavar="GLOB", help="Paths like this one.")
@click.option("--source", multiple=True, help="Of this source.")
@click.option("--after", metavar="DATE", help="Not older.")
@click.option("--before", metavar="DATE", help="Older than.")
@click.option("--limit", type=click.IntRange(min=0), help="At most this many.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Leave out this many.")
def list_docs(limit: int | None, offset: int, **options: Any) -> int:
    """List documents."""
    from kebab.search.request import SearchRequest
    from kebab.wire.records import list_v1

    kb = knowledge_base()
    filters = kb.filters_of(SearchRequest.from_options({name: value for name, value in options.items() if value}))
    documents = kb.documents(filters, limit=-1 if limit is None else limit, offset=offset)
    total = kb.count_documents(filters)
    if wants_json():
        print_json(list_v1("docs", total, documents, offset=offset))
        return 0
    table(
        ["id", "source", "path", "title", "type", "lang", "chunks", "tags"],
        [
            [d.doc_id, d.source, d.path, d.title, d.doc_type, d.lang, str(d.chunk_count), ",".join(d.tags)]
            for d in documents
        ],
        shorten={"path": "middle", "title": "end", "tags": "end"},
    )
    if not total:
        from kebab.search.unmatched_filters import unmatched_filters

        for notice in unmatched_filters(filters, kb.count_documents):
            remark(f"note: {notice.message}")
    remark(f"{len(documents)} of {total} documents" if total or kb.count_documents() else _NOTHING_YET)
    return 0


@list_command.command("sources", epilog="Example:\n\n\b\n  kb list sources --json")
@global_options
def list_sources() -> int:
    """List the folders, files and other places that were ingested."""
    from kebab.wire.records import list_v1

    sources = knowledge_base().sources()
    if wants_json():
        print_json(list_v1("sources", len(sources), sources))
        return 0
    table(
        ["name", "kind", "documents", "chunks", "last ingest", "root", "repository", "notes"],
        [
            [
                s.name,
                s.kind,
                str(s.documents),
                str(s.chunks),
                s.ingested_at or "never finished",
                s.root or "",
                _repository(s),
                _notes(s),
            ]
            for s in sources
        ],
        shorten={"root": "middle", "repository": "end", "notes": "end"},
    )
    if not sources:
        remark(_NOTHING_YET)
    return 0


def _repository(source: SourceRecord) -> str:
    """As `kebab main 1f0c9a7be2`, with what is known."""
    if source.repository is None:
        return ""
    name, branch, commit = source.repository
    return " ".join(part for part in (name, branch, commit and commit[:_SHORT_COMMIT]) if part)


def _notes(source: SourceRecord) -> str:
    return "; ".join(f"{note.folder}: {note.text}" if note.folder else note.text for note in source.notes)


@list_command.command("tags", epilog="Example:\n\n\b\n  kb list tags")
@global_options
def list_tags() -> int:
    """List tags, the most used first."""
    from kebab.wire.records import list_v1

    tags = knowledge_base().tags()
    if wants_json():
        print_json(list_v1("tags", len(tags), tags))
        return 0
    table(["tag", "documents"], [[tag.tag, str(tag.documents)] for tag in tags])
    return 0


@group("inspect", example="kb inspect doc git/setup.md\nkb inspect chunk 1f0c9a7be2")
def inspect_command() -> None:
    """Show what is stored about a document or chunk."""


@inspect_command.command("doc", epilog="Example:\n\n\b\n  kb inspect doc git/setup.md")
@global_options
@click.argument("key", metavar="ID|PATH")
def inspect_doc(key: str) -> int:
    """One document and its chunks, by id, beginning of an id, path, SOURCE:path, or as notes link to it."""
    record, chunks = knowledge_base().document(key)
    if wants_json():
        from kebab.wire.records import doc_summary_v1

        print_json(doc_summary_v1(record, chunks))
        return 0
    for name, value in record._asdict().items():
        say(f"{name}: {', '.join(value) if isinstance(value, tuple) else value}")
    for chunk in chunks:
        say(f"  {chunk.chunk_id}  {chunk.citation.text}  {' > '.join(chunk.heading_path)}")
    return 0


@inspect_command.command("chunk", epilog="Example:\n\n\b\n  kb inspect chunk 1f0c9a7be2")
@global_options
@click.argument("key", metavar="ID")
def inspect_chunk(key: str) -> int:
    """One chunk, by its id or the beginning of it."""
    from kebab.wire.records import chunk_inspection_v1

    chunk = knowledge_base().chunk(key)
    inspection = chunk_inspection_v1(chunk)
    if wants_json():
        print_json(inspection)
        return 0
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
    return 0


@group("fetch", example="kb fetch span git/setup.md#L10-L20\nkb fetch doc git/setup.md")
def fetch_command() -> None:
    """Print a document, a chunk or exact lines, as they were indexed."""


@fetch_command.command("doc", epilog="Example:\n\n\b\n  kb fetch doc git/setup.md")
@global_options
@click.argument("key", metavar="ID|PATH")
def fetch_doc(key: str) -> int:
    """The whole text of a document."""
    return _print_fetched(knowledge_base().fetch_document(key))


@fetch_command.command("chunk", epilog="Example:\n\n\b\n  kb fetch chunk 1f0c9a7be2")
@global_options
@click.argument("key", metavar="ID")
def fetch_chunk(key: str) -> int:
    """The text of a chunk."""
    return _print_fetched(knowledge_base().fetch_chunk(key))


@fetch_command.command("span", epilog="Example:\n\n\b\n  kb fetch span git/setup.md#L10-L20")
@global_options
@click.argument("citation", metavar="PATH#L10-L20")
def fetch_span(citation: str) -> int:
    """Exactly the cited lines; a citation as any hit shows it."""
    return _print_fetched(knowledge_base().fetch_span(citation))


def _print_fetched(fetched: Fetched) -> int:
    if wants_json():
        from kebab.wire.records import fetch_result_v1

        print_json(fetch_result_v1(fetched))
        return 0
    print_verbatim(fetched.text)
    if fetched.suspicious:
        remark(f"note: {SUSPICIOUS}")
    return 0


@command("verify", example="kb verify\nkb verify --strict && echo 'nothing moved'")
@click.option("--strict", is_flag=True, help="Exit with 1 when anything differs.")
def verify_command(strict: bool) -> int:
    """Check that every stored passage still stands where it is cited: ok, moved (within its file or with it), changed
    or gone.

    And that all that is stored fits together; if it does not, what is wrong and how to put it in order, and exit with
    3.
    """
    report = knowledge_base().verify()
    report.checks = [check._replace(hint=check.hint and follow_up(check.hint)) for check in report.checks]
    if wants_json():
        from kebab.wire.records import verify_report_v1

        print_json(verify_report_v1(report))
    else:
        for difference in report.differences:
            now = f" -> {difference.now_at}" if difference.now_at else ""
            say(f"{difference.status}: {difference.source}:{difference.citation}{now}")
        if report.truncated:
            click.echo("… and more")
        names = ["ok", "moved", "changed", "gone", *(["unreadable"] if report.unreadable else []), "corrupt"]
        counts = ", ".join(f"{name} {getattr(report, name)}" for name in names)
        click.echo(f"{report.documents} documents: {counts}")
        if report.moved or report.changed or report.gone:
            remark("Bring the index up to date with: kb ingest")
        if report.unreadable:
            remark("What cannot be read stays as it was indexed; check the permissions of those files.")
        from kebab.core.records import NOT_CHECKED

        unchecked = [check for check in report.checks if check.message.startswith(NOT_CHECKED)]
        for check in report.checks:
            if check.hint or check in unchecked:
                say(f"{check.name}: {check.message}")
            if check.hint:
                remark(check.hint)
        if report.checks and report.sound and not unchecked:
            click.echo("The store itself is whole.")
    return 3 if not report.sound else 1 if strict and not report.whole else 0
