"""Cuts documents into chunks: blocks stay whole if they fit, small sections are joined, long blocks are split.

A chunk never crosses the end of a page, a chapter or a code symbol. Each chunk is one range of the document's text, so
its line numbers are exact. Sizes are estimated tokens (`core.text.estimate_tokens`); title and headings are embedded
with the chunk and count against the maximum.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import takewhile
from typing import NamedTuple
from unicodedata import category

from kebab.config.settings import ChunkingSettings
from kebab.core.citations import CodeSpan, LineSpan, PageSpan, Span
from kebab.core.documents import PAGE_BREAK, Chunk, ParsedDocument, context_of
from kebab.core.text import LineTable, estimate_tokens

_CODE_LIKE = frozenset({"code", "table", "html", "symbol"})
_PAGE_BREAK = re.compile(PAGE_BREAK)
# Text that only closes a class, such as `}`: a chunk of it would match the class name but tell nothing.
_ONLY_CLOSES = re.compile(r"(?:[\s)\]};,]|\bend\b)*")
_LEAST_BODY = 32
"""A chunk may have this many tokens of its own, however long its title and headings are."""

# Where a long block may be cut, best first.
_LINE_END = re.compile(r"\n")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？…])[\"'”’)\]]*\s+|(?<=[다요]\.)\s*|\n")
_SPACE = re.compile(r"\s")
_JOINER = "\u200d"
# Characters that belong to the one before: skin tones, flag tags, vowels and final consonants of decomposed Hangul.
_MODIFIER = re.compile("[\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u1160-\u11ff\ud7b0-\ud7ff]")
_FLAG_LETTERS = re.compile("[\U0001f1e6-\U0001f1ff]+$|[\U0001f1e6-\U0001f1ff]")

_DEEPEST = 12
"""How many headings a chunk keeps: an outline may nest a thousand, and each chunk would store them all."""


class _Piece(NamedTuple):
    """A range of text that stays together, with its headings."""

    start: int
    end: int
    tokens: int
    headings: tuple[str, ...]
    opens_section: bool
    limit: int
    """The most tokens that its chunk may have besides title and headings."""
    unit: tuple[int, str]
    """Its page or chapter, and its symbol: pieces of different units are never joined."""


class StructureChunker:
    version = "structure-2"

    def __init__(self, settings: ChunkingSettings) -> None:
        self._settings = settings

    def chunk(self, document: ParsedDocument) -> list[Chunk]:
        pieces = self._pieces(document)
        lines = LineTable(document.text)
        chunks: list[Chunk] = []
        for group in self._join_small(self._pack(pieces)):
            start, end = _trimmed(document.text, group[0].start, group[-1].end)
            if start < end and not (document.code_lang and _ONLY_CLOSES.fullmatch(document.text, start, end)):
                spans = (_span(document, lines, start, end, group[0]),)
                kind = "code" if document.code_lang else "text"
                headings = _common_headings(group)
                chunks.append(Chunk(len(chunks), start, end, document.text[start:end], headings, spans, kind))
        return chunks

    def _pieces(self, document: ParsedDocument) -> list[_Piece]:
        """The blocks as pieces with headings; long blocks are split. Text between two blocks belongs to the first."""
        pieces: list[_Piece] = []
        headings: list[tuple[int, str]] = []
        path: tuple[str, ...] = ()
        limit = self._limit(document.title, path)
        ends = [block.start for block in document.blocks[1:]] + [document.blocks[-1].end] if document.blocks else []
        page_breaks = [match.start() for match in _PAGE_BREAK.finditer(document.text)] if document.paged else []
        unit = (0, "")
        for number, (block, end) in enumerate(zip(document.blocks, ends, strict=True)):
            is_heading = block.kind == "heading"
            if is_heading:
                headings = [*(outer for outer in headings if outer[0] < block.level), (block.level, block.title)]
                path = tuple(title for _, title in headings if title)[-_DEEPEST:]
                limit = self._limit(document.title, path)
            if document.paged:
                unit = (bisect_right(page_breaks, block.start), "")
                end = min(end, page_breaks[unit[0]]) if unit[0] < len(page_breaks) else end
            elif document.code_lang:
                # The number distinguishes symbols of the same name.
                unit = (number, block.title) if block.kind == "symbol" else (unit[0] if not unit[1] else number, "")
                path = tuple(block.title.split(".")) if block.kind == "symbol" else ()
                limit = self._limit(document.title, path)
            elif document.chapters:
                unit = (bisect_right(document.chapters, block.start), "")
            code = block.kind in _CODE_LIKE
            tokens = estimate_tokens(document.text[block.start : end], code=code)
            parts = [(block.start, end, tokens)]
            if tokens > limit:
                parts = self._split(document.text, block.start, end, limit, code)
            for start, stop, tokens in parts:
                pieces.append(_Piece(start, stop, tokens, path, is_heading and start == block.start, limit, unit))
        return pieces

    def _limit(self, title: str, headings: tuple[str, ...]) -> int:
        return max(_LEAST_BODY, self._settings.max_tokens - estimate_tokens(context_of(title, headings)))

    def _split(self, text: str, start: int, end: int, limit: int, code: bool) -> list[tuple[int, int, int]]:
        """Splits a long block into parts of about the target size: (start, end, tokens)."""
        parts = []
        target = min(limit, self._settings.target_tokens)
        while start < end:
            most = _longest_within(text, start, end, target, code)
            cut = end if most >= end else _best_cut(text, start, most, code)
            parts.append((start, cut, estimate_tokens(text[start:cut], code=code)))
            start = cut if cut >= end else _overlapped(text, start, cut, self._settings.overlap_tokens)
        return parts

    def _pack(self, pieces: list[_Piece]) -> list[list[_Piece]]:
        """Groups pieces of one section up to the target size; a heading with its first piece may reach the maximum."""
        groups: list[list[_Piece]] = []
        size, only_headings = 0, False
        for piece in pieces:
            if groups:
                group = groups[-1]
                limit = min(group[0].limit, piece.limit)
                room = limit if only_headings else min(limit, self._settings.target_tokens)
                fits = size + piece.tokens <= room and piece.start >= group[-1].end and piece.unit == group[0].unit
                outer = group[0].headings
                is_below = piece.headings[: len(outer)] == outer
                if fits and (not piece.opens_section or (only_headings and is_below)):
                    group.append(piece)
                    size += piece.tokens
                    only_headings = only_headings and piece.opens_section
                    continue
            groups.append([piece])
            size, only_headings = piece.tokens, piece.opens_section
        return groups

    def _join_small(self, groups: list[list[_Piece]]) -> list[list[_Piece]]:
        """Joins a group below the minimum size with the group before or after it if both fit into the target size."""
        joined: list[list[_Piece]] = []
        size_before = room_before = 0
        for group in groups:
            size = sum([piece.tokens for piece in group])
            room = min(self._settings.target_tokens, min([piece.limit for piece in group]))
            if joined:
                before = joined[-1]
                small = min(size_before, size) < self._settings.min_tokens
                touching = group[0].start >= before[-1].end and group[0].unit == before[0].unit
                if small and touching and size_before + size <= min(room_before, room):
                    before.extend(group)
                    size_before += size
                    room_before = min(room_before, room)
                    continue
            joined.append(list(group))
            size_before, room_before = size, room
        return joined


def _span(document: ParsedDocument, lines: LineTable, start: int, end: int, first: _Piece) -> Span:
    if document.paged:
        page = first.unit[0]
        label = document.page_labels[page] if page < len(document.page_labels) else None
        return PageSpan(page + 1, label)
    if document.code_lang:
        return CodeSpan(*lines.lines_of(start, end), first.unit[1] or None, document.code_lang)
    return LineSpan(*lines.lines_of(start, end))


def _common_headings(group: list[_Piece]) -> tuple[str, ...]:
    """The headings that all text of a chunk shares, or else the headings of its first piece."""
    texts = [piece for piece in group if not piece.opens_section] or group
    common = texts[0].headings
    for piece in texts[1:]:
        if piece.headings is not common:
            pairs = zip(common, piece.headings, strict=False)
            common = tuple(ours for ours, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return common or group[0].headings


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The range without blank lines before and white space after; the first line keeps its indentation."""
    body = text[start:end]
    end = start + len(body.rstrip())
    leading = len(body) - len(body.lstrip())
    start += body.rfind("\n", 0, leading) + 1
    return start, end


