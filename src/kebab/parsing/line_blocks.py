"""Blocks of formats whose text is kept as it is: found as lines, given as ranges of the text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kebab.core.documents import Block
from kebab.core.text import line_starts


class LineBlock(NamedTuple):
    """The whole lines `first` <= n < `end`, counted from 0."""

    kind: str
    first: int
    end: int
    level: int = 0
    title: str = ""


def as_ranges(text: str, lines: list[str], found: Iterable[LineBlock]) -> tuple[Block, ...]:
    """`lines` are those of the text, without their line feeds."""
    starts = line_starts(lines)
    starts[-1] = len(text)
    return tuple(Block(block.kind, starts[block.first], starts[block.end], block.level, block.title) for block in found)


def is_indented(line: str) -> bool:
    return line[:1] in (" ", "\t") and bool(line)


def end_of_indented(lines: list[str], first: int) -> int:
    """Where the indented lines from here on end, blank ones between them included and those after them not."""
    end = line = first
    while line < len(lines) and (is_indented(lines[line]) or not lines[line].strip()):
        line += 1
        if lines[line - 1].strip():
            end = line
    return end
