"""Explains why an expected document, chunk or span was not found: it is not indexed, filters exclude it, it is ranked
low, the question does not match it, or a chunk boundary cuts it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from kebab.core.citations import parse
from kebab.core.spans import LineSpan, PageSpan
from kebab.evaluation.judgements import lines_of
from kebab.evaluation.metrics import Lines, line_recall
from kebab.evaluation.runner import corpus_hash
from kebab.search.options import SearchRequest
from kebab.wire.evaluation import EvalExpectedV1, EvalQueryV1, EvalReportV1

if TYPE_CHECKING:
    from kebab.core.records import ChunkRecord
    from kebab.core.search import Duplicate, SearchHit
    from kebab.knowledge_base import KnowledgeBase

Reason = Literal["not indexed", "filtered", "ranked low", "not matched", "chunk boundary"]
REASONS: tuple[Reason, ...] = ("not indexed", "filtered", "ranked low", "not matched", "chunk boundary")
DEPTH = 100
"""How many hits are searched for a missing thing."""


class Miss(NamedTuple):
    name: str
    reason: Reason
    detail: str


def explain_misses(report: EvalReportV1, kb: KnowledgeBase) -> dict[str, list[Miss]] | None:
    """The misses of each query; None if documents were added, removed or changed since the run."""
    documents = kb.documents()
    if corpus_hash(documents) != report.index.sha256:
        return None
    request = SearchRequest.from_options({**report.configuration.options, "k": max(DEPTH, report.configuration.hits)})
    passing = {record.doc_id for record in kb.documents(kb.filters_of(request))} if request.filters() else None
    explaining = _Explaining(
        kb.variant(freshness="off"), request, {record.doc_id: record.chunk_count for record in documents}, passing
    )
    misses = {
        query.id: explaining.of(query, missing)
        for query in report.queries
        if (missing := missing_of(query, report.configuration.k))
    }
    return {id: found for id, found in misses.items() if found}


def missing_of(query: EvalQueryV1, k: int) -> list[EvalExpectedV1]:
    """The expected things of a query that are not among its first k hits."""
    complete = (
        query.metrics.get(f"recall@{k}", 1.0) >= 1.0 and query.metrics.get(f"citation_line_recall@{k}", 1.0) >= 1.0
    )
    if complete:
        return []
    return [
        thing
        for thing in query.expected
        if thing.rank is None or thing.rank > k or (thing.kind == "span" and thing.covered < 1.0)
    ]


def counted_reasons(misses: Iterable[Sequence[Miss]]) -> dict[Reason, int]:
    counts = Counter(miss.reason for some in misses for miss in some)
    return {reason: counts[reason] for reason in REASONS}


class _Explaining(NamedTuple):
    kb: KnowledgeBase
    request: SearchRequest
    chunk_counts: dict[str, int]
    passing: set[str] | None
    """Documents that pass the filters; None without filters."""

    def of(self, query: EvalQueryV1, missing: Sequence[EvalExpectedV1]) -> list[Miss]:
        found: tuple[SearchHit, ...] | None = None
        misses = []
        for thing in missing:
            miss = self._without_searching(thing)
            if miss is None:
                if found is None:
                    found = self.kb.search(self.request._replace(query=query.query), without_snippets=True).hits
                miss = self._ranked(thing, found)
            misses.append(miss)
        return misses

    def _without_searching(self, thing: EvalExpectedV1) -> Miss | None:
        if thing.doc_id is None:
            return Miss(thing.name, "not indexed", "it is not in the index")
        if not self.chunk_counts.get(thing.doc_id):
            return Miss(thing.name, "not indexed", "its document has no text")
        if self.passing is not None and thing.doc_id not in self.passing:
            return Miss(thing.name, "filtered", "its document does not pass the filters")
        if thing.kind != "span":
            return None
        parts = self._parts(thing)
        if not parts:
            return Miss(thing.name, "not indexed", "no passage has these lines")
        if len(parts) > 1 and thing.covered > 0:
            return Miss(
                thing.name, "chunk boundary", f"its lines are in {len(parts)} passages, and not all of them were found"
            )
        return None

    def _parts(self, thing: EvalExpectedV1) -> list[ChunkRecord]:
        """The chunks that contain lines of a span."""
        lines = _lines(thing)
        if lines is None:
            return []
        cited = ((chunk, lines_of(chunk.doc_id, chunk.citation)) for chunk in self.kb.document(lines.doc_id)[1])
        return [chunk for chunk, place in cited if place is not None and line_recall([lines], [place])]

    def _ranked(self, thing: EvalExpectedV1, found: Sequence[SearchHit]) -> Miss:
        wanted = {chunk.chunk_id for chunk in self._parts(thing)} if thing.kind == "span" else set()
        for hit in found:
            places: list[SearchHit | Duplicate] = [hit, *hit.duplicates]
            if thing.kind == "span":
                met = any(place.chunk_id in wanted for place in places)
            elif thing.kind == "chunk":
                met = any(place.chunk_id.startswith(thing.name) for place in places)
            else:
                met = any(
                    place.doc_id == thing.doc_id and _is_page(place.citation.span, thing.name) for place in places
                )
            if met:
                return Miss(thing.name, "ranked low", _rank(hit))
        if len(found) < (self.request.k or DEPTH):
            return Miss(thing.name, "not matched", f"not among the {len(found)} that the question finds at all")
        return Miss(thing.name, "ranked low", f"not among the first {self.request.k}")


def _rank(hit: SearchHit) -> str:
    detail = hit.retrieval
    sides = [
        f"{name} rank {rank}" if rank is not None else f"not found by {name}"
        for name, rank in (("lexical", detail.lexical_rank), ("vector", detail.vector_rank))
        if detail.method == "hybrid" or rank is not None
    ]
    return f"rank {hit.rank} ({', '.join(sides)})" if sides else f"rank {hit.rank}"


def _lines(thing: EvalExpectedV1) -> Lines | None:
    _, span = parse(thing.name)
    if thing.doc_id is None:
        return None
    if isinstance(span, LineSpan):
        return Lines(thing.doc_id, span.start, span.end)
    return Lines(thing.doc_id, span.page, span.page, page=True) if isinstance(span, PageSpan) else None


def _is_page(span: object, name: str) -> bool:
    """Whether a span is on the judged page; always True if no page was judged."""
    _, wanted = parse(name)
    return not isinstance(wanted, PageSpan) or (isinstance(span, PageSpan) and span.page == wanted.page)
