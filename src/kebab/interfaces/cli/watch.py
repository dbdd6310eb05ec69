"""kb watch"""

from __future__ import annotations

import signal
import threading
from datetime import datetime
from typing import TYPE_CHECKING

import click

from kebab.core.errors import KebabError
from kebab.interfaces.cli.ingest import print_report, vectors_in_words
from kebab.interfaces.cli.options import command, is_quiet, knowledge_base, wants_json
from kebab.interfaces.cli.render import remark, say, shown

if TYPE_CHECKING:
    from kebab.ingest.report import Failure, IngestReport

_WORTH_A_WORD_S = 2.0
"""Vectors that were made in less need no line of their own: a save makes a few."""


@command("watch", example="kb watch ~/notes\nkb watch            # every source")
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--name", help="What to call a new source (default: the folder's name).")
@click.option("--no-embed", is_flag=True, help="Text index only; a later ingest makes the vectors.")
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
            click.echo(
                f"{datetime.now():%H:%M:%S}  waiting: {shown(report.message)} {shown(report.hint or '')}", err=True
            )
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
    """What a person sees: the first report whole, then a line for each round."""

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
            if self._watching and failure not in self._failed.get(source, []):  # it fails again in every round
                _say_now(f"{source}: failed {failure.path}: {failure.message}")
        self._failed |= dict.fromkeys(report.sources, report.failed)


def _changes_in_words(report: IngestReport) -> str:
    named = ", ".join(f"{what} {path}" for what, path in report.changes)
    more = report.added + report.updated + report.removed - len(report.changes)
    return f"{named} and {more:,} more" if more else named


def _say_now(text: str) -> None:
    say(f"{datetime.now():%H:%M:%S}  {shown(text)}")
