"""Finds the two columns of a page by the positions of its text.

A page is read in the order in which it was drawn, which is nearly always the reading order. Some programs draw two
columns row by row, or the right one first. Columns are separated only in clear cases, because a table is also drawn row
by row and must be read so. All measures are in points; y counts upwards.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

_LEAST_LINES = 3
"""The fewest lines of a column."""
_NARROWEST = 8.0
"""The least width of a column, in line heights like the next four measures. A narrower one is a cell of a table."""
_NARROWEST_GUTTER = 0.6
_WIDEST_LEADING = 2.2
_WIDEST_HOLE = 2.5
_PARTED = 1.5
"""The least distance of a header or footer from the columns."""
_MOST_MARGIN_LINES = 2
_FILLED = 0.7
"""The share of its width that most lines of a column fill."""
_ALIKE = 0.6
"""The least width of the narrower column as a share of the other, and the share of lines that begin at its edge."""
_WIDEST_GUTTER = 2.0
"""The widest gutter, in widths of the narrower column."""
_MOST_WITH_HOLES = 0.2
_ROWS_DRAWN = 1.5
"""Columns drawn row by row change sides at least this often per line; table cells of several lines do less often."""


class Box(NamedTuple):
    """A piece of text as it was drawn."""

    left: float
    bottom: float
    right: float
    top: float

    @property
    def middle(self) -> float:
        return (self.top + self.bottom) / 2


class Region(NamedTuple):
    """Text that is read before the next region. Regions sort in reading order."""

    band: int
    """The number of the band, counted from the top. Bands with columns and bands without alternate."""
    column: int


class _Band(NamedTuple):
    bottom: float
    """The y of its lower edge; the upper edge is that of the band above."""
    has_columns: bool


class Columns:
    """The empty strip between two columns (gutter), and the page's horizontal bands, of two columns or one."""

    def __init__(self, gutter: float, bands: Sequence[_Band]) -> None:
        self._gutter = gutter
        self._bands = bands

    def region_of(self, x: float, y: float) -> Region:
        number = next(number for number, band in enumerate(self._bands) if y >= band.bottom)
        return Region(number, int(self._bands[number].has_columns and x > self._gutter))


def misdrawn_columns(boxes: Sequence[Box], gutter: float) -> Columns | None:
    """The columns of a page that was not drawn column by column, or None if the order of `boxes` is right."""
    height = median([box.top - box.bottom for box in boxes]) if boxes else 0.0
    if height <= 0:
        return None
    bands: list[_Band] = []
    misdrawn = False
    for group, edge in _parted_by_full_lines(boxes, gutter):
        bands.append(_Band(edge, has_columns=False))
        for stretch in _without_margins(group, height):
            sides = _sides(stretch, gutter)
            has_columns = _are_columns(sides, height)
            misdrawn = misdrawn or (has_columns and _is_misdrawn(stretch, sides, gutter, height))
            bands.append(_Band(min(box.bottom for box in stretch), has_columns))
    bands.append(_Band(float("-inf"), has_columns=False))
    merged = [list(same)[-1] for _, same in groupby(bands, key=lambda band: band.has_columns)]
    return Columns(gutter, merged) if misdrawn else None


def _parted_by_full_lines(boxes: Sequence[Box], gutter: float) -> list[tuple[list[Box], float]]:
    """Groups the boxes between lines that cross the gutter, from the top down: drawing order and top edge of each."""
    full: list[tuple[float, float]] = []
    for box in sorted((box for box in boxes if box.left < gutter < box.right), key=lambda box: -box.top):
        if full and box.top >= full[-1][1]:
            full[-1] = (full[-1][0], min(full[-1][1], box.bottom))
        else:
            full.append((box.top, box.bottom))
    groups: dict[int, list[Box]] = {}
    depths = [-top for top, _ in full]
    for box in boxes:
        above = bisect_left(depths, -box.middle)  # how many full lines begin above; a box inside one is part of it
        if not box.left < gutter < box.right and (not above or box.middle < full[above - 1][1]):
            groups.setdefault(above, []).append(box)
    return [(group, max(box.top for box in group)) for _, group in sorted(groups.items())]


def _without_margins(group: list[Box], height: float) -> list[list[Box]]:
    """Splits off one or two lines far above or below the group, such as a header or a page number."""
    rows = _lines(group, height)
    tops = [max(box.top for box in row) for row in rows]
    bottoms = [min(box.bottom for box in row) for row in rows]
    first, end = 0, len(rows)
    for number in range(1, min(_MOST_MARGIN_LINES, len(rows) - 1) + 1):
        if bottoms[number - 1] - tops[number] > _PARTED * height:
            first = number
        if bottoms[-number - 1] - tops[-number] > _PARTED * height:
            end = len(rows) - number
    if first >= end:
        return [group]
    limits = [float("inf"), *(tops[at] for at in (first, end) if 0 < at < len(rows)), float("-inf")]
    return [[box for box in group if lower < box.middle <= upper] for upper, lower in pairwise(limits)]


def _sides(boxes: Sequence[Box], gutter: float) -> tuple[list[Box], list[Box]]:
    return [box for box in boxes if box.right <= gutter], [box for box in boxes if box.left >= gutter]


def _lines(boxes: Sequence[Box], height: float) -> list[list[Box]]:
    """Groups boxes into lines, from the top down, each line from the left."""
    lines: list[list[Box]] = []
    for box in sorted(boxes, key=lambda box: -box.middle):
        if lines and lines[-1][0].middle - box.middle < height / 2:
            lines[-1].append(box)
        else:
            lines.append([box])
    return [sorted(line) for line in lines]


def _are_columns(sides: tuple[list[Box], list[Box]], height: float) -> bool:
    if not all(_is_column(side, height) for side in sides):
        return False
    left, right = sides
    gutter = min(box.left for box in right) - max(box.right for box in left)
    widths = sorted(max(box.right for box in side) - min(box.left for box in side) for side in sides)
    return _NARROWEST_GUTTER * height <= gutter <= _WIDEST_GUTTER * widths[0] and widths[0] >= _ALIKE * widths[1]


def _is_column(boxes: list[Box], height: float) -> bool:
    """Whether these are lines of running text: full, aligned, close to each other, without gaps."""
    lines = _lines(boxes, height)
    if len(lines) < _LEAST_LINES:
        return False
    left, right = min(box.left for box in boxes), max(box.right for box in boxes)
    widths = [max(box.right for box in line) - line[0].left for line in lines]
    flush = sum(line[0].left - left < height for line in lines)
    holes = sum(
        any(after.left - before.right > _WIDEST_HOLE * height for before, after in pairwise(line)) for line in lines
    )
    leading = median([above[0].middle - below[0].middle for above, below in pairwise(lines)])
    return (
        right - left >= _NARROWEST * height
        and median(widths) >= _FILLED * (right - left)
        and flush >= _ALIKE * len(lines)
        and holes <= _MOST_WITH_HOLES * len(lines)
        and leading <= _WIDEST_LEADING * height
    )


def _is_misdrawn(boxes: Sequence[Box], sides: tuple[list[Box], list[Box]], gutter: float, height: float) -> bool:
    """Whether the right column was drawn first, or both row by row. Other orders may be those of a table."""
    runs: list[bool] = [is_right for is_right, _ in groupby(boxes, key=lambda box: box.left >= gutter)]
    if len(runs) == 2:
        return runs[0]
    return len(runs) >= _ROWS_DRAWN * min(len(_lines(side, height)) for side in sides)
