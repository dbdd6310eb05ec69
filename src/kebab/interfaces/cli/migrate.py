"""kb migrate"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kebab.core.errors import KebabError
from kebab.interfaces.cli.ingest_progress import progress_of
from kebab.interfaces.cli.options import command, knowledge_base, wants_json
from kebab.interfaces.cli.render import counted, print_json, say

if TYPE_CHECKING:
    from kebab.upkeep.migration import MigrationReport


@command(
    "migrate",
    example="kb migrate --to qdrant://127.0.0.1:6333/notes\nkb migrate --from qdrant://127.0.0.1:6333/notes --to notes.sqlite",
)
@click.option(
    "--from",
    "origin",
    metavar="FILE|URL",
    help="The database to carry over (default: the one that --db and settings name).",
)
@click.option(
    "--to",
    "target",
    metavar="FILE|URL",
    required=True,
    help="Where nothing is yet: a file, or qdrant://HOST:PORT/NAME.",
)
@click.option(
    "--progress",
    "progress_style",
    type=click.Choice(["auto", "json", "none"]),
    default="auto",
    help="json: one event per line on stderr.",
)
def migrate_command(origin: str | None, target: str, progress_style: str) -> int:
    """Carry a whole knowledge base from a file to a Qdrant cluster, or back: documents, tags, notes, libraries and
    vectors.

    Nothing is read or embedded again, and the old place stays as it is. At the end both sides are counted, and
    documents compared; a difference is an error. Stopping with Ctrl-C is safe: the same command goes on.
    """
    progress = progress_of(progress_style)
    migration = knowledge_base(origin).migration_to(knowledge_base(target), progress)
    try:
        with progress:
            migration.run()
            progress.end("done")
    except KeyboardInterrupt:
        progress.end("interrupted")
        _print(migration.report, interrupted=True)
        return 130
    except KebabError:
        progress.end("failed")
        raise
    _print(migration.report)
    return 0


def _print(report: MigrationReport, *, interrupted: bool = False) -> None:
    if wants_json():
        from kebab.wire.migration import migration_report_v1

        print_json(migration_report_v1(report, interrupted=interrupted))
        return
    went_on = ", going on with an earlier run" if report.resumed else ""
    carried = f"{counted(report.documents, 'document')} and {counted(report.vectors, 'vector')} carried over"
    if interrupted or report.counts is None:
        say(f"{carried}{went_on}; interrupted, run it again to go on")
        return
    counts = report.counts
    say(f"{report.target}: {carried} in {report.seconds:.1f} s{went_on}")
    say(
        f"  {counted(counts.sources, 'source')}, {counted(counts.documents, 'document')}, {counted(counts.chunks, 'chunk')}"
    )
    if counts.libraries:
        say(f"  {counted(counts.libraries, 'library', 'libraries')}, {counted(counts.snippets, 'snippet')}")
    for space in counts.spaces:
        say(f"  {counted(space.vectors, 'vector')} of {space.fingerprint}")
    say(f"  both sides have the same; {counted(report.compared, 'document')} compared word by word")
