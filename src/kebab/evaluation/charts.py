"""Charts as SVG, drawn from numbers alone. Colours are the page's, by class, so that they follow light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

_BAR, _GAP, _LABEL, _WIDTH = 18, 6, 190, 640
_COLUMN, _HEIGHT, _FOOT = 44, 150, 34


def bars(title: str, values: Mapping[str, float]) -> str:
    """Shares from 0 to 1, one bar below the other."""
    rows = []
    room = _WIDTH - _LABEL - 60
    for number, (name, value) in enumerate(values.items()):
        top = number * (_BAR + _GAP)
        length = max(0.0, min(1.0, value)) * room
        rows.append(
            f'<text x="{_LABEL - 8}" y="{top + 13}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="bar" x="{_LABEL}" y="{top}" width="{length:.1f}" height="{_BAR}"/>'
            f'<text x="{_LABEL + length + 6:.1f}" y="{top + 13}">{value:.3f}</text>'
        )
    return _chart(title, _WIDTH, max(1, len(values)) * (_BAR + _GAP), rows)


def columns(title: str, counts: Sequence[tuple[str, int]]) -> str:
    """How many of each, side by side."""
    most = max((count for _, count in counts), default=0) or 1
    rows = []
    for number, (name, count) in enumerate(counts):
        left, height = number * _COLUMN, count / most * (_HEIGHT - 20)
        middle = left + _COLUMN / 2
        rows.append(
            f'<rect class="bar" x="{left + 4}" y="{_HEIGHT - height:.1f}" width="{_COLUMN - 8}" height="{height:.1f}"/>'
            f'<text x="{middle:.0f}" y="{_HEIGHT - height - 5:.1f}" text-anchor="middle">{count:,}</text>'
            f'<text x="{middle:.0f}" y="{_HEIGHT + 16}" text-anchor="middle">{escape(name)}</text>'
        )
    return _chart(title, max(1, len(counts)) * _COLUMN, _HEIGHT + _FOOT, rows)


def _chart(title: str, width: int, height: int, parts: Sequence[str]) -> str:
    name, drawn = escape(title), "".join(parts)
    return (
        f"<figure><figcaption>{name}</figcaption>"
        f'<svg role="img" aria-label="{name}" viewBox="0 0 {width} {height}" width="{width}" height="{height}">{drawn}</svg></figure>'
    )
