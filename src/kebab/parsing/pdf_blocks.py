"""Headings and paragraphs of pages. A PDF knows places of letters only, so both are told from lines and from the
outline.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from kebab.core.documents import PAGE_BREAK, Block
from kebab.core.text import line_starts, nfc
from kebab.parsing.pdf_headings import OutlineEntry
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


class _Heading(NamedTuple):
    first_line: int
    end_line: int
    level: int
    title: str


def find_blocks(text: str, outline: Sequence[OutlineEntry]) -> list[Block]:
    """Blocks of whole lines, in order, none across a page; every line with something on it is in one."""
    entries: dict[int, list[OutlineEntry]] = {}
    for entry in outline:
        entries.setdefault(entry.page, []).append(entry)
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
    if (
        entries
        and page.strip()
        and (opening := _title_of(entries[0]))
        and opening not in [heading.title for heading in placed]
    ):
        # Its words are a picture, or others than in the outline: what was open ends here all the same.
        blocks.append(Block("heading", start, start, entries[0].level, opening))
    opened = line = 0
    while line < len(lines):
        heading = headings.get(line)
        if heading or not lines[line].strip():
            if opened < line:
                blocks.append(Block("paragraph", offsets[opened], offsets[line]))
            opened = heading.end_line if heading else line + 1
            if heading:
                blocks.append(Block("heading", offsets[line], offsets[opened], heading.level, heading.title))
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
    """How long a full line of this page is; lines from which a broken word was mended are longer."""
    lengths = sorted(len(line) for line in lines if line)
    return lengths[int(_FULL_LINE * len(lengths))] if lengths else 0


def _place_headings(lines: list[str], entries: list[OutlineEntry]) -> list[_Heading]:
    """Where the titles of the outline stand on their page. Titles that do not stand there are left out."""
    page = _SquashedPage(lines)
    headings = []
    for entry in entries:
        title = _title_of(entry)
        if not title:
            continue
        place = page.find(title) or page.find(NUMBERING.sub("", title, count=1)) or page.first_line_like(title)
        if place:
            page.take(place)
            headings.append(_Heading(*place, entry.level, title))
    return headings


def _title_of(entry: OutlineEntry) -> str:
    return nfc(mended_line(entry.title))[:_LONGEST_TITLE].rstrip()


class _SquashedPage:
    """A page without white space, hyphens and capitals: what is left is alike in an outline and on the page, wherever
    lines end.
    """

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        squashed = [_squash(line) for line in lines]
        self._starts = list(accumulate(map(len, squashed), initial=0))
        self._text = "".join(squashed)[:_MOST_SEARCHED]
        self._taken: set[int] = set()

    def find(self, title: str) -> tuple[int, int] | None:
        """The lines, first and end, that hold this title and the least beside it."""
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
        """The page's first line, if it is no sentence and has half of the title's words."""
        first = self._line_at(0)
        if first >= len(self._lines) or first in self._taken:
            return None
        line, words = self._lines[first], title.casefold().split()
        if len(line) > _LONGEST_FIRST_LINE or _SENTENCE_END.search(line):
            return None
        shared = set(words) & set(line.casefold().split())
        return (first, first + 1) if 2 * len(shared) >= len(set(words)) else None

    def take(self, place: tuple[int, int]) -> None:
        """No other title may stand there."""
        self._taken.update(range(*place))

    def _line_at(self, position: int) -> int:
        return bisect_right(self._starts, position) - 1


def _squash(text: str) -> str:
    return "".join(nfc(text).casefold().replace("-", "").split())
