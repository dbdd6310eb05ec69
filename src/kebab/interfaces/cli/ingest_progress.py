"""Shows the progress of an ingest: a bar, one remark, JSON lines, or nothing."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import click

from kebab.interfaces.cli.options import is_quiet, option, wants_json

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

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._before)

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

    def __exit__(self, *_: object) -> None:
        self._bar.stop()
        super().__exit__()

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
