"""The hybrid retriever: lexical and vector search behind one door. Only this module knows how their hits become one list."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

from kebab.config.settings import SearchSettings
from kebab.core.ports import BegunRetriever
from kebab.core.search import FAR_AWAY, SIMILAR_ONLY, HitList, Match, Mode, Notice, QueryTerms, RetrievalDetail, SearchHit, SearchQuery
from kebab.retrieval.depth import DEEPEST, depth_of
from kebab.retrieval.fusion import Fused, FusionPolicy, Ranked, best_beyond, fuse
from kebab.retrieval.hydration import RETRIEVAL_METHODS, at_most_per_document, fold_duplicates, shortened, with_snippet, without_repetition
from kebab.retrieval.snippets import SnippetMaker

_DEEPER = 4
"""How many times as deep the next look is."""
_NEAREST = 3
"""How many are shown of what is too far away to mean anything, when there is nothing else."""
_FAR_AWAY = Notice(FAR_AWAY, "No passage has these words, and none is close in meaning; these are the nearest.")
_NO_WORDS = Notice(SIMILAR_ONLY, "No passage has these words; these are the closest in meaning.")

_INSISTED = Notice(
    "insisted", "No passage has what was insisted on. Without quotes, operators and --match all, what is close in meaning is found too."
)


def policy_of(settings: SearchSettings, query: SearchQuery) -> FusionPolicy:
    return FusionPolicy(
        kind=query.fusion or "rrf",
        k_rrf=settings.rrf_k,
        vector_weight=settings.vector_weight,
        vector_weight_weak=settings.vector_weight_weak,
        vector_weight_other=settings.vector_weight_other,
        lexical_weight_weak=settings.lexical_weight_weak,
        lexical_weight_all=settings.lexical_weight_all,
        convex_weight=settings.convex_weight,
        convex_weight_weak=settings.convex_weight_weak,
    )


class _Found(NamedTuple):
    """A passage of the fused list, and what either side has told of it. Most are never shown, so what those need that are is made then."""

    fused: Fused
    by_meaning: SearchHit | None
    by_words: SearchHit | None

    def hit(self, query: SearchQuery) -> SearchHit:
        """With its score in this list as far as that decides anything."""
        hit = self.by_meaning or self.by_words
        assert hit is not None  # somebody has found it
        return hit if query.min_score is None else hit._replace(score=self.fused.score)

    @property
    def explained(self) -> dict[str, Any]:
        sides = (side.explanation for side in (self.by_meaning, self.by_words) if side is not None)
        return {key: value for explanation in sides for key, value in (explanation or {}).items() if value is not None}


class HybridRetriever:
    """Dispatches by the mode of the query; in hybrid mode it asks both sides and fuses."""

    def __init__(
        self,
        config: SearchSettings,
        lexical: BegunRetriever,
        vector: BegunRetriever,
        *,
        snippets: SnippetMaker | None = None,
    ) -> None:
        """`snippets`: makes those of the final hits; without it both sides make their own for all of theirs."""
        self._config = config
        self._lexical = lexical
        self._vector = vector
        self._snippets = snippets
        self.notices: tuple[Notice, ...] = getattr(vector, "notices", ())
        """What is wrong with the vectors, known from the start."""

    def index_version(self, mode: Mode = "hybrid") -> str:
        """Of what answers in this mode."""
        if mode == "hybrid":
            return f"hybrid:{self._lexical.index_version()}+{self._vector.index_version()}"
        return (self._lexical if mode == "lexical" else self._vector).index_version()

    def search(self, query: SearchQuery) -> HitList:
        if query.mode == "lexical":
            return self._lexical.search(query)
        if query.mode == "vector":
            return self._vector.search(query)
        query = query._replace(fusion=query.fusion or self._config.hybrid_fusion)  # type: ignore[arg-type]  # the loader checked it
        policy = policy_of(self._config, query)
        wanted = query.offset + query.k
        depth = looked = query.depth or depth_of(query)
        looks: list[list[SearchHit]] = []
        found: dict[str, _Found] = {}
        while True:
            lexical, vector = self._both_sides(query, looked)
            ranked = _ranks(lexical, "lexical"), _ranks(vector, "vector")
            all_fused = fuse(policy, *ranked)
            fused = _worth_showing(all_fused, vector, query)
            far_away = not (fused or looks or query.insists or query.type_ahead)
            if far_away:  # the right answer may be among them: how close is close enough differs from corpus to corpus
                fused = all_fused[:_NEAREST]
            good = [item for item in fused if _is_good_enough(item, query)]
            # What a deeper look finds follows what was found before: a page that was shown stays what it was.
            by_meaning, by_words = ({hit.chunk_id: hit for hit in side} for side in (vector, lexical))
            new = [_Found(item, by_meaning.get(item.chunk_id), by_words.get(item.chunk_id)) for item in good if item.chunk_id not in found]
            looks.append([one.hit(query) for one in new])
            found.update((one.fused.chunk_id, one) for one in new)
            listed = self._listed(looks, query)
            goes_on = (
                query.sort == "relevance"
                and not far_away
                and looked < DEEPEST
                and (lexical.more or (_goes_on(vector) and not query.insists))
                and _is_good_enough(best_beyond(policy, looked, *ranked), query)
            )
            # A first page is never short; a later one may be, and so may be any where documents or passages repeat themselves.
            is_long_enough = query.depth is None and query.per_doc is None and len(listed) == sum(map(len, looks))
            if len(listed) > wanted or not goes_on or is_long_enough:
                break
            looked *= _DEEPER
            query = _pinned(query, lexical)
        page = listed[query.offset : wanted]
        return HitList(
            [
                self._shown(self._hit(hit, found[hit.chunk_id], policy, query), rank, lexical, vector, query)
                for rank, hit in enumerate(page, start=query.offset + 1)
            ],
            match=lexical.match,
            more=len(listed) > wanted or goes_on,
            explanation=_explanation(policy, looked, lexical, vector, fused, query) if query.explain else None,
            notices=_notices(query, fused, lexical, vector, far_away=far_away),
            terms=lexical.terms,
            depth=depth,
        )

    def _both_sides(self, query: SearchQuery, depth: int) -> tuple[HitList, HitList]:
        part = query._replace(
            k=depth, offset=0, sort="relevance", per_doc=None, duplicates="show", bare=query.bare or self._snippets is not None
        )
        by_words = part._replace(mode="lexical", tell_all_words=True)
        # Meaning first, which takes longer: what it has found is read while words are still looked for, where that is done elsewhere.
        meaning, words = self._vector.begin(part._replace(mode="vector")), self._lexical.begin(by_words)
        vector = meaning()
        return words(), vector

    def _listed(self, looks: list[list[SearchHit]], query: SearchQuery) -> list[SearchHit]:
        """Copies are looked for within one look, so that a page that was shown stays what it was; what is equal to something of an
        earlier look is not shown again.
        """
        whole_texts = self._snippets is not None or query.full_text or query.bare
        if query.sort == "date" or query.duplicates == "show":  # by date there is one look only
            return shortened([hit for look in looks for hit in look], query, complete=True, whole_texts=whole_texts)
        hits = without_repetition(fold_duplicates(look, query, complete=True, whole_texts=whole_texts) for look in looks)
        return hits if query.per_doc is None else at_most_per_document(hits, query.per_doc)

    def _hit(self, hit: SearchHit, found: _Found, policy: FusionPolicy, query: SearchQuery) -> SearchHit:
        item = found.fused
        lexical, vector = item.lexical, item.vector
        detail = RetrievalDetail(
            method="hybrid",
            fusion_score=item.score,
            lexical_score=lexical.score if lexical else None,
            lexical_rank=lexical.rank if lexical else None,
            vector_score=vector.score if vector else None,
            vector_rank=vector.rank if vector else None,
            rrf_score=item.rrf_score,
            vector_floor=hit.retrieval.vector_floor,
            weights=None if item.weights == (1.0, 1.0) else {"lexical": item.weights[0], "vector": item.weights[1]},
        )
        return hit._replace(
            score=item.score,
            score_kind=policy.kind,
            retrieval=detail,
            retrieval_method=RETRIEVAL_METHODS[policy.kind],
            index_version=self.index_version(),
            explanation=_hit_explanation(found.explained, item, policy) if query.explain else None,
        )

    def _shown(self, hit: SearchHit, rank: int, lexical: HitList, vector: HitList, query: SearchQuery) -> SearchHit:
        if self._snippets is not None and not query.bare:
            hit = with_snippet(hit, self._snippets, lexical.terms or vector.terms or QueryTerms(), full_text=query.full_text)
        return hit._replace(rank=rank)


def _notices(query: SearchQuery, fused: list[Fused], lexical: HitList, vector: HitList, *, far_away: bool) -> tuple[Notice, ...]:
    """A side's excuse for having found nothing matters when the other one has found nothing either; what both say is said once."""
    said: dict[str, Notice] = {}
    for notice in (*lexical.notices, *vector.notices):
        if far_away or not (fused and notice.code == "other_scripts"):
            said.setdefault(notice.code, notice)
    about_words = (_FAR_AWAY,) if far_away and fused else _about_words(query, fused, lexical, vector)
    return (*said.values(), *about_words)


