"""Hints name the command to type next. It must lead to the same database: what was given here as --db or --config
belongs into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from kebab.interfaces.cli.options import places_given

if TYPE_CHECKING:
    from kebab.core.errors import KebabError
    from kebab.core.search import SearchResponse


def follow_up(text: str) -> str:
    """With `kb ingest` written as `kb --db FILE ingest`, when this run has a --db."""
    given = places_given()
    context = click.get_current_context(silent=True)
    if context is None or not given:
        return text
    import re
    from shlex import quote

    root = context.find_root()
    commands = root.command.list_commands(root) if isinstance(root.command, click.Group) else []
    options = "".join(f"--{name} {quote(value)} " for name, value in given.items())
    return re.sub(rf"(?<![\w./-])kb (?=(?:{'|'.join(commands)})\b)", lambda command: command[0] + options, text)


def follow_up_error(error: KebabError) -> None:
    if error.hint:
        error.hint = follow_up(error.hint)


def follow_up_notices(response: SearchResponse) -> SearchResponse:
    response.notices = tuple(notice._replace(message=follow_up(notice.message)) for notice in response.notices)
    return response
