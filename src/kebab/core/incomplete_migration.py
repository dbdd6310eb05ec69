"""A knowledge base that is being filled from another one: nobody else changes it until everything is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kebab.core.errors import NotEmpty
from kebab.core.records import Check

if TYPE_CHECKING:
    from kebab.core.store_ports import Reading, Writing


def incomplete_migration_checks(reading: Reading | None, place: str, *, ok: bool) -> list[Check]:
    """One check while a migration is incomplete, otherwise none. `ok`: whether that counts as healthy."""
    origin = reading.migrating_from() if reading else None
    if origin is None:
        return []
    return [Check("migration", ok, f"not everything has come from {origin} yet", _go_on(origin, place))]


def _go_on(origin: str, place: str) -> str:
    return f"Go on with: kb migrate --from {origin} --to {place}"


def refuse_incomplete_migration(writing: Writing) -> None:
    """Additions would stop the migration, and it would undo removals and changes."""
    origin = writing.migrating_from()
    if origin is not None:
        raise NotEmpty(
            f"This knowledge base is being filled from {origin}, and that is not finished.",
            hint=f"Finish it with the same command: kb migrate --from {origin} --to …; or begin anew after: kb reset",
        )
