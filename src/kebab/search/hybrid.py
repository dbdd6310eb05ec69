"""The hybrid retriever: lexical and vector search behind one door. Only this module knows how two lists become one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from kebab.config.settings import SearchSettings
from kebab.core.notices import Notice, Says
from kebab.core.ports import ChunkContext, Retriever
from kebab.core.search import (
    HitList,
    Mode,
    QueryTerms,
    Ranked,
    Ranking,
    RetrievalDetail,
    SearchHit,
    SearchQuery,
)
from kebab.search.fusion import Fused, FusionPolicy, best_beyond, fuse
from kebab.search.lexical import pinned
from kebab.search.listing import (
    DEEPER,
    DEEPEST,
    FIRST_DEPTH,
    HitMaker,
    Listed,
    new_in_each,
    newest_first,
    page_of,
    read_passages,
)
from kebab.search.snippets import SnippetMaker

_NEAREST = 3
"""How many are shown of what is too far away to mean anything, when there is nothing else."""


def policy_of(settings: SearchSettings) -> FusionPolicy:
    return FusionPolicy(
        kind=settings.hybrid_fusion,  # type: ignore[arg-type]  # the loader checked it
        k_rrf=settings.rrf_k,
        vector_weight=settings.vector_weight,
        vector_weight_weak=settings.vector_weight_weak,
        vector_weight_other=settings.vector_weight_other,
        lexical_weight_weak=settings.lexical_weight_weak,
        lexical_weight_all=settings.lexical_weight_all,
        convex_weight=settings.convex_weight,
        convex_weight_weak=settings.convex_weight_weak,
    )


@runtime_checkable
class _RankingRetriever(Protocol):
    """A retriever that can list passages before it reads them, as those of this package do."""

    snippets: SnippetMaker

    def rank(self, query: SearchQuery, depth: int) -> Ranking: ...
    def contexts(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkContext]: ...


class _Look:
    """Both lists down to one depth, and what they give together."""

    def __init__(self, lexical: Ranking, vector: Ranking, policy: FusionPolicy, query: SearchQuery, depth: int) -> None:
        self.lexical = lexical
        self.vector = vector
        all_fused = fuse(policy, lexical.chunks, vector.chunks)
        self.fused = _worth_showing(all_fused, query)
        self.far_away = not (self.fused or query.insists or query.type_ahead)
        if self.far_away:  # the right answer may be among them: how close is close enough differs by corpus
            self.fused = all_fused[:_NEAREST]
        self.good = [item for item in self.fused if _is_good_enough(item, query)]
        vector_goes_on = vector.more and bool(vector.chunks) and not vector.chunks[-1].below_floor
        self.goes_on = (
            not self.far_away
            and (lexical.more or (vector_goes_on and not query.insists))
            and _is_good_enough(best_beyond(policy, depth, lexical.chunks, vector.chunks), query)
        )


class HybridRetriever:
    """Answers in the mode of the query; in hybrid mode it asks both retrievers and fuses their lists."""

    def __init__(self, config: SearchSettings | FusionPolicy, lexical: Retriever, vector: Retriever) -> None:
        self._policy = config if isinstance(config, FusionPolicy) else policy_of(config)
        self._lexical = lexical
        self._vector = vector
        ranking = [side for side in (lexical, vector) if isinstance(side, _RankingRetriever)]
        self._reader = ranking[0] if ranking else None
        """Reads and cuts the passages of the final list; without it both sides bring them."""

    def index_version(self, mode: Mode = "hybrid") -> str:
        """Of what answers in this mode."""
        if mode == "hybrid":
            return f"hybrid:{self._lexical.index_version()}+{self._vector.index_version()}"
        return (self._lexical if mode == "lexical" else self._vector).index_version()

    def search(self, query: SearchQuery) -> HitList:
        if query.mode != "hybrid":
            return (self._lexical if query.mode == "lexical" else self._vector).search(query)
        policy = self._policy._replace(kind=query.fusion or self._policy.kind)
        known: dict[str, SearchHit] = {}
        first = self._look(query, policy, FIRST_DEPTH, known)

        def contexts(chunk_ids: Sequence[str]) -> Mapping[str, ChunkContext]:
            unknown = [chunk_id for chunk_id in chunk_ids if chunk_id not in known]
            read = self._reader.contexts(unknown) if self._reader and unknown else {}
            return {**read, **{chunk_id: known[chunk_id].chunk for chunk_id in chunk_ids if chunk_id in known}}

        if query.sort == "date":
            page = page_of(newest_first(read_passages(first.good, contexts, query), query), query)
        else:
            places = new_in_each(self._looks(query, policy, first, known))
            page = page_of(read_passages(places, contexts, query), query)
        terms = first.lexical.terms or first.vector.terms or QueryTerms()
        snippets = self._reader.snippets if self._reader else None
        make = HitMaker(snippets, policy.kind, self.index_version(), terms, query, known)
        return HitList(
            [_hit(make, listed, rank, policy) for rank, listed in enumerate(page.listed, start=query.offset + 1)],
            match=first.lexical.match,
            more=page.more,
            explanation=_explanation(policy, first, query) if query.explain else None,
            notices=_notices(query, first),
            terms=first.lexical.terms,
            below_scores=len(first.fused) - len(first.good),
        )

    def _looks(
        self, query: SearchQuery, policy: FusionPolicy, look: _Look, known: dict[str, SearchHit]
    ) -> Iterator[Sequence[Fused]]:
        depth = FIRST_DEPTH
        query = query._replace(explain=False)
        yield look.good
        while look.goes_on and depth < DEEPEST:
            depth *= DEEPER
            query = pinned(query, look.lexical.match)
            look = self._look(query, policy, depth, known)
            yield look.good

    def _look(self, query: SearchQuery, policy: FusionPolicy, depth: int, known: dict[str, SearchHit]) -> _Look:
        side = query._replace(k=depth, offset=0, sort="relevance", per_doc=None, duplicates="show")

        def ranking(retriever: Retriever, mode: Mode) -> Ranking:
            if isinstance(retriever, _RankingRetriever):
                return retriever.rank(side, depth)
            hits = retriever.search(side._replace(mode=mode, without_snippets=self._reader is not None))
            for hit in hits:
                known.setdefault(hit.chunk_id, hit)
            places = [
                Ranked(hit.chunk_id, rank, hit.score, floor=hit.retrieval.vector_floor)
                for rank, hit in enumerate(hits, start=1)
            ]
            return Ranking(places, hits.more, hits.match, hits.notices, hits.terms, hits.explanation)

        lexical, vector = ranking(self._lexical, "lexical"), ranking(self._vector, "vector")
        return _Look(lexical, vector, policy, query, depth)


def _hit(make: HitMaker, listed: Listed, rank: int, policy: FusionPolicy) -> SearchHit:
    item: Fused = listed.place
    lexical, vector = item.lexical, item.vector
    detail = RetrievalDetail(
        method="hybrid",
        fusion_score=item.score,
        lexical_score=lexical.score if lexical else None,
        lexical_rank=lexical.rank if lexical else None,
        vector_score=vector.score if vector else None,
        vector_rank=vector.rank if vector else None,
        rrf_score=item.rrf_score,
        vector_floor=vector.floor if vector else None,
        weights=None if item.weights == (1.0, 1.0) else {"lexical": item.weights[0], "vector": item.weights[1]},
    )
    return make.hit(listed, rank, detail, _hit_explanation(make, listed, policy) if make.query.explain else None)


def _worth_showing(fused: list[Fused], query: SearchQuery) -> list[Fused]:
    """Without what is only close, and not close enough to mean anything, or not asked for: whoever insists on words
    gets passages that have them, and by date a passage with the words must not come after everything that is vaguely
    alike and younger.
    """
    with_words = [item for item in fused if item.lexical is not None]
    if query.insists or (query.sort == "date" and with_words):
        return with_words
    return [item for item in fused if item.lexical is not None or not (item.vector and item.vector.below_floor)]


def _is_good_enough(item: Fused, query: SearchQuery) -> bool:
    """A threshold is about RRF scores; where there are none it removes nothing."""
    return (query.min_score is None or item.score >= query.min_score) and (
        query.threshold is None or item.rrf_score is None or item.rrf_score >= query.threshold
    )


def _notices(query: SearchQuery, look: _Look) -> tuple[Notice, ...]:
    """One list's excuse for having found nothing matters if the other has found nothing either; each is said once."""
    said = {
        notice.code: notice
        for notice in (*look.lexical.notices, *look.vector.notices)
        if look.far_away or not look.fused or notice.code != Says.OTHER_SCRIPTS.code
    }
    about_words: tuple[Notice, ...] = ()
    if look.far_away and look.fused:
        about_words = (Says.FAR_AWAY.notice(),)
    elif not look.lexical.chunks and query.insists:
        about_words = (Says.INSISTED.notice(),) if not all(place.below_floor for place in look.vector.chunks) else ()
    elif not look.lexical.chunks and look.fused:
        about_words = (Says.SIMILAR_ONLY.notice(),)
    return (*said.values(), *about_words)


