"""Citations: the place of a passage, in two written forms that people, editors and programs can follow.

    uri    notes/rust/kb.md#L12-L34   paper.pdf#page=13   clip.mp4#t=1.5,4   scan.png#xywh=0,0,10,20
    text   notes/rust/kb.md:L12-L34   paper.pdf:p13       clip.mp4:t=1.5,4   scan.png:xywh=0,0,10,20

`parse` reads both forms, and a path without a place.
"""

import re
from typing import NamedTuple

# --- spans: where a passage is in its document. Named tuples, because defining dataclasses takes ten times as long


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


# --- citations


_ENCODED = {"%": "%25", "#": "%23", "?": "%3F", " ": "%20"}
_MUST_ENCODE = re.compile("[%#? ]")
_FRAGMENT = re.compile(
    r"""(?P<path>.*)(?P<mark>[#:])(?:
        L(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?
      | (?:page=|p=|p)(?P<page>\d{1,9})
      | xywh=(?P<region>\d{1,9},\d{1,9},\d{1,9},\d{1,9})
      | t=(?P<from>\d{1,9}(?:\.\d{1,3})?),(?P<to>\d{1,9}(?:\.\d{1,3})?)
      | caption=(?P<caption>[^\#:]*)
    )""",
    re.VERBOSE | re.DOTALL,
)


class Citation(NamedTuple):
    """A path, a span in it, the innermost heading above the span, and the sha256 of the cited chunk's text."""

    path: str
    span: Span
    section: str | None = None
    content_hash: str | None = None

    @property
    def kind(self) -> str:
        return span_kind(self.span)

    @property
    def uri(self) -> str:
        return f"{_MUST_ENCODE.sub(lambda match: _ENCODED[match[0]], self.path)}#{_fragment(self.span)}"

    @property
    def text(self) -> str:
        fragment = _fragment(self.span)
        return f"{self.path}:{fragment.replace('page=', 'p', 1) if isinstance(self.span, PageSpan) else fragment}"

    @property
    def lines(self) -> tuple[int, int] | None:
        """The first and last line; None for kinds of spans without lines."""
        return lines_of(self.span)


def _fragment(span: Span) -> str:
    match span:
        case LineSpan(start, end) | CodeSpan(start, end):
            return f"L{start}-L{end}"
        case PageSpan(page, _):
            return f"page={page}"
        case RegionSpan(x, y, w, h):
            return f"xywh={x},{y},{w},{h}"
        case TimeSpan(start_ms, end_ms):
            return f"t={_seconds(start_ms)},{_seconds(end_ms)}"
        case CaptionSpan(label):
            return f"caption={_quoted(label)}"


def _quoted(label: str) -> str:
    """The caption, percent-encoded: it is free text, and could otherwise look like the start of another fragment."""
    from urllib.parse import quote

    return quote(label, safe="", errors="surrogatepass")


def _seconds(milliseconds: int) -> str:
    whole, rest = divmod(milliseconds, 1000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".") if rest else str(whole)


def parse(citation: str) -> tuple[str, Span | None]:
    """The path and the span of a citation in either form; the span is None where only a path was given."""
    from urllib.parse import unquote

    match = _FRAGMENT.fullmatch(citation)
    if match is None:
        return citation, None
    path = unquote(match["path"]) if match["mark"] == "#" else match["path"]
    if match["first"]:
        first = int(match["first"])
        return path, LineSpan(first, int(match["last"] or first))
    if match["page"]:
        return path, PageSpan(int(match["page"]))
    if match["region"]:
        return path, RegionSpan(*map(int, match["region"].split(",")))
    if match["from"]:
        return path, TimeSpan(round(float(match["from"]) * 1000), round(float(match["to"]) * 1000))
    return path, CaptionSpan(unquote(match["caption"], errors="surrogatepass"))
