"""Parses source code: each function, class and method is a block, with the comments and decorators above it.

Tree-sitter finds the symbols, `sql_definitions` those of SQL; all further steps work on lines. Each line belongs to the
innermost symbol around it, or to none, and consecutive lines of the same symbol are a block. So a class has a block for
its first lines and one for the lines between two methods; no line is lost or used twice.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import groupby
from time import thread_time
from typing import NamedTuple

from tree_sitter import Language, Parser, Query, QueryCursor, Tree

from kebab.core.documents import Block, ParsedDocument
from kebab.core.paths import file_name
from kebab.core.text import decode, line_starts, nfc
from kebab.parsing.building import FileParser, document
from kebab.parsing.code_languages import LANGUAGE_OF_FORMAT, CodeLanguage, code_language
from kebab.parsing.file_types import classify
from kebab.parsing.plain_text import PlainTextParser, paragraphs, refuse_generated
from kebab.parsing.sql_definitions import sql_definitions

_DEEPEST = 24
"""Symbols nested deeper are part of the symbol around them, because full names grow with every level."""
_LONGEST_NAME = 120
_NO_SYMBOL = -1
_MOST_SECONDS = 1.0
"""Parsing may take this many seconds, plus as many per megabyte: ten times what real code takes. After that the file is
split at blank lines.
"""
_READ = 4_096
_PROBES = 64
_PROBE_DEPTH = 64
_MOST_SIGNS = 10_000
_TOO_MANY_ERRORS = "The file has too many syntax errors."

_LINE_FEED = re.compile(rb"\n")

_OPERATOR = re.compile(r"\boperator\b(?=\s*\S).*", re.DOTALL)
_TYPE_ARGUMENTS = re.compile(r"(?<=\w)\s*<.*>", re.DOTALL)
_PARAMETERS = re.compile(r"(?<!^)(?<!operator)(?<!operator )\(.*", re.DOTALL)
_SEPARATOR = re.compile(r"::|\\|(?<=\w):(?=\w)")
_NAMING_WRAPPER = re.compile(rb"(?:React\.)?[\w$]+")
"""The wrapper in `name = debounce(() => …)` matches: the result is a function. `items.map(() => …)` does not match."""


class CodeParser(FileParser):
    version = "code-2"

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        text, encoding = decode(data)
        _, format_ = classify(path, text)
        refuse_generated(text, path, format_)
        language = code_language(format_, text)
        warnings: tuple[str, ...] = ()
        try:
            blocks = list(_blocks(text, language)) if language else paragraphs(text, "code")
        except _NoSyntax as error:
            blocks, warnings = paragraphs(text, "code"), (f"{error} Its functions and classes are not told apart.",)
        code_lang = language.name if language else None
        return document(
            path, text, blocks, nfc(file_name(path)), encoding=encoding, warnings=warnings, code_lang=code_lang
        )


class ScriptParser(FileParser):
    """Files without an extension: code if the first line names the program that runs them, else text."""

    version = f"script-1 {CodeParser.version} {PlainTextParser.version}"

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        text, _ = decode(data)
        _, format_ = classify(path, text)
        parser = CodeParser() if format_ in LANGUAGE_OF_FORMAT else PlainTextParser()
        return parser.parse(data, path)


class _NoSyntax(Exception):
    """Raised if there is no usable syntax tree; the code is then split into paragraphs."""


class _Symbol(NamedTuple):
    """A symbol of the syntax tree. Start and end are in bytes."""

    start: int
    end: int
    name_start: int
    name: str
    is_class: bool

    @property
    def order(self) -> tuple[object, ...]:
        """Sort key that puts a symbol before the symbols inside it."""
        return self.start, -self.end, *self[2:]


class _Open(NamedTuple):
    """A symbol whose end is not reached yet."""

    end: int
    first_row: int
    last_row: int
    full_name: str
    is_class: bool
    number: int
    """The number stored for those of its lines that belong to no symbol inside it."""


def _blocks(text: str, language: CodeLanguage) -> Iterator[Block]:
    lines = text.split("\n")
    starts = line_starts(lines)
    starts[-1] = len(text)  # the last line has no line feed
    owners, titles = _owners(text.encode("utf-8", "surrogatepass"), language, lines)
    row = 0
    for owner, run in groupby(owners):
        first, row = row, row + sum(1 for _ in run)
        start, end = starts[first], starts[row]
        if owner == _NO_SYMBOL:
            yield from paragraphs(text, "code", start, end)
            continue
        while first < row and not lines[first].strip():
            first += 1
        if first < row:
            yield Block("symbol", starts[first], end, title=titles[owner])


def _owners(data: bytes, language: CodeLanguage, lines: list[str]) -> tuple[list[int], list[str]]:
    """For each line the number of its symbol, and for each number the symbol's full name."""
    rows = _Rows(data)
    symbols, lead_ranges = _in_syntax_tree(data, language) if language.grammar else _in_sql(data)
    leads = _lead_rows(data, rows, sorted(lead_ranges))
    owners = [_NO_SYMBOL] * len(lines)
    titles: list[str] = []
    outer: list[_Open] = [_Open(len(data) + 1, -1, len(lines), "", True, _NO_SYMBOL)]
    free = 0  # the first row that no earlier symbol has taken
    for symbol in _without_repetitions(sorted(symbols, key=lambda symbol: symbol.order)):
        while outer[-1].end <= symbol.start:
            free = max(free, outer.pop().last_row + 1)
        around = outer[-1]
        if not around.is_class or len(outer) > _DEEPEST:
            continue
        full_name = f"{around.full_name}.{symbol.name}" if around.full_name else symbol.name
        first_row, last = rows.of(symbol.start, symbol.end)
        while last > first_row and not lines[last].strip():
            last -= 1
        if first_row <= around.first_row:  # starts on the first line of its class: gets no block of its own
            number = around.number
        elif first_row < free:  # starts on the line where the symbol before ends: joins its block
            number = owners[first_row]
            owners[first_row : last + 1] = [number] * (last + 1 - first_row)
        else:
            number = len(titles)
            titles.append(full_name)
            first = _with_leads(first_row, leads, max(free, around.first_row + 1))
            owners[first : last + 1] = [number] * (last + 1 - first)
        free = max(free, first_row + 1)
        outer.append(_Open(symbol.end, first_row, last, full_name, symbol.is_class, number))
    return owners, titles