def _longest_within(text: str, start: int, end: int, target: int, code: bool) -> int:
    """An end as far as possible at which the text from `start` has at most `target` estimated tokens."""
    most = min(end, start + target * 4)
    while (tokens := estimate_tokens(text[start:most], code=code)) > target:
        most = start + max(1, min(most - start - 1, (most - start) * target // tokens))
    return most


def _best_cut(text: str, start: int, most: int, code: bool) -> int:
    """The last sentence end, line end or space in the second half of the text up to `most`, or about `most`."""
    half = start + (most - start) // 2
    for pattern in (_LINE_END, _SPACE) if code else (_SENTENCE_END, _SPACE):
        cuts = [match.end() for match in pattern.finditer(text, half, most)]
        for cut in reversed(cuts):
            if not _inside_character(text, cut):
                return cut
    cut = most
    while cut > start + 1 and _inside_character(text, cut):
        cut -= 1
    return cut if cut > start + 1 else most


def _inside_character(text: str, cut: int) -> bool:
    """Whether a cut here would split what a reader sees as one character: accents, emoji, decomposed Hangul, flags."""
    if cut >= len(text):
        return False
    after, before = text[cut], text[cut - 1]
    if after.isascii():
        return before + after == "\r\n"
    if before == _JOINER or after == _JOINER or category(after).startswith("M") or _MODIFIER.match(after):
        return True
    flags = _FLAG_LETTERS.search(text, max(0, cut - 64), cut)
    return flags is not None and bool(_FLAG_LETTERS.match(after)) and len(flags[0]) % 2 == 1


def _overlapped(text: str, start: int, cut: int, overlap: int) -> int:
    if not overlap:
        return cut
    back = max(start + 1, cut - overlap * 3)
    found = _SPACE.search(text, back, cut)
    return found.end() if found and found.end() < cut else cut
