"""kb source"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from kebab.core.errors import UsageError
from kebab.interfaces.cli.options import global_options, group, knowledge_base, wants_json
from kebab.interfaces.cli.render import counted, done, say

if TYPE_CHECKING:
    from kebab.ingest.notes import Description


@group("source", example="kb source describe notes/work 'minutes of team A'\nkb source remove old-notes")
def source_command() -> None:
    """Manage the places that were ingested; list them with kb list sources."""


@source_command.command(
    "describe",
    epilog="Example:\n\n\b\n  kb source describe notes 'what I learned at work'\n  kb source describe notes/work 'minutes of team A'\n"
    "  kb source describe notes/work --remove",
)
@global_options
@click.argument("place", metavar="NAME[/FOLDER]")
@click.argument("text", required=False)
@click.option("--remove", is_flag=True, help="Take the note away; an empty TEXT does the same.")
def source_describe(place: str, text: str | None, remove: bool) -> int:
    """Say in a sentence what a source, or a folder in it, is about. Every hit below carries the note, and is found by
    its words too.
    """
    if (text is None) != remove:
        raise UsageError(
            "kb source describe takes a TEXT, or --remove.",
            hint="For example: kb source describe notes 'what I learned'",
        )
    kb = knowledge_base()
    return done("source describe", _described(kb.describe_source(place, text or "")), kb.address)


def _described(result: Description) -> str:
    again = f"{counted(result.chunks, 'chunk')} indexed again."
    if result.text is not None:
        return f"{result.place} is described: {again}"
    return (
        f"{result.place} had no note."
        if result.before is None
        else f"The note on {result.place} is taken away: {again}"
    )


@source_command.command("remove", epilog="Example:\n\n\b\n  kb source remove old-notes --yes")
@global_options
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def source_remove(name: str, yes: bool) -> int:
    """Forget a source and everything indexed from it. The files themselves are not touched."""
    kb = knowledge_base()
    if not yes and name in [source.name for source in kb.sources()]:  # of another one there is nothing to ask
        if wants_json() or not sys.stdin.isatty():
            raise UsageError(
                "kb source remove drops everything indexed from a source, and there is nobody to ask whether it may.",
                hint="Say so with --yes.",
            )
        if not click.confirm(f"Forget the source {name} and all its documents?"):
            say("Nothing was forgotten.")
            return 1
    return done(
        "source remove", f"The source {name} is forgotten: {counted(kb.remove_source(name), 'document')}.", kb.address
    )
