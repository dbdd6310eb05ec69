"""kb lib"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kebab.core.errors import SourceError, UsageError
from kebab.interfaces.cli.options import global_options, group, knowledge_base, wants_json
from kebab.interfaces.cli.render import counted, done, print_json, print_verbatim, remark, say

if TYPE_CHECKING:
    from kebab.core.libraries import Library, LibraryVersion
    from kebab.ingest.report import IngestReport


_SHORT_COMMIT = 10


@group(
    "lib",
    example="kb lib add https://github.com/owner/project --version v2.0\nkb lib docs /owner/project 'how to close a gauge'",
)
def lib_command() -> None:
    """Documentation of libraries, offline and by version."""


@lib_command.command(
    "add",
    epilog="Example:\n\n\b\n  kb lib add https://github.com/owner/project --version v1.2 --version v2.0\n"
    "  kb lib add ~/src/widget --id /acme/widget\n  kb lib add llms.txt --title Widget",
)
@global_options
@click.argument("source")
@click.option("--id", "library_id", metavar="/OWNER/PROJECT", help="By default from the address, or /local/NAME.")
@click.option("--title", help="By default as its kebab.json or context7.json says, or the project's name.")
@click.option("--description", help="By default as its kebab.json or context7.json says.")
@click.option("--stars", type=click.IntRange(0), metavar="N", help="How many it has; counts towards its trust score.")
@click.option("--trust", type=float, metavar="0..10", help="Your own trust score instead of the computed one.")
@click.option("--version", "versions", multiple=True, metavar="TAG", help="A git tag to index too; may be repeated.")
@click.option("--branch", help="Instead of the repository's default branch.")
@click.option(
    "--fetch-metadata",
    is_flag=True,
    help="Ask GitHub for its stars and description: the only call that is not for its text.",
)
@click.option("--no-embed", is_flag=True, help="Leave the vectors for later.")
@click.option("--progress", type=click.Choice(["auto", "json", "none"]), default="auto", help="How to show it.")
def lib_add(
    source: str,
    library_id: str | None,
    title: str | None,
    description: str | None,
    stars: int | None,
    trust: float | None,
    versions: tuple[str, ...],
    branch: str | None,
    fetch_metadata: bool,
    no_embed: bool,
    progress: str,
) -> int:
    """Index the documentation of a library: from a git repository, a folder, an archive, a file such as llms.txt, or
    what `kb lib export` wrote.
    """
    from kebab.interfaces.cli.ingest_progress import progress_of

    kb = knowledge_base()
    with _told_how_to_go_on(), progress_of(progress) as shown:
        library, report = kb.libraries.add(
            source,
            library_id=library_id,
            title=title,
            description=description,
            stars=stars,
            trust=trust,
            versions=versions,
            branch=branch,
            fetch_metadata=fetch_metadata,
            embed=not no_embed,
            progress=shown,
        )
        shown.end("done")
    if wants_json():
        from kebab.wire.ingest import ingest_report_v1

        print_json(ingest_report_v1(report))
    else:
        _say_indexed(library, report)
    return 0


@lib_command.command("refresh", epilog="Example:\n\n\b\n  kb lib refresh /owner/project")
@global_options
@click.argument("library_id", metavar="[/OWNER/PROJECT]", required=False)
@click.option("--fetch-metadata", is_flag=True, help="Ask GitHub for its stars again.")
@click.option("--no-embed", is_flag=True, help="Leave the vectors for later.")
@click.option("--progress", type=click.Choice(["auto", "json", "none"]), default="auto", help="How to show it.")
def lib_refresh(library_id: str | None, fetch_metadata: bool, no_embed: bool, progress: str) -> int:
    """Fetch a library again, or all of them, and index what has changed."""
    from kebab.ingest.report import IngestReport
    from kebab.interfaces.cli.ingest_progress import progress_of
    from kebab.wire.ingest import ingest_report_v1

    kb = knowledge_base()
    wanted = [library_id] if library_id else [library.library_id for library in kb.libraries.all()]
    if not wanted:
        raise UsageError(
            "There is no library to refresh.", hint="Add one with: kb lib add https://github.com/owner/project"
        )
    whole = IngestReport()
    failed = 0
    for name in wanted:
        try:
            with _told_how_to_go_on(), progress_of(progress) as shown:
                library, report = kb.libraries.refresh(
                    name, fetch_metadata=fetch_metadata, embed=not no_embed, progress=shown
                )
                shown.end("done")
        except SourceError as error:  # one of several: what can be had of the others is wanted all the same
            if library_id:
                raise
            remark(f"{name}: {error.message}")
            failed += 1
        else:
            whole.sources.append(name)
            whole.include(report)
            if not wants_json():
                _say_indexed(library, report)
    if failed:
        raise SourceError(
            f"{failed} of {len(wanted)} libraries could not be refreshed.",
            hint="See why, and what is searched, with: kb lib list; forget one with: kb lib remove ID",
        )
    if wants_json():
        print_json(ingest_report_v1(whole))
    return 0


@lib_command.command("list", epilog="Example:\n\n\b\n  kb lib list")
@global_options
def lib_list() -> int:
    """The libraries that are indexed, their versions and states."""
    return list_libraries()


def list_libraries() -> int:
    """Also `kb list libraries`."""
    from kebab.interfaces.cli.table import table
    from kebab.wire.libraries import library_list_v1

    libraries = knowledge_base().libraries.all()
    if wants_json():
        print_json(library_list_v1(libraries))
        return 0
    table(
        ["id", "title", "version", "snippets", "trust", "commit", "indexed", "state"],
        [_row(library, version) for library in libraries for version in library.versions],
        shorten={"title": "end", "state": "end"},
    )
    if not libraries:
        remark("There is no library yet. Add one with: kb lib add https://github.com/owner/project")
    return 0


@lib_command.command(
    "search", epilog="Example:\n\n\b\n  kb lib search widget\n  kb lib search widget --query 'round gauges'"
)
@global_options
@click.argument("name")
@click.option("--query", help="What is wanted of it: libraries that speak of this are found too.")
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True, help="How many libraries.")
def lib_search(name: str, query: str | None, limit: int) -> int:
    """Find libraries by name, description or what their documentation says."""
    from kebab.core.search import SUSPICIOUS
    from kebab.library.formatters import libraries_text
    from kebab.wire.libraries import library_search_v1

    found = knowledge_base().libraries.search(name, query, limit)
    answer = library_search_v1(name, query, found)
    if wants_json():
        print_json(answer)
    else:
        print_verbatim(libraries_text(match.library for match in found))
        if any(library.suspicious for library in answer.libraries):
            remark(SUSPICIOUS)
    return 0


@lib_command.command(
    "docs",
    epilog="Example:\n\n\b\n  kb lib docs /owner/project 'close a gauge'\n"
    "  kb lib docs /owner/project/v1.2 'close a gauge' --type code --tokens 2000",
)
@global_options
@click.argument("library", metavar="/OWNER/PROJECT[/VERSION]")
@click.argument("query")
@click.option("--tokens", type=click.IntRange(1), default=5000, show_default=True, help="Budget for whole snippets.")
@click.option("--type", "kind", type=click.Choice(["code", "info"]), help="Only code, or only prose.")
@click.option(
    "--page",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="The next whole snippets, up to the same budget.",
)
@click.option(
    "--project",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="The version that this project's lock file names.",
)
def lib_docs(library: str, query: str, tokens: int, kind: str | None, page: int, project: str | None) -> int:
    """Print the snippets of a library's documentation that answer QUERY."""
    from kebab.core.search import SUSPICIOUS
    from kebab.library.formatters import snippets_text

    docs = knowledge_base().libraries.docs(library, query, tokens=tokens, kind=kind, page=page, project=project)
    if wants_json():
        from kebab.wire.libraries import library_docs_v1

        print_json(library_docs_v1(query, docs))
        return 0
    for notice in docs.notices:
        remark(f"note: {notice.message}")
    if docs.reason:
        remark(f"{docs.reason}.")
    text = snippets_text(docs.snippets, docs.rules)
    if text:
        print_verbatim(text)
    if docs.suspicious_rules or any(snippet.suspicious for snippet in docs.snippets):
        remark(SUSPICIOUS)
    if docs.truncated:
        remark(f"There is more: --page {docs.page + 1}, or a larger budget with --tokens.")
    if not docs.snippets:
        remark("No snippet was found." if docs.page == 1 else f"There is no page {docs.page}.")
    return 0


