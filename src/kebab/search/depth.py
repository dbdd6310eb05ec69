"""How deep a search looks first: hybrid on each side, and the others where a list leaves out some of what was found."""

from __future__ import annotations

from kebab.core.search import SearchQuery
from kebab.search.duplicates import REACH

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


_SOME_COPIES = 6
"""Room for a few passages that are folded, so that one look is enough for most questions."""


def shortens(query: SearchQuery) -> bool:
    """Whether some of what is found will not be a hit of its own."""
    return query.per_doc is not None or query.duplicates == "fold"


def first_look(query: SearchQuery) -> int:
    wanted = query.offset + query.k
    repeating_documents = wanted * _PER_DOCUMENT if query.per_doc is not None else 0
    repeating_passages = wanted + REACH + max(_SOME_COPIES, wanted // 2) if query.duplicates == "fold" else 0
    return max(wanted, repeating_documents, repeating_passages)


def depth_of(query: SearchQuery) -> int:
    wanted = OVER_FETCH * max(_A_PAGE, query.offset + query.k) * (_PER_DOCUMENT if query.per_doc is not None else 1)
    return max(wanted, LEAST_DEPTH) if query.offset or query.fusion == "convex" or query.sort == "date" else wanted
