"""citation.v1: one shape per kind, the kind's own fields at top level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kebab.core.citations import Citation
from kebab.core.spans import CaptionSpan, CodeSpan, LineSpan, PageSpan, RegionSpan, TimeSpan


@dataclass(kw_only=True, eq=False, repr=False)
class _Cited:
    """What every kind of citation has."""

    schema_version: Literal["citation.v1"] = "citation.v1"
    path: str
    uri: str
    text: str
    content_hash: str | None


@dataclass(kw_only=True, eq=False, repr=False)
class LineCitationV1(_Cited):
    """Lines of a text."""

    kind: Literal["line"] = "line"
    start: int
    end: int
    section: str | None


@dataclass(kw_only=True, eq=False, repr=False)
class PageCitationV1(_Cited):
    """A page of a paged document."""

    kind: Literal["page"] = "page"
    page: int
    section: str | None
    page_label: str | None


@dataclass(kw_only=True, eq=False, repr=False)
class CodeCitationV1(_Cited):
    """A symbol in source code."""

    kind: Literal["code"] = "code"
    line_start: int
    line_end: int
    symbol: str | None
    lang: str | None


@dataclass(kw_only=True, eq=False, repr=False)
class RegionCitationV1(_Cited):
    """A rectangle of an image."""

    kind: Literal["region"] = "region"
    x: int
    y: int
    w: int
    h: int


@dataclass(kw_only=True, eq=False, repr=False)
class TimeCitationV1(_Cited):
    """A stretch of a recording."""

    kind: Literal["time"] = "time"
    start_ms: int
    end_ms: int
    speaker: str | None


@dataclass(kw_only=True, eq=False, repr=False)
class CaptionCitationV1(_Cited):
    """A captioned figure or table."""

    kind: Literal["caption"] = "caption"
    label: str


CitationV1 = LineCitationV1 | PageCitationV1 | CodeCitationV1 | RegionCitationV1 | TimeCitationV1 | CaptionCitationV1


def citation_v1(citation: Citation) -> CitationV1:
    path, uri, text, digest = citation.path, citation.uri, citation.text, citation.content_hash
    match citation.span:
        case LineSpan(start, end):
            return LineCitationV1(
                path=path, uri=uri, text=text, content_hash=digest, start=start, end=end, section=citation.section
            )
        case PageSpan(page, label):
            return PageCitationV1(
                path=path,
                uri=uri,
                text=text,
                content_hash=digest,
                page=page,
                section=citation.section,
                page_label=label,
            )
        case CodeSpan() as span:
            return CodeCitationV1(path=path, uri=uri, text=text, content_hash=digest, **span._asdict())
        case RegionSpan() as span:
            return RegionCitationV1(path=path, uri=uri, text=text, content_hash=digest, **span._asdict())
        case TimeSpan() as span:
            return TimeCitationV1(path=path, uri=uri, text=text, content_hash=digest, **span._asdict())
        case CaptionSpan(label):
            return CaptionCitationV1(path=path, uri=uri, text=text, content_hash=digest, label=label)
