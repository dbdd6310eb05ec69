"""The vector retriever: the chunks whose meaning is closest to the query's, by cosine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kebab.analysis.query_syntax import parse
from kebab.core.ports import ChunkContext, ChunkReader, EmbeddingModels, LexicalIndex, SpaceQuery, VectorMatch, VectorStore
from kebab.core.query_tree import Bag, QueryTree, words_of
from kebab.core.search import HitList, Notice, RetrievalDetail, SearchHit, SearchQuery
from kebab.retrieval.hydration import at_most_per_document, make_hit, with_snippet
from kebab.retrieval.snippets import SnippetLimits, SnippetMaker

MAX_QUERY_CHARS = 8000
"""A longer query is embedded by its beginning; a page of text says what it is about well before."""
_LONG_QUERY = Notice("long_query", f"The query is very long: its first {MAX_QUERY_CHARS:,} characters were compared by meaning.")
_OTHER_SCRIPT = Notice("no_vectors_for_script", "No text here has vectors that a question in this script can be compared with.")


class _Found(NamedTuple):
    """A chunk, found in one of the spaces that were searched."""

    match: VectorMatch
    space: SpaceQuery
    place: int
    """In its own space, from 1."""

    @property
    def weak(self) -> bool:
        """In a weak space only text of the space's own script: what the words of the query cannot reach counts in full."""
        return self.space.weak and self.match.home


class VectorRetriever:
    """A vector store and the models that made its vectors, as a Retriever. The models are given, never chosen here."""

    def __init__(
        self,
        store: VectorStore,
        models: EmbeddingModels,
        chunks: ChunkReader,
        index_version: str,
        *,
        index: LexicalIndex,
        snippet_chars: int = 220,
        notices: Sequence[Notice] = (),
    ) -> None:
        """`index` cuts the query into the words that snippets mark; it is not searched. `notices`: what is wrong with the vectors."""
        self._store = store
        self._models = models
        self._chunks = chunks
        self._index_version = index_version
        self._index = index
        self._snippets = SnippetMaker(index.tokenizer, SnippetLimits(snippet_chars))
        self.notices = tuple(notices)

    def index_version(self) -> str:
        return self._index_version

    def search(self, query: SearchQuery) -> HitList:
        tree = parse(query.text)
        text = _meant(tree, query.text)
        if not text.strip():
            return HitList(notices=self.notices)
        wanted = query.offset + query.k
        depth = 4 * wanted if query.per_doc is not None else wanted
        spaces = [space for space in self._models.for_query(text) if self._store.holds(space.embedder)]
        if not spaces:
            return HitList(notices=(*self.notices, _OTHER_SCRIPT))
        found = self._found(spaces, text[:MAX_QUERY_CHARS], query, depth)
        contexts = self._chunks.contexts([item.match.chunk_id for item in found])
        hits = [self._hit(item, contexts[item.match.chunk_id], query) for item in found if item.match.chunk_id in contexts]
        if query.per_doc is not None:
            hits = at_most_per_document(hits, query.per_doc)
        if query.sort == "date":
            hits.sort(key=lambda hit: hit.date, reverse=True)
        ranked = [_ranked(hit, rank) for rank, hit in enumerate(hits, start=1)]
        page = ranked[query.offset : wanted]
        terms = self._index.terms(tree, drop_stop_words=True)
        if not query.bare:
            page = [with_snippet(hit, self._snippets, terms, full_text=query.full_text) for hit in page]
        return HitList(
            page,
            more=len(ranked) > wanted,
            explanation=self._explanation(spaces, found, query) if query.explain else None,
            notices=(*self.notices, _LONG_QUERY) if len(text) > MAX_QUERY_CHARS else self.notices,
            terms=terms,
            weak=frozenset(item.match.chunk_id for item in found if item.weak),
            doubtful=frozenset(item.match.chunk_id for item in found if item.match.similarity < item.space.floor),
        )

    def _found(self, spaces: Sequence[SpaceQuery], text: str, query: SearchQuery, depth: int) -> list[_Found]:
        """One list, whatever spaces were searched. Cosines of two spaces are not comparable, so several lists are merged by place."""
        lists = []
        for space in spaces:
            vector = space.embedder.embed([text], "query")[0]
            # Twice what is wanted: some of it may be gone by the time it is read.
            matches = self._store.search(
                space.embedder.fingerprint, vector, filters=query.filters, limit=2 * depth, homes_only=space.homes_only
            )
            lists.append([_Found(match, space, place) for place, match in enumerate(matches, start=1)])
        if len(lists) == 1:
            return lists[0][: depth + 1]
        merged: dict[str, _Found] = {}
        for item in sorted((item for found in lists for item in found), key=lambda item: (item.place, item.match.chunk_id)):
            merged.setdefault(item.match.chunk_id, item)
        return list(merged.values())[: depth + 1]

    def _hit(self, item: _Found, chunk: ChunkContext, query: SearchQuery) -> SearchHit:
        score = min(1.0, max(0.0, item.match.similarity))
        detail = RetrievalDetail(method="vector", fusion_score=score, vector_score=score)
        explanation = {
            "lexical": None,
            "vector": {
                "score": score,
                "cosine": item.match.similarity,
                "model": item.space.embedder.name,
                "rank_in_model": item.place,
                "weak": item.weak,
            },
            "fusion": {"method": "none", "score": score},
        }
        return make_hit(
            chunk,
            rank=0,
            detail=detail,
            score_kind="cosine",
            index_version=self._index_version,
            explanation=explanation if query.explain else None,
        )

    def _explanation(self, spaces: Sequence[SpaceQuery], found: list[_Found], query: SearchQuery) -> dict[str, Any]:
        searched = [
            {
                "model": space.embedder.fingerprint,
                "own_script_only": space.homes_only,
                "found": sum(item.space is space for item in found),
            }
            for space in spaces
        ]
        return {"vector": {"spaces": searched, "asked_for": query.k, "found": len(found)}}


def _ranked(hit: SearchHit, rank: int) -> SearchHit:
    explanation = hit.explanation
    if explanation is not None:
        explanation = {**explanation, "vector": {**explanation["vector"], "rank": rank}}
    return hit._replace(rank=rank, retrieval=hit.retrieval._replace(vector_rank=rank), explanation=explanation)


def _meant(tree: QueryTree, text: str) -> str:
    """What a query is about, for a model: as it was typed, or its words when it was typed with syntax."""
    return text if isinstance(tree, Bag) and '"' not in text and "*" not in text else " ".join(words_of(tree))
