"""Cuts a passage into sentences, list items and other separate lines, rows of tables, and whole blocks of code. Each is
a range of the passage, so that a quotation is verbatim and its lines are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from kebab.analysis.code_lines import fences
from kebab.answering.line_lists import entries
from kebab.core.text import line_starts

SentenceKind = Literal["prose", "item", "row", "code"]

_TITLE = re.compile(r"\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_IN_CAPITALS = re.compile(r"\s{0,3}[A-Z][^a-z.?!:|]{3,60}$")
"""A line in capitals, which is a heading in plain text."""
_HEADING = re.compile(r"\s{0,3}#{1,6}(?:\s|$)|\s*(?:=+|-{3,}|\*{3,}|_{3,})\s*$")
_MARKUP_ALONE = re.compile(r"\s*(?:\{\{[<%].*[>%]\}\}|<!--.*-->|(?:</?\w[^>]*>\s*)+|\[[^\]]+\]:\s*\S+.*)\s*$")
"""Lines that nobody reads: shortcodes, comments, tags and definitions of links."""
_ROW = re.compile(r"\s*\|.*\|\s*$")
_RULE_OF_TABLE = re.compile(r"[\s|:+=-]+$")
_ITEM = re.compile(r"(?:\s*>)*\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_QUOTE = re.compile(r"(?:\s*>)+\s*")
_ASKED_OR_ANSWERED = re.compile(r"\W{0,4}[QA]\s?[:.)]\s|\W{0,4}(?:질문|답변?|문|답)\s?[:.)]\s", re.IGNORECASE)
_END = re.compile(r"""[.!?…]+["'”’)\]*_`]*(?=\s|$)|[。！？]+["'”’」』)]*""")
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|al|fig|no|nos|dr|mr|mrs|ms|st|approx|resp|incl|ca|sec|vol|p|pp)|\b[A-Z]|^\d{1,3})\.$",
    re.I,
)
_NAMED_BY_A_LETTER = re.compile(
    r"\b(?:building|block|class|section|room|gate|hall|plan|type|grade|group|level|zone|vitamin|option|appendix|part) [A-Z]\.$",
    re.I,
)
"""Nouns with a letter behind them that is not an initial."""
_CLOSING = re.compile(r"""["'”’)\]*_`]+$""")


class Sentence(NamedTuple):
    """A sentence or another part: the range `start` <= n < `end` of the passage's text."""

    start: int
    end: int
    kind: SentenceKind = "prose"
    block: int = 0
    """The index of the paragraph, item or table of the passage that it belongs to."""
    headings: tuple[str, ...] = ()
    """The headings inside the passage that are above it, the outermost first."""
    header: tuple[int, int] | None = None
    """For a row: the range of the head of its table."""

    def of(self, text: str) -> str:
        return text[self.start : self.end]


class _Cut:
    """The state while cutting: what the next sentence belongs to."""

    def __init__(self, text: str, headings: Sequence[str]) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.starts = line_starts(self.lines)
        self.known = frozenset(headings)
        self.above: list[tuple[int, str]] = []
        self.block = 0

    def sentence(self, start: int, end: int, kind: SentenceKind, header: tuple[int, int] | None = None) -> Sentence:
        while start < end and self.text[start].isspace():
            start += 1
        while end > start and self.text[end - 1].isspace():
            end -= 1
        return Sentence(start, end, kind, self.block, tuple(title for _, title in self.above), header)

    def end_of(self, line: int) -> int:
        return min(self.starts[line], len(self.text)) if line < len(self.starts) else len(self.text)

    def pass_heading(self, line: str) -> None:
        if title := _TITLE.match(line):
            level = len(title[1])
            self.above = [*(outer for outer in self.above if outer[0] < level), (level, title[2])]
        elif not _HEADING.match(line):  # of a format whose levels do not show
            self.above = [] if line.strip() in self.known else [(1, line.strip())]


class Delimited(NamedTuple):
    """A text whose lines are rows of a table."""

    headed: bool
    """Whether the first line is the head."""


def sentences(
    text: str, headings: Sequence[str] = (), *, code: bool = False, delimited: Delimited | None = None
) -> list[Sentence]:
    """The sentences of a passage in order. `headings`: those above the passage, which are not part of it; `code`:
    whether all of it is code.
    """
    cut = _Cut(text, headings)
    if code:
        found: Iterator[Sentence] = iter([cut.sentence(0, len(text), "code")])
    else:
        found = _rows(cut, delimited) if delimited else _parts(cut)
    return [sentence for sentence in found if sentence.start < sentence.end]


