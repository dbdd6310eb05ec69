"""A stored chunk and its ranks → SearchHit. The one place where hits are made, whatever found them."""

from __future__ import annotations

from typing import Any

from kebab.core.citations import Citation
from kebab.core.ports import ChunkContext
from kebab.core.search import RetrievalDetail, SearchHit
from kebab.retrieval.snippets import Snippet

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
    snippet: Snippet,
    full_text: bool,
    index_version: str,
    explanation: dict[str, Any] | None = None,
) -> SearchHit:
    """The citation comes from the first span, which covers the whole chunk."""
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
        snippet=snippet.text,
        highlights=snippet.highlights,
        text=chunk.text if full_text else snippet.text,
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
        explanation=explanation,
    )
