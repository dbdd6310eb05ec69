"""kb ingest"""

from __future__ import annotations

import signal
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from kebab.core.errors import KebabError, UsageError
from kebab.interfaces.cli.options import command, is_quiet, knowledge_base, wants_json
from kebab.interfaces.cli.render import counted, print_json, remark, say, shown

if TYPE_CHECKING:
    from kebab.pipelines.ingest_report import IngestReport


@command(
    "ingest",
    example="kb ingest ~/notes\nkb ingest                      # every source again\necho 'milk, bread' | kb ingest - --title Shopping",
)
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--name", help="What to call the source (default: the folder's name).")
@click.option("--title", help="Title of a text from stdin (PATH is -).")
@click.option("--no-embed", is_flag=True, expose_value=False, help="Text index only, no vectors (there are none yet).")
@click.option(
    "--progress",
    "progress_style",
    type=click.Choice(["auto", "json", "none"]),
    default="auto",
    help="json: one event per line on stderr.",
)
def ingest_command(paths: tuple[str, ...], name: str | None, title: str | None, progress_style: str) -> int:
    """Index folders or single files: what is new or changed is read, what is gone is dropped.

    A PATH given once is remembered as a source; without one, every known source is brought up to date. Stopping with Ctrl-C is
    safe: the next run goes on. Files excluded by .gitignore or .kebabignore, hidden ones and binary ones are left out and counted.
    """
    kb = knowledge_base()
    if "-" in paths:
        if len(paths) > 1:
            raise UsageError("- (stdin) cannot be mixed with other paths.", hint="Run kb ingest twice.")
        if title is None:
            raise UsageError("A text from stdin needs a title.", hint="For example: kb ingest - --title 'Shopping list'")
        _finish(kb.ingest_text(_stdin_text(), title=title))
        return 0
    if title is not None:
        raise UsageError("--title is for a text from stdin.", hint="Write: kb ingest - --title TITLE")
    progress = _progress(progress_style)
    try:
        with progress:
            report = kb.ingest(*paths, name=name, progress=progress)
            progress.end("done")
    except KeyboardInterrupt:
        progress.end("interrupted")
        run = kb.last_ingest
        if run is not None:
            _finish(run.report, interrupted=True)
        return 130
    except KebabError:
        progress.end("failed")
        run = kb.last_ingest
        if run is not None and run.report.done and not wants_json():
            _finish(run.report)  # what was done before, or in other sources
        raise
    _finish(report)
    return 0


def _stdin_text() -> str:
    from kebab.core.text import decode

    return decode(sys.stdin.buffer.read())[0]


def _finish(report: IngestReport, *, interrupted: bool = False) -> None:
    if wants_json():
        from kebab.wire.ingest import ingest_report_v1

        print_json(ingest_report_v1(report, interrupted=interrupted))
        return
    if is_quiet():
        for failure in report.failed:
            click.echo(shown(f"failed: {failure.path}: {failure.message}"), err=True)
        return
    _print_report(report, interrupted)


def _print_report(report: IngestReport, interrupted: bool) -> None:
    from kebab.pipelines.ingest_report import SKIP_REASONS

    state = "interrupted, run it again to go on" if interrupted else f"in {report.seconds:.1f} s"
    files, chunks = counted(report.scanned, "file"), counted(report.chunks, "chunk")
    say(f"{', '.join(report.sources) or 'nothing'}: {files}, {chunks} written, {state}")
    say(f"  added {report.added}, updated {report.updated}, unchanged {report.unchanged}, removed {report.removed}")
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


class _Silent:
    """Shows nothing. Ctrl-C takes effect here, between two files, so that the report counts exactly what was written; pressed
    twice it takes effect at once.
    """

    def __enter__(self) -> _Silent:
        self._interrupted = self._at_work = False
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, *_: object) -> None:
        if self._interrupted or not self._at_work:  # twice, or while waiting for another writer
            raise KeyboardInterrupt
        self._interrupted = True

    def __call__(self, event: str, **details: Any) -> None:
        self._at_work = True
        if self._interrupted:
            raise KeyboardInterrupt
        self.show(event, details)

    def show(self, event: str, details: dict[str, Any]) -> None:
        pass

    def end(self, event: str) -> None:
        pass


class _JsonLines(_Silent):
    """Throttled, so that a million files do not become a million lines; the terminal event always comes."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._last = 0.0

    def show(self, event: str, details: dict[str, Any]) -> None:
        elapsed = time.perf_counter() - self._started
        if event == "file" and elapsed - self._last < 0.1:
            return
        self._last = elapsed
        self._emit(event, details)

    def end(self, event: str) -> None:
        self._emit(event, {})

    def _emit(self, event: str, details: dict[str, Any]) -> None:
        from kebab.wire.ingest import IngestProgressV1
        from kebab.wire.objects import to_json

        known = {name: details.get(name) for name in ("source", "path", "done", "total")}
        elapsed = time.perf_counter() - self._started
        click.echo(to_json(IngestProgressV1(event=event, elapsed_s=elapsed, **known)), err=True)  # type: ignore[arg-type]  # events are named in the wire type


class _Bar(_Silent):
    """A bar on the terminal, gone when it is finished."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.fields[source]}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[path]}", markup=False),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=None, source="", path="")

    def __enter__(self) -> _Silent:
        self._bar.start()
        return super().__enter__()

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        super().__exit__()

    def show(self, event: str, details: dict[str, Any]) -> None:
        path = str(details.get("path") or event)
        shown = path if len(path) <= 48 else "…" + path[-47:]
        self._bar.update(
            self._task,
            source=details.get("source", ""),
            path=shown,
            completed=details.get("done", 0),
            total=details.get("total"),
        )


def _progress(style: str) -> _Silent:
    if style == "json":
        return _JsonLines()
    if style == "none" or is_quiet() or wants_json() or not sys.stderr.isatty():
        return _Silent()
    return _Bar()
