"""Finds the tables, views, indexes, functions, procedures and triggers that an SQL script defines, in any dialect.

Each database has its own language for procedures, and no grammar covers them all. Their common rules are enough here:
how a `CREATE` begins, how strings and comments are quoted, that `BEGIN` and `CASE` have an `END`, and that a statement
ends at `;`, or, if the script says so, at `GO`, at a line with a slash, or at a `DELIMITER`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple


class Definition(NamedTuple):
    start: int
    end: int
    name: str


_NAME_PART = rb"""(?:"[^"\n]{1,120}"|`[^`\n]{1,120}`|\[[^\]\n]{1,120}\]|[\w$#\x80-\xff]{1,120})"""
_HEADER = re.compile(
    rb"CREATE(?:\s+(?:OR\s+(?:REPLACE|ALTER)|TEMP|TEMPORARY|GLOBAL|LOCAL|UNLOGGED|UNIQUE|MATERIALIZED|RECURSIVE|VIRTUAL"
    rb"|EXTERNAL|FOREIGN|CONSTRAINT|CLUSTERED|NONCLUSTERED|COLUMNSTORE|BITMAP|FULLTEXT|SPATIAL|AGGREGATE|NO|FORCE"
    rb"|EDITIONABLE|NONEDITIONABLE|TRANSIENT|SECURE|(?:DEFINER|ALGORITHM)\s*=\s*\S+|SQL\s+SECURITY\s+\w+))*"
    rb"\s+(?:(?P<routine>FUNCTION|PROCEDURE|PROC|EVENT\s+TRIGGER|TRIGGER|EVENT|(?:PACKAGE|TYPE)\s+BODY|PACKAGE)"
    rb"|TABLE|VIEW|INDEX|TYPE|SEQUENCE|DOMAIN|MACRO)"
    rb"\s+(?:CONCURRENTLY\s+)?(?:IF\s+NOT\s+EXISTS\s+)?(?!ON\s)"
    rb"(?P<name>" + _NAME_PART + rb"(?:\s*\.\s*" + _NAME_PART + rb"){0,3})",
    re.IGNORECASE,
)
_DELIMITER = re.compile(rb"^[ \t]*DELIMITER[ \t]+(\S+)", re.IGNORECASE | re.MULTILINE)
_BATCH_END = rb"^[ \t]*(?:GO|/)[ \t]*\r?$"
_HAS_BATCHES = re.compile(_BATCH_END, re.IGNORECASE | re.MULTILINE)

# A quote that is never closed reaches to the end, so no text is scanned twice. A backslash escapes a quote, except
# where the string clearly ends there: 'C:\',
_QUOTED = rb"""'(?:[^'\\]|''|\\'(?!\s*[,;)\n])|\\(?!'))*+(?:\\?'|\Z)|"[^"]*(?:"|\Z)|`[^`]*(?:`|\Z)|\[\w[\w .]*\]"""
_COPIED_ROWS = rb"^COPY\b[^;\n]{1,2000}\bFROM\s+STDIN\b[^;\n]{0,100};.*?(?:^\\\.|\Z)"
_TRANSACTION = re.compile(rb"\s*(?:;|TRAN|WORK\b|DEFERRED\b|IMMEDIATE\b|EXCLUSIVE\b)", re.IGNORECASE)
_END_OF_NO_BLOCK = re.compile(rb"\s+(?:IF|LOOP|WHILE|REPEAT|FOR)\b", re.IGNORECASE)
_WIDEST_INDENT = 200
_REST_OF_LINE_IS_EMPTY = re.compile(rb"[ \t\r]*(?:--[^\n]*)?(?:\n|\Z)")


class _Token(NamedTuple):
    kind: str
    start: int
    end: int
    word: bytes


def sql_definitions(data: bytes) -> tuple[list[Definition], list[tuple[int, int]]]:
    """The definitions, none inside another, and the ranges of comments."""
    reader = _DefinitionReader(data)
    for token in _tokens(data):
        reader.take(token)
    reader.close(len(data))
    return reader.definitions, reader.comments


