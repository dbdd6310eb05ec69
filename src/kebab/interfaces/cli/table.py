"""Prints a table that fits the terminal. A separate module, so that rich is imported only for tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table
from rich.text import Text

Cut = Literal["middle", "end"]
_GAP = 2
_LEAST = 6
_SHARE: dict[Cut, int] = {"middle": 2, "end": 1}
"""Shares of the width for shortened columns: paths (cut in the middle) get more, because they identify the row."""


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], shorten: Mapping[str, Cut]) -> None:
    console = Console()
    if shorten:
        widths = _fitting(headings, rows, shorten, console.width)
        cuts = [shorten.get(heading, "end") for heading in headings]
        rows = [[_cut(*cell) for cell in zip(row, widths, cuts, strict=True)] for row in rows]
        # A wider console, so that the terminal wraps the line and rich does not break an id.
        console = Console(width=max(console.width, _line_width(widths)))
    ruled = Table(header_style="bold", box=None, pad_edge=False)
    for heading in headings:
        ruled.add_column(heading, overflow="fold")
    for row in rows:
        ruled.add_row(*map(Text, row))
    console.print(ruled)


def _fitting(
    headings: Sequence[str], rows: Sequence[Sequence[str]], shorten: Mapping[str, Cut], most: int
) -> list[int]:
    """The column widths. While a line is longer than `most`, the `shorten` column widest for its share is narrowed."""
    widths = [max(map(cell_len, column)) for column in zip(headings, *rows, strict=True)]
    least = {number: max(_LEAST, len(heading)) for number, heading in enumerate(headings) if heading in shorten}
    while _line_width(widths) > most:
        yielding = [number for number, narrowest in least.items() if widths[number] > narrowest]
        if not yielding:
            break
        widths[max(yielding, key=lambda number: widths[number] / _SHARE[shorten[headings[number]]])] -= 1
    return widths


def _line_width(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _cut(text: str, width: int, where: Cut) -> str:
    """A text cut to a width: in the middle for paths, at the end for titles."""
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2 if where == "middle" else 0
    end = chop_cells(text[::-1], tail)[0][::-1] if tail else ""
    return f"{chop_cells(text, width - 1 - tail)[0]}…{end}"