def _with_leads(row: int, leads: dict[int, int], least: int) -> int:
    """The first row of the comments and decorators directly above a row, or the row itself without any."""
    while (above := leads.get(row - 1)) is not None and above >= least:
        row = above
    return row


def _in_sql(data: bytes) -> tuple[list[_Symbol], list[tuple[int, int]]]:
    definitions, comments = sql_definitions(data)
    return [_Symbol(start, end, start, name[:_LONGEST_NAME], False) for start, end, name in definitions], comments


def _in_syntax_tree(data: bytes, language: CodeLanguage) -> tuple[list[_Symbol], list[tuple[int, int]]]:
    """The symbols in any order, and the ranges of comments and decorators."""
    grammar, query = _grammar(language)
    tree = _syntax_tree(data, grammar)
    if _has_long_errors(tree, len(data)):
        raise _NoSyntax(_TOO_MANY_ERRORS)
    found: list[_Symbol] = []
    leads: list[tuple[int, int]] = []
    for _, captured in QueryCursor(query).matches(tree.root_node):
        if lead := captured.get("lead"):
            leads.append((lead[0].start_byte, lead[0].end_byte))
            continue
        if any(
            not _NAMING_WRAPPER.fullmatch(data, node.start_byte, node.end_byte) for node in captured.get("wrapper", ())
        ):
            continue
        node = (captured.get("class") or captured["function"])[0]
        name_start = min(part.start_byte for part in captured["name"])
        name_end = max(part.end_byte for part in captured["name"])
        named = [*((owner.start_byte, owner.end_byte) for owner in captured.get("owner", ())), (name_start, name_end)]
        parts = [_clean_name(data[first:last], language.noise) for first, last in named]
        full_name = ".".join(part for part in parts if part)
        found.append(_Symbol(node.start_byte, node.end_byte, name_start, full_name, "class" in captured))
    return found, leads


