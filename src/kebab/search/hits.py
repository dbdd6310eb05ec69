"""A stored chunk and its ranks → SearchHit. The one place where hits are made, whatever found them, and lists of them
made shorter.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kebab.analysis.orders import reads_like_orders
from kebab.core import deadline
from kebab.core.citations import Citation
from kebab.core.ports import ChunkContext
from kebab.core.search import Duplicate, QueryTerms, RetrievalDetail, SearchHit, SearchQuery
from kebab.search.duplicates import Passage, folded
from kebab.search.snippets import SnippetMaker

RETRIEVAL_METHODS = {"bm25": "fts5-bm25", "cosine": "vec-cosine", "rrf": "hybrid-rrf", "convex": "hybrid-convex"}


def make_hit(
    chunk: ChunkContext,
    *,
    rank: int,
    detail: RetrievalDetail,
    score_kind: str,
    index_version: str,
    explanation: dict[str, Any] | None = None,
    copies: Iterable[ChunkContext] = (),
) -> SearchHit:
    """Bare: with the whole text and no snippet yet. The citation comes from the first span, which covers the whole
    chunk.
    """
    return SearchHit(
        rank=rank,
        score=detail.fusion_score,
        score_kind=score_kind,
        chunk_id=chunk.chunk_id,
        doc_id=chunk.doc_id,
        doc_path=chunk.doc_path,
        title=chunk.title,
        heading_path=chunk.heading_path,
        section_label=chunk.section_label,
        snippet="",
        highlights=(),
        text=chunk.text,
        citation=_citation(chunk),
        retrieval=detail,
        retrieval_method=RETRIEVAL_METHODS[score_kind],
        index_version=index_version,
        chunker_version=chunk.chunker_version,
        doc_type=chunk.doc_type,
        lang=chunk.lang,
        tags=chunk.tags,
        trust_level=chunk.trust_level,
        source=chunk.source,
        indexed_at=chunk.indexed_at,
        embedding_model=chunk.embedding_model,
        date=chunk.date,
        context=chunk.notes,
        explanation=explanation,
        duplicates=tuple(
            Duplicate(copy.chunk_id, copy.doc_id, copy.doc_path, copy.source, _citation(copy)) for copy in copies
        ),
    )


def _citation(chunk: ChunkContext) -> Citation:
    return Citation(chunk.doc_path, chunk.spans[0], chunk.section_label, chunk.content_hash)


def with_snippet(hit: SearchHit, snippets: SnippetMaker, terms: QueryTerms, *, full_text: bool) -> SearchHit:
    """A bare hit as it is shown. The one place where hits are flagged: by the whole passage, however little of it is
    shown.
    """
    deadline.check()
    snippet = snippets.of(hit.text, terms)
    return hit._replace(
        snippet=snippet.text,
        highlights=snippet.highlights,
        text=hit.text if full_text else snippet.text,
        suspicious=reads_like_orders("\n\n".join((hit.title, *hit.heading_path, hit.text))),
    )


def shortened(
    hits: list[SearchHit], query: SearchQuery, *, complete: bool, whole_texts: bool = True
) -> list[SearchHit]:
    """What of the hits stands in the list that was asked for, and in which order.

    By date the newest copy stands, and the best passages of each document; otherwise the best copy, and a document
    whose best passage is folded under another one may show its next.
    """
    by_date = query.sort == "date"
    if by_date:
        hits = hits if query.per_doc is None else at_most_per_document(hits, query.per_doc)
        hits = sorted(hits, key=lambda hit: hit.date, reverse=True)
    if query.duplicates == "fold":
        enough = query.offset + query.k + 1 if query.per_doc is None else None
        hits = fold_duplicates(hits, query, complete=complete, whole_texts=whole_texts, enough=enough)
    return hits if by_date or query.per_doc is None else at_most_per_document(hits, query.per_doc)


def fold_duplicates(
    hits: Iterable[SearchHit], query: SearchQuery, *, complete: bool, whole_texts: bool = True, enough: int | None
) -> list[SearchHit]:
    """The first of those with nearly the same text, carrying the others; see `duplicates.folded` for `complete` and
    `enough`.

    Without `whole_texts` only the hashes of the passages are compared, because snippets say little about the rest.
    """

    def passage(hit: SearchHit) -> Passage | None:
        if query.min_score is not None and hit.score < query.min_score:
            return None  # by date, it could take copies with it that are good enough
        return Passage(hit.text if whole_texts else "", hit.citation.content_hash or "")

    return [
        hit._replace(duplicates=tuple(map(_as_duplicate, copies))) if copies else hit
        for hit, copies in folded(hits, passage, complete=complete, enough=enough)
    ]


def _as_duplicate(copy: SearchHit) -> Duplicate:
    return Duplicate(copy.chunk_id, copy.doc_id, copy.doc_path, copy.source, copy.citation)


def without_repetition(looks: Iterable[list[SearchHit]]) -> list[SearchHit]:
    """One list of all; a hit with exactly the text of one before it is named there instead, with the copies it has."""
    listed: dict[str, SearchHit] = {}
    for look in looks:
        for hit in look:
            text = hit.citation.content_hash or hit.chunk_id
            first = listed.get(text)
            listed[text] = (
                first._replace(duplicates=(*first.duplicates, _as_duplicate(hit), *hit.duplicates)) if first else hit
            )
    return list(listed.values())


def at_most_per_document(hits: Iterable[SearchHit], most: int) -> list[SearchHit]:
    """The first few of each document, in order, ranked anew."""
    seen: dict[str, int] = {}
    kept: list[SearchHit] = []
    for hit in hits:
        seen[hit.doc_id] = seen.get(hit.doc_id, 0) + 1
        if seen[hit.doc_id] <= most:
            kept.append(hit)
    return kept
