"""A passage cut into what can be quoted by itself: sentences, items of lists, rows of tables, and blocks of code as a whole.

Each is a range of the passage, so that a quotation is always verbatim and its lines are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from kebab.analysis.code_lines import fences
from kebab.core.text import line_starts

SentenceKind = Literal["prose", "row", "code"]

_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s|$)|\s*(?:=+|-{3,}|\*{3,}|_{3,})\s*$")
_MARKUP_ALONE = re.compile(r"\s*(?:\{\{[<%].*[>%]\}\}|<!--.*-->|(?:</?\w[^>]*>\s*)+|\[[^\]]+\]:\s*\S+.*)\s*$")
"""Shortcodes, comments, tags and definitions of links: nothing that anybody reads."""
_ROW = re.compile(r"\s*\|.*\|\s*$")
_RULE_OF_TABLE = re.compile(r"[\s|:+=-]+$")
_ITEM = re.compile(r"(?:\s*>)*\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTE = re.compile(r"(?:\s*>)+\s*")
_END = re.compile(r"""[.!?…]+["'”’)\]*_`]*(?=\s|$)|[。！？]+["'”’」』)]*""")
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|al|fig|no|nos|dr|mr|mrs|ms|st|approx|resp|incl|ca|sec|vol|p|pp)|\b[A-Z]|^\d{1,3})\.$", re.I
)
_CLOSING = re.compile(r"""["'”’)\]*_`]+$""")


class Sentence(NamedTuple):
    """`start` <= n < `end` of the passage's text."""

    start: int
    end: int
    kind: SentenceKind = "prose"

    def of(self, text: str) -> str:
        return text[self.start : self.end]


def sentences(text: str, headings: Sequence[str] = (), *, code: bool = False) -> list[Sentence]:
    """In order. `headings`: what the passage stands under, which is no sentence of it; `code`: whether all of it is code."""
    if code:
        start, end = _trimmed(text, 0, len(text))
        return [Sentence(start, end, "code")] if start < end else []
    return [sentence for sentence in _parts(text, frozenset(headings)) if sentence.start < sentence.end]


def _parts(text: str, headings: frozenset[str]) -> Iterator[Sentence]:
    lines = text.split("\n")
    starts = line_starts(lines)
    line = 0
    for fence in fences(lines):
        yield from _prose(text, lines, starts, line, fence.first, headings)
        if any(line.strip() for line in lines[fence.first + 1 : fence.end]):  # else it is the end of a fence that began elsewhere
            yield Sentence(starts[fence.first], min(starts[fence.after] - 1, len(text)), "code")
        line = fence.after
    yield from _prose(text, lines, starts, line, len(lines), headings)


def _prose(text: str, lines: list[str], starts: list[int], first: int, end: int, headings: frozenset[str]) -> Iterator[Sentence]:
    """Paragraphs and items of lists cut into sentences, rows of tables as they are."""
    begun: int | None = None
    quotes = False
    for number in range(first, end):
        line = lines[number]
        is_row = _ROW.match(line) is not None
        quote = _QUOTE.match(line)
        item = _ITEM.match(line) or (quote if begun is None or not quotes else None)  # a quote goes on with every line of it
        quotes = quote is not None
        ends = is_row or not line.strip() or _HEADING.match(line) or _MARKUP_ALONE.match(line) or line.strip() in headings
        if begun is not None and (ends or item):
            yield from _split(text, begun, starts[number])
            begun = None
        if is_row and not _RULE_OF_TABLE.match(line) and not _is_head_of_table(lines, number, end):
            yield Sentence(*_trimmed(text, starts[number], starts[number] + len(line)), "row")
        elif not ends and begun is None:
            begun = starts[number] + (item.end() if item else 0)
    if begun is not None:
        yield from _split(text, begun, min(starts[end], len(text)) if end < len(starts) else len(text))


def _is_head_of_table(lines: list[str], number: int, end: int) -> bool:
    return number + 1 < end and "-" in lines[number + 1] and _RULE_OF_TABLE.match(lines[number + 1]) is not None


def _split(text: str, start: int, end: int) -> Iterator[Sentence]:
    for match in _END.finditer(text, start, end):
        said = text[start : match.end()].rstrip("\n")
        following = text[match.end() : end].lstrip()[:1]
        if _NO_END.search(_CLOSING.sub("", said)[-12:]) or following.islower():
            continue
        yield Sentence(*_trimmed(text, start, match.end()))
        start = match.end()
    yield Sentence(*_trimmed(text, start, end))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