@lib_command.command(
    "export", epilog="Example:\n\n\b\n  kb lib export /owner/project project.kebab\n  kb lib add project.kebab"
)
@global_options
@click.argument("library_id", metavar="/OWNER/PROJECT")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def lib_export(library_id: str, file: Path, force: bool) -> int:
    """Write a library with all its versions and vectors into one file, for `kb lib add` on another machine."""
    if file.exists() and not force:
        raise UsageError(f"{file} is already there.", hint="Name another file, or overwrite it with --force.")
    kb = knowledge_base()
    documents = kb.libraries.export(library_id, file)
    return done(
        "lib export",
        f"{library_id}: {counted(documents, 'document')} in {file}, {file.stat().st_size / 1e6:.1f} MB.",
        file,
    )


@lib_command.command(
    "remove",
    epilog="Example:\n\n\b\n  kb lib remove /owner/project --yes\n  kb lib remove /owner/project --version v1.2 --yes",
)
@global_options
@click.argument("library_id", metavar="/OWNER/PROJECT")
@click.option("--version", metavar="TAG", help="Only this one.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def lib_remove(library_id: str, version: str | None, yes: bool) -> int:
    """Forget a library, or one version of it. What it was added from is not touched."""
    kb = knowledge_base()
    what = library_id if version is None else f"{library_id} {version}"
    kb.libraries.find(library_id)
    if not yes:
        if wants_json() or not sys.stdin.isatty():
            raise UsageError(
                f"kb lib remove drops everything indexed of {what}, so it asks first.", hint="Say so with --yes."
            )
        click.confirm(f"Forget {what}?", abort=True)
    kb.libraries.remove(library_id, version)
    return done("lib remove", f"{what} is forgotten.", kb.address)


@contextmanager
def _told_how_to_go_on() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        remark("What was indexed before is searched as it was; run it again to go on.")
        raise


def _row(library: Library, version: LibraryVersion) -> list[str]:
    commit = (version.commit or "")[:_SHORT_COMMIT]
    trust = f"{library.trust_score or 0:.1f}"
    return [
        library.library_id,
        library.title,
        version.name or "default",
        str(version.snippets),
        trust,
        commit,
        version.indexed_at or "",
        _state(version),
    ]


def _state(version: LibraryVersion) -> str:
    if version.error is None:
        return version.state
    return (
        f"indexed; the last attempt to refresh it failed: {version.error}"
        if version.indexed_at
        else f"failed: {version.error}"
    )


def _say_indexed(library: Library, report: IngestReport) -> None:
    from kebab.ingest.report import SKIP_REASONS

    versions = ", ".join(version.name or "default branch" for version in library.versions if version.indexed_at)
    say(
        f"{library.library_id}: {counted(library.total_snippets, 'snippet')}, {versions}; trust score {library.trust_score or 0:.1f}/10"
    )
    say(
        f"  {counted(report.scanned, 'file')}: {report.added} read, {report.unchanged} known, in {report.seconds:.1f} s"
    )
    if report.vectors_made or report.vectors_reused:
        say(
            f"  {counted(report.vectors_made, 'vector')} made in {report.embedding_seconds:.1f} s, {report.vectors_reused} known before"
        )
    for reason, skipped in sorted(report.skipped.items(), key=lambda item: -item[1].count):
        more = ", …" if skipped.count > len(skipped.examples) else ""
        say(f"  skipped {skipped.count} ({SKIP_REASONS.get(reason, reason)}): {', '.join(skipped.examples)}{more}")
    for kind, entries in (("failed", report.failed), ("warning", report.warnings)):
        for entry in entries:
            say(f"  {kind}: {entry.path}: {entry.message}")
