"""kb source"""

from __future__ import annotations

import sys

import click

from kebab.core.errors import UsageError
from kebab.interfaces.cli.options import global_options, group, knowledge_base, wants_json
from kebab.interfaces.cli.render import counted, done


@group("source", example="kb source remove old-notes")
def source_command() -> None:
    """Manage the places that were ingested; list them with kb list sources."""


@source_command.command("remove", epilog="Example:\n\n\b\n  kb source remove old-notes --yes")
@global_options
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
def source_remove(name: str, yes: bool) -> int:
    """Forget a source and everything indexed from it. The files themselves are not touched."""
    kb = knowledge_base()
    if not yes:
        if wants_json() or not sys.stdin.isatty():
            raise UsageError("kb source remove drops everything indexed from a source, so it asks first.", hint="Say so with --yes.")
        click.confirm(f"Forget the source {name} and all its documents?", abort=True)
    return done("source remove", f"The source {name} is forgotten: {counted(kb.remove_source(name), 'document')}.", kb.path)
