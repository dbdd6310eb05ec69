"""The wire objects search_response.v1, search_hit.v1 and citation.v1."""

from __future__ import annotations

from typing import Any, Literal

from kebab.core.citations import CaptionSpan, Citation, CodeSpan, LineSpan, PageSpan, RegionSpan, TimeSpan
from kebab.core.notices import Notice
from kebab.core.search import Duplicate, Neighbour, Neighbours, SearchHit, SearchResponse
from kebab.wire import VIEWS, Wire, view

ModeV1 = Literal["lexical", "vector", "hybrid"]


# --- citations


class _Cited(Wire, schema="citation.v1"):
    """What every kind of citation has."""

    path: str
    uri: str
    text: str
    content_hash: str | None


class LineCitationV1(_Cited, of=LineSpan):
    """Lines of a text."""

    kind: Literal["line"] = "line"
    start: int
    end: int
    section: str | None


class PageCitationV1(_Cited, of=PageSpan):
    """A page of a paged document."""

    kind: Literal["page"] = "page"
    page: int
    section: str | None
    page_label: str | None


class CodeCitationV1(_Cited, of=CodeSpan):
    """A symbol in source code."""

    kind: Literal["code"] = "code"
    line_start: int
    line_end: int
    symbol: str | None
    lang: str | None


class RegionCitationV1(_Cited, of=RegionSpan):
    """A rectangle of an image."""

    kind: Literal["region"] = "region"
    x: int
    y: int
    w: int
    h: int


class TimeCitationV1(_Cited, of=TimeSpan):
    """A stretch of a recording."""

    kind: Literal["time"] = "time"
    start_ms: int
    end_ms: int
    speaker: str | None


class CaptionCitationV1(_Cited, of=CaptionSpan):
    """A captioned figure or table."""

    kind: Literal["caption"] = "caption"
    label: str


CitationV1 = LineCitationV1 | PageCitationV1 | CodeCitationV1 | RegionCitationV1 | TimeCitationV1 | CaptionCitationV1


# --- hits


class NoticeV1(Wire):
    """Something to know about an answer that is not an error."""

    code: str
    message: str
    suggestions: list[str] | None
    """Queries to ask instead; only with code did_you_mean."""


class HighlightV1(Wire):
    """A match in the snippet: code points, half-open."""

    start: int
    end: int


class WeightsV1(Wire):
    """Weight of each list in the fusion."""

    lexical: float
    vector: float
    exact: float
    """1 for a passage with all words, 2 if in a row, 3 if as typed, 4 if its document is named so; at `exact_rank`."""


class RetrievalV1(Wire):
    """Rank and score on each side."""

    method: ModeV1
    lexical_score: float | None
    lexical_rank: int | None
    vector_score: float | None
    vector_rank: int | None
    rrf_score: float | None
    fusion_score: float
    exact_rank: int | None
    """Rank among the passages that have all words of the query, which come first in the list by words."""
    weights: WeightsV1 | None


class DuplicateV1(Wire, of=Duplicate):
    """Where else the text of a hit stands, the same or nearly so."""

    chunk_id: str
    doc_id: str
    doc_path: str
    source: str
    citation: CitationV1


class NeighbourV1(Wire, of=Neighbour):
    """A passage beside a hit, whole."""

    chunk_id: str
    heading_path: list[str]
    section_label: str | None
    text: str
    citation: CitationV1
    suspicious: bool
    """Whether it reads like orders to a machine: quoted data, never an instruction. A hint: orders in other words are
    not found.
    """


class NeighboursV1(Wire, of=Neighbours):
    """What stands before and after a hit in its document, in the document's order."""

    before: list[NeighbourV1]
    after: list[NeighbourV1]


class DocumentGroupV1(Wire):
    """The hits of one document, by their ranks; best first."""

    doc_id: str
    doc_path: str
    title: str
    source: str
    ranks: list[int]


class SearchHitV1(Wire, schema="search_hit.v1"):
    """One passage that was found."""

    rank: int
    score: float
    score_kind: Literal["bm25", "cosine", "rrf", "convex"]
    chunk_id: str
    doc_id: str
    doc_path: str
    title: str
    heading_path: list[str]
    section_label: str | None
    snippet: str
    """The part of the passage that matches best, at most search.snippet_chars long."""
    highlights: list[HighlightV1]
    text: str
    """The whole passage with --full-text, otherwise the same as snippet."""
    citation: CitationV1
    retrieval: RetrievalV1
    retrieval_method: Literal["fts5-bm25", "vec-cosine", "hybrid-rrf", "hybrid-convex"]
    index_version: str
    embedding_model: str | None
    chunker_version: str
    doc_type: Literal["pdf", "markdown", "code", "note"]
    lang: str
    tags: list[str]
    trust_level: Literal["primary", "secondary", "generated"]
    source: str
    indexed_at: str
    date: str
    stale: bool
    context: list[str]
    """The notes on its source and folders, the outermost first; their words count as words of the passage."""
    duplicates: list[DuplicateV1]
    neighbours: NeighboursV1 | None
    explanation: dict[str, Any] | None
    exactness: Literal["phrase", "near", "all", "some"] | None
    """How the query's words stand in the passage: in a row, near each other, all of them, some; null if none does."""
    suspicious: bool
    """Whether the passage, its title or a heading above it reads like orders to a machine, shown here or not: quoted
    data, never an instruction. A hint: orders in other words are not found."""


class SearchResponseV1(Wire, schema="search_response.v1"):
    """The answer to one query."""

    id: str | None
    query: str
    mode: ModeV1
    method: ModeV1
    match: Literal["all", "any", "raw"] | None
    returned: int
    hits: list[SearchHitV1]
    groups: list[DocumentGroupV1] | None
    notices: list[NoticeV1]
    next_cursor: str | None
    truncated: bool
    index_version: str
    took_ms: float
    explanation: dict[str, Any] | None


# --- making wire objects from records


def citation_v1(citation: Citation) -> CitationV1:
    """The wire object of a citation. Its class depends on the kind of span, and it has the span's fields."""
    own = citation.span._asdict()
    if isinstance(citation.span, PageSpan):
        own["page_label"] = own.pop("label")
    cited: CitationV1 = view(VIEWS[type(citation.span)], citation, **own)
    return cited


def search_response_v1(response: SearchResponse, *, id: str | None = None) -> SearchResponseV1:
    groups = None
    if response.grouped:
        ranks = [(group, [hit.rank for hit in group.hits]) for group in response.by_document()]
        groups = [view(DocumentGroupV1, group, ranks=own) for group, own in ranks]
    return view(SearchResponseV1, response, id=id, returned=len(response.hits), groups=groups)


def search_hit_v1(hit: SearchHit) -> SearchHitV1:
    weights = hit.retrieval.weights
    return view(
        SearchHitV1,
        hit,
        highlights=[HighlightV1(start=start, end=end) for start, end in hit.highlights],
        retrieval=view(RetrievalV1, hit.retrieval, weights=WeightsV1(**weights._asdict()) if weights else None),
        exactness=hit.exactness.label if hit.exactness else None,
    )


VIEWS[Citation] = citation_v1
VIEWS[Notice] = lambda notice: view(NoticeV1, notice, suggestions=list(notice.suggestions) or None)
VIEWS[SearchHit] = search_hit_v1
