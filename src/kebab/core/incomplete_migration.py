"""A knowledge base that is being filled from another one: nobody else changes it until all is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kebab.core.errors import NotEmpty
from kebab.core.records import Check
from kebab.core.search import Notice

if TYPE_CHECKING:
    from kebab.core.store_ports import Reading, Writing


def half_copied_notice(origin: str, place: str) -> Notice:
    return Notice("half_copied", f"Not everything has come here from {origin} yet. {_go_on(origin, place)}")


def half_copied_checks(reading: Reading | None, place: str, *, ok: bool) -> list[Check]:
    """None where all is there. `ok`: unfinished is not unhealthy; but it is not whole."""
    origin = reading.migrating_from() if reading else None
    return (
        []
        if origin is None
        else [Check("migration", ok, f"not everything has come from {origin} yet", _go_on(origin, place))]
    )


def _go_on(origin: str, place: str) -> str:
    return f"Go on with: kb migrate --from {origin} --to {place}"


def refuse_half_copied_origin(reading: Reading, place: str) -> None:
    """A copy of a part would look like a copy of all."""
    origin = reading.migrating_from()
    if origin is not None:
        raise NotEmpty(
            f"{place} is itself being filled from {origin}, and that is not finished.",
            hint=f"Finish it first with: kb migrate --from {origin} --to {place}",
        )


def refuse_half_copied(writing: Writing) -> None:
    """What is added would stop the copying, what is removed or changed would come back with it, and the origin has the
    rest.
    """
    origin = writing.migrating_from()
    if origin is not None:
        raise NotEmpty(
            f"This knowledge base is being filled from {origin}, and that is not finished.",
            hint=f"Finish it with the same command: kb migrate --from {origin} --to …; or begin anew after: kb reset",
        )
