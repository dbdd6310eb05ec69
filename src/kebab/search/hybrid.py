"""The hybrid retriever: merges the results of lexical and vector search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from kebab.config.settings import SearchSettings
from kebab.core.notices import Notice, Says
from kebab.core.ports import ChunkContext, ChunkText, Retriever
from kebab.core.search import HitList, Mode, Ranked, Ranking, SearchQuery
from kebab.search.fusion import Fused, FusionPolicy, best_beyond, fuse
from kebab.search.listing import FIRST_DEPTH, Listing
from kebab.search.snippets import SnippetMaker

_NEAREST = 3
"""How many passages below the similarity floor are shown when nothing else is found."""


def policy_of(settings: SearchSettings) -> FusionPolicy:
    return FusionPolicy(
        kind=settings.hybrid_fusion,  # type: ignore[arg-type]  # the loader checked it
        k_rrf=settings.rrf_k,
        vector_weight=settings.vector_weight,
        convex_weight=settings.convex_weight,
    )


@runtime_checkable
class _RankingRetriever(Protocol):
    """A retriever that can rank passages without reading them, as those of this package can."""

    snippets: SnippetMaker

    def rank(self, query: SearchQuery, depth: int) -> Ranking[Ranked]: ...
    def contexts(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkContext]: ...
    def texts(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkText]: ...


class HybridRetriever(Listing):
    """Searches in the mode of the query; in hybrid mode it asks both retrievers and merges their lists."""

    mode = "hybrid"

    def __init__(self, config: SearchSettings | FusionPolicy, lexical: Retriever, vector: Retriever) -> None:
        self.policy: FusionPolicy = config if isinstance(config, FusionPolicy) else policy_of(config)
        self._lexical = lexical
        self._vector = vector
        ranking = [side for side in (lexical, vector) if isinstance(side, _RankingRetriever)]
        self.reader = ranking[0] if ranking else None
        self.snippets = self.reader.snippets if self.reader else None

    def index_version(self, mode: Mode = "hybrid") -> str:
        """The index version of the retriever that searches in this mode."""
        if mode == "hybrid":
            return f"hybrid:{self._lexical.index_version()}+{self._vector.index_version()}"
        return (self._lexical if mode == "lexical" else self._vector).index_version()

    def search(self, query: SearchQuery) -> HitList:
        if query.mode == "hybrid":
            return super().search(query)
        return (self._lexical if query.mode == "lexical" else self._vector).search(query)

    def candidates(self, query: SearchQuery, depth: int) -> Ranking[Fused]:
        """Ranks with both retrievers to this depth, merges the lists, and removes passages with too low scores."""
        policy = self.policy._replace(kind=query.fusion or self.policy.kind)
        lexical = self._side(self._lexical, "lexical", query, depth)
        vector = self._side(self._vector, "vector", query, depth)
        all_fused = fuse(policy, lexical, vector)
        fused = _worth_showing(all_fused, query)
        far_away = not (fused or query.insists or query.type_ahead)
        if far_away:  # the right answer may be among them, because the floor does not suit every corpus
            fused = all_fused[:_NEAREST]
        good = [place for place in fused if _is_good_enough(place, query)]
        shown = {place.chunk_id for place in fused}
        without_words = [place for place in all_fused if place.chunk_id not in shown]
        vector_goes_on = vector.more and bool(vector.chunks) and not vector.chunks[-1].below_floor
        more = (
            not far_away
            and (lexical.more or (vector_goes_on and not query.insists))
            and _is_good_enough(best_beyond(policy, depth, lexical, vector, without_words), query)
        )
        return Ranking(
            good,
            more,
            lexical.match,
            _notices(query, lexical, vector, fused, far_away),
            lexical.terms or vector.terms,
            _explanation(policy, lexical, vector, fused, query) if query.explain else None,
            below_scores=len(fused) - len(good),
        )

    def _side(self, retriever: Retriever, mode: Mode, query: SearchQuery, depth: int) -> Ranking[Ranked]:
        """The ranking of one retriever. Only the first ranking of a search is explained."""
        side = query._replace(
            k=depth,
            offset=0,
            sort="relevance",
            per_doc=None,
            duplicates="show",
            explain=query.explain and depth == FIRST_DEPTH,
        )
        if isinstance(retriever, _RankingRetriever):
            return retriever.rank(side, depth)
        hits = retriever.search(side._replace(mode=mode, without_snippets=self.reader is not None))
        places = [
            Ranked(
                hit.chunk_id,
                rank,
                hit.score,
                hit.exactness,
                floor=hit.retrieval.vector_floor,
                doc_type=hit.doc_type,
                hit=hit,
            )
            for rank, hit in enumerate(hits, start=1)
        ]
        return Ranking(places, hits.more, hits.match, hits.notices, hits.terms, hits.explanation)


def _worth_showing(fused: list[Fused], query: SearchQuery) -> list[Fused]:
    """Removes passages that lack the words and are too far away in meaning. If the query insists on its words, or sorts
    by date and words were found, keeps only passages with the words: newer, vaguely similar ones would come first.
    """
    with_words = [item for item in fused if item.lexical is not None]
    if query.insists or (query.sort == "date" and with_words):
        return with_words
    return [item for item in fused if item.lexical is not None or not (item.vector and item.vector.below_floor)]


def _is_good_enough(item: Fused, query: SearchQuery) -> bool:
    """Whether the scores reach the query's minimum. Without RRF scores, the threshold removes nothing."""
    return (query.min_score is None or item.score >= query.min_score) and (
        query.threshold is None or item.rrf_score is None or item.rrf_score >= query.threshold
    )


def _notices(
    query: SearchQuery, lexical: Ranking[Ranked], vector: Ranking[Ranked], fused: Sequence[Fused], far_away: bool
) -> tuple[Notice, ...]:
    """The notices of both searches, each once. The notice about other scripts is dropped if there are good hits."""
    said = {
        notice.code: notice
        for notice in (*lexical.notices, *vector.notices)
        if far_away or not fused or notice.code != Says.OTHER_SCRIPTS.code
    }
    about_words: tuple[Notice, ...] = ()
    if far_away and fused:
        about_words = (Says.FAR_AWAY.notice(),)
    elif not lexical.chunks and query.insists:
        about_words = (Says.INSISTED.notice(),) if not all(place.below_floor for place in vector.chunks) else ()
    elif not lexical.chunks and fused:
        about_words = (Says.SIMILAR_ONLY.notice(),)
    return (*said.values(), *about_words)


def _explanation(
    policy: FusionPolicy,
    lexical: Ranking[Ranked],
    vector: Ranking[Ranked],
    fused: Sequence[Fused],
    query: SearchQuery,
) -> dict[str, Any]:
    below = sum(query.min_score is not None and place.score < query.min_score for place in fused)
    return {
        "removed_by_min_score": below,
        "removed_by_threshold": sum(not _is_good_enough(place, query) for place in fused) - below,
        **(lexical.explanation or {}),
        **(vector.explanation or {}),
        "fusion": {
            **policy._asdict(),
            "depth": FIRST_DEPTH,
            "both": sum(place.lexical is not None and place.vector is not None for place in fused),
            "lexical_only": sum(place.vector is None for place in fused),
            "vector_only": sum(place.lexical is None for place in fused),
            "too_far": sum(place.below_floor for place in vector.chunks),
        },
    }
