"""How far a library's documentation is to be trusted, from 0 to 10: by how known, how well covered and how described it
is.
"""

from __future__ import annotations

from math import log10


def trust_score(
    *, stars: int | None, total_snippets: int, is_github: bool, is_indexed: bool, has_description: bool
) -> float:
    popularity = min(4.0, log10(max(0, stars or 0) + 1))
    coverage = min(3.0, max(0, total_snippets) / 500)
    return round(min(10.0, popularity + coverage + is_github + is_indexed + has_description), 1)
