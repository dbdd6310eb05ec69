"""A row of a table cut into cells, each under its head."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CELL = re.compile(r"(?<!\\)\|")
_DELIMITERS = "\t;,"


def cells_under(head: str, row: str) -> Iterator[tuple[str, str]]:
    """The cells that are not empty, each with its head. A quoted value that contains the delimiter is cut there, and
    the rest has no head.
    """
    for name, cell in zip(_cells(head, head), _cells(row, head), strict=False):
        if cell:
            yield name, cell


def _cells(line: str, head: str) -> list[str]:
    line = line.strip()
    if line.startswith("|"):
        return [cell.strip() for cell in _CELL.split(line.strip("|"))]
    delimiter = next((one for one in _DELIMITERS if one in head), ",")
    return [cell.strip(' "') for cell in line.split(delimiter)]
