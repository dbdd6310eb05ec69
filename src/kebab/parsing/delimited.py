"""Parses csv and tsv: text stays as it is, a block has a few rows, and only the first few thousand rows are indexed."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from kebab.core.documents import ParsedDocument
from kebab.core.text import decode, storable
from kebab.parsing.building import FileParser, LineBlock, as_ranges, document, title_of

_MOST_ROWS = 5000
_ROWS_PER_BLOCK = 20
_MOST_LINES_PER_ROW = 200
"""A quote that is still open after this many lines counts as an ordinary character."""
_MOST_COLUMNS = 100
_LONGEST_HEADER = 10_000


class DelimitedParser(FileParser):
    version = "csv-2"

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        text, encoding = decode(data)
        lines = text.split("\n")
        rows = list(_rows(lines))
        kept = rows[:_MOST_ROWS]
        groups = (kept[first : first + _ROWS_PER_BLOCK] for first in range(0, len(kept), _ROWS_PER_BLOCK))
        blocks = as_ranges(lines, (LineBlock("table", group[0][0], group[-1][1]) for group in groups))
        columns = _columns("\n".join(lines[slice(*rows[0])]), path) if rows else []
        left_out = len(rows) - len(kept)
        return document(
            path,
            text,
            blocks,
            title_of("", path),
            metadata={"columns": columns} if columns else {},
            warnings=(f"{left_out:,} rows after the first {_MOST_ROWS:,} are left out",) if left_out else (),
            encoding=encoding,
        )


def _rows(lines: list[str]) -> Iterator[tuple[int, int]]:
    """Yields the first line of each row and the line after its last. A quoted value may span several lines."""
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        end, quotes = at + 1, 0
        for line in range(at, min(len(lines), at + _MOST_LINES_PER_ROW)):
            quotes += lines[line].count('"')
            if quotes % 2 == 0:
                end = line + 1
                break
        yield at, end
        at = end


def _columns(header: str, path: str) -> list[str]:
    """The column names in the first row, or an empty list if it is too long or malformed."""
    if len(header) > _LONGEST_HEADER:
        return []
    delimiter = "\t" if path.lower().endswith(".tsv") else max(",;\t|", key=header.count)
    try:
        names = next(csv.reader([header.rstrip("\r")], delimiter=delimiter), [])
    except csv.Error:
        return []
    return [storable(" ".join(name.split())) for name in names[:_MOST_COLUMNS] if name.strip()]
