"""How deep hybrid search looks on each side."""

from __future__ import annotations

from kebab.core.search import SearchQuery

OVER_FETCH = 3
"""How many times what is asked for each side gives."""
LEAST_DEPTH = 100
"""And at least this much where a page beyond the first, or anything but ranks, needs a longer list."""
DEEPEST = 10_000
"""Where looking deeper ends."""
_A_PAGE = 10
"""Whoever asks for fewer hits gets the first of these."""
_PER_DOCUMENT = 4
"""Deeper where several hits of one document count as few."""


def depth_of(query: SearchQuery) -> int:
    wanted = OVER_FETCH * max(_A_PAGE, query.offset + query.k) * (_PER_DOCUMENT if query.per_doc is not None else 1)
    return max(wanted, LEAST_DEPTH) if query.offset or query.fusion == "convex" or query.sort == "date" else wanted
