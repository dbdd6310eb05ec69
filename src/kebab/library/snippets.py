"""Splits documents into chunks that are snippets, and makes snippets from stored chunks: title, breadcrumb, and code
without its fence.

A block of code with the heading and the short paragraph before it is a `code` snippet; the rest of a section is an
`info` snippet. Like all chunks they are ranges of the document's text, so that their lines are exact.

Of stored chunks, passages of Markdown and reStructuredText are parsed again. In passages of HTML and notebooks, the
parser has put a mark (`BLOCK_BREAK`) before the code, and the code span names the language; such a passage without a
mark is all code.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from kebab.analysis import code_lines
from kebab.analysis.orders import reads_like_orders
from kebab.chunking.by_structure import StructureChunker
from kebab.config.settings import ChunkingSettings
from kebab.core.citations import Citation, CodeSpan
from kebab.core.documents import Block, Chunk, ParsedDocument
from kebab.core.libraries import LibrarySnippet
from kebab.core.paths import file_name
from kebab.core.ports import ChunkContext
from kebab.core.text import LineTable, estimate_tokens, nfc, one_line
from kebab.parsing.building import BLOCK_BREAK, LINE_BREAK, LineBlock, plain_heading
from kebab.parsing.file_types import classify
from kebab.parsing.markdown_blocks import iter_blocks, scan_blocks
from kebab.parsing.notebook import OUTPUT
from kebab.parsing.restructured_text import rst_blocks

MARKED_FORMATS = frozenset({"html", "ipynb"})
MARKDOWN_FORMATS = frozenset({"md", "mdx", "ipynb"})
_LINE_END = re.compile(r"\r\n?")
_NAME_OF_LANGUAGE = re.compile(r"[\w#+.-]+")


class SnippetParts(NamedTuple):
    language: str
    description: str
    content: str


def make_snippet(chunk: ChunkContext, library: str, score: float, url: str | None = None) -> LibrarySnippet:
    """Makes a snippet from a chunk. `library` is a title."""
    *above, title = _without_repetition((library, chunk.title, *chunk.heading_path))
    language, description, content = _parts(chunk.kind, chunk.text, chunk.citation, chunk.heading_path)
    return LibrarySnippet(
        chunk_id=chunk.chunk_id,
        kind="code" if chunk.kind == "code" else "info",
        title=title,
        breadcrumb=" > ".join(above),
        description=description,
        language=language,
        content=content,
        citation=chunk.citation,
        url=url,
        tokens=estimate_tokens(chunk.text, code=chunk.kind == "code"),
        score=score,
        suspicious=reads_like_orders("\n\n".join((*above, title, chunk.text))),
    )


def _without_repetition(names: tuple[str, ...]) -> list[str]:
    kept: list[str] = []
    for name in map(one_line, names):
        if name and (not kept or name.casefold() != kept[-1].casefold()):
            kept.append(name)
    return kept or [""]


def is_llms_txt(path: str) -> bool:
    """Whether a file is llms.txt or llms-full.txt, which are Markdown in spite of their extension."""
    name = file_name(path).lower()
    return name.startswith("llms") and name.endswith(".txt")


def format_of(path: str) -> str:
    return "md" if is_llms_txt(path) else classify(path)[1]


def _parts(kind: str, text: str, citation: Citation, headings: tuple[str, ...]) -> SnippetParts:
    """Splits a passage into its parts. `headings` are removed from the text, because title and breadcrumb show them."""
    text = _LINE_END.sub("\n", text)
    format_ = format_of(citation.path)
    if format_ == "ipynb":
        text = text.replace(LINE_BREAK, "\n")
    prose = _PROSE.get(format_, _plain_prose)
    if kind != "code":
        return SnippetParts("", "", prose(text, headings) or text.strip())
    if isinstance(citation.span, CodeSpan):
        before, _, code = text.rpartition(BLOCK_BREAK) if format_ in MARKED_FORMATS else ("", "", text)
        language = _NAME_OF_LANGUAGE.match(citation.span.lang or "")
        return SnippetParts(language[0] if language else "", prose(before, headings), code.strip("\n"))
    if format_ in MARKDOWN_FORMATS:
        return _markdown_code(text, headings)
    return _rst_code(text, headings) if format_ == "rst" else SnippetParts("", "", text.strip("\n"))


def _plain_prose(text: str, _headings: tuple[str, ...]) -> str:
    """Text of formats without markup, which has no headings to remove."""
    return text.strip("\n")


def _html_prose(text: str, headings: tuple[str, ...]) -> str:
    parts = [part for part in text.split(BLOCK_BREAK) if part.strip()]
    while parts and nfc(" ".join(parts[0].split())) in headings:
        parts.pop(0)
    return "\n".join(part.strip("\n") for part in parts).strip()


def _markdown_prose(text: str, headings: tuple[str, ...]) -> str:
    lines = text.split("\n")
    return "\n".join(lines[_end_of_headings(iter_blocks(lines), headings) :]).strip()


def _end_of_headings(blocks: Iterable[LineBlock], headings: tuple[str, ...]) -> int:
    end = 0
    for block in blocks:
        if block.kind != "heading" or ((title := plain_heading(block.text)) and title not in headings):
            break
        end = block.end_line
    return end


def _rst_prose(text: str, headings: tuple[str, ...]) -> str:
    start = next(
        (block.start for block in rst_blocks(text) if block.kind != "heading" or block.title not in headings), len(text)
    )
    return text[start:].strip()


_PROSE: dict[str, Callable[[str, tuple[str, ...]], str]] = {
    "md": _markdown_prose,
    "mdx": _markdown_prose,
    "ipynb": _markdown_prose,
    "rst": _rst_prose,
    "html": _html_prose,
}


def _markdown_code(text: str, headings: tuple[str, ...]) -> SnippetParts:
    lines = text.split("\n")
    blocks = scan_blocks(lines)
    start = _end_of_headings(blocks, headings)
    lines = lines[start:]
    block = next(
        (slice(block.first_line - start, block.end_line - start) for block in blocks if block.kind == "code"), None
    )
    nested = list(code_lines.fences(lines))
    if block is not None and not (
        len(nested) == 1 and nested[0].after >= len(lines) and not code_lines.is_fence(lines[block.start])
    ):
        before, shown = lines[: block.start], lines[block]
        code = code_lines.fence_lines(shown)
    elif nested:  # the code is in a list or a quote, and the passage may be the middle of it
        fence = nested[0]
        before = list(map(code_lines.unquoted, lines[: fence.first]))
        shown = list(map(code_lines.unquoted, lines[fence.first : fence.after]))
        code = code_lines.fence_lines(shown, closed=fence.after > fence.end)
    else:
        return SnippetParts("", "", code_lines.dedented("\n".join(lines)).strip("\n"))
    content = code_lines.dedented("\n".join(shown[code.first : code.end])).strip("\n")
    return SnippetParts(code.language, "\n".join(before).strip(), content)


def _rst_code(text: str, headings: tuple[str, ...]) -> SnippetParts:
    """Splits a passage into introduction and code. Headings and directives belong to neither."""
    found = next((block for block in rst_blocks(text) if block.kind == "code"), None)
    if found is None:
        return SnippetParts("", "", code_lines.dedented(text).strip("\n"))
    lines = text[found.start : found.end].split("\n")
    code = code_lines.directive_lines(lines, found.title)
    description = _rst_prose(text[: found.start], headings)
    content = code_lines.dedented("\n".join(lines[code.first : code.end])).strip("\n")
    description = description.removesuffix(":") if description.endswith("::") else description
    return SnippetParts(code.language, description, content)


# --- from documents to chunks


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
        around = (edge for example in examples for edge in (example.start, example.end))
        edges = sorted({*_section_starts(blocks), *around})
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
                may_nest = block.kind in ("list", "quote") and self._format in MARKDOWN_FORMATS
                nested = list(self._nested(block)) if may_nest else []
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
        first = self._lead[0].start if self._lead else start
        language = block.title if self._is_marked(block) else None
        self._examples.append(_Example(first, block.end, block.start, language))

    def _is_marked(self, block: Block) -> bool:
        has_mark = self._text[block.start - 1 : block.start] == BLOCK_BREAK
        return self._format == "html" or (self._format == "ipynb" and has_mark)

    def _long(self, start: int, end: int, language: str, fence: code_lines.Fence | None = None) -> _Example:
        """An example that is too long for one snippet. Its `body` leaves out the fence or the directive."""
        lines = self._lines(start, end)
        if self._format == "rst":
            code = code_lines.directive_lines(lines, language)
        elif self._format in MARKDOWN_FORMATS and not self._text.startswith(BLOCK_BREAK, start - 1):
            closed = fence.after > fence.end if fence else None
            code = code_lines.fence_lines([code_lines.unquoted(line).rstrip() for line in lines], closed=closed)
        else:
            code = code_lines.CodeLines(0, len(lines), language)
        body = start + sum(map(len, lines[: code.first]))
        return _Example(start, end, start, code.language, (body, body + sum(map(len, lines[code.first : code.end]))))

    def _lines(self, start: int, end: int) -> list[str]:
        return [match[0] for match in _LINE.finditer(self._text, start, end) if match[0]]

    def _nested(self, block: Block) -> Iterator[_Example]:
        """The examples inside a list or a quotation: each block of code with the text right before it."""
        lines = self._lines(block.start, block.end)
        starts = list(accumulate(map(len, lines), initial=block.start))
        after = 0
        for fence in code_lines.fences(lines):
            # A blank line right before the code does not separate it from its introduction.
            words = fence.first
            while words > after and not code_lines.unquoted(lines[words - 1]).strip():
                words -= 1
            while words > after and code_lines.unquoted(lines[words - 1]).strip():
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
