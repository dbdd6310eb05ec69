"""The commands of kb lib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from kebab.core.errors import SourceError, UsageError
from kebab.core.libraries import SNIPPET_KINDS, Library, LibraryVersion
from kebab.core.search import SUSPICIOUS
from kebab.ingest.report import IngestReport
from kebab.interfaces.cli.ingest import IngestProgress, progress_of, progress_option, say_skipped, say_vectors
from kebab.interfaces.cli.options import command, group, is_confirmed, knowledge_base, option, wants_json, within
from kebab.interfaces.cli.render import counted, done, print_verbatim, printed_as_json, remark, say, table
from kebab.library.formatters import libraries_text, remarks_on, snippets_text
from kebab.search.options import LIBRARY_LIMIT, PAGE, TOKENS
from kebab.wire.libraries import library_docs_v1, library_list_v1, library_search_v1
from kebab.wire.reports import ingest_report_v1

_SHORT_COMMIT = 10


@group(
    "lib",
    example="kb lib add https://github.com/owner/project --version v2.0\n"
    "kb lib docs /owner/project 'how to close a gauge'",
)
def lib_command() -> None:
    """Documentation of libraries, offline and by version."""


@command(
    "add",
    within=lib_command,
    example="kb lib add https://github.com/owner/project --version v1.2 --version v2.0\n"
    "kb lib add ~/src/widget --id /acme/widget\nkb lib add llms.txt --title Widget",
)
@click.argument("source")
@option("--id", "library_id", metavar="/OWNER/PROJECT", help="By default from the address, or /local/NAME.")
@option("--title", help="By default as its kebab.json or context7.json says, or the project's name.")
@option("--description", help="By default as its kebab.json or context7.json says.")
@option("--stars", type=click.IntRange(0), metavar="N", help="How many it has; counts towards its trust score.")
@option("--trust", type=float, metavar="0..10", help="Your own trust score instead of the computed one.")
@option("--version", "versions", multiple=True, metavar="TAG", help="A git tag to index too; may be repeated.")
@option("--branch", help="Instead of the repository's default branch.")
@option(
    "--fetch-metadata",
    is_flag=True,
    help="Ask GitHub for its stars and description: the only call that is not for its text.",
)
@option("--no-embed", is_flag=True, help="Leave the vectors for later.")
@progress_option
def lib_add(source: str, no_embed: bool, progress_style: str, **about: Any) -> None:
    """Index the documentation of a library: from a git repository, a folder, an archive, a file such as llms.txt, or
    what `kb lib export` wrote.
    """
    libraries = knowledge_base().libraries
    with _indexing(progress_style) as progress:
        library, report = libraries.add(source, **about, embed=not no_embed, progress=progress)
    if not printed_as_json(ingest_report_v1(report)):
        _say_indexed(library, report)


@command("refresh", within=lib_command, example="kb lib refresh /owner/project")
@click.argument("library_id", metavar="[/OWNER/PROJECT]", required=False)
@option("--fetch-metadata", is_flag=True, help="Ask GitHub for its stars again.")
@option("--no-embed", is_flag=True, help="Leave the vectors for later.")
@progress_option
def lib_refresh(library_id: str | None, fetch_metadata: bool, no_embed: bool, progress_style: str) -> None:
    """Fetch a library again, or all of them, and index what has changed."""
    libraries = knowledge_base().libraries
    wanted = [library_id] if library_id else [library.library_id for library in libraries.all()]
    if not wanted:
        hint = "Add one with: kb lib add https://github.com/owner/project"
        raise UsageError("There is no library to refresh.", hint=hint)
    whole = IngestReport()
    for name in wanted:
        try:
            with _indexing(progress_style) as progress:
                library, report = libraries.refresh(
                    name, fetch_metadata=fetch_metadata, embed=not no_embed, progress=progress
                )
        except SourceError as error:  # with several libraries, the others are still refreshed
            if library_id:
                raise
            remark(f"{name}: {error.message}")
            continue
        whole.sources.append(name)
        whole.include(report)
        if not wants_json():
            _say_indexed(library, report)
    if failed := len(wanted) - len(whole.sources):
        hint = "See why, and what is searched, with: kb lib list; forget one with: kb lib remove ID"
        raise SourceError(f"{failed} of {len(wanted)} libraries could not be refreshed.", hint=hint)
    printed_as_json(ingest_report_v1(whole))


@command("list", within=lib_command, example="kb lib list")
def lib_list() -> None:
    """The libraries that are indexed, their versions and states."""
    libraries = knowledge_base().libraries.all()
    if printed_as_json(library_list_v1(libraries)):
        return
    table(
        ["id", "title", "version", "snippets", "trust", "commit", "indexed", "state"],
        [_row(library, version) for library in libraries for version in library.versions],
        shorten={"title": "end", "state": "end"},
    )
    if not libraries:
        remark("There is no library yet. Add one with: kb lib add https://github.com/owner/project")


@command("search", within=lib_command, example="kb lib search widget\nkb lib search widget --query 'round gauges'")
@click.argument("name")
@option("--query", help="What is wanted of it: libraries that speak of this are found too.")
@option("--limit", **within(LIBRARY_LIMIT), show_default=True, help="How many libraries.")
def lib_search(name: str, query: str | None, limit: int) -> None:
    """Find libraries by name, description or what their documentation says."""
    found = knowledge_base().libraries.search(name, query, limit)
    answer = library_search_v1(name, query, found)
    if not printed_as_json(answer):
        print_verbatim(libraries_text(match.library for match in found))
        if any(library.suspicious for library in answer.libraries):
            remark(SUSPICIOUS)


@command(
    "docs",
    within=lib_command,
    example="kb lib docs /owner/project 'close a gauge'\n"
    "kb lib docs /owner/project/v1.2 'close a gauge' --type code --tokens 2000",
)
@click.argument("library", metavar="/OWNER/PROJECT[/VERSION]")
@click.argument("query")
@option("--tokens", **within(TOKENS), show_default=True, help="Budget for whole snippets.")
@option("--type", "kind", type=click.Choice(SNIPPET_KINDS), help="Only code, or only prose.")
@option("--page", **within(PAGE), show_default=True, help="The next whole snippets, up to the same budget.")
@option(
    "--project",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="The version that this project's lock file names.",
)
def lib_docs(library: str, query: str, tokens: int, kind: str | None, page: int, project: str | None) -> None:
    """Print the snippets of a library's documentation that answer QUERY."""
    docs = knowledge_base().libraries.docs(library, query, tokens=tokens, kind=kind, page=page, project=project)
    if printed_as_json(library_docs_v1(query, docs)):
        return
    for notice in docs.notices:
        remark(f"note: {notice.message}")
    if docs.reason:
        remark(f"{docs.reason}.")
    if text := snippets_text(docs.snippets, docs.rules):
        print_verbatim(text)
    for text in remarks_on(docs, f"There is more: --page {docs.page + 1}, or a larger budget with --tokens."):
        remark(text)


