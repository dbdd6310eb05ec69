"""Parses reStructuredText: titles by their adornments, literal blocks, paragraphs, as ranges of the file's own text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kebab.core.documents import Block, ParsedDocument
from kebab.core.text import decode, storable
from kebab.parsing.building import FileParser, LineBlock, as_ranges, document, title_of

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*+[ \t\r]*+")
_CODE = re.compile(
    r"[ \t]*\.\. (?:code-block|code|code-cell|sourcecode|parsed-literal|prompt|ipython|doctest|testcode|testoutput"
    r"|[\w-]+:(?:example|run))::[ \t]*(?P<language>\S*)"
)
"""Including extensions of well-known projects: click:example, ipython, testcode."""
_LIST = re.compile(r"[ \t]*(?:[-*+•]|#\.|\(?[0-9]{1,9}[.)])[ \t]")
_TABLE = re.compile(r"\+[-=+]{3,}+|={2,}+(?: +={2,}+)++[ \r]*$")
_ROLE = re.compile(r":[\w:.+-]+:`([^`<]*?)(?:\s*<[^`>]*>)?`|``?([^`<]*?)(?:\s*<[^`>]*>)?``?_{0,2}")
_SHORT = 4
"""An underline of fewer characters must be as long as its title."""


class RestructuredTextParser(FileParser):
    version = "rst-4"

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        text, encoding = decode(data)
        blocks = rst_blocks(text)
        return document(path, text, blocks, title_of("", path, text, blocks), encoding=encoding)


def rst_blocks(text: str) -> tuple[Block, ...]:
    lines = text.split("\n")
    return as_ranges(lines, _scan(lines))


def _scan(lines: list[str]) -> Iterator[LineBlock]:
    levels: dict[tuple[str, bool], int] = {}
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        title = _title_at(lines, at)
        if title:
            block = LineBlock("heading", at, title[0], levels.setdefault(title[1], len(levels) + 1), title[2])
        else:
            block = _block_at(lines, at)
        yield block
        at = block.end_line
        last = lines[at - 1].strip()
        if block.kind in ("paragraph", "list") and last.endswith("::") and not last.startswith(".."):
            end = _end_of_deeper(lines, at, _margin(lines[block.first_line]))
            if end > at:
                first = next(line for line in range(at, end) if lines[line].strip())
                yield LineBlock("code", first, end)
                at = end


def _title_at(lines: list[str], at: int) -> tuple[int, tuple[str, bool], str] | None:
    """The title at this line, or None: its end, its adornment (the character, and whether also above) and its words."""
    if _ADORNMENT.fullmatch(lines[at]) and at + 2 < len(lines):
        above, words, below = (line.rstrip() for line in lines[at : at + 3])
        if words and above == below and len(above) >= min(_SHORT, len(words)) and not _ADORNMENT.fullmatch(words):
            return at + 3, (above[0], True), _plain(words)
    if at + 1 < len(lines) and not lines[at].startswith((" ", "\t")) and _ADORNMENT.fullmatch(lines[at + 1]):
        words, below = lines[at].rstrip(), lines[at + 1].rstrip()
        if len(below) >= min(_SHORT, len(words)) and not _ADORNMENT.fullmatch(lines[at]) and below != "::":
            return at + 2, (below[0], False), _plain(words)
    return None


def _plain(words: str) -> str:
    """A title as a reader sees it, without marks of code and links."""
    plain = _ROLE.sub(lambda match: match[1] or match[2] or "", words)
    return storable(" ".join(plain.split())) or storable(" ".join(words.split()))


def _block_at(lines: list[str], at: int) -> LineBlock:
    code = _CODE.match(lines[at])
    if code:
        end = _end_of_deeper(lines, at + 1, _margin(lines[at]))
        return LineBlock("code", at, max(at + 1, end), 0, code["language"])
    end = at + 1
    while end < len(lines) and lines[end].strip() and not _opens_title(lines, end):
        end += 1
    first = lines[at]
    if _TABLE.match(first):
        return LineBlock("table", at, end)
    if _ADORNMENT.fullmatch(first) and end == at + 1 and len(first.rstrip()) >= _SHORT:
        return LineBlock("rule", at, end)
    return LineBlock("list" if _LIST.match(first) else "paragraph", at, end)


def _margin(line: str) -> int:
    return len(line.expandtabs()) - len(line.expandtabs().lstrip())


def _end_of_deeper(lines: list[str], first: int, margin: int) -> int:
    """The end of the lines that are indented by more than `margin`, as code is below the text that introduces it."""
    end = line = first
    while line < len(lines) and (not lines[line].strip() or _margin(lines[line]) > margin):
        line += 1
        if lines[line - 1].strip():
            end = line
    return end


def _opens_title(lines: list[str], at: int) -> bool:
    """Whether a title with a line above it begins here: only such a title can follow text without a blank line."""
    if not _ADORNMENT.fullmatch(lines[at]):
        return False
    title = _title_at(lines, at)
    return title is not None and title[1][1] and len(lines[at].rstrip()) >= _SHORT and not _TABLE.match(lines[at])