def _syntax_tree(data: bytes, grammar: Language) -> Tree:
    """Parses the data and returns the tree; raises _NoSyntax after a time limit, which files full of errors reach.

    The parser cannot be stopped, so after the limit `read` reports the end of the text.
    """
    latest = thread_time() + _MOST_SECONDS + _MOST_SECONDS * len(data) / 1e6
    is_late = False

    def read(offset: int, _position: object) -> bytes:
        nonlocal is_late
        is_late = is_late or thread_time() > latest
        return b"" if is_late else data[offset : offset + _READ]

    tree = Parser(grammar).parse(read)
    if is_late:
        raise _NoSyntax(_TOO_MANY_ERRORS)
    return tree


def _has_long_errors(tree: Tree, length: int) -> bool:
    """Whether the query would take too long: a node has very many unnamed children, such as stray punctuation.

    Only the nodes at sample positions are checked: a node large enough to matter contains one of these positions.
    """
    for position in range(0, length, max(1, length // _PROBES)):
        cursor = tree.walk()
        for _ in range(_PROBE_DEPTH):
            node = cursor.node
            if node is None or node.child_count - node.named_child_count > _MOST_SIGNS + 2 * node.named_child_count:
                return True
            if cursor.goto_first_child_for_byte(position) is None:
                break
    return False


class _Rows:
    """Converts byte offsets to rows. Tree-sitter could do this, but its version 0.26.0 crashes."""

    def __init__(self, data: bytes) -> None:
        self._starts = [0, *(match.end() for match in _LINE_FEED.finditer(data)), len(data) + 1]

    def of(self, start: int, end: int) -> tuple[int, int]:
        """The first and last row of a range; the line feed at its end belongs to the last row."""
        return bisect_right(self._starts, start) - 1, bisect_right(self._starts, max(start, end - 1)) - 1

    def start(self, row: int) -> int:
        return self._starts[row]


def _without_repetitions(found: list[_Symbol]) -> Iterator[_Symbol]:
    """Yields each symbol once: of several matches the widest, which includes its `template <…>` or decorators."""
    names: set[int] = set()
    before = (-1, -1)
    for each in found:
        if each.name and each.name_start not in names and each[:2] != before:
            yield each
            before = each[:2]
        names.add(each.name_start)


def _lead_rows(data: bytes, rows: _Rows, leads: list[tuple[int, int]]) -> dict[int, int]:
    """Maps the last row of comments and decorators to their first row, unless they share a row with code."""
    first_of: dict[int, int] = {}
    first = last = -1
    alone = True
    position = 0  # the data of these rows before it is checked for code
    for number, (start, end) in enumerate(leads):
        begins, ends = rows.of(start, end)
        if begins > last:
            first, alone, position = begins, True, rows.start(begins)
        alone = alone and not data[position:start].strip()
        last, position = max(last, ends), max(position, end)
        is_last_of_its_line = number + 1 == len(leads) or rows.of(*leads[number + 1])[0] > last
        if alone and is_last_of_its_line and not data[position : rows.start(last + 1)].strip():
            first_of[last] = first
    return first_of


def _clean_name(text: bytes, noise: str) -> str:
    """The name with dots between its parts: `a::B<T>::c` becomes a.B.c. Text after `operator` stays as it is."""
    name = text[: 4 * _LONGEST_NAME].decode("utf-8", "ignore")
    operator = _OPERATOR.search(name)
    owner = re.sub(noise, "", name[: operator.start()] if operator else name)
    owner = _SEPARATOR.sub(".", _PARAMETERS.sub("", _TYPE_ARGUMENTS.sub("", owner)))
    name = " ".join((owner + _PARAMETERS.sub("", operator[0] if operator else "")).split())
    return (name.strip("\"'`. ") or name)[:_LONGEST_NAME]


@cache
def _grammar(language: CodeLanguage) -> tuple[Language, Query]:
    """The grammar and its compiled query; raises _NoSyntax if the installed grammar does not fit the query."""
    module, _, function = language.grammar.partition(":")
    try:
        grammar = Language(getattr(import_module(module), function or "language")())
        return grammar, Query(grammar, language.query)
    except (ImportError, AttributeError, ValueError) as error:
        raise _NoSyntax(f"The grammar {module} cannot be used: {error}.") from error
