"""Merges the ranked lists of lexical and vector search into one. Pure arithmetic on ranks and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from kebab.core.search import RRF_K, Ranked, SearchHit


class FusionPolicy(NamedTuple):
    """How the hits of lexical and vector search are ordered in one list.

    `rrf`: by ranks; each list adds weight / (k_rrf + rank). `convex`: by a weighted mean of the scores, scaled to
    [0, 1] in each list. A hit is weak if the other search is more reliable for it; weak hits have their own weights. If
    vector search has weak hits, its hits in another language, and lexical hits with all words, also have own weights,
    so that a passage with the typed words does not come after passages that are only close in another language.
    """

    kind: Literal["rrf", "convex"] = "rrf"
    k_rrf: int = RRF_K
    vector_weight: float = 1.0
    vector_weight_weak: float = 0.1
    vector_weight_other: float = 1.1
    lexical_weight_weak: float = 0.4
    lexical_weight_all: float = 2.0
    convex_weight: float = 0.65
    convex_weight_weak: float = 0.25


class Fused(NamedTuple):
    """A passage in the merged list, with its places in the lexical and the vector list."""

    chunk_id: str
    score: float
    """In [0, 1]."""
    rrf_score: float | None = None
    lexical: Ranked | None = None
    vector: Ranked | None = None
    weights: tuple[float, float] = (1.0, 1.0)
    """The weights of the lexical and of the vector list for this hit."""

    @property
    def hit(self) -> SearchHit | None:
        """The same as `Ranked.hit`, of either list."""
        return (self.lexical and self.lexical.hit) or (self.vector and self.vector.hit)


def fuse(policy: FusionPolicy, lexical: Sequence[Ranked], vector: Sequence[Ranked]) -> list[Fused]:
    """Merges the lists, best first. Equal scores are ordered by lexical rank, then chunk id, so the order is stable."""
    by_words = {hit.chunk_id: hit for hit in lexical}
    by_vectors = {hit.chunk_id: hit for hit in vector}
    score = _rrf(policy, lexical, vector) if policy.kind == "rrf" else _convex(policy, lexical, vector)
    fused = [score.of(chunk, by_words.get(chunk), by_vectors.get(chunk)) for chunk in {**by_words, **by_vectors}]
    return sorted(fused, key=_order)


def _order(hit: Fused) -> tuple[float, float, str]:
    return -hit.score, hit.lexical.rank if hit.lexical else float("inf"), hit.chunk_id


def best_beyond(
    policy: FusionPolicy, depth: int, lexical: Sequence[Ranked] = (), vector: Sequence[Ranked] = ()
) -> Fused:
    """The best score that a hit can have if neither list has it among its first `depth`."""
    if policy.kind == "convex":
        return Fused(
            "", 0.0, None, None, None, (0.0, 0.0)
        )  # deeper hits score lower than all that were scaled to [0, 1]
    some_are_weak = any(hit.weak for hit in vector)
    heaviest = max(_heaviest(policy, lexical, some_are_weak), _heaviest(policy, (), some_are_weak))
    raw = heaviest / (policy.k_rrf + depth + 1)
    most = _rrf(policy, lexical, vector).most
    return Fused("", min(1.0, raw / most) if most else 0.0, raw, None, None, (1.0, policy.vector_weight))


class _Rrf(NamedTuple):
    policy: FusionPolicy
    most: float
    """The score of a hit that is first in both lists. Dividing by it scales scores to [0, 1] and keeps their order."""
    some_are_weak: bool

    def of(self, chunk_id: str, lexical: Ranked | None, vector: Ranked | None) -> Fused:
        k, weight = self.policy.k_rrf, self.weight_of(vector, seen=lexical is not None)
        words = self.words_of(lexical)
        raw = (words / (k + lexical.rank) if lexical else 0.0) + (weight / (k + vector.rank) if vector else 0.0)
        return Fused(chunk_id, min(1.0, raw / self.most) if self.most else 0.0, raw, lexical, vector, (words, weight))

    def words_of(self, hit: Ranked | None) -> float:
        if hit is not None and hit.weak:
            return self.policy.lexical_weight_weak
        return self.policy.lexical_weight_all if hit is not None and hit.all_words and self.some_are_weak else 1.0

    def weight_of(self, hit: Ranked | None, *, seen: bool) -> float:
        """The weight of a vector hit; `seen`: whether lexical search also found it.

        If some vector hits are weak, the others are in another language. Those that lexical search found count as weak
        too. The rest weigh a little more than a lexical hit, so that hits found by both do not all come before them.
        """
        if hit is None or not self.some_are_weak:
            return self.policy.vector_weight
        return self.policy.vector_weight_weak if hit.weak or seen else self.policy.vector_weight_other


def _rrf(policy: FusionPolicy, lexical: Sequence[Ranked], vector: Sequence[Ranked]) -> _Rrf:
    some_are_weak = any(hit.weak for hit in vector)
    return _Rrf(policy, _heaviest(policy, lexical, some_are_weak) / (policy.k_rrf + 1), some_are_weak)


def _heaviest(policy: FusionPolicy, lexical: Sequence[Ranked], some_are_weak: bool) -> float:
    """The largest sum of lexical and vector weight that a hit can have. If some vector hits are weak, a hit found by
    words has the weak vector weight, and a hit in another language has no lexical weight.
    """
    words = max(map(_Rrf(policy, 1.0, some_are_weak).words_of, lexical), default=1.0)
    return (
        max(words + policy.vector_weight_weak, policy.vector_weight_other)
        if some_are_weak
        else words + policy.vector_weight
    )


class _Scale(NamedTuple):
    """Scales the scores of one list to [0, 1]."""

    least: float
    span: float
    prominence: float
    """How far the best score is above the mean, in standard deviations. A list without a clear best hit weighs less."""

    def of(self, score: float) -> float:
        return (score - self.least) / self.span if self.span else 1.0


def _scale(scores: Sequence[float]) -> _Scale:
    if not scores:
        return _Scale(0.0, 0.0, 0.0)
    mean = sum(scores) / len(scores)
    deviation = (sum((score - mean) ** 2 for score in scores) / len(scores)) ** 0.5
    least, most = min(scores), max(scores)
    return _Scale(least, most - least, (most - mean) / deviation if deviation > 1e-12 else 1.0)


class _Convex(NamedTuple):
    policy: FusionPolicy
    words: _Scale
    meaning: _Scale
    words_know_better: bool
    """Whether vector search has weak hits. A hit that it did not find then counts as weak too."""
    some_have_all_words: bool
    """Whether some hits have all words and must come before the others."""

    def of(self, chunk_id: str, lexical: Ranked | None, vector: Ranked | None) -> Fused:
        if vector is not None and lexical is None and self.words_know_better and not vector.weak:
            share = 1.0  # in another language, so lexical search cannot find it
        else:
            share = self._share(self.words_know_better if vector is None else vector.weak)
        words = self.words.of(_bm25(lexical.score)) if lexical else 0.0
        meaning = self.meaning.of(vector.score) if vector else 0.0
        mixed = (1 - share) * words + share * meaning
        if self.some_have_all_words:
            mixed = (mixed + (lexical is not None and lexical.all_words)) / 2
        return Fused(chunk_id, mixed, None, lexical, vector, (1 - share, share))

    def _share(self, weak: bool) -> float:
        """The share of vector search in the mixed score."""
        weight = self.policy.convex_weight_weak if weak else self.policy.convex_weight
        words, meaning = (1 - weight) * self.words.prominence, weight * self.meaning.prominence
        return meaning / (words + meaning) if words + meaning else weight


def _convex(policy: FusionPolicy, lexical: Sequence[Ranked], vector: Sequence[Ranked]) -> _Convex:
    words, meaning = _scale([_bm25(hit.score) for hit in lexical]), _scale([hit.score for hit in vector])
    some_are_weak = any(hit.weak for hit in vector)
    return _Convex(policy, words, meaning, some_are_weak, some_are_weak and any(hit.all_words for hit in lexical))


def _bm25(score: float) -> float:
    """The bm25 value of a normalised score b / (1 + b), because these are too close to each other to be mixed."""
    return score / max(1e-12, 1 - score)
