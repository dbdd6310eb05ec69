"""Headings of a PDF that has no outline, told by their type: larger than most of the text, or bold where most of it is
not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

_LARGER = 1.15
_AS_LARGE = 0.95
_LONGEST = 120
_MOST_LINES = 3
_MOST_OF_TEXT = 0.3
"""A style in which more than this share of the text is set is a way of writing, not a heading."""
_DEEPEST = 6
_BEFORE_TEXT = re.compile(r"[•◦▪●○■□·*–—-]\s")
_AFTER_TEXT = re.compile(r"[.,;。]['\"”’)]*\Z")
_DIGITS = re.compile(r"\d+")


class OutlineEntry(NamedTuple):
    title: str
    page: int
    """Counted from 0."""
    level: int
    """Counted from 1."""


class TypeLine(NamedTuple):
    """A line of a page, and how it is set."""

    text: str
    height: float
    bold: bool


class _Style(NamedTuple):
    height: float
    bold: bool


def type_line(text: str, height: float, *, bold: bool) -> TypeLine:
    return TypeLine(text, round(2 * height) / 2, bold)


def outline_by_type(pages: Sequence[Sequence[TypeLine]]) -> list[OutlineEntry]:
    """What stands out, in order; the larger, the higher its level."""
    sizes: Counter[_Style] = Counter()
    for line in (line for page in pages for line in page):
        sizes[_style(line)] += len(line.text)
    if not sizes:
        return []
    body, most = max(sizes.items(), key=lambda item: (item[1], item[0]))
    styles = {style for style, size in sizes.items() if _stands_out(style, body) and size <= _MOST_OF_TEXT * most}
    entries = [entry for number, page in enumerate(pages) for entry in _page_entries(page, number, styles)]
    repeated = _running_heads(entries, len(pages))
    entries = [(entry, style) for entry, style in entries if _without_numbers(entry.title) not in repeated]
    levels = {
        style: min(level, _DEEPEST)
        for level, style in enumerate(sorted({style for _, style in entries}, reverse=True), start=1)
    }
    return [entry._replace(level=levels[style]) for entry, style in entries]


def _style(line: TypeLine) -> _Style:
    return _Style(line.height, line.bold)


def _stands_out(style: _Style, body: _Style) -> bool:
    return style.height >= _LARGER * body.height or (
        style.bold and not body.bold and style.height >= _AS_LARGE * body.height
    )


def _page_entries(page: Sequence[TypeLine], number: int, styles: set[_Style]) -> list[tuple[OutlineEntry, _Style]]:
    """Neighbouring lines of one style are one heading."""
    entries = []
    for style, group in groupby(page, key=_style):
        lines = [line.text for line in group]
        title = " ".join(lines)
        if style in styles and len(lines) <= _MOST_LINES and _could_be_heading(title):
            entries.append((OutlineEntry(title, number, 1), style))
    return entries


def _could_be_heading(title: str) -> bool:
    return (
        len(title) <= _LONGEST
        and sum(character.isalpha() for character in title) > 1
        and not _BEFORE_TEXT.match(title)
        and not _AFTER_TEXT.search(title)
    )


def _running_heads(entries: Sequence[tuple[OutlineEntry, _Style]], pages: int) -> set[str]:
    """What stands on page after page names none of them."""
    seen = Counter({(_without_numbers(entry.title), entry.page) for entry, _ in entries})
    on_pages = Counter(title for title, _ in seen)
    return {title for title, count in on_pages.items() if count > max(3, pages // 10)}


def _without_numbers(title: str) -> str:
    return _DIGITS.sub("", title).casefold()