def _tokens(data: bytes) -> Iterator[_Token]:
    delimiters = {delimiter for delimiter in _DELIMITER.findall(data) if delimiter != b";"}
    # MySQL, which has delimiters, has no $$ strings $$, and $$ is a common delimiter.
    dollar = rb"\$(?:[A-Za-z_]\w*)?\$" if not _DELIMITER.search(data) else rb"(?!)"
    separators = b"|".join(map(re.escape, sorted(delimiters, key=len, reverse=True))) or rb"(?!)"
    token = re.compile(
        rb"(?P<delimiter>%b)|(?P<batch_end>%b)|(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))|(?P<separator>%b)|(?P<rows>%b)"
        rb"|(?P<quoted>%b)|(?P<dollar>%b)|(?P<word>(?<![.@:$#\w])[A-Za-z_]\w*)|(?P<semicolon>;)"
        % (_DELIMITER.pattern, _BATCH_END, separators, _COPIED_ROWS, _QUOTED, dollar),
        re.IGNORECASE | re.MULTILINE | re.DOTALL,
    )
    position = 0
    while found := token.search(data, position):
        kind, position = found.lastgroup or "delimiter", found.end()
        if kind == "dollar":
            closed = data.find(found[0], position)
            position = closed + len(found[0]) if closed >= 0 else len(data)
        word = found[0].strip().upper() if kind in ("word", "separator", "delimiter") else b""
        yield _Token(kind, found.start(), position, word)


class _DefinitionReader:
    def __init__(self, data: bytes) -> None:
        self.definitions: list[Definition] = []
        self.comments: list[tuple[int, int]] = []
        self._data = data
        self._has_batches = _HAS_BATCHES.search(data) is not None
        self._delimiter = b";"
        self._header: re.Match[bytes] | None = None
        self._blocks: list[bytes] = []
        self._at_start = True
        """Whether a statement may begin here."""

    def take(self, token: _Token) -> None:
        if token.kind == "comment":
            self.comments.append((token.start, token.end))
            return
        if token.kind == "delimiter":
            self.close(token.start)
            self._delimiter = token.word.split()[-1]
        elif token.kind == "batch_end" or (token.kind == "separator" and token.word == self._delimiter):
            self.close(token.end)
        elif token.kind == "semicolon":
            self._end_statement(token.end)
        elif token.kind == "word":
            self._take_word(token)
        self._at_start = token.kind in ("delimiter", "batch_end", "separator", "semicolon")

    def close(self, end: int) -> None:
        if self._header is not None:
            self.definitions.append(Definition(self._header.start(), end, _plain_name(self._header["name"])))
        self._header = None
        self._blocks.clear()

    def _end_statement(self, end: int) -> None:
        ends_later = self._delimiter != b";" or (self._has_batches and self._is_routine)
        if not self._blocks and not ends_later:
            self.close(end)

    @property
    def _is_routine(self) -> bool:
        return self._header is not None and self._header["routine"] is not None

    def _take_word(self, token: _Token) -> None:
        if token.word == b"CREATE":
            self._open(token.start)
        elif self._header is None:
            return
        elif self._begins_block(token):
            self._blocks.append(token.word)
        elif token.word == b"END" and not _END_OF_NO_BLOCK.match(self._data, token.end):
            self._end_block(token)

    def _open(self, start: int) -> None:
        if self._blocks or (self._is_routine and (self._has_batches or self._delimiter != b";")):
            return  # part of a procedure
        if not self._at_start and self._data[max(0, start - _WIDEST_INDENT) : start].rpartition(b"\n")[2].strip():
            return  # in the middle of a line
        if header := _HEADER.match(self._data, start):
            self.close(start)
            self._header = header

    def _begins_block(self, token: _Token) -> bool:
        if token.word == b"CASE":  # in END CASE, the END has already closed the block
            return not self._data[max(0, token.start - 20) : token.start].rstrip().upper().endswith(b"END")
        return token.word == b"BEGIN" and self._is_routine and not _TRANSACTION.match(self._data, token.end)

    def _end_block(self, token: _Token) -> None:
        if not self._blocks:
            if not self._is_routine:
                self.close(token.start)  # it ends a block around the definition
            return
        if self._blocks.pop() == b"BEGIN" and not self._blocks and not self._has_batches and self._delimiter == b";":
            following = self._data[token.end : token.end + 200].lstrip()
            if _REST_OF_LINE_IS_EMPTY.match(self._data, token.end) and not following.startswith(b";"):
                self.close(token.end)


def _plain_name(name: bytes) -> str:
    parts = re.findall(_NAME_PART, name)
    return ".".join(part.decode("utf-8", "ignore").strip('"`[]') for part in parts)
