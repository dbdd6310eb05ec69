"""Finds the lines of a code block that are code, without the fence or directive around them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from os.path import commonprefix
from typing import NamedTuple

_QUOTE = re.compile(r"(?:[ \t]*+>)*+")
_OPENING = re.compile(r"(?P<indent>[ \t]*+)(?P<fence>`{3,}+|~{3,}+)[ \t]*+(?P<info>.*)")
_MYST = re.compile(r"\{[\w:-]+\}")
"""For example ```{code-block} python"""
_PANDOC = re.compile(r"\{(?:[^}]*?\s)?\.([\w#+-]+)")
"""For example ```{#dial .python .numberLines}"""
_OPTION = re.compile(r"[ \t]*:[\w-]+:")
_LANGUAGE = re.compile(r"[\w#+.-]+")
_DEEPEST_CLOSING = 3
"""How much deeper than its container a closing fence may be indented."""
_LEAST_LIST_MARGIN = 2


class CodeLines(NamedTuple):
    """The lines `first` <= n < `end` are the code."""

    first: int
    end: int
    language: str


class Fence(NamedTuple):
    """A fenced block: it opens on line `first`, its code ends before line `end`, the next text begins at `after`."""

    first: int
    end: int
    after: int


def is_fence(line: str) -> bool:
    opening = _OPENING.match(line)
    return opening is not None and not (opening["fence"][0] == "`" and "`" in opening["info"])


def fence_lines(lines: Sequence[str], *, closed: bool | None = None) -> CodeLines:
    """The code lines of a fenced or indented Markdown block. A fence that is never closed ends with the block."""
    opening = _OPENING.match(lines[0])
    if opening is None or not is_fence(lines[0]):
        return CodeLines(0, len(lines), "")
    if closed is None:
        closed = len(lines) > 1 and _closes(lines[-1], opening["fence"])
    info = opening["info"].strip()
    myst, pandoc = _MYST.match(info), _PANDOC.match(info)
    language = pandoc or _LANGUAGE.match(info[myst.end() :].strip() if myst else info)
    end = len(lines) - closed
    return CodeLines(
        _after_options(lines, 1) if myst else 1, end, language[language.lastindex or 0] if language else ""
    )


def directive_lines(lines: Sequence[str], language: str) -> CodeLines:
    """The code lines of a reStructuredText block."""
    return CodeLines(_after_options(lines, 1) if lines[0].lstrip().startswith(".. ") else 0, len(lines), language)


def fences(lines: Sequence[str]) -> Iterator[Fence]:
    """All fenced blocks, including those in lists and quotes at any depth."""
    line = 0
    while line < len(lines):
        quote = _quote_of(lines[line])
        body = lines[line][len(quote) :]
        opening = _OPENING.match(body) if is_fence(body) else None
        if opening is None:
            line += 1
            continue
        end, after = _end_of_fence(lines, line, quote.count(">"), opening)
        yield Fence(line, end, after)
        line = after


def _end_of_fence(lines: Sequence[str], first: int, depth: int, opening: re.Match[str]) -> tuple[int, int]:
    indent = len(opening["indent"].expandtabs(4))
    margin = max(indent - _DEEPEST_CLOSING, min(indent, _LEAST_LIST_MARGIN))
    for number in range(first + 1, len(lines)):
        line = lines[number]
        if depth:
            quote = _quote_of(line)
            if quote.count(">") < depth:
                return number, number
            line = line[len(quote) :]
        if _closes(line, opening["fence"]):
            return number, number + 1
        if line.strip() and len(line) - len(line.lstrip(" \t")) < margin and not line.startswith("\t"):
            return number, number  # the list item has ended
    return len(lines), len(lines)


def _closes(line: str, fence: str) -> bool:
    line = line.strip()
    return line.startswith(fence) and not line.strip(fence[0])


def _quote_of(line: str) -> str:
    match = _QUOTE.match(line)
    return match[0] if match else ""


def unquoted(line: str) -> str:
    """The line without leading quote marks (>) and the one space after them."""
    quote = _quote_of(line)
    return line[len(quote) :].removeprefix(" ") if quote else line


def _after_options(lines: Sequence[str], first: int) -> int:
    """The first line after the options of a directive, such as :caption:."""
    while first < len(lines) and (_OPTION.match(lines[first]) or not lines[first].strip()):
        first += 1
    return first


def dedented(code: str) -> str:
    """The code without the white space that all its lines begin with."""
    indents = [line[: len(line) - len(line.lstrip())] for line in code.split("\n") if line.strip()]
    margin = commonprefix(indents)  # noqa: RUF071 - compares character by character, as intended
    return "\n".join(line[len(margin) :] if line.strip() else "" for line in code.split("\n")) if margin else code
