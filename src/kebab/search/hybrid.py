"""The hybrid retriever: lexical and vector search behind one door. Only this module knows how their hits become one
list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kebab.config.settings import SearchSettings
from kebab.core.ports import BegunRetriever
from kebab.core.search import (
    FAR_AWAY,
    SIMILAR_ONLY,
    HitList,
    Match,
    Mode,
    Notice,
    QueryTerms,
    Ranked,
    Ranking,
    RetrievalDetail,
    SearchHit,
    SearchQuery,
)
from kebab.search.depth import DEEPEST, depth_of
from kebab.search.duplicates import REACH
from kebab.search.fusion import Fused, FusionPolicy, best_beyond, fuse
from kebab.search.hits import (
    RETRIEVAL_METHODS,
    at_most_per_document,
    fold_duplicates,
    make_hit,
    shortened,
    with_snippet,
    without_repetition,
)
from kebab.search.snippets import SnippetMaker

if TYPE_CHECKING:
    from kebab.core.ports import RankingRetriever
    from kebab.core.store_ports import ChunkReader

_DEEPER = 4
"""How many times as deep the next look is."""
_SOME_COPIES = 2
"""Room for a few passages that are folded, so that what is shown is read in one go."""
_NEAREST = 3
"""How many are shown of what is too far away to mean anything, when there is nothing else."""
_FAR_AWAY = Notice(FAR_AWAY, "No passage has these words, and none is close in meaning; these are the nearest.")
_NO_WORDS = Notice(SIMILAR_ONLY, "No passage has these words; these are the closest in meaning.")

_INSISTED = Notice(
    "insisted",
    "No passage has what was insisted on. Without quotes, operators and --match all, what is close in meaning is found too.",
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


class _Side(NamedTuple):
    ranking: Ranking
    hits: Mapping[str, SearchHit]
    """By their chunks, as far as passages were read."""


class _Found(NamedTuple):
    """A passage of the fused list, and what was told of it by the sides that have read it."""

    fused: Fused
    by_meaning: SearchHit | None
    by_words: SearchHit | None

    @property
    def hit(self) -> SearchHit | None:
        return self.by_meaning or self.by_words

    @property
    def explained(self) -> dict[str, Any]:
        sides = (side.explanation for side in (self.by_meaning, self.by_words) if side is not None)
        return {key: value for explanation in sides for key, value in (explanation or {}).items() if value is not None}


class _Look:
    """What one look has found and none before it, as hits with their scores in this list. Of most of it nobody wants
    more than its place: what no side has read is read when it is wanted, some at a time; what is gone by then is left
    out.
    """

    def __init__(
        self, found: Sequence[_Found], read: Callable[[Sequence[Fused]], Mapping[str, SearchHit]], *, at_once: int
    ) -> None:
        self._found = found
        self._read = read
        self._at_once = at_once
        self._hits: list[SearchHit | None] = []

    def __len__(self) -> int:
        """As far as is known."""
        return len(self._found) - self._hits.count(None)

    def __iter__(self) -> Iterator[SearchHit]:
        for place in range(len(self._found)):
            if place == len(self._hits):
                self._read_some()
            hit = self._hits[place]
            if hit is not None:
                yield hit

    def _read_some(self) -> None:
        some = self._found[len(self._hits) : len(self._hits) + self._at_once]
        unread = [one.fused for one in some if one.hit is None]
        read = self._read(unread) if unread else {}
        for one in some:
            hit = one.hit or read.get(one.fused.chunk_id)
            self._hits.append(None if hit is None else hit._replace(score=one.fused.score))


class HybridRetriever:
    """Dispatches by the mode of the query; in hybrid mode it asks both sides and fuses."""

    def __init__(
        self,
        config: SearchSettings,
        lexical: BegunRetriever,
        vector: BegunRetriever,
        *,
        snippets: SnippetMaker | None = None,
        chunks: ChunkReader | None = None,
    ) -> None:
        """`snippets`: makes those of the final hits; without it both sides make their own for all of theirs. `chunks`:
        reads the passages of the hits that are kept; with it both sides must be able to rank without reading, as a
        `RankingRetriever` is.
        """
        self._config = config
        self._lexical = lexical
        self._vector = vector
        self._snippets = snippets
        self._chunks = chunks
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
        looks: list[_Look] = []
        found: dict[str, _Found] = {}
        read = partial(self._read, policy)
        at_once = wanted + 1 + (REACH + _SOME_COPIES if query.duplicates == "fold" else 0)
        while True:
            by_words, by_meaning = self._both_sides(query, looked)
            lexical, vector = by_words.ranking, by_meaning.ranking
            ranked = lexical.chunks, vector.chunks
            all_fused = fuse(policy, *ranked)
            fused = _worth_showing(all_fused, vector, query)
            far_away = not (fused or looks or query.insists or query.type_ahead)
            if far_away:  # the right answer may be among them: how close is close enough differs from corpus to corpus
                fused = all_fused[:_NEAREST]
            good = [item for item in fused if _is_good_enough(item, query)]
            # What a deeper look finds follows what was found before: a page that was shown stays what it was.
            new = [
                _Found(item, by_meaning.hits.get(item.chunk_id), by_words.hits.get(item.chunk_id))
                for item in good
                if item.chunk_id not in found
            ]
            looks.append(_Look(new, read, at_once=at_once))
            found.update((one.fused.chunk_id, one) for one in new)
            listed = self._listed(looks, query)
            goes_on = (
                query.sort == "relevance"
                and not far_away
                and looked < DEEPEST
                and (lexical.more or (_goes_on(vector) and not query.insists))
                and _is_good_enough(best_beyond(policy, looked, *ranked), query)
            )
            # A first page is never short; a later one may be, and so may be any where documents or passages repeat
            # themselves.
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

    def _both_sides(self, query: SearchQuery, depth: int) -> tuple[_Side, _Side]:
        part = query._replace(
            k=depth,
            offset=0,
            sort="relevance",
            per_doc=None,
            duplicates="show",
            bare=query.bare or self._snippets is not None,
        )
        by_meaning, by_words = part._replace(mode="vector"), part._replace(mode="lexical", tell_all_words=True)
        # By date, by document, and where it is explained, everything that was found has to be read.
        may_read_later = (
            self._chunks is not None and query.sort == "relevance" and query.per_doc is None and not query.explain
        )
        # Meaning first, which takes longer: what it has found is read while words are still looked for, where that is
        # done elsewhere.
        if may_read_later:
            meant, said = cast("RankingRetriever", self._vector), cast("RankingRetriever", self._lexical)
            closest, matching = meant.begin_ranking(by_meaning), said.begin_ranking(by_words)
            vector = _Side(closest(), {})
            self._expect(vector.ranking, query)
            return _Side(matching(), {}), vector
        meaning, words = self._vector.begin(by_meaning), self._lexical.begin(by_words)
        vector = _side(meaning(), "vector")
        return _side(words(), "lexical"), vector

    def _expect(self, closest: Ranking, query: SearchQuery) -> None:
        """What is foremost by meaning is nearly always shown, unless words know better: it can be fetched while these
        are looked for.
        """
        assert self._chunks is not None
        self._chunks.expect([chunk.chunk_id for chunk in closest.chunks[: query.offset + query.k] if not chunk.weak])

    def _read(self, policy: FusionPolicy, items: Sequence[Fused]) -> dict[str, SearchHit]:
        """What is there of these passages, as hits."""
        assert self._chunks is not None  # otherwise both sides have read theirs
        contexts = self._chunks.contexts([item.chunk_id for item in items])
        return {
            item.chunk_id: make_hit(
                # Which model has made its vector is told of what was found by it.
                contexts[item.chunk_id] if item.vector else contexts[item.chunk_id]._replace(embedding_model=None),
                rank=0,
                detail=RetrievalDetail(
                    "hybrid", item.score, vector_floor=item.vector.vector_floor if item.vector else None
                ),
                score_kind=policy.kind,
                index_version="",
            )
            for item in items
            if item.chunk_id in contexts
        }

    def _listed(self, looks: list[_Look], query: SearchQuery) -> list[SearchHit]:
        """As far as the page that was asked for, and one more.

        Copies are looked for within one look, so that a page that was shown stays what it was; what is equal to
        something of an earlier look is not shown again.
        """
        whole_texts = self._snippets is not None or query.full_text or query.bare
        hits_of_all = chain.from_iterable(looks)
        if query.sort == "date" or (
            query.duplicates == "show" and query.per_doc is not None
        ):  # by date there is one look only
            return shortened(list(hits_of_all), query, complete=True, whole_texts=whole_texts)
        if query.duplicates == "show":
            return list(islice(hits_of_all, query.offset + query.k + 1))
        fold = partial(fold_duplicates, query=query, complete=True, whole_texts=whole_texts)
        if query.per_doc is not None:
            return at_most_per_document(without_repetition(fold(look, enough=None) for look in looks), query.per_doc)
        wanted = enough = query.offset + query.k + 1
        while True:  # what repeats something far before it is not shown either, and leaves its place to what follows
            folded = [fold(look, enough=enough) for look in looks]
            hits = without_repetition(folded)
            if len(hits) >= wanted or all(len(some) < enough for some in folded):
                return hits
            enough += wanted - len(hits)

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
            vector_floor=vector.vector_floor if vector else None,
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

    def _shown(self, hit: SearchHit, rank: int, lexical: Ranking, vector: Ranking, query: SearchQuery) -> SearchHit:
        if self._snippets is not None and not query.bare:
            hit = with_snippet(
                hit, self._snippets, lexical.terms or vector.terms or QueryTerms(), full_text=query.full_text
            )
        return hit._replace(rank=rank)


def _notices(
    query: SearchQuery, fused: list[Fused], lexical: Ranking, vector: Ranking, *, far_away: bool
) -> tuple[Notice, ...]:
    """A side's excuse for having found nothing matters when the other one has found nothing either; what both say is
    said once.
    """
    said: dict[str, Notice] = {}
    for notice in (*lexical.notices, *vector.notices):
        if far_away or not (fused and notice.code == "other_scripts"):
            said.setdefault(notice.code, notice)
    about_words = (_FAR_AWAY,) if far_away and fused else _about_words(query, fused, lexical, vector)
    return (*said.values(), *about_words)


def _about_words(query: SearchQuery, fused: list[Fused], lexical: Ranking, vector: Ranking) -> tuple[Notice, ...]:
    if lexical.chunks:
        return ()
    if query.insists:
        return (_INSISTED,) if any(chunk.chunk_id not in vector.doubtful for chunk in vector.chunks) else ()
    return (_NO_WORDS,) if fused else ()


def _worth_showing(fused: list[Fused], vector: Ranking, query: SearchQuery) -> list[Fused]:
    """Without what is only close, and not close enough to mean anything, or not asked for: whoever insists on words
    gets passages that have them, and by date a passage with the words must not come after everything that is vaguely
    alike and younger.
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


