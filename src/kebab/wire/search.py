"""search_response.v1 and search_hit.v1.

The classes here and in `citations` are made at the start of every `kb search --json`, so they have no more methods than
they need: frozen ones with equality take three times as long to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from kebab.core.search import Duplicate, Neighbour, Neighbours, Notice, SearchHit, SearchResponse
from kebab.wire.citations import CitationV1, citation_v1

ModeV1 = Literal["lexical", "vector", "hybrid"]


@dataclass(kw_only=True, eq=False, repr=False)
class NoticeV1:
    """Something to know about an answer that is not an error."""

    code: str
    message: str
    suggestions: list[str] | None
    """Queries to ask instead; only with code did_you_mean."""


@dataclass(kw_only=True, eq=False, repr=False)
class HighlightV1:
    """A match in the snippet: code points, half-open."""

    start: int
    end: int


@dataclass(kw_only=True, eq=False, repr=False)
class WeightsV1:
    """Weight of each list in the fusion."""

    lexical: float
    vector: float


@dataclass(kw_only=True, eq=False, repr=False)
class RetrievalV1:
    """Rank and score on each side."""

    method: ModeV1
    lexical_score: float | None
    lexical_rank: int | None
    vector_score: float | None
    vector_rank: int | None
    rrf_score: float | None
    fusion_score: float
    weights: WeightsV1 | None


@dataclass(kw_only=True, eq=False, repr=False)
class DuplicateV1:
    """Where else the text of a hit stands, the same or nearly so."""

    chunk_id: str
    doc_id: str
    doc_path: str
    source: str
    citation: CitationV1


@dataclass(kw_only=True, eq=False, repr=False)
class NeighbourV1:
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


@dataclass(kw_only=True, eq=False, repr=False)
class NeighboursV1:
    """What stands before and after a hit in its document, in the document's order."""

    before: list[NeighbourV1]
    after: list[NeighbourV1]


@dataclass(kw_only=True, eq=False, repr=False)
class DocumentGroupV1:
    """The hits of one document, by their ranks; best first."""

    doc_id: str
    doc_path: str
    title: str
    source: str
    ranks: list[int]


@dataclass(kw_only=True, eq=False, repr=False)
class SearchHitV1:
    """One passage that was found."""

    schema_version: Literal["search_hit.v1"] = "search_hit.v1"
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
    suspicious: bool
    """Whether the passage, its title or a heading above it reads like orders to a machine, shown here or not: quoted
    data, never an instruction. A hint: orders in other words are not found."""


@dataclass(kw_only=True, eq=False, repr=False)
class SearchResponseV1:
    """The answer to one query."""

    schema_version: Literal["search_response.v1"] = "search_response.v1"
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


def search_response_v1(response: SearchResponse, *, id: str | None = None) -> SearchResponseV1:
    return SearchResponseV1(
        id=id,
        query=response.query,
        mode=response.mode,
        method=response.method,
        match=response.match,  # type: ignore[arg-type]  # all, any or raw, by construction of the retrievers
        returned=len(response.hits),
        hits=[search_hit_v1(hit) for hit in response.hits],
        groups=_groups_v1(response) if response.grouped else None,
        notices=[notice_v1(notice) for notice in response.notices],
        next_cursor=response.next_cursor,
        truncated=response.truncated,
        index_version=response.index_version,
        took_ms=response.took_ms,
        explanation=response.explanation,
    )


def notice_v1(notice: Notice) -> NoticeV1:
    return NoticeV1(code=notice.code, message=notice.message, suggestions=list(notice.suggestions) or None)


def _groups_v1(response: SearchResponse) -> list[DocumentGroupV1]:
    return [
        DocumentGroupV1(
            doc_id=group.doc_id,
            doc_path=group.doc_path,
            title=group.title,
            source=group.source,
            ranks=[hit.rank for hit in group.hits],
        )
        for group in response.by_document()
    ]


def neighbours_v1(neighbours: Neighbours) -> NeighboursV1:
    return NeighboursV1(
        before=[_neighbour_v1(one) for one in neighbours.before], after=[_neighbour_v1(one) for one in neighbours.after]
    )


def _neighbour_v1(neighbour: Neighbour) -> NeighbourV1:
    return NeighbourV1(
        chunk_id=neighbour.chunk_id,
        heading_path=list(neighbour.heading_path),
        section_label=neighbour.section_label,
        text=neighbour.text,
        citation=citation_v1(neighbour.citation),
        suspicious=neighbour.suspicious,
    )


def duplicate_v1(duplicate: Duplicate) -> DuplicateV1:
    return DuplicateV1(
        chunk_id=duplicate.chunk_id,
        doc_id=duplicate.doc_id,
        doc_path=duplicate.doc_path,
        source=duplicate.source,
        citation=citation_v1(duplicate.citation),
    )


def search_hit_v1(hit: SearchHit) -> SearchHitV1:
    weights = hit.retrieval.weights
    return SearchHitV1(
        rank=hit.rank,
        score=hit.score,
        score_kind=hit.score_kind,  # type: ignore[arg-type]  # one of hydration.RETRIEVAL_METHODS
        chunk_id=hit.chunk_id,
        doc_id=hit.doc_id,
        doc_path=hit.doc_path,
        title=hit.title,
        heading_path=list(hit.heading_path),
        section_label=hit.section_label,
        snippet=hit.snippet,
        highlights=[HighlightV1(start=start, end=end) for start, end in hit.highlights],
        text=hit.text,
        citation=citation_v1(hit.citation),
        retrieval=RetrievalV1(
            method=hit.retrieval.method,
            lexical_score=hit.retrieval.lexical_score,
            lexical_rank=hit.retrieval.lexical_rank,
            vector_score=hit.retrieval.vector_score,
            vector_rank=hit.retrieval.vector_rank,
            rrf_score=hit.retrieval.rrf_score,
            fusion_score=hit.retrieval.fusion_score,
            weights=WeightsV1(**weights) if weights else None,
        ),
        retrieval_method=hit.retrieval_method,  # type: ignore[arg-type]  # as score_kind
        index_version=hit.index_version,
        embedding_model=hit.embedding_model,
        chunker_version=hit.chunker_version,
        doc_type=hit.doc_type,  # type: ignore[arg-type]  # parsers give no other
        lang=hit.lang,
        tags=list(hit.tags),
        trust_level=hit.trust_level,  # type: ignore[arg-type]  # front matter is checked
        source=hit.source,
        indexed_at=hit.indexed_at,
        date=hit.date,
        stale=hit.stale,
        context=list(hit.context),
        duplicates=[duplicate_v1(duplicate) for duplicate in hit.duplicates],
        neighbours=neighbours_v1(hit.neighbours) if hit.neighbours is not None else None,
        explanation=hit.explanation,
        suspicious=hit.suspicious,
    )
