"""Spans: where a passage is in its document, by lines, page, symbol, region, time or caption.

Most value types here are named tuples, because defining dataclasses takes ten times as long at every start.
"""

from __future__ import annotations

from typing import NamedTuple


class LineSpan(NamedTuple):
    """Lines `start` to `end` of the document's text, counted from 1, both included."""

    start: int
    end: int


class PageSpan(NamedTuple):
    page: int
    """The page number counted from 1, as PDF viewers show it."""
    label: str | None = None
    """The printed page number, if it differs (iv, A-3)."""


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
    """The first and last line; None for kinds of spans without lines."""
    if isinstance(span, LineSpan):
        return span.start, span.end
    if isinstance(span, CodeSpan):
        return span.line_start, span.line_end
    return None
