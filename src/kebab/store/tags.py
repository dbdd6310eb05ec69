"""Tags as every store counts them: without case, and shown as most documents write them."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_lowercase, ascii_uppercase

from kebab.core.records import TagRecord

_WITHOUT_CASE = str.maketrans(ascii_uppercase, ascii_lowercase)


def folded(text: str) -> str:
    """As SQLite compares without case: letters of English only."""
    return text.lower() if text.isascii() else text.translate(_WITHOUT_CASE)


def tag_records(counts: Iterable[tuple[str, int]]) -> list[TagRecord]:
    """Spellings, each with its number of documents → tags, the most used first. The most used spelling names the tag;
    of equally used ones, the first in order.
    """
    spellings: dict[str, list[tuple[str, int]]] = {}
    for spelling, documents in counts:
        spellings.setdefault(folded(spelling), []).append((spelling, documents))
    records = [
        TagRecord(min(same, key=lambda one: (-one[1], one[0]))[0], sum(documents for _, documents in same))
        for same in spellings.values()
    ]
    return sorted(records, key=lambda record: (-record.documents, folded(record.tag)))
