"""How far a library's documentation is trusted, from 0 to 10: by its stars, its size and what is known of it."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from math import log10


def trust_score(
    *, stars: int | None, total_snippets: int, is_github: bool, is_indexed: bool, has_description: bool
) -> float:
    popularity = min(4.0, log10(max(0, stars or 0) + 1))
    coverage = min(3.0, max(0, total_snippets) / 500)
    return to_fixed(min(10.0, popularity + coverage + is_github + is_indexed + has_description))


def to_fixed(score: float) -> float:
    """A score with one decimal, as JavaScript's toFixed(1) rounds: the exact value, halves up. `round` takes halves to
    the even digit.
    """
    return float(Decimal(score).quantize(Decimal("0.1"), ROUND_HALF_UP))
