"""Jupyter notebooks: the cells, cited by the lines of the .ipynb file.

The JSON is read twice: by Python's reader, which says whether it is JSON at all, and by a scanner that knows where each string stands.
Text is what the cells say, each string on its own line of the file; all other lines are empty.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from kebab.analysis.language import language_of
from kebab.core.documents import Block, ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.text import decode, whole_characters
from kebab.parsing.file_types import classify
from kebab.parsing.markdown import plain_heading
from kebab.parsing.markdown_blocks import scan_blocks
from kebab.parsing.titles import title_of

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]')
_MOST_OUTPUT = 2000
"""Characters of output per cell: the beginning tells what came out, the rest is data."""
_DEEPEST = 200
_DEEPEST = 200
_TERMINAL_COLOUR = re.compile(r"\x1b\[[0-9;]*m")

_Keys = tuple[str, ...]
_CELLS: tuple[tuple[str | None, ...], ...] = (("cells", None), ("worksheets", None, "cells", None))
"""Where cells stand, lists as None; the second place and "input" are those of notebooks before version 4."""
_SOURCES = frozenset([("source",), ("input",)])
_OUTPUTS = frozenset([("outputs", "text"), ("outputs", "data", "text/plain"), ("outputs", "evalue")])
_LANGUAGES = (("/", "metadata", "language_info", "name"), ("/", "metadata", "kernelspec", "language"))


class _String(NamedTuple):
    """A string of the JSON, and where it stands there, quotes included."""

    keys: _Keys
    start: int
    end: int
    cell: int
    """The number of the cell it stands in, or after."""


class _Line(NamedTuple):
    """A line of a cell, and where it stands in the document's text."""

    text: str
    start: int
    end: int


class _Part(NamedTuple):
    """What of one cell stands together: its source, or its output."""

    cell: int
    is_output: bool
    lines: list[_Line]


class NotebookParser:
    version = "ipynb-1"
    keeps_lines = True
    isolated = True

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        source, encoding = decode(data)
        _refuse_what_is_no_notebook(source)
        strings = list(_strings(source))
        kinds = {item.cell: _value(source, item) for item in strings if item.keys == ("cell_type",)}
        lang = _first(source, strings, *_LANGUAGES)
        text, parts = _written(source, strings)
        blocks = tuple(block for part in parts for block in _blocks(part, kinds.get(part.cell, "code"), lang))
        doc_type, format_ = classify(path)
        return ParsedDocument(
            text=text,
            title=title_of(_first(source, strings, ("/", "metadata", "title")), blocks, path),
            blocks=blocks,
            doc_type=doc_type,
            format=format_,
            lang=language_of(text),
            metadata={"language": lang} if lang else {},
            encoding=encoding,
        )


def _refuse_what_is_no_notebook(source: str) -> None:
    try:
        notebook = json.loads(source.removeprefix("\ufeff"))
    except RecursionError as error:
        raise _too_deep() from error
    except ValueError as error:
        raise ParseError(
            f"The notebook is not valid JSON: {error}.", reason="damaged", hint="Open it in Jupyter and save it again."
        ) from error
    if not isinstance(notebook, dict) or not ("cells" in notebook or "worksheets" in notebook):
        raise ParseError(
            "This is JSON, but not a notebook: it has no cells.", reason="damaged", hint="Give it another extension, such as .json."
        )


def _too_deep() -> ParseError:
    return ParseError("The notebook is nested too deeply.", reason="unsafe", hint="Nothing that Jupyter wrote looks like this.")


def _strings(source: str) -> Iterator[_String]:
    """Every string that is a value, with the keys above it. The source must be valid JSON."""
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
        elif first == ",":
            awaiting_key = path[-1] is not None
        elif first == ":":
            awaiting_key = False
        elif awaiting_key:
            path[-1] = json.loads(token[0])
        else:
            yield _String(_below_cell(path), token.start(), token.end(), cell)


def _below_cell(path: list[str | None]) -> _Keys:
    """The keys from the cell on; outside of cells those from the root on, marked by a "/"."""
    for above in _CELLS:
        if tuple(path[: len(above)]) == above:
            return tuple(key for key in path[len(above) :] if key is not None)
    return ("/", *(key for key in path if key is not None))


def _written(source: str, strings: list[_String]) -> tuple[str, list[_Part]]:
    """The text with each wanted string on its line, and the parts of the cells in the order of the file."""
    pieces: list[str] = []
    parts: list[_Part] = []
    length = position = room = 0
    for item in strings:
        is_output = item.keys in _OUTPUTS
        if not (is_output or item.keys in _SOURCES):
            continue
        if not parts or (parts[-1].cell, parts[-1].is_output) != (item.cell, is_output):
            parts.append(_Part(item.cell, is_output, []))
            room = _MOST_OUTPUT if is_output else sys.maxsize
        if not room:
            continue
        lines = parts[-1].lines
        value = _value(source, item)[:room]
        room -= len(value)
        gap = "\n" * source.count("\n", position, item.start) or (" " if pieces else "")
        pieces.append(gap)
        length += len(gap)
        for line in value.removesuffix("\n").split("\n"):
            lines.append(_Line(line, length, length + len(line)))
            pieces += (line, " ")  # a line feed would not be one of the file's
            length += len(line) + 1
        position = item.end
    pieces.append("\n" * source.count("\n", position))
    return "".join(pieces), parts


def _value(source: str, item: _String) -> str:
    value: str = json.loads(source[item.start : item.end])
    return whole_characters(_TERMINAL_COLOUR.sub("", value).replace("\0", " "))


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
        yield Block(kind, filled[0].start, filled[-1].end, 0, lang if kind == "code" and not part.is_output else "")


def _first(source: str, strings: list[_String], *wanted: _Keys) -> str:
    return next((_value(source, item) for keys in wanted for item in strings if item.keys == keys), "")