def _about_words(query: SearchQuery, fused: list[Fused], lexical: HitList, vector: HitList) -> tuple[Notice, ...]:
    if lexical:
        return ()
    if query.insists:
        return (_INSISTED,) if any(hit.chunk_id not in vector.doubtful for hit in vector) else ()
    return (_NO_WORDS,) if fused else ()


def _worth_showing(fused: list[Fused], vector: HitList, query: SearchQuery) -> list[Fused]:
    """Without what is only close, and not close enough to mean anything, or not asked for: whoever insists on words gets passages that
    have them, and by date a passage with the words must not come after everything that is vaguely alike and younger.
    """
    with_words = [item for item in fused if item.lexical is not None]
    if query.insists or (query.sort == "date" and with_words):
        return with_words
    return [item for item in fused if item.lexical is not None or item.chunk_id not in vector.doubtful]


def _is_good_enough(item: Fused, query: SearchQuery) -> bool:
    """A threshold is about RRF scores; where there are none it removes nothing."""
    return (query.min_score is None or item.score >= query.min_score) and (
        query.threshold is None or item.rrf_score is None or item.rrf_score >= query.threshold
    )


def _goes_on(vector: HitList) -> bool:
    """Whether a deeper look could find anything near enough to mean something."""
    return vector.more and bool(vector) and vector[-1].chunk_id not in vector.doubtful


