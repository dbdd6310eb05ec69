"""kb ingest"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kebab.core.errors import KebabError, UsageError
from kebab.interfaces.cli.ingest_progress import progress_of
from kebab.interfaces.cli.options import command, is_quiet, knowledge_base, wants_json
from kebab.interfaces.cli.render import counted, print_json, remark, say, shown

if TYPE_CHECKING:
    from kebab.ingest.report import IngestReport


@command(
    "ingest",
    example="kb ingest ~/notes\nkb ingest                      # every source again\necho 'milk, bread' | kb ingest - --title Shopping",
)
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--name", help="What to call the source (default: the folder's name).")
@click.option("--title", help="Title of a text from stdin (PATH is -).")
@click.option(
    "--password",
    metavar="TEXT",
    help="For encrypted PDFs; the setting ingest.pdf_password keeps it out of the shell's history.",
)
@click.option("--no-embed", is_flag=True, help="Text index only; a later run makes the vectors.")
@click.option(
    "--progress",
    "progress_style",
    type=click.Choice(["auto", "json", "none"]),
    default="auto",
    help="json: one event per line on stderr.",
)
def ingest_command(
    paths: tuple[str, ...],
    name: str | None,
    title: str | None,
    password: str | None,
    no_embed: bool,
    progress_style: str,
) -> int:
    """Index folders or single files: what is new or changed is read, what is gone is dropped.

    A PATH given once is remembered as a source; without one, every known source is brought up to date. One can search
    as soon as the text is indexed; vectors follow. Stopping with Ctrl-C is safe: the next run goes on. Files excluded
    by .gitignore or .kebabignore, hidden ones and binary ones are left out and counted.
    """
    kb = knowledge_base()
    if "-" in paths:
        if len(paths) > 1:
            raise UsageError("- (stdin) cannot be mixed with other paths.", hint="Run kb ingest twice.")
        if title is None:
            raise UsageError(
                "A text from stdin needs a title.", hint="For example: kb ingest - --title 'Shopping list'"
            )
        with progress_of(progress_style) as shown_progress:
            report = kb.ingest_text(_stdin_text(), title=title, embed=not no_embed, progress=shown_progress)
        print_report(report)
        return 0
    if title is not None:
        raise UsageError("--title is for a text from stdin.", hint="Write: kb ingest - --title TITLE")
    progress = progress_of(progress_style)
    try:
        with progress:
            report = kb.ingest(*paths, name=name, embed=not no_embed, password=password, progress=progress)
            progress.end("done")
    except KeyboardInterrupt:
        progress.end("interrupted")
        run = kb.last_ingest
        if run is not None:
            print_report(run.report, interrupted=True)
        return 130
    except KebabError:
        progress.end("failed")
        run = kb.last_ingest
        if run is not None and run.report.done and not wants_json():
            print_report(run.report)  # what was done before, or in other sources
        raise
    print_report(report)
    return 0


def _stdin_text() -> str:
    from kebab.core.text import decode

    return decode(sys.stdin.buffer.read())[0]


def print_report(report: IngestReport, *, interrupted: bool = False) -> None:
    if wants_json():
        from kebab.wire.ingest import ingest_report_v1

        print_json(ingest_report_v1(report, interrupted=interrupted))
        return
    if is_quiet():
        for failure in report.failed:
            click.echo(shown(f"failed: {failure.path}: {failure.message}"), err=True)
        return
    _show(report, interrupted)


def vectors_in_words(report: IngestReport) -> str:
    """A passage has one vector for each model that reads it, and a text that was there before keeps its own."""
    if not report.vectors_made:
        return f"{counted(report.vectors_reused, 'vector')} known already, none to make"
    rate = f", {report.vectors_made / report.embedding_seconds:.0f} per second" if report.embedding_seconds > 10 else ""
    known = f", {report.vectors_reused:,} known already" if report.vectors_reused else ""
    return f"{counted(report.vectors_made, 'vector')} made in {report.embedding_seconds:.1f} s{rate}{known}"


def _show(report: IngestReport, interrupted: bool) -> None:
    from kebab.ingest.report import SKIP_REASONS

    state = "interrupted, run it again to go on" if interrupted else f"in {report.seconds:.1f} s"
    files, chunks = counted(report.scanned, "file"), counted(report.chunks, "chunk")
    say(f"{', '.join(report.sources) or 'nothing'}: {files}, {chunks} written, {state}")
    unread = f", not indexed {report.unread} (see below)" if report.unread else ""
    say(
        f"  added {report.added}, updated {report.updated}, unchanged {report.unchanged}, removed {report.removed}{unread}"
    )
    if report.vectors_made or report.vectors_reused:
        say(f"  {vectors_in_words(report)}")
    for reason, skipped in sorted(report.skipped.items(), key=lambda item: -item[1].count):
        more = ", …" if skipped.count > len(skipped.examples) else ""
        say(f"  skipped {skipped.count} ({SKIP_REASONS.get(reason, reason)}): {', '.join(skipped.examples)}{more}")
    for name in report.absorbed:
        say(f"  the single file {name} is now part of its folder")
    if report.reanalysed:
        say(f"  {counted(report.reanalysed, 'chunk')} analysed again: analysis settings had changed")
    for kind, entries in (("failed", report.failed), ("note", report.warnings)):
        for failure in entries[:20]:
            say(f"  {kind}: {failure.path}: {failure.message}")
        if len(entries) > 20:
            say(f"  … and {len(entries) - 20} more; all of them with --json")
    if report.slowest and report.slowest[0][1] > 1:
        say("  slowest: " + ", ".join(f"{path} {seconds:.1f} s" for path, seconds in report.slowest))
    if not interrupted and report.added and sys.stdout.isatty():
        remark("Search it with: kb search 'your question'")