def _goes_on(vector: Ranking) -> bool:
    """Whether a deeper look could find anything near enough to mean something."""
    return vector.more and bool(vector.chunks) and vector.chunks[-1].chunk_id not in vector.doubtful


def _pinned(query: SearchQuery, lexical: Ranking) -> SearchQuery:
    """How the words matched is decided by the first look: deeper ones go on with the same list."""
    if query.match != "auto" or lexical.match not in ("all", "any"):
        return query
    return query._replace(match=cast("Match", lexical.match), keep_stop_words=False)


def _side(hits: HitList, side: str) -> _Side:
    ranked = []
    for place, hit in enumerate(hits, start=1):
        detail = hit.retrieval
        score = detail.lexical_score if side == "lexical" else detail.vector_score
        known = hit.chunk_id in hits.weak, hit.chunk_id in hits.all_words, detail.vector_floor
        ranked.append(Ranked(hit.chunk_id, place, hit.score if score is None else score, *known))
    ranking = Ranking(ranked, hits.match, hits.more, hits.explanation, hits.notices, hits.terms, hits.doubtful)
    return _Side(ranking, {hit.chunk_id: hit for hit in hits})


def _hit_explanation(parts: dict[str, Any], item: Fused, policy: FusionPolicy) -> dict[str, Any]:
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
    return {
        **parts,
        "lexical": {"rank": item.lexical.rank, "score": item.lexical.score} if item.lexical else None,
        "vector": {
            **(parts.get("vector") or {}),
            "rank": item.vector.rank,
            "score": item.vector.score,
            "weak": item.vector.weak,
        }
        if item.vector
        else None,
        "fusion": fusion,
    }


def _explanation(
    policy: FusionPolicy, depth: int, lexical: Ranking, vector: Ranking, fused: list[Fused], query: SearchQuery
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
