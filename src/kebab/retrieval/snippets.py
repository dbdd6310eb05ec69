"""The part of a chunk to show: verbatim, within limits of characters and words, matches marked by offsets."""

from __future__ import annotations

import re
from typing import NamedTuple

from kebab.core.ports import QueryTerms, Tokenizer

ELLIPSIS = "…"
_MARKS = re.compile("[\x02\x03]")
_WORD = re.compile(r"\S+")
_MATCHES_WEIGHED = 50
"""Enough to compare windows by; a chunk of one word repeated must not cost the square of its length."""


class Snippet(NamedTuple):
    text: str
    highlights: tuple[tuple[int, int], ...]


class SnippetLimits(NamedTuple):
    chars: int = 220

    @property
    def words(self) -> int:
        return max(1, self.chars // 4)


def from_marked(marked: str, limits: SnippetLimits) -> Snippet | None:
    """A snippet the store made, fitted to our limits; None when it marks nothing."""
    parts = _MARKS.split(marked)
    if len(parts) < 3:
        return None
    cut_before, cut_after = parts[0].startswith(ELLIPSIS), parts[-1].endswith(ELLIPSIS)
    parts[0] = parts[0].removeprefix(ELLIPSIS)
    parts[-1] = parts[-1].removesuffix(ELLIPSIS)
    ranges, length = [], 0
    for number, part in enumerate(parts):
        if number % 2:
            ranges.append((length, length + len(part)))
        length += len(part)
    return _fit("".join(parts), ranges, limits, cut_before, cut_after)


def placed(text: str, terms: QueryTerms, tokenizer: Tokenizer, limits: SnippetLimits) -> Snippet:
    """A snippet around what the query found in this text; its beginning when it found nothing here."""
    return _fit(text, matches_in(text, terms, tokenizer), limits, False, False)


def matches_in(text: str, terms: QueryTerms, tokenizer: Tokenizer) -> list[tuple[int, int]]:
    """Where the query's terms stand, in order, overlapping ones joined."""
    found = [(token.start, token.end) for token in tokenizer.tokens(text) if token.stem in terms.stems] if terms.stems else []
    for term in terms.cjk:
        whole = _occurrences(text, term)
        pairs = (term[i : i + 2] for i in range(len(term) - 1))
        found += whole or [place for pair in pairs for place in _occurrences(text, pair)]
    merged: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _occurrences(text: str, term: str) -> list[tuple[int, int]]:
    return [match.span() for match in re.finditer(re.escape(term), text)]


def _fit(text: str, ranges: list[tuple[int, int]], limits: SnippetLimits, cut_before: bool, cut_after: bool) -> Snippet:
    start, end = _window(text, ranges, limits)
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    before = ELLIPSIS if cut_before or text[:start].strip() else ""
    after = ELLIPSIS if cut_after or text[end:].strip() else ""
    shift = len(before) - start
    shown = tuple((max(a, start) + shift, min(b, end) + shift) for a, b in ranges if a < end and b > start)
    return Snippet(before + text[start:end] + after, shown)


def _window(text: str, ranges: list[tuple[int, int]], limits: SnippetLimits) -> tuple[int, int]:
    room = max(1, limits.chars - 2 * len(ELLIPSIS))
    words = [match.span() for match in _WORD.finditer(text)]
    if len(text) <= room and len(words) <= limits.words:
        return 0, len(text)
    start = _window_start(text, ranges, room)
    end = min(len(text), start + room)
    inside = [(max(a, start), min(b, end)) for a, b in words if b > start and a < end]
    if not inside:
        return start, end
    if end < len(text) and not text[end].isspace() and len(inside) > 1 and inside[-1][0] > start + room // 2:
        inside.pop()  # do not end in the middle of a word, unless it is most of what there is
    return start, inside[: limits.words][-1][1]


def _window_start(text: str, ranges: list[tuple[int, int]], room: int) -> int:
    """Where most matches come into view, with a little of what leads up to the first of them."""
    if not ranges:
        return 0
    in_view = room * 3 // 4

    def seen_from(number: int) -> int:
        first = ranges[number][0]
        return sum(end <= first + in_view for _, end in ranges[number : number + _MATCHES_WEIGHED])

    best = max(range(len(ranges)), key=lambda number: (seen_from(number), -number))
    first = ranges[best][0]
    start = max(0, min(first - room // 4, len(text) - room))
    if 0 < start < first and not text[start - 1].isspace():
        boundary = re.search(r"\s", text[start:first])
        start = start + boundary.end() if boundary else first
    return start
