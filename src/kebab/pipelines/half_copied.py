"""A knowledge base that is being filled from another one: nobody else changes it until all is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kebab.core.errors import NotEmpty

if TYPE_CHECKING:
    from kebab.core.store_ports import Writing


def refuse_half_copied(writing: Writing) -> None:
    """What is added would stop the copying, what is removed or changed would come back with it, and the origin has the rest."""
    origin = writing.migrating_from()
    if origin is not None:
        raise NotEmpty(
            f"This knowledge base is being filled from {origin}, and that is not finished.",
            hint=f"Finish it with the same command: kb migrate --from {origin} --to …; or begin anew after: kb reset",
        )
