"""Documents → snippets. A block of code with the heading and the short paragraph before it is a `code` snippet; what else stands in a
section is an `info` snippet. Like all chunks they are ranges of the document's text, so that their lines are exact.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from kebab.chunking.by_structure import StructureChunker
from kebab.config.settings import ChunkingSettings
from kebab.core.documents import Block, Chunk, ParsedDocument
from kebab.core.text import estimate_tokens

_WHOLE = 2048
"""Tokens that a snippet may have before it is cut. An example is of use only as a whole."""
_LONGEST_INTRODUCTION = 100
"""Tokens. A longer paragraph says something by itself."""
_FENCED = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})[^`\n]*\n(?:.*\n)*?[ \t]*(?P=fence)[`~]*[ \t]*$", re.MULTILINE)
_SAYING_NOTHING = re.compile(
    r"^[ ]{0,3}#{1,6}[ \t].*$"  # a heading
    r"|^.*\n([=\-`:'\"~^_*+#<>])\1{2,}[ \t]*$"
    r"|^\.\.[ \t].*$|^[ \t]+:[\w-]+:.*$"  # a directive or a label, and its options
    r"|^\{\{[<%].*[%>]\}\}$",
    re.MULTILINE,
)
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


class _Example(NamedTuple):
    """A block of code with what introduces it."""

    start: int
    end: int


class SnippetChunker:
    """A Chunker for documentation. Source code keeps its symbols, and pages stay pages."""

    def __init__(self, settings: ChunkingSettings) -> None:
        self._chunker = StructureChunker(settings._replace(max_tokens=max(_WHOLE, settings.max_tokens)))
        self.version = f"snippets-1+{self._chunker.version}"

    def chunk(self, document: ParsedDocument) -> list[Chunk]:
        if document.code_lang or document.paged:
            return [chunk._replace(kind="code" if document.code_lang else "info") for chunk in self._chunker.chunk(document)]
        blocks, examples = _with_examples(document)
        edges = sorted({*_section_starts(blocks), *(edge for example in examples for edge in example)})
        chunks = self._chunker.chunk(replace(document, blocks=tuple(blocks), chapters=tuple(edges)))
        starts = [example.start for example in examples]
        told = [chunk._replace(kind="code" if _is_example(chunk, starts, examples) else "info") for chunk in chunks]
        saying = [chunk for chunk in told if chunk.kind == "code" or _says_something(chunk.text)] or told
        return [chunk._replace(ordinal=ordinal) for ordinal, chunk in enumerate(saying)]


def _says_something(text: str) -> bool:
    """A heading alone, or a directive that some other program replaces with text, answers nothing."""
    return any(character.isalnum() for character in _SAYING_NOTHING.sub("", text))


def _is_example(chunk: Chunk, starts: list[int], examples: list[_Example]) -> bool:
    place = bisect_right(starts, chunk.start) - 1
    return place >= 0 and chunk.start < examples[place].end


def _with_examples(document: ParsedDocument) -> tuple[list[Block], list[_Example]]:
    """The blocks, with each introduction in one block with its code; and where the examples are, headings included."""
    blocks: list[Block] = []
    examples: list[_Example] = []
    lead: list[Block] = []
    """What stands directly before the next block: headings, and then at most one introduction."""
    for block in document.blocks:
        under_headings = lead if lead and lead[-1].kind == "heading" else []
        if block.kind == "code":
            start = blocks.pop().start if lead and not under_headings else block.start
            blocks.append(block._replace(start=start))
            examples.append(_Example(lead[0].start if lead else start, block.end))
            lead = []
        elif block.kind == "heading" or (
            block.kind == "paragraph" and estimate_tokens(document.text[block.start : block.end]) <= _LONGEST_INTRODUCTION
        ):
            blocks.append(block)
            lead = [*under_headings, block]
        else:
            nested = list(_nested(document.text, block)) if block.kind in ("list", "quote") else []
            blocks += _parted(block, nested)
            examples += nested
            lead = []
    return blocks, examples


def _nested(text: str, block: Block) -> Iterator[_Example]:
    """Steps of a list have their code in them: each block of code with the words of its step."""
    after = block.start
    for match in _FENCED.finditer(text, block.start, block.end):
        # The blank line right before the code does not part it from its words.
        parting = [blank.end() for blank in _BLANK_LINE.finditer(text, after, match.start()) if text[blank.end() : match.start()].strip()]
        start = parting[-1] if parting else after
        long = estimate_tokens(text[start : match.start()]) > _LONGEST_INTRODUCTION
        yield _Example(match.start() if long else start, match.end())
        after = match.end()


def _parted(block: Block, examples: list[_Example]) -> Iterator[Block]:
    start = block.start
    for example in examples:
        if start < example.start:
            yield block._replace(start=start, end=example.start)
        yield Block("code", *example)
        start = example.end
    if start < block.end:
        yield block._replace(start=start)


def _section_starts(blocks: list[Block]) -> Iterator[int]:
    """A heading directly below another one begins nothing new."""
    before = None
    for block in blocks:
        if block.kind == "heading" and (before is None or before.kind != "heading"):
            yield block.start
        before = block
