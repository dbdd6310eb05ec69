"""Where a passage stands in its document: lines, a page, a symbol, a region, a stretch of time, a caption.

Like most value types here these are named tuples: making one class costs a tenth of what a dataclass costs, and a
command that answers in a tenth of a second has no time for forty dataclasses.
"""

from __future__ import annotations

from typing import NamedTuple


class LineSpan(NamedTuple):
    """Lines `start` to `end` of the document's text, counted from 1, both included."""

    start: int
    end: int


class PageSpan(NamedTuple):
    page: int
    """Counted from 1, as a viewer counts."""
    label: str | None = None
    """The printed page number, where it differs (iv, A-3)."""


class CodeSpan(NamedTuple):
    line_start: int
    line_end: int
    symbol: str | None = None
    lang: str | None = None


class RegionSpan(NamedTuple):
    x: int
    y: int
    w: int
    h: int


class TimeSpan(NamedTuple):
    start_ms: int
    end_ms: int
    speaker: str | None = None


class CaptionSpan(NamedTuple):
    label: str


Span = LineSpan | PageSpan | CodeSpan | RegionSpan | TimeSpan | CaptionSpan

SPAN_KINDS: dict[str, type[Span]] = {
    "line": LineSpan,
    "page": PageSpan,
    "code": CodeSpan,
    "region": RegionSpan,
    "time": TimeSpan,
    "caption": CaptionSpan,
}
_KIND_OF_SPAN = {type_: kind for kind, type_ in SPAN_KINDS.items()}


def span_kind(span: Span) -> str:
    return _KIND_OF_SPAN[type(span)]


def lines_of(span: Span) -> tuple[int, int] | None:
    """First and last line, for the kinds that have lines."""
    if isinstance(span, LineSpan):
        return span.start, span.end
    if isinstance(span, CodeSpan):
        return span.line_start, span.line_end
    return None
