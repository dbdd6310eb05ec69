"""Reorders the best passages where source code is among them: definitions first, tests and examples last."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kebab.core.ports import ChunkContext
from kebab.core.search import Exactness, SearchQuery
from kebab.core.spans import CodeSpan
from kebab.search.fusion import Fused

WINDOW = 50
"""How many of the best passages may change their places."""
DEFINITION = "definition first"
ASIDE = "test or example last"

Read = tuple[Fused, ChunkContext]

_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:(?:\.|::)[^\W\d]\w*)*")
_LOOKS_LIKE_CODE = re.compile(r"[^\W_]_+\w|\w\.\w|::|[a-z0-9][A-Z]|[A-Z]{2}[a-z]|\A_")
_ASIDE = re.compile(
    r"(?:\A|/)(?:tests?|testing|specs?|__tests__|examples?|samples?|demos?|benchmarks?|fixtures?|generated)/"
    r"|(?:\A|/)(?:test_[^/]*|conftest\.py)\Z|[._-](?:test|spec)s?\.\w+\Z|_pb2\.py\Z|\.pyi\Z|\.d\.ts\Z",
    re.IGNORECASE,
)
_ASKS_FOR_ASIDE = re.compile(
    r"\b(?:tests?|testing|specs?|examples?|samples?|demos?|benchmarks?|fixtures?)\b|테스트|예제", re.I
)


def reordered(read: Iterable[Read], query: SearchQuery) -> list[Read]:
    """These passages, which are the first `WINDOW`, in a better order. Those that moved say why in `Fused.moved`."""
    best = list(read)
    asks_for_aside = _ASKS_FOR_ASIDE.search(query.text) or query.filters.path_glob
    if not asks_for_aside and any(passage.doc_type == "code" for _, passage in best):
        names = identifiers(query.text)
        groups: dict[str | None, list[Read]] = {DEFINITION: [], None: [], ASIDE: []}
        for place, passage in best:
            moved = _moved(place, passage, query, names) if passage.doc_type == "code" else None
            groups[moved].append((place._replace(moved=moved), passage))
        best = [*groups[DEFINITION], *groups[None], *groups[ASIDE]]
    return best


def _moved(place: Fused, passage: ChunkContext, query: SearchQuery, names: set[str]) -> str | None:
    if _ASIDE.search(passage.doc_path):
        return None if _has_phrase(place, query) else ASIDE
    return DEFINITION if defines(passage, names) else None


def identifiers(text: str) -> set[str]:
    """The names in a query that look like code; a query of one word may be a name too."""
    names = _IDENTIFIER.findall(text)
    return {name.replace("::", ".") for name in names if len(names) == 1 or _LOOKS_LIKE_CODE.search(name)}


def defines(passage: ChunkContext, names: set[str]) -> bool:
    """Whether a passage begins the definition of one of these names."""
    span = passage.spans[0]
    symbol = span.symbol if isinstance(span, CodeSpan) else None
    return symbol is not None and any(f".{symbol}".endswith(f".{name}") for name in names)


def _has_phrase(place: Fused, query: SearchQuery) -> bool:
    exactness = place.lexical.exactness if place.lexical else None
    return exactness is not None and exactness >= Exactness.PHRASE and len(query.text.split()) > 1