def _hit_explanation(make: HitMaker, listed: Listed, policy: FusionPolicy) -> dict[str, Any]:
    item: Fused = listed.place
    words, meaning = item.weights
    fusion: dict[str, Any] = {
        "method": policy.kind,
        "score": item.score,
        "weights": {"lexical": words, "vector": meaning},
    }
    if item.rrf_score is not None:
        fusion["rrf"] = item.rrf_score
        fusion["from_lexical"] = words / (policy.k_rrf + item.lexical.rank) if item.lexical else 0.0
        fusion["from_vector"] = meaning / (policy.k_rrf + item.vector.rank) if item.vector else 0.0
    explanation: dict[str, Any] = {"lexical": None, "vector": None, "fusion": fusion}
    if item.lexical:
        explanation["lexical"] = {"rank": item.lexical.rank, "score": item.lexical.score}
        explanation["matched"] = make.matched(listed.chunk)
    if item.vector:
        of_vector = item.vector.explanation or {}
        place = {"rank": item.vector.rank, "score": item.vector.score, "weak": item.vector.weak}
        explanation["vector"] = {**of_vector, **place}
    return explanation


def _explanation(policy: FusionPolicy, look: _Look, query: SearchQuery) -> dict[str, Any]:
    below = sum(query.min_score is not None and item.score < query.min_score for item in look.fused)
    return {
        "removed_by_min_score": below,
        "removed_by_threshold": len(look.fused) - len(look.good) - below,
        **(look.lexical.explanation or {}),
        **(look.vector.explanation or {}),
        "fusion": {
            **policy._asdict(),
            "depth": FIRST_DEPTH,
            "both": sum(item.lexical is not None and item.vector is not None for item in look.fused),
            "lexical_only": sum(item.vector is None for item in look.fused),
            "vector_only": sum(item.lexical is None for item in look.fused),
            "too_far": sum(place.below_floor for place in look.vector.chunks),
        },
    }