@command("export", within=lib_command, example="kb lib export /owner/project project.kebab\nkb lib add project.kebab")
@click.argument("library_id", metavar="/OWNER/PROJECT")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@option("--force", is_flag=True, help="Overwrite FILE.")
def lib_export(library_id: str, file: Path, force: bool) -> int:
    """Write a library with all its versions and vectors into one file, for `kb lib add` on another machine."""
    if file.exists() and not force:
        raise UsageError(f"{file} is already there.", hint="Name another file, or overwrite it with --force.")
    kb = knowledge_base()
    documents = kb.libraries.export(library_id, file)
    size = f"{file.stat().st_size / 1e6:.1f} MB"
    return done("lib export", f"{library_id}: {counted(documents, 'document')} in {file}, {size}.", file)


@command(
    "remove",
    within=lib_command,
    example="kb lib remove /owner/project --yes\nkb lib remove /owner/project --version v1.2 --yes",
)
@click.argument("library_id", metavar="/OWNER/PROJECT")
@option("--version", metavar="TAG", help="Only this one.")
@option("--yes", is_flag=True, help="Do not ask.")
def lib_remove(library_id: str, version: str | None, yes: bool) -> int:
    """Forget a library, or one version of it. What it was added from is not touched."""
    kb = knowledge_base()
    what = library_id if version is None else f"{library_id} {version}"
    kb.libraries.find(library_id)
    if not is_confirmed(yes, f"Forget {what}?", f"kb lib remove drops everything indexed of {what}"):
        raise click.Abort
    kb.libraries.remove(library_id, version)
    return done("lib remove", f"{what} is forgotten.", kb.address)


@contextmanager
def _indexing(progress_style: str) -> Iterator[IngestProgress]:
    """Yields the progress display for indexing a library. After Ctrl-C it prints how to continue."""
    try:
        with progress_of(progress_style) as progress:
            yield progress
    except KeyboardInterrupt:
        remark("What was indexed before is searched as it was; run it again to go on.")
        raise


def _row(library: Library, version: LibraryVersion) -> list[str]:
    commit = (version.commit or "")[:_SHORT_COMMIT]
    trust = f"{library.trust_score or 0:.1f}"
    state: str = version.state
    if version.error is not None:
        attempt = "indexed; the last attempt to refresh it failed" if version.indexed_at else "failed"
        state = f"{attempt}: {version.error}"
    name, snippets = version.name or "default", str(version.snippets)
    return [library.library_id, library.title, name, snippets, trust, commit, version.indexed_at or "", state]


def _say_indexed(library: Library, report: IngestReport) -> None:
    versions = ", ".join(version.name or "default branch" for version in library.versions if version.indexed_at)
    trust = f"trust score {library.trust_score or 0:.1f}/10"
    say(f"{library.library_id}: {counted(library.total_snippets, 'snippet')}, {versions}; {trust}")
    files = counted(report.scanned, "file")
    say(f"  {files}: {report.added} read, {report.unchanged} known, in {report.seconds:.1f} s")
    say_vectors(report)
    say_skipped(report)
    for kind, entries in (("failed", report.failed), ("warning", report.warnings)):
        for entry in entries:
            say(f"  {kind}: {entry.path}: {entry.message}")
