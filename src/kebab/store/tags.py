"""Counts tags alike in every store: case is ignored, and the most used spelling names the tag."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_lowercase, ascii_uppercase

from kebab.core.records import TagRecord

_WITHOUT_CASE = str.maketrans(ascii_uppercase, ascii_lowercase)


def folded(text: str) -> str:
    """The text with A to Z in lower case and all other letters unchanged, as SQLite compares without case."""
    return text.lower() if text.isascii() else text.translate(_WITHOUT_CASE)


def tag_records(counts: Iterable[tuple[str, int]]) -> list[TagRecord]:
    """Groups pairs (spelling, number of documents) into tags, the most used first. The most used spelling names the
    tag; of equally used spellings, the first in order.
    """
    spellings: dict[str, list[tuple[str, int]]] = {}
    for spelling, documents in counts:
        spellings.setdefault(folded(spelling), []).append((spelling, documents))
    records = [
        TagRecord(min(same, key=lambda one: (-one[1], one[0]))[0], sum(documents for _, documents in same))
        for same in spellings.values()
    ]
    return sorted(records, key=lambda record: (-record.documents, folded(record.tag)))
