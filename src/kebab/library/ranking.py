"""Which of several libraries is meant by a name. The parts of the score are added, and nothing else counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

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
    """How many of its snippets have the words of the name or the hint."""


def composite_score(library: Library, name: str) -> float:
    """An exact title is a prefix of itself too. A library without a trust score counts as untrusted."""
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
    """The best first. `named`: ids of those whose title, id or description has the name; the others, which only their
    snippets lead to, come after all of them. `matching`: snippets found, by library.
    """
    matches = [
        LibraryMatch(library, composite_score(library, name), matching.get(library.library_id, 0))
        for library in libraries
    ]
    return sorted(
        matches,
        key=lambda match: (
            match.library.library_id not in named,
            -match.score,
            -match.matching_snippets,
            match.library.library_id,
        ),
    )
