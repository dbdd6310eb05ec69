"""Turns ranked passages into a page of hits: reads texts, folds duplicates, applies `per_doc`, makes snippets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from typing import Any, Protocol, TypeVar, cast

from kebab.analysis.orders import reads_like_orders
from kebab.core import deadline
from kebab.core.ports import ChunkContext
from kebab.core.search import (
    Duplicate,
    HitList,
    Match,
    Mode,
    QueryTerms,
    Ranking,
    RetrievalDetail,
    SearchHit,
    SearchQuery,
)
from kebab.search.duplicates import REACH, Passage, fold
from kebab.search.fusion import Fused, FusionPolicy
from kebab.search.snippets import SnippetMaker

FIRST_DEPTH = 100
"""How many passages are ranked at first. It does not depend on k, so a longer list begins like a shorter one."""
DEEPER = 4
"""The factor by which the depth grows when more passages must be ranked."""
DEEPEST = 10_000
"""The greatest depth: no more passages are ranked."""

_SCORE_KINDS = {"lexical": "bm25", "vector": "cosine"}
_SOME_COPIES = 5
"""How many additional passages are read for folding, so that most pages need only one read."""

T = TypeVar("T")
Contexts = Callable[[Sequence[str]], Mapping[str, ChunkContext]]
Read = tuple[Fused, ChunkContext]
"""A place in a ranked list, and the passage that was read for it."""


class Reader(Protocol):
    def contexts(self, chunk_ids: Sequence[str], /) -> Mapping[str, ChunkContext]: ...


class Listing(ABC):
    """Base class of the three retrievers: makes a page of hits. Subclasses only rank passages."""

    mode: Mode
    policy: FusionPolicy | None = None
    """How two lists are merged; None for a retriever with one list."""
    reader: Reader | None
    snippets: SnippetMaker | None
    """None if hits come from retrievers outside this package, with their own snippets."""
    ordered_by_store = False
    """Whether `candidates` are already in the requested order. If not, sorting by date uses only the first ranking."""

    @abstractmethod
    def index_version(self) -> str: ...
    @abstractmethod
    def candidates(self, query: SearchQuery, depth: int) -> Ranking[Fused]:
        """Ranks once: the best passages, at most `depth` of each list."""

    def contexts(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkContext]:
        return self.reader.contexts(chunk_ids) if self.reader and chunk_ids else {}

    def search(self, query: SearchQuery) -> HitList:
        # Twice as deep as the page needs, because copies are folded. A deeper ranking begins like this one.
        depth = 2 * (query.offset + query.k) + REACH if self.ordered_by_store else FIRST_DEPTH
        first = self.candidates(query, depth)
        if query.sort == "date" and not self.ordered_by_store:
            passages: Iterable[Read] = _newest_first(self._read(first.chunks, query), query)
        else:
            passages = self._read(self._deeper_and_deeper(query, first, depth), query)
        hits, more = self.page(passages, query, first.terms or QueryTerms())
        return HitList(
            hits,
            match=first.match,
            more=more,
            explanation=first.explanation,
            notices=first.notices,
            terms=first.terms,
            below_scores=first.below_scores,
        )

    def page(self, passages: Iterable[Read], query: SearchQuery, terms: QueryTerms) -> tuple[list[SearchHit], bool]:
        """The hits of the requested page, and whether further hits follow."""
        groups = list(islice(_standing(passages, query), query.offset + query.k + 1))
        page = groups[query.offset : query.offset + query.k]
        hits = [self._hit(*group, rank, query, terms) for rank, group in enumerate(page, start=query.offset + 1)]
        return hits, len(groups) > query.offset + query.k

    def _deeper_and_deeper(self, query: SearchQuery, ranking: Ranking[Fused], depth: int) -> Iterator[Fused]:
        """Yields new passages of ever deeper rankings. A deeper ranking never changes the passages already listed."""
        seen: set[str] = set()
        while True:
            new = [place for place in ranking.chunks if place.chunk_id not in seen]
            seen.update(place.chunk_id for place in new)
            yield from new
            if not ranking.more or depth >= DEEPEST:
                return
            depth *= DEEPER
            query = _pinned(query, ranking.match)
            ranking = self.candidates(query, depth)

    def _read(self, places: Iterable[Fused], query: SearchQuery) -> Iterator[Read]:
        """Yields each place with its passage, read in batches; passages that were removed meanwhile are left out."""
        at_once = query.offset + query.k + 1 + (REACH + _SOME_COPIES if query.duplicates == "fold" else 0)
        places = iter(places)
        while some := list(islice(places, at_once)):
            chunks = {place.chunk_id: place.hit.chunk for place in some if place.hit}
            chunks |= self.contexts([place.chunk_id for place in some if place.hit is None])
            yield from ((place, chunks[place.chunk_id]) for place in some if place.chunk_id in chunks)

    def _hit(self, read: Read, copies: Sequence[Read], rank: int, query: SearchQuery, terms: QueryTerms) -> SearchHit:
        place, chunk = read
        if self.mode != "hybrid":  # in a list of one search, the rank there is the rank of the hit
            lexical, vector = (side and side._replace(rank=rank) for side in (place.lexical, place.vector))
            place = place._replace(lexical=lexical, vector=vector)
        lexical, vector = place.lexical, place.vector
        detail = RetrievalDetail(
            method=self.mode,
            fusion_score=place.score,
            lexical_score=lexical.score if lexical else None,
            lexical_rank=lexical.rank if lexical else None,
            vector_score=vector.score if vector else None,
            vector_rank=vector.rank if vector else None,
            rrf_score=place.rrf_score,
            vector_floor=vector.floor if vector else None,
            weights=None if place.weights == (1.0, 1.0) else {"lexical": place.weights[0], "vector": place.weights[1]},
        )
        hit = SearchHit(
            chunk=chunk,
            rank=rank,
            score_kind=(query.fusion or self.policy.kind) if self.policy else _SCORE_KINDS[self.mode],
            retrieval=detail,
            index_version=self.index_version(),
            citation=chunk.citation,
            text=chunk.text,
            explanation=self._hit_explanation(place, chunk, query, terms) if query.explain else None,
            duplicates=tuple(
                Duplicate(copy.chunk_id, copy.doc_id, copy.doc_path, copy.source, copy.citation) for _, copy in copies
            ),
        )
        return hit if query.without_snippets else self._with_snippet(hit, place, query, terms)

    def _with_snippet(self, hit: SearchHit, place: Fused, query: SearchQuery, terms: QueryTerms) -> SearchHit:
        """The hit with its snippet. The whole passage decides whether it is flagged as suspicious."""
        if self.snippets is None:
            shown = cast("SearchHit", place.hit)
            return hit._replace(
                snippet=shown.snippet, highlights=shown.highlights, text=shown.text, suspicious=shown.suspicious
            )
        deadline.check()
        snippet = self.snippets.of(hit.chunk.text, terms)
        return hit._replace(
            snippet=snippet.text,
            highlights=snippet.highlights,
            text=hit.text if query.full_text else snippet.text,
            suspicious=reads_like_orders("\n\n".join((hit.title, *hit.heading_path, hit.chunk.text))),
        )

    def _hit_explanation(
        self, place: Fused, chunk: ChunkContext, query: SearchQuery, terms: QueryTerms
    ) -> dict[str, Any]:
        fusion = _fusion_explanation(place, self.policy, query)
        explanation: dict[str, Any] = {"lexical": None, "vector": None, "fusion": fusion}
        if lexical := place.lexical:
            explanation["lexical"] = {"rank": lexical.rank, "score": lexical.score}
            explanation["matched"] = self._matched(chunk, terms)
        if vector := place.vector:
            about = {"rank": vector.rank, "score": vector.score, "weak": vector.weak}
            explanation["vector"] = {**(vector.explanation or {}), **about}
        return explanation

    def _matched(self, chunk: ChunkContext, terms: QueryTerms) -> dict[str, list[str]]:
        """The terms of the query that occur in each part of the passage."""
        if self.snippets is None:
            return {}
        parts = {
            "title": chunk.title,
            "heading": " > ".join(chunk.heading_path),
            "text": chunk.text,
            "context": "\n".join(chunk.notes),
        }
        phrases = sorted(" ".join(phrase) for phrase in terms.phrases)
        matched = {}
        for name, text in parts.items():
            stems = " ".join(["", *self.snippets.tokenizer.stems(text), ""])
            matched[name] = [phrase for phrase in phrases if f" {phrase} " in stems]
            matched[name] += [term for term in terms.cjk if term in text]
        return matched


def _fusion_explanation(place: Fused, policy: FusionPolicy | None, query: SearchQuery) -> dict[str, Any]:
    if policy is None:
        return {"method": "none", "score": place.score}
    words, meaning = place.weights
    weights = {"lexical": words, "vector": meaning}
    explanation = {"method": query.fusion or policy.kind, "score": place.score, "weights": weights}
    if place.rrf_score is not None:
        explanation["rrf"] = place.rrf_score
        explanation["from_lexical"] = words / (policy.k_rrf + place.lexical.rank) if place.lexical else 0.0
        explanation["from_vector"] = meaning / (policy.k_rrf + place.vector.rank) if place.vector else 0.0
    return explanation


def _pinned(query: SearchQuery, match: str | None) -> SearchQuery:
    """The query with the match mode of the first ranking, so that deeper rankings continue the same list."""
    if query.match != "auto" or match not in ("all", "any"):
        return query
    return query._replace(match=cast("Match", match), keep_stop_words=False)


def _newest_first(passages: Iterable[Read], query: SearchQuery) -> list[Read]:
    """The passages sorted by date, the newest first; at most `per_doc` of each document."""
    if query.per_doc is not None:
        passages = _at_most_per_document(passages, query.per_doc, lambda read: read[1].doc_id)
    return sorted(passages, key=lambda read: read[1].date, reverse=True)


def _standing(passages: Iterable[Read], query: SearchQuery) -> Iterable[tuple[Read, Sequence[Read]]]:
    """The listed passages, each with the copies folded under it; at most `per_doc` of each document."""

    def text_of(read: Read) -> Passage | None:
        place, chunk = read
        if query.min_score is not None and place.score < query.min_score:
            return None  # in a list sorted by date, good copies could be folded under this bad passage
        return Passage(chunk.text, chunk.content_hash)

    standing: Iterable[tuple[Read, Sequence[Read]]] = ((read, ()) for read in passages)
    if query.duplicates == "fold":
        standing = fold(passages, text_of, most=inf if query.per_doc is not None else query.offset + query.k + 1)
    if query.per_doc is not None:
        standing = _at_most_per_document(standing, query.per_doc, lambda group: group[0][1].doc_id)
    return standing


def _at_most_per_document(items: Iterable[T], most: int, document_of: Callable[[T], str]) -> Iterator[T]:
    seen: dict[str, int] = {}
    for item in items:
        document = document_of(item)
        count = seen[document] = seen.get(document, 0) + 1
        if count <= most:
            yield item
