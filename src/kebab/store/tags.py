"""Tags as every store counts them: without case, and shown as most documents write them."""

from __future__ import annotations

from collections.abc import Iterable

from kebab.core.records import TagRecord


def folded(text: str) -> str:
    """As SQLite compares without case: letters of English only."""
    return (
        "".join(letter.lower() if letter.isascii() else letter for letter in text)
        if not text.isascii()
        else text.lower()
    )


def tag_records(counts: Iterable[tuple[str, int]]) -> list[TagRecord]:
    """Spellings, each with its number of documents → tags, the most used first. Of spellings that as many documents
    have, the first in order stands for the tag.
    """
    spellings: dict[str, list[tuple[str, int]]] = {}
    for spelling, documents in counts:
        spellings.setdefault(folded(spelling), []).append((spelling, documents))
    records = [
        TagRecord(min(same, key=lambda one: (-one[1], one[0]))[0], sum(documents for _, documents in same))
        for same in spellings.values()
    ]
    return sorted(records, key=lambda record: (-record.documents, folded(record.tag)))
