"""The commands kb ingest, kb watch and kb source, and the progress of everything that indexes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from kebab.core.errors import KebabError, UsageError
from kebab.core.text import decode
from kebab.ingest.report import SKIP_REASONS, Failure, IngestReport
from kebab.interfaces.cli.options import command, group, is_confirmed, is_quiet, knowledge_base, option, wants_json
from kebab.interfaces.cli.render import counted, done, printed_as_json, remark, say, shown
from kebab.wire.reports import ingest_report_v1

if TYPE_CHECKING:
    from kebab.ingest.sources import Description

_MANY_VECTORS = 1000
_COUNTED_APART = {"embedding": "vectors", "vectors": "vectors", "verifying": "comparing"}
"""Events that do not count files, and the word that the bar shows for each."""
_STOPPING = b"\r\nStopping after what is being written; Ctrl-C again stops at once.\r\n"


progress_option = option(
    "--progress",
    "progress_style",
    type=click.Choice(["auto", "json", "none"]),
    default="auto",
    help="json: one event per line on stderr.",
)


class IngestProgress:
    """Progress that shows nothing; subclasses show it. Ctrl-C ends the ingest at the next event, between two files or
    batches of vectors, so that the report counts exactly what was written. A second Ctrl-C ends it at once.
    """

    def __enter__(self) -> IngestProgress:
        self._interrupted = self._at_work = False
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)
        interrupted = kind is not None and issubclass(kind, KeyboardInterrupt)
        self.end("interrupted" if interrupted else "failed" if kind else "done")

    def _interrupt(self, *_: object) -> None:
        if self._interrupted or not self._at_work:  # pressed twice, or another process still writes
            raise KeyboardInterrupt
        self._interrupted = True
        if sys.stderr.isatty():
            os.write(sys.stderr.fileno(), _STOPPING)  # not sys.stderr.write: the signal may have interrupted one

    def __call__(self, event: str, **details: Any) -> None:
        self._at_work = True
        if self._interrupted:
            raise KeyboardInterrupt
        self.show(event, details)

    def show(self, event: str, details: dict[str, Any]) -> None:
        pass

    def end(self, event: str) -> None:
        pass


class _Remarks(IngestProgress):
    """Prints one line before many vectors are made. Used without a terminal, where silence looks like a failure."""

    def __init__(self) -> None:
        self._said = False

    def show(self, event: str, details: dict[str, Any]) -> None:
        total = details.get("total") or 0
        if event == "embedding" and total >= _MANY_VECTORS and not self._said:
            self._said = True
            safe = "Words can be searched already, and Ctrl-C is safe."
            click.echo(f"At least {total:,} vectors are to be made now. {safe}", err=True)


class _JsonLines(IngestProgress):
    """Prints events as JSON lines, at most ten files or batches per second. The last event is always printed."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._last = 0.0

    def show(self, event: str, details: dict[str, Any]) -> None:
        elapsed = time.perf_counter() - self._started
        if event in ("file", *_COUNTED_APART) and elapsed - self._last < 0.1:
            return
        self._last = elapsed
        self._emit(event, details)

    def end(self, event: str) -> None:
        self._emit(event, {})

    def _emit(self, event: str, details: dict[str, Any]) -> None:
        from kebab.wire import to_json
        from kebab.wire.reports import ingest_progress_v1

        click.echo(to_json(ingest_progress_v1(event, details, time.perf_counter() - self._started)), err=True)


class _Bar(IngestProgress):
    """Shows a bar on the terminal, and removes it at the end."""

    def __init__(self) -> None:
        from rich import console, progress

        self._bar = progress.Progress(
            progress.TextColumn("{task.fields[source]}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[path]}", markup=False),
            console=console.Console(stderr=True),
            transient=True,
            speed_estimate_period=120,  # seconds; long, because vectors come in batches
        )
        self._shown = ""
        self._task = self._bar.add_task("", total=None, source="", path="")

    def __enter__(self) -> IngestProgress:
        self._bar.start()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        self._bar.stop()
        super().__exit__(*error)

    def show(self, event: str, details: dict[str, Any]) -> None:
        path = str(details.get("path") or event)
        shown = path if len(path) <= 48 else "…" + path[-47:]
        if self._shown != event and {self._shown, event} & _COUNTED_APART.keys():
            self._bar.reset(self._task)  # the bar starts again, because vectors are not counted as files
        self._shown = event
        self._bar.update(
            self._task,
            source=_COUNTED_APART.get(event) or details.get("source", ""),
            path=shown,
            completed=details.get("done", 0),
            total=details.get("total"),
        )


