"""Prints results: as text for people, with colour on a terminal, or as JSON."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from kebab.core.errors import KebabError

if TYPE_CHECKING:
    from pathlib import Path

    from kebab.core.notices import Notice
    from kebab.interfaces.cli.table import Cut

from kebab.interfaces.cli.options import is_quiet, places_given, wants_json

_STEERING = re.compile(r"\r(?!\n)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Control characters, which could change the terminal."""


def print_json(value: Any) -> None:
    from kebab.wire import to_json

    click.echo(to_json(value, indent=2 if sys.stdout.isatty() else None))


def printed_as_json(wire_object: Any) -> bool:
    """Prints a wire object as JSON if --json is given, and returns whether it is."""
    if wants_json():
        print_json(wire_object)
    return wants_json()


def done(command: str, message: str, *places: str | Path) -> int:
    """Prints what a command did that has no other result, and returns exit code 0."""
    if wants_json():
        from kebab.wire.records import DoneV1

        print_json(DoneV1(command=command, message=message, paths=[str(place) for place in places]))
    else:
        say(message)
    return 0


def say(text: str = "") -> None:
    """Prints a line with its control characters replaced."""
    click.echo(CONTROL.sub("\ufffd", text))


def remark(text: str) -> None:
    """Prints a line to stderr, unless --quiet is given."""
    if not is_quiet():
        click.echo(CONTROL.sub("\ufffd", follow_up(text)), err=True)


def shown(text: str) -> str:
    """A text on one line with its control characters replaced, because they could move the cursor of the terminal."""
    return CONTROL.sub("\ufffd", " ".join(text.split()))


def harmless(text: str) -> str:
    """A text with its lines kept, but with the control characters replaced that could change the terminal."""
    return _STEERING.sub("\ufffd", text)


def print_verbatim(text: str) -> None:
    """Prints a text unchanged to a file or pipe; on a terminal, with its control characters replaced."""
    end = "" if text.endswith("\n") else "\n"
    if sys.stdout.isatty():
        click.echo(harmless(text) + end, nl=False)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write((text + end).encode("utf-8", "replace"))


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, shorten: Mapping[str, Cut] | None = None) -> None:
    """Prints a table that fits the terminal, or tab-separated values to a file or pipe.

    `shorten`: the columns to shorten if the terminal is narrow, and where to cut their cells. Then each row is one
    line; without `shorten`, long cells continue on the next line.
    """
    rows = [[shown(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        from kebab.interfaces.cli.table import print_table

        print_table(headings, rows, shorten or {})
        return
    for row in (headings, *rows):
        click.echo("\t".join(row))


def counted(number: int, noun: str, plural: str = "") -> str:
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def has_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def follow_up_notices(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    return tuple(notice._replace(message=follow_up(notice.message)) for notice in notices)


# --- hints


def follow_up(text: str) -> str:
    """Adds this run's --db and --config to the commands in a hint, so that they use the same database: `kb ingest`
    becomes `kb --db FILE ingest`.
    """
    given = places_given()
    context = click.get_current_context(silent=True)
    if context is None or not given:
        return text
    root = context.find_root()
    commands = root.command.list_commands(root) if isinstance(root.command, click.Group) else []
    options = "".join(f"--{name} {quote(value)} " for name, value in given.items())
    return re.sub(rf"(?<![\w./-])kb (?=(?:{'|'.join(commands)})\b)", lambda command: command[0] + options, text)


def follow_up_error(error: KebabError) -> None:
    if error.hint:
        error.hint = follow_up(error.hint)
