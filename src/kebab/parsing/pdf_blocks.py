"""Finds headings and paragraphs of PDF pages by lines, styles and outline: a PDF itself only positions letters."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

from kebab.core.documents import PAGE_BREAK, Block
from kebab.core.text import line_starts, nfc
from kebab.parsing.building import LineBlock
from kebab.parsing.pdf_repair import mended_line

_SENTENCE_END = re.compile(r"[.!?:。！？…][\"'”’)\]]*\Z")
_SHORT = 0.85
_FULL_LINE = 0.75
NUMBERING = re.compile(r"(?:\d+(?:\.\d+)*|[A-Z]|[IVXLC]+)[.):]*\s+")
_LONGEST_TITLE = 300
_MOST_HEADING_LINES = 4
_MOST_BESIDE_TITLE = 16
"""Characters that may share a line with a title: a number, "Chapter 3", a page number."""
_MOST_SEARCHED = 200_000
_MOST_PLACES = 64
_LONGEST_FIRST_LINE = 120

_LARGER = 1.15
_AS_LARGE = 0.95
_LONGEST_HEADING = 120
_MOST_OF_TEXT = 0.3
"""A style with more than this share of the characters of the body text is not a heading style."""
_DEEPEST_LEVEL = 6
_BEFORE_TEXT = re.compile(r"[•◦▪●○■□·*–—-]\s")
_AFTER_TEXT = re.compile(r"[.,;。]['\"”’)]*\Z")
_DIGITS = re.compile(r"\d+")
_MOST_TYPE_LINES = 3


class OutlineEntry(NamedTuple):
    title: str
    page: int
    """Counted from 0."""
    level: int
    """Counted from 1."""


class Style(NamedTuple):
    height: float
    bold: bool


class TypeLine(NamedTuple):
    """A line of a page, and its style."""

    text: str
    style: Style


def outline_by_type(pages: Sequence[Sequence[TypeLine]]) -> list[OutlineEntry]:
    """Finds headings by style: larger than the body text, or bold if that is not. Larger ones have higher levels."""
    sizes: Counter[Style] = Counter()
    for line in (line for page in pages for line in page):
        sizes[line.style] += len(line.text)
    if not sizes:
        return []
    body, most = max(sizes.items(), key=lambda item: (item[1], item[0]))
    styles = {style for style, size in sizes.items() if _stands_out(style, body) and size <= _MOST_OF_TEXT * most}
    entries = [entry for number, page in enumerate(pages) for entry in _page_entries(page, number, styles)]
    # A title that is on many pages, apart from its digits, is a page header and no heading.
    plain = {entry: _DIGITS.sub("", entry.title).casefold() for entry, _ in entries}
    on_pages = Counter(title for title, _ in {(plain[entry], entry.page) for entry, _ in entries})
    entries = [each for each in entries if on_pages[plain[each[0]]] <= max(3, len(pages) // 10)]
    by_size = sorted({style for _, style in entries}, reverse=True)
    levels = {style: min(level, _DEEPEST_LEVEL) for level, style in enumerate(by_size, start=1)}
    return [entry._replace(level=levels[style]) for entry, style in entries]


def _stands_out(style: Style, body: Style) -> bool:
    only_bold = style.bold and not body.bold and style.height >= _AS_LARGE * body.height
    return style.height >= _LARGER * body.height or only_bold


def _page_entries(page: Sequence[TypeLine], number: int, styles: set[Style]) -> list[tuple[OutlineEntry, Style]]:
    """The headings of a page with their styles. Neighbouring lines of one style are one heading."""
    entries = []
    for style, group in groupby(page, key=lambda line: line.style):
        lines = [line.text for line in group]
        title = " ".join(lines)
        if style in styles and len(lines) <= _MOST_TYPE_LINES and _could_be_heading(title):
            entries.append((OutlineEntry(title, number, 1), style))
    return entries


def _could_be_heading(title: str) -> bool:
    return (
        len(title) <= _LONGEST_HEADING
        and sum(character.isalpha() for character in title) > 1
        and not _BEFORE_TEXT.match(title)
        and not _AFTER_TEXT.search(title)
    )


def find_blocks(text: str, outline: Sequence[OutlineEntry]) -> list[Block]:
    """Splits the text into blocks of whole lines. No block crosses a page, and every line with text is in a block."""
    entries: dict[int, list[OutlineEntry]] = {}
    for entry in outline:
        title = nfc(mended_line(entry.title))[:_LONGEST_TITLE].rstrip()
        entries.setdefault(entry.page, []).append(entry._replace(title=title))
    blocks: list[Block] = []
    start = 0
    for number, page in enumerate(text.split(PAGE_BREAK)):
        blocks += _page_blocks(page, start, entries.get(number, []))
        start += len(page) + len(PAGE_BREAK)
    return blocks


def _page_blocks(page: str, start: int, entries: list[OutlineEntry]) -> list[Block]:
    lines = page.split("\n")
    offsets = line_starts(lines, start)
    offsets[-1] = start + len(page)  # no line feed after the last line
    placed = _place_headings(lines, entries) if entries else []
    headings = {heading.first_line: heading for heading in placed}
    short = _SHORT * _usual_length(lines)
    blocks: list[Block] = []
    opening = entries[0].title if entries and page.strip() else ""
    if opening and opening not in [heading.text for heading in placed]:
        # The page does not contain the title, which may be a picture: an empty heading block begins the section.
        blocks.append(Block("heading", start, start, entries[0].level, opening))
    opened = line = 0
    while line < len(lines):
        heading = headings.get(line)
        if heading or not lines[line].strip():
            if opened < line:
                blocks.append(Block("paragraph", offsets[opened], offsets[line]))
            opened = heading.end_line if heading else line + 1
            if heading:
                blocks.append(Block("heading", offsets[line], offsets[opened], heading.level, heading.text))
            line = opened
            continue
        line += 1
        if len(lines[line - 1]) < short and _SENTENCE_END.search(lines[line - 1]):
            blocks.append(Block("paragraph", offsets[opened], offsets[line]))
            opened = line
    if opened < len(lines):
        blocks.append(Block("paragraph", offsets[opened], offsets[-1]))
    return blocks


def _usual_length(lines: list[str]) -> int:
    """The length of a full line of this page: the upper quartile, because lines with a rejoined word are longer."""
    lengths = sorted(len(line) for line in lines if line)
    return lengths[int(_FULL_LINE * len(lengths))] if lengths else 0


def _place_headings(lines: list[str], entries: list[OutlineEntry]) -> list[LineBlock]:
    """The headings of a page on the lines of their titles. Titles that the page does not contain are left out."""
    page = _SquashedPage(lines)
    headings = []
    for entry in entries:
        title = entry.title
        place = page.find(title) or page.find(NUMBERING.sub("", title, count=1)) or page.first_line_like(title)
        if title and place:
            page.take(place)
            headings.append(LineBlock("heading", *place, entry.level, title))
    return headings


class _SquashedPage:
    """A page without white space, hyphens and capitals, so that a title of the outline matches wherever lines end."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        squashed = [_squash(line) for line in lines]
        self._starts = list(accumulate(map(len, squashed), initial=0))
        self._text = "".join(squashed)[:_MOST_SEARCHED]
        self._taken: set[int] = set()

    def find(self, title: str) -> tuple[int, int] | None:
        """The range of lines that contains this title with the least other text, or None."""
        wanted = _squash(title)
        best, least = None, max(_MOST_BESIDE_TITLE, len(wanted)) + 1
        position = self._text.find(wanted) if wanted else -1
        for _ in range(_MOST_PLACES):
            if position < 0:
                break
            first = self._line_at(position)
            end = self._line_at(position + len(wanted) - 1) + 1
            beside = self._starts[end] - self._starts[first] - len(wanted)
            if beside < least and end - first <= _MOST_HEADING_LINES and self._taken.isdisjoint(range(first, end)):
                best, least = (first, end), beside
            position = self._text.find(wanted, position + 1)
        return best

    def first_line_like(self, title: str) -> tuple[int, int] | None:
        """The first line of the page, if it is no sentence and has half of the words of the title."""
        first = self._line_at(0)
        if first >= len(self._lines) or first in self._taken:
            return None
        line, words = self._lines[first], title.casefold().split()
        if len(line) > _LONGEST_FIRST_LINE or _SENTENCE_END.search(line):
            return None
        shared = set(words) & set(line.casefold().split())
        return (first, first + 1) if 2 * len(shared) >= len(set(words)) else None

    def take(self, place: tuple[int, int]) -> None:
        """Reserves these lines for one title."""
        self._taken.update(range(*place))

    def _line_at(self, position: int) -> int:
        return bisect_right(self._starts, position) - 1


def _squash(text: str) -> str:
    return "".join(nfc(text).casefold().replace("-", "").split())
