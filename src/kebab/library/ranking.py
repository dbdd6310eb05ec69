"""Scores how well libraries match a name and how much each is trusted, and tells which organisations are allowed."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from math import log10
from typing import NamedTuple

from kebab.config.settings import Settings
from kebab.core.errors import SourceError
from kebab.core.libraries import Library

_EXACT_TITLE = 100
_TITLE_PREFIX = 50
_IN_DESCRIPTION = 20
_SNIPPETS_PER_POINT = 100
_PER_TRUST = 10


class LibraryMatch(NamedTuple):
    library: Library
    score: float
    matching_snippets: int
    """Snippets that have the words of the name or of the query."""


def composite_score(library: Library, name: str) -> float:
    """How well a library matches a name. An exact title gets the points of a prefix too."""
    title, wanted = library.title.casefold(), name.casefold()
    return (
        _EXACT_TITLE * (title == wanted)
        + _TITLE_PREFIX * title.startswith(wanted)
        + _IN_DESCRIPTION * (wanted in library.description.casefold())
        + library.total_snippets / _SNIPPETS_PER_POINT
        + _PER_TRUST * (library.trust_score or 0)
    )


def ranked(
    libraries: Iterable[Library], name: str, *, named: frozenset[str], matching: dict[str, int]
) -> list[LibraryMatch]:
    """The libraries with their scores, the best first. Libraries in `named` match by title, id or description and come
    before those with only matching snippets. `matching`: the number of matching snippets by library.
    """
    matches = [
        LibraryMatch(library, composite_score(library, name), matching.get(library.library_id, 0))
        for library in libraries
    ]

    def order(match: LibraryMatch) -> tuple[bool, float, int, str]:
        library_id = match.library.library_id
        return library_id not in named, -match.score, -match.matching_snippets, library_id

    return sorted(matches, key=order)


def trust_score(
    *, stars: int | None, total_snippets: int, is_github: bool, is_indexed: bool, has_description: bool
) -> float:
    """A score from 0 to 10: by the stars of a library, its size, and facts such as that it has a description."""
    popularity = min(4.0, log10(max(0, stars or 0) + 1))
    coverage = min(3.0, max(0, total_snippets) / 500)
    return to_fixed(min(10.0, popularity + coverage + is_github + is_indexed + has_description))


def to_fixed(score: float) -> float:
    """A score with one decimal, rounded as JavaScript's toFixed(1) does: the exact value, halves up. `round` takes
    halves to the even digit.
    """
    return float(Decimal(score).quantize(Decimal("0.1"), ROUND_HALF_UP))


def refuse_other_organisations(library_id: str, settings: Settings) -> None:
    if library_id.count("/") == 2 and not is_allowed(library_id, settings):
        hint = f"library.organisations allows: {settings.library.organisations}."
        raise SourceError(f"{library_id} is not of an organisation that is allowed here.", hint=hint)


def is_allowed(library_id: str, settings: Settings) -> bool:
    allowed = {name.strip().casefold() for name in settings.library.organisations.split(",") if name.strip()}
    return not allowed or library_id.split("/")[1].casefold() in allowed
