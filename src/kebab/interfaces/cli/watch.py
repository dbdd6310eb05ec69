"""kb watch"""

from __future__ import annotations

import signal
import threading

import click

from kebab.core.errors import KebabError
from kebab.interfaces.cli.ingest import print_report
from kebab.interfaces.cli.options import command, is_quiet, knowledge_base, wants_json
from kebab.interfaces.cli.render import remark, shown


@command("watch", example="kb watch ~/notes\nkb watch            # every source")
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--name", help="What to call a new source (default: the folder's name).")
@click.option("--no-embed", is_flag=True, help="Text index only; a later ingest makes the vectors.")
def watch_command(paths: tuple[str, ...], name: str | None, no_embed: bool) -> int:
    """Bring the index up to date, and again whenever something below PATH changes, until Ctrl-C.

    Without PATH, every known source is watched. One can search, and ingest, at the same time. With --json, one report per line.
    """
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    watching = False
    for report in knowledge_base().watch(*paths, name=name, embed=not no_embed, stop=stop):
        if isinstance(report, KebabError):
            click.echo(f"waiting: {shown(report.message)} {shown(report.hint or '')}", err=True)
        elif not (is_quiet() and not wants_json()):
            print_report(report)
        if not watching and not stop.is_set():
            watching = True
            remark("Watching for changes; Ctrl-C ends it.")
        if stop.is_set():
            break
    return 0