def _pinned(query: SearchQuery, lexical: HitList) -> SearchQuery:
    """How the words matched is decided by the first look: deeper ones go on with the same list."""
    if query.match != "auto" or lexical.match not in ("all", "any"):
        return query
    return query._replace(match=cast("Match", lexical.match), keep_stop_words=False)


def _ranks(hits: HitList, side: str) -> list[Ranked]:
    ranked = []
    for place, hit in enumerate(hits, start=1):
        score = hit.retrieval.lexical_score if side == "lexical" else hit.retrieval.vector_score
        known = hit.chunk_id in hits.weak, hit.chunk_id in hits.all_words
        ranked.append(Ranked(hit.chunk_id, place, hit.score if score is None else score, *known))
    return ranked


def _hit_explanation(parts: dict[str, Any], item: Fused, policy: FusionPolicy) -> dict[str, Any]:
    words, meaning = item.weights
    fusion: dict[str, Any] = {"method": policy.kind, "score": item.score, "weights": {"lexical": words, "vector": meaning}}
    if item.rrf_score is not None:
        fusion["rrf"] = item.rrf_score
        fusion["from_lexical"] = words / (policy.k_rrf + item.lexical.rank) if item.lexical else 0.0
        fusion["from_vector"] = meaning / (policy.k_rrf + item.vector.rank) if item.vector else 0.0
    return {
        **parts,
        "lexical": {"rank": item.lexical.rank, "score": item.lexical.score} if item.lexical else None,
        "vector": {**(parts.get("vector") or {}), "rank": item.vector.rank, "score": item.vector.score, "weak": item.vector.weak}
        if item.vector
        else None,
        "fusion": fusion,
    }


def _explanation(
    policy: FusionPolicy, depth: int, lexical: HitList, vector: HitList, fused: list[Fused], query: SearchQuery
) -> dict[str, Any]:
    below = sum(query.min_score is not None and item.score < query.min_score for item in fused)
    return {
        "removed_by_min_score": below,
        "removed_by_threshold": sum(not _is_good_enough(item, query) for item in fused) - below,
        **(lexical.explanation or {}),
        **(vector.explanation or {}),
        "fusion": {
            **policy._asdict(),
            "depth": depth,
            "both": sum(item.lexical is not None and item.vector is not None for item in fused),
            "lexical_only": sum(item.vector is None for item in fused),
            "vector_only": sum(item.lexical is None for item in fused),
            "too_far": len(vector.doubtful),
        },
    }