def progress_of(style: str) -> IngestProgress:
    if style == "json":
        return _JsonLines()
    if style == "none" or is_quiet() or wants_json():
        return IngestProgress()
    if not sys.stderr.isatty():
        return _Remarks()
    return _Bar()


# --- progress


_WORTH_A_WORD_S = 2.0
"""`kb watch` reports vectors only if making them took at least this many seconds."""


@command(
    "ingest",
    example="kb ingest ~/notes\nkb ingest                      # every source again\n"
    "echo 'milk, bread' | kb ingest - --title Shopping",
)
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@option("--name", help="What to call the source (default: the folder's name).")
@option("--title", help="Title of a text from stdin (PATH is -).")
@option(
    "--password",
    metavar="TEXT",
    help="For encrypted PDFs; the setting ingest.pdf_password keeps it out of the shell's history.",
)
@option("--no-embed", is_flag=True, help="Text index only; a later run makes the vectors.")
@progress_option
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
            hint = "For example: kb ingest - --title 'Shopping list'"
            raise UsageError("A text from stdin needs a title.", hint=hint)
        text, _ = decode(sys.stdin.buffer.read())
        with progress_of(progress_style) as progress:
            print_report(kb.ingest_text(text, title=title, embed=not no_embed, progress=progress))
        return 0
    if title is not None:
        raise UsageError("--title is for a text from stdin.", hint="Write: kb ingest - --title TITLE")
    try:
        with progress_of(progress_style) as progress:
            report = kb.ingest(*paths, name=name, embed=not no_embed, password=password, progress=progress)
    except KeyboardInterrupt:
        if kb.last_ingest is not None and kb.last_ingest.started:
            print_report(kb.last_ingest, interrupted=True)
        return 130
    except KebabError:
        if kb.last_ingest is not None and kb.last_ingest.done and not wants_json():
            print_report(kb.last_ingest)  # reports the files that were done before the error
        raise
    print_report(report)
    return 0


def print_report(report: IngestReport, *, interrupted: bool = False) -> None:
    if printed_as_json(ingest_report_v1(report, interrupted=interrupted)):
        return
    if not is_quiet():
        _show(report, interrupted)
        return
    for failure in report.failed:
        click.echo(shown(f"failed: {failure.path}: {failure.message}"), err=True)


def vectors_in_words(report: IngestReport) -> str:
    """A phrase with the numbers of vectors made and reused. A chunk has one vector for each model."""
    unfinished = ", not finished" if report.vectors_unfinished else ""
    if not report.vectors_made:
        return f"{counted(report.vectors_reused, 'vector')} known already{unfinished or ', none to make'}"
    rate = f", {report.vectors_made / report.embedding_seconds:.0f} per second" if report.embedding_seconds > 10 else ""
    known = f", {report.vectors_reused:,} known already" if report.vectors_reused else ""
    return f"{counted(report.vectors_made, 'vector')} made in {report.embedding_seconds:.1f} s{rate}{known}{unfinished}"


def say_vectors(report: IngestReport) -> None:
    if report.vectors_made or report.vectors_reused:
        say(f"  {vectors_in_words(report)}")


def say_skipped(report: IngestReport) -> None:
    for reason, skipped in sorted(report.skipped.items(), key=lambda item: -item[1].count):
        more = ", …" if skipped.count > len(skipped.examples) else ""
        say(f"  skipped {skipped.count} ({SKIP_REASONS.get(reason, reason)}): {', '.join(skipped.examples)}{more}")


def _show(report: IngestReport, interrupted: bool) -> None:
    state = "interrupted, run it again to go on" if interrupted else f"in {report.seconds:.1f} s"
    files, chunks = counted(report.scanned, "file"), counted(report.chunks, "chunk")
    say(f"{', '.join(report.sources) or 'nothing'}: {files}, {chunks} written, {state}")
    excluded = sum(skipped.count for skipped in report.skipped.values()) + len(report.failed) - report.unread
    unseen = f", not looked at {excluded}" if excluded else ""
    unread = f", not indexed {report.unread}{unseen} (see below)" if report.unread else ""
    changed = f"added {report.added}, updated {report.updated}, unchanged {report.unchanged}, removed {report.removed}"
    say(f"  {changed}{unread}")
    say_vectors(report)
    say_skipped(report)
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


# --- watch


