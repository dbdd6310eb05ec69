"""Parses Jupyter notebooks: the cells, cited by the lines of the .ipynb file.

The JSON is read twice: by Python's parser, which checks it, and by a scanner that knows where each string is. The text
is that of the cells, each string on its own line of the file; all other lines are empty. Jupyter sorts the keys of a
cell, so its outputs precede its code in the file: they are moved behind the code, to the last lines of the cell.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from kebab.core.documents import Block, ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.text import decode, whole_characters
from kebab.parsing.building import BLOCK_BREAK, LINE_BREAK, FileParser, LinedText, document, plain_heading, title_of
from kebab.parsing.markdown_blocks import scan_blocks

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]')
_MOST_OUTPUT = 2000
"""Characters of output that are kept per cell: the beginning is enough to show what it is."""
_DEEPEST = 200
_TERMINAL_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NOT_IN_TEXT = re.compile(f"[\0{LINE_BREAK}{BLOCK_BREAK}]")
OUTPUT = "output"
"""The "language" of a block of output."""

_Keys = tuple[str, ...]
_CELLS: tuple[tuple[str | None, ...], ...] = (("cells", None), ("worksheets", None, "cells", None))
"""The paths of cells, with None for a list; notebooks before version 4 have the second one, and "input"."""
_SOURCES = frozenset([("source",), ("input",)])
_OUTPUTS = frozenset([("outputs", "text"), ("outputs", "data", "text/plain"), ("outputs", "evalue")])
_LANGUAGES = (("/", "metadata", "language_info", "name"), ("/", "metadata", "kernelspec", "language"))


class _String(NamedTuple):
    """A string value of the JSON, and its range in the source with quotes."""

    keys: _Keys
    start: int
    end: int
    cell: int
    """The number of the cell that contains or precedes it."""


_CELL_END: _Keys = ("/", "}")
"""The keys that mark the end of a cell: its closing brace is listed as a _String too."""


class _Line(NamedTuple):
    """A line of a cell, and its range in the text of the document."""

    text: str
    start: int
    end: int


class _Part(NamedTuple):
    """The source or the output of one cell."""

    cell: int
    is_output: bool
    lines: list[_Line]


class NotebookParser(FileParser):
    version = "ipynb-4"

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        source, encoding = decode(data)
        _check(source)
        strings = list(_strings(source))
        kinds = {item.cell: _value(source, item) for item in strings if item.keys == ("cell_type",)}
        lang = _first(source, strings, *_LANGUAGES)
        text, parts = _written(source, strings, kinds)
        blocks = [block for part in parts for block in _blocks(part, kinds.get(part.cell, "code"), lang)]
        title = title_of(_first(source, strings, ("/", "metadata", "title")), path, text, blocks)
        return document(path, text, blocks, title, metadata={"language": lang} if lang else {}, encoding=encoding)


def _check(source: str) -> None:
    """Raises ParseError if this is no notebook."""
    try:
        notebook = json.loads(source.removeprefix("\ufeff"))
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        hint = "Open it in Jupyter and save it again."
        raise ParseError(f"The notebook is not valid JSON: {error}.", reason="damaged", hint=hint) from error
    if not isinstance(notebook, dict) or not ("cells" in notebook or "worksheets" in notebook):
        hint = "Give it another extension, such as .json."
        raise ParseError("This is JSON, but not a notebook: it has no cells.", reason="damaged", hint=hint)


def _too_deep() -> ParseError:
    hint = "Nothing that Jupyter wrote looks like this."
    return ParseError("The notebook is nested too deeply.", reason="unsafe", hint=hint)


def _strings(source: str) -> Iterator[_String]:
    """Yields every string value with its keys, and the closing brace of every cell. Expects valid JSON."""
    path: list[str | None] = []
    cell = -1
    awaiting_key = False
    for token in _TOKEN.finditer(source):
        first = token[0][0]
        if first in "{[":
            cell += first == "{" and tuple(path) in _CELLS
            path.append("" if first == "{" else None)
            awaiting_key = first == "{"
            if len(path) > _DEEPEST:
                raise _too_deep()
        elif first in "}]":
            path.pop()
            if first == "}" and tuple(path) in _CELLS:
                yield _String(_CELL_END, token.start(), token.end(), cell)
        elif first == ",":
            awaiting_key = path[-1] is not None
        elif first == ":":
            awaiting_key = False
        elif awaiting_key:
            path[-1] = json.loads(token[0])
        else:
            yield _String(_below_cell(path), token.start(), token.end(), cell)


def _below_cell(path: list[str | None]) -> _Keys:
    """The keys of a path below its cell; outside of cells, "/" and the keys from the root."""
    for above in _CELLS:
        if tuple(path[: len(above)]) == above:
            return tuple(key for key in path[len(above) :] if key is not None)
    return ("/", *(key for key in path if key is not None))


def _written(source: str, strings: list[_String], kinds: dict[int, str]) -> tuple[str, list[_Part]]:
    """The text with sources and outputs on their lines, and the parts of the cells: each source before its output."""
    text = LinedText()
    parts: list[_Part] = []
    line_of, position, line = {}, 0, 0
    for item in strings:
        line += source.count("\n", position, item.start)
        position = item.start
        line_of[item] = line
    last_line = {item.cell: line_of[item] for item in strings if item.keys == _CELL_END}
    wanted = [item for item in strings if item.keys in _SOURCES or item.keys in _OUTPUTS]
    room = written_to = 0
    unmarked = False  # no line of this code is written yet; a BLOCK_BREAK precedes the first
    for item in sorted(wanted, key=lambda item: (item.cell, item.keys in _OUTPUTS)):
        is_output = item.keys in _OUTPUTS
        if not parts or (parts[-1].cell, parts[-1].is_output) != (item.cell, is_output):
            parts.append(_Part(item.cell, is_output, []))
            room = _MOST_OUTPUT if is_output else sys.maxsize
            unmarked = not is_output and kinds.get(item.cell, "code") == "code"
        if not room:
            continue
        value = _value(source, item)[:room]
        room -= len(value)
        moved = item.start < written_to
        for number, written in enumerate(value.removesuffix("\n").split("\n")):
            if moved:
                text.go_to(min(text.line + 1, last_line.get(item.cell, 0)))
            elif not number:
                text.go_to(line_of[item])
            separator = LINE_BREAK if parts[-1].lines else LINE_BREAK * 2
            if unmarked and written.strip():
                text.write(BLOCK_BREAK, separator)
                unmarked, separator = False, ""
            parts[-1].lines.append(_Line(written, text.write(written, separator), text.length))
        written_to = max(written_to, item.end)
    text.go_to(source.count("\n"))
    return text.text, parts


def _value(source: str, item: _String) -> str:
    value: str = json.loads(source[item.start : item.end])
    return whole_characters(_NOT_IN_TEXT.sub(" ", _TERMINAL_COLOUR.sub("", value)))


def _blocks(part: _Part, cell_type: str, lang: str) -> Iterator[Block]:
    lines = part.lines
    if cell_type == "markdown" and not part.is_output:
        for found in scan_blocks([line.text for line in lines]):
            title = plain_heading(found.text) if found.kind == "heading" else found.text
            yield Block(found.kind, lines[found.first_line].start, lines[found.end_line - 1].end, found.level, title)
        return
    filled = [line for line in lines if line.text.strip()]
    if filled:
        kind = "paragraph" if cell_type == "raw" else "code"
        language = "" if kind != "code" else OUTPUT if part.is_output else lang
        yield Block(kind, filled[0].start, filled[-1].end, 0, language)


def _first(source: str, strings: list[_String], *wanted: _Keys) -> str:
    return next((_value(source, item) for keys in wanted for item in strings if item.keys == keys), "")