def _rows(cut: _Cut, delimited: Delimited) -> Iterator[Sentence]:
    header = (0, len(cut.lines[0].rstrip())) if delimited.headed else None
    for number in range(int(delimited.headed), len(cut.lines)):
        yield cut.sentence(cut.starts[number], cut.starts[number] + len(cut.lines[number]), "row", header)


def _parts(cut: _Cut) -> Iterator[Sentence]:
    line = 0
    for fence in fences(cut.lines):
        yield from _prose(cut, line, fence.first)
        if any(
            line.strip() for line in cut.lines[fence.first + 1 : fence.end]
        ):  # else it is the end of a fence that began elsewhere
            cut.block += 1
            start = cut.starts[fence.first]
            found = cut.sentence(
                start, cut.end_of(fence.after) if fence.after < len(cut.lines) else len(cut.text), "code"
            )
            yield found._replace(start=start)
        line = fence.after
    yield from _prose(cut, line, len(cut.lines))


def _prose(cut: _Cut, first: int, end: int) -> Iterator[Sentence]:
    """The sentences of paragraphs and list items, and the rows of tables."""
    apart = _apart(cut, first, end)
    begun: int | None = None
    kind: SentenceKind = "prose"
    header: tuple[int, int] | None = None
    quotes = False
    for number in range(first, end):
        line = cut.lines[number]
        start = cut.starts[number]
        is_row = _ROW.match(line) is not None
        quote = _QUOTE.match(line)
        listed = _ITEM.match(line)
        item = listed or (quote if begun is None or not quotes else None)  # a quote goes on with every line of it
        quotes = quote is not None
        heads = _is_heading(cut, number)
        ends = is_row or not line.strip() or heads or _MARKUP_ALONE.match(line)
        if begun is not None and (ends or item or number in apart or _ASKED_OR_ANSWERED.match(line)):
            yield from _split(cut, begun, start, kind)
            begun = None
        if heads:
            cut.pass_heading(line)
        if not is_row:
            header = None
        elif _is_head_of_table(cut.lines, number, end):
            header = (start, start + len(line))
            cut.block += 1
        elif not _RULE_OF_TABLE.match(line):
            yield cut.sentence(start, start + len(line), "row", header)
        if not ends and begun is None:
            begun = start + (item.end() if item else 0)
            kind = "item" if listed or number in apart else "prose"
            cut.block += 1
    if begun is not None:
        yield from _split(cut, begun, cut.end_of(end), kind)


def _is_heading(cut: _Cut, number: int) -> bool:
    line = cut.lines[number]
    in_capitals = _IN_CAPITALS.match(line) is not None and _is_alone(cut.lines, number)
    return in_capitals or _HEADING.match(line) is not None or line.strip() in cut.known


def _apart(cut: _Cut, first: int, end: int) -> set[int]:
    """The numbers of lines that are separate entries of a paragraph, as in a log."""
    found: set[int] = set()
    begun = first
    for number in range(first, end + 1):
        line = cut.lines[number] if number < end else ""
        if line.strip() and not _is_heading(cut, number) and not _MARKUP_ALONE.match(line):
            continue
        paragraph = cut.lines[begun:number]
        if len(paragraph) > 1 and not any(
            _ITEM.match(one) or _QUOTE.match(one) or _ROW.match(one) for one in paragraph
        ):
            found.update(begun + one for one in entries(paragraph))
        begun = number + 1
    return found


def _is_alone(lines: list[str], number: int) -> bool:
    return not any(line.strip() for line in (*lines[max(0, number - 1) : number], *lines[number + 1 : number + 2]))


def _is_head_of_table(lines: list[str], number: int, end: int) -> bool:
    return number + 1 < end and "-" in lines[number + 1] and _RULE_OF_TABLE.match(lines[number + 1]) is not None


def _split(cut: _Cut, start: int, end: int, kind: SentenceKind) -> Iterator[Sentence]:
    for match in _END.finditer(cut.text, start, end):
        said = _CLOSING.sub("", cut.text[start : match.end()].rstrip("\n"))
        following = cut.text[match.end() : end].lstrip()[:1]
        goes_on = _NO_END.search(said[-12:]) and not (_NAMED_BY_A_LETTER.search(said[-24:]) and following.isupper())
        if goes_on or following.islower():
            continue
        yield cut.sentence(start, match.end(), kind)
        start = match.end()
    yield cut.sentence(start, end, kind)