@command("watch", example="kb watch ~/notes\nkb watch            # every source")
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@option("--name", help="What to call a new source (default: the folder's name).")
@option("--no-embed", is_flag=True, help="Text index only; a later ingest makes the vectors.")
def watch_command(paths: tuple[str, ...], name: str | None, no_embed: bool) -> int:
    """Bring the index up to date, and again whenever something below PATH changes, until Ctrl-C.

    Without PATH, every known source is watched, also those that another terminal ingests meanwhile. What is saved can
    be found by its words at once; vectors are made while nothing else is to be done. One can search, and ingest, at the
    same time. With --json, one report per line: of each change, and of the vectors once they are made.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    shows = _Rounds()
    for report in knowledge_base().watch(*paths, name=name, embed=not no_embed, stop=stop):
        if isinstance(report, KebabError):
            why = f"{shown(report.message)} {shown(report.hint or '')}"
            click.echo(f"{datetime.now():%H:%M:%S}  waiting: {why}", err=True)
        elif wants_json():
            print_report(report)
        elif not is_quiet():
            shows.show(report)
        if stop.is_set():
            break
        if not isinstance(report, KebabError):
            shows.say_watching()
    return 0


class _Rounds:
    """Prints the reports of `kb watch`: the first report whole, each later one in a few lines with the time."""

    def __init__(self) -> None:
        self._watching = False
        self._failed: dict[str, list[Failure]] = {}

    def say_watching(self) -> None:
        if not self._watching:
            self._watching = True
            remark("Watching for changes; Ctrl-C ends it.")

    def show(self, report: IngestReport) -> None:
        if not report.sources:
            if report.embedding_seconds >= _WORTH_A_WORD_S:
                _say_now(vectors_in_words(report))
            return
        source = ", ".join(report.sources)
        if not self._watching:
            print_report(report)
        elif report.changes:
            _say_now(f"{source}: {_changes_in_words(report)} ({report.seconds:.1f} s)")
        for note in report.warnings if self._watching else ():
            _say_now(f"{source}: note: {note.path}: {note.message}")
        for failure in report.failed:
            if self._watching and failure not in self._failed.get(source, []):  # it fails in every report
                _say_now(f"{source}: failed {failure.path}: {failure.message}")
        self._failed |= dict.fromkeys(report.sources, report.failed)


def _changes_in_words(report: IngestReport) -> str:
    named = ", ".join(f"{what} {path}" for what, path in report.changes)
    more = report.added + report.updated + report.removed - len(report.changes)
    return f"{named} and {more:,} more" if more else named


def _say_now(text: str) -> None:
    say(f"{datetime.now():%H:%M:%S}  {shown(text)}")


# --- sources


@group("source", example="kb source describe notes/work 'minutes of team A'\nkb source remove old-notes")
def source_command() -> None:
    """Manage the places that were ingested; list them with kb list sources."""


@command(
    "describe",
    within=source_command,
    example="kb source describe notes 'what I learned at work'\nkb source describe notes/work 'minutes of team A'\n"
    "kb source describe notes/work --remove",
)
@click.argument("place", metavar="NAME[/FOLDER]")
@click.argument("text", required=False)
@option("--remove", is_flag=True, help="Take the note away; an empty TEXT does the same.")
def source_describe(place: str, text: str | None, remove: bool) -> int:
    """Say in a sentence what a source, or a folder in it, is about. Every hit below carries the note, and is found by
    its words too.
    """
    if (text is None) != remove:
        hint = "For example: kb source describe notes 'what I learned'"
        raise UsageError("kb source describe takes a TEXT, or --remove.", hint=hint)
    kb = knowledge_base()
    return done("source describe", _described(kb.describe_source(place, text or "")), kb.address)


def _described(result: Description) -> str:
    again = f"{counted(result.chunks, 'chunk')} indexed again."
    if result.text is not None:
        return f"{result.place} is described: {again}"
    if result.before is None:
        return f"{result.place} had no note."
    return f"The note on {result.place} is taken away: {again}"


@command("remove", within=source_command, example="kb source remove old-notes --yes")
@click.argument("name")
@option("--yes", is_flag=True, help="Do not ask.")
def source_remove(name: str, yes: bool) -> int:
    """Forget a source and everything indexed from it. The files themselves are not touched."""
    kb = knowledge_base()
    question = f"Forget the source {name} and all its documents?"
    reason = "kb source remove drops everything indexed from a source"
    is_known = name in [source.name for source in kb.sources()]  # if not, remove_source raises an error
    if is_known and not is_confirmed(yes, question, reason):
        say("Nothing was forgotten.")
        return 1
    documents = counted(kb.remove_source(name), "document")
    return done("source remove", f"The source {name} is forgotten: {documents}.", kb.address)
