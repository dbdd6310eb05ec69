"""Splits documents into snippets.

A block of code with the heading and the short paragraph before it is a `code` snippet; the rest of a section is an
`info` snippet. Like all chunks they are ranges of the document's text, so that their lines are exact.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from kebab.analysis.code_lines import CodeLines, Fence, directive_lines, fence_lines, fences, unquoted
from kebab.chunking.by_structure import StructureChunker
from kebab.config.settings import ChunkingSettings
from kebab.core.documents import Block, Chunk, ParsedDocument
from kebab.core.spans import CodeSpan
from kebab.core.text import LineTable, estimate_tokens
from kebab.library.snippets import MARKDOWN_FORMATS
from kebab.parsing.building import BLOCK_BREAK, LINE_BREAK
from kebab.parsing.notebook import OUTPUT

_WHOLE = 2048
"""Tokens. Only longer snippets are split, because half an example is of little use."""
_LONGEST_INTRODUCTION = 100
"""Tokens. A longer paragraph before code is a snippet by itself."""
_CONTEXT = 200
"""Tokens reserved for title and headings."""
_DIRECTIVES = {
    "rst": re.compile(r"^\.\.[ \t].*$|^[ \t]+:[\w-]+:.*$", re.MULTILINE),  # a directive or a label, and its options
    "md": re.compile(r"^\{\{[<%].*[%>]\}\}\r?$", re.MULTILINE),
}
"""Directives that a site generator replaces with text."""
_LINE = re.compile(f"[^\n{LINE_BREAK}]*[\n{LINE_BREAK}]?")


class _Example(NamedTuple):
    """A block of code with its introduction."""

    start: int
    end: int
    code: int
    """Where the block of code begins, its fence included."""
    language: str | None = None
    """None if the fence or directive in the text names it."""
    body: tuple[int, int] | None = None
    """The range of the code alone, if the example is too long for one snippet: only this range is split."""


class SnippetChunker:
    """A Chunker for documentation. Source code is split by symbols, and paged documents by pages."""

    def __init__(self, settings: ChunkingSettings) -> None:
        most = max(_WHOLE, settings.max_tokens)
        self._chunker = StructureChunker(settings._replace(max_tokens=most))
        self._most = most - _CONTEXT
        self.version = f"snippets-2+{self._chunker.version}"

    def chunk(self, document: ParsedDocument) -> list[Chunk]:
        if document.code_lang or document.paged:
            return [
                chunk._replace(kind="code" if document.code_lang else "info") for chunk in self._chunker.chunk(document)
            ]
        blocks, examples = _Examples(document, self._most).found()
        edges = sorted(
            {*_section_starts(blocks), *(edge for example in examples for edge in (example.start, example.end))}
        )
        chunks = self._chunker.chunk(replace(document, blocks=tuple(blocks), chapters=tuple(edges)))
        told = list(_told(document, chunks, examples))
        headings = [block for block in blocks if block.kind == "heading"]
        saying = [chunk for chunk in told if chunk.kind == "code" or _says_something(document, chunk, headings)] or told
        return [chunk._replace(ordinal=ordinal) for ordinal, chunk in enumerate(saying)]


def _says_something(document: ParsedDocument, chunk: Chunk, headings: list[Block]) -> bool:
    """Whether a chunk has words besides headings and directives."""
    start, parts = chunk.start, []
    for heading in headings[bisect_left(headings, chunk.start, key=lambda heading: heading.start) :]:
        if heading.start >= chunk.end:
            break
        parts.append(document.text[start : heading.start])
        start = heading.end
    text = "\n".join([*parts, document.text[start : chunk.end]])
    directives = _DIRECTIVES.get("md" if document.format == "mdx" else document.format)
    first = directives.search(text) if directives else None
    # Nearly all chunks have words before the first directive, so the slower substitution is not needed.
    if any(map(str.isalnum, text if first is None else text[: first.start()])):
        return True
    return directives is not None and any(map(str.isalnum, directives.sub("", text)))


def _told(document: ParsedDocument, chunks: list[Chunk], examples: list[_Example]) -> Iterator[Chunk]:
    """The chunks, marked as `code` or `info`. If the text does not name the language of code, the span does."""
    lines = LineTable(document.text)
    starts = [example.start for example in examples]
    for chunk in chunks:
        place = bisect_right(starts, chunk.start) - 1
        example = examples[place] if place >= 0 else None
        if example is None or chunk.start >= example.end or chunk.end <= example.code:
            yield chunk._replace(kind="info")
        elif example.language is None:
            yield chunk._replace(kind="code")
        else:
            first, last = example.body or (example.start, example.end)
            start, end = max(chunk.start, first), min(chunk.end, last)
            if document.text[start:end].strip():
                span = CodeSpan(*lines.lines_of(start, end), None, example.language or None)
                yield chunk._replace(kind="code", start=start, end=end, text=document.text[start:end], spans=(span,))


class _Examples:
    """Finds the examples of a document, and joins each introduction with its code into one block."""

    def __init__(self, document: ParsedDocument, most: int) -> None:
        self._document = document
        self._format = document.format
        self._text = document.text
        self._most = most
        self._blocks: list[Block] = []
        self._examples: list[_Example] = []
        self._lead: list[Block] = []
        """The blocks right before the current block: headings, and then at most one introduction."""

    def found(self) -> tuple[list[Block], list[_Example]]:
        blocks = self._document.blocks
        for block, following in zip(
            blocks, [*(block.start for block in blocks[1:]), len(self._text)][: len(blocks)], strict=True
        ):
            under_headings = self._lead if self._lead and self._lead[-1].kind == "heading" else []
            if block.kind == "code" and not (self._format == "ipynb" and block.title == OUTPUT):
                self._add_code(block, following, has_introduction=bool(self._lead) and not under_headings)
                self._lead = []
            elif block.kind == "heading" or (
                block.kind == "paragraph"
                and estimate_tokens(self._text[block.start : block.end]) <= _LONGEST_INTRODUCTION
            ):
                self._blocks.append(block)
                self._lead = [*under_headings, block]
            else:
                nested = (
                    list(self._nested(block))
                    if block.kind in ("list", "quote") and self._format in MARKDOWN_FORMATS
                    else []
                )
                self._blocks += _parted(block, nested)
                self._examples += nested
                self._lead = []
        return self._blocks, self._examples

    def _add_code(self, block: Block, following: int, *, has_introduction: bool) -> None:
        start = self._blocks[-1].start if has_introduction else block.start
        if estimate_tokens(self._text[start:following], code=True) > self._most:
            self._blocks.append(block)
            self._examples.append(self._long(block.start, block.end, block.title))
            return
        if has_introduction:
            self._blocks.pop()
        self._blocks.append(block._replace(start=start))
        self._examples.append(
            _Example(
                self._lead[0].start if self._lead else start,
                block.end,
                block.start,
                block.title if self._is_marked(block) else None,
            )
        )

    def _is_marked(self, block: Block) -> bool:
        return self._format == "html" or (
            self._format == "ipynb" and self._text[block.start - 1 : block.start] == BLOCK_BREAK
        )

    def _long(self, start: int, end: int, language: str, fence: Fence | None = None) -> _Example:
        """An example that is too long for one snippet. Its `body` leaves out the fence or the directive."""
        lines = self._lines(start, end)
        if self._format == "rst":
            code = directive_lines(lines, language)
        elif self._format in MARKDOWN_FORMATS and not self._text.startswith(BLOCK_BREAK, start - 1):
            code = fence_lines(
                [unquoted(line).rstrip() for line in lines], closed=fence.after > fence.end if fence else None
            )
        else:
            code = CodeLines(0, len(lines), language)
        body = start + sum(map(len, lines[: code.first]))
        return _Example(start, end, start, code.language, (body, body + sum(map(len, lines[code.first : code.end]))))

    def _lines(self, start: int, end: int) -> list[str]:
        return [match[0] for match in _LINE.finditer(self._text, start, end) if match[0]]

    def _nested(self, block: Block) -> Iterator[_Example]:
        """The examples inside a list or a quotation: each block of code with the text right before it."""
        lines = self._lines(block.start, block.end)
        starts = list(accumulate(map(len, lines), initial=block.start))
        after = 0
        for fence in fences(lines):
            # A blank line right before the code does not separate it from its introduction.
            words = fence.first
            while words > after and not unquoted(lines[words - 1]).strip():
                words -= 1
            while words > after and unquoted(lines[words - 1]).strip():
                words -= 1
            start, code, end = starts[words], starts[fence.first], starts[fence.after]
            if estimate_tokens(self._text[start:end], code=True) > self._most:
                yield self._long(code, end, "", fence)
            else:
                long = estimate_tokens(self._text[start:code]) > _LONGEST_INTRODUCTION
                yield _Example(code if long else start, end, code)
            after = fence.after


def _parted(block: Block, examples: list[_Example]) -> Iterator[Block]:
    start = block.start
    for example in examples:
        if start < example.start:
            yield block._replace(start=start, end=example.start)
        yield Block("code", example.start, example.end)
        start = example.end
    if start < block.end:
        yield block._replace(start=start)


def _section_starts(blocks: list[Block]) -> Iterator[int]:
    """Where sections start: at a heading, except one directly below another heading."""
    before = None
    for block in blocks:
        if block.kind == "heading" and (before is None or before.kind != "heading"):
            yield block.start
        before = block
