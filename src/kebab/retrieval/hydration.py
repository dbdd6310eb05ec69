"""A stored chunk and its ranks → SearchHit. The one place where hits are made, whatever found them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kebab.core.citations import Citation
from kebab.core.ports import ChunkContext
from kebab.core.search import QueryTerms, RetrievalDetail, SearchHit
from kebab.retrieval.snippets import SnippetMaker

RETRIEVAL_METHODS = {
    "bm25": "fts5-bm25",
    "cosine": "vec-cosine",
    "rrf": "hybrid-rrf",
    "convex": "hybrid-convex",
}


def make_hit(
    chunk: ChunkContext,
    *,
    rank: int,
    detail: RetrievalDetail,
    score_kind: str,
    index_version: str,
    explanation: dict[str, Any] | None = None,
) -> SearchHit:
    """Bare: with the whole text and no snippet yet. The citation comes from the first span, which covers the whole chunk."""
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
        citation=Citation(chunk.doc_path, chunk.spans[0], chunk.section_label, chunk.content_hash),
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
    )


def with_snippet(hit: SearchHit, snippets: SnippetMaker, terms: QueryTerms, *, full_text: bool) -> SearchHit:
    """A bare hit as it is shown."""
    snippet = snippets.of(hit.text, terms)
    return hit._replace(snippet=snippet.text, highlights=snippet.highlights, text=hit.text if full_text else snippet.text)


def at_most_per_document(hits: Iterable[SearchHit], most: int) -> list[SearchHit]:
    """The first few of each document, in order, ranked anew."""
    seen: dict[str, int] = {}
    kept: list[SearchHit] = []
    for hit in hits:
        seen[hit.doc_id] = seen.get(hit.doc_id, 0) + 1
        if seen[hit.doc_id] <= most:
            kept.append(hit)
    return kept
