"""Merges the ranked lists of lexical and vector search into one. Pure arithmetic on ranks and scores."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from kebab.core.search import RRF_K, Exactness, Ranked, Ranking, SearchHit, Weights

_COMPARED = 20
_CLEAR = 0.6
"""A list by words is clear if its best bm25 score is higher than that of number `_COMPARED` by this share."""


class FusionPolicy(NamedTuple):
    """How the hits of lexical and vector search are ordered in one list.

    `rrf`: by ranks; each list adds weight / (k_rrf + rank). `convex`: by a weighted mean of the scores, scaled to
    [0, 1] in each list. In both, four further lists count, ranked like the lexical one: passages with all words of the
    query, with its words in a row, with the query as typed, and of documents with this title. In `convex` they come
    before all others.
    """

    kind: Literal["rrf", "convex"] = "rrf"
    k_rrf: int = RRF_K
    vector_weight: float = 1.0
    convex_weight: float = 0.65


class Parts(NamedTuple):
    """What each list adds to a score, before the sum is divided by `most`."""

    lexical: float = 0.0
    vector: float = 0.0
    exact: float = 0.0
    most: float = 1.0
    """The sum of a passage that is first in all lists."""


class Relevance(NamedTuple):
    """What a cross-encoder said about a passage, and the passage's rank before that."""

    model: str
    score: float
    rank_before: int


class Fused(NamedTuple):
    """A passage in the merged list, with its places in the lexical and the vector list."""

    chunk_id: str
    score: float
    """In [0, 1]."""
    rrf_score: float | None = None
    """1 / (k_rrf + rank), summed over the lexical and the vector list, without weights."""
    lexical: Ranked | None = None
    vector: Ranked | None = None
    weights: Weights = Weights()
    parts: Parts = Parts()
    moved: str | None = None
    """Why the passage does not stand where its score puts it."""
    relevance: Relevance | None = None
    """What a cross-encoder said about the passage, if one was asked."""

    @property
    def hit(self) -> SearchHit | None:
        """The same as `Ranked.hit`, from either list."""
        return (self.lexical and self.lexical.hit) or (self.vector and self.vector.hit)

    @property
    def is_code(self) -> bool:
        return "code" in (self.lexical and self.lexical.doc_type, self.vector and self.vector.doc_type)

    @property
    def exact_rank(self) -> int | None:
        """The rank among passages with all words, which come first in the lexical list."""
        return self.lexical.rank if self.lexical and self.weights.exact else None


def fuse(policy: FusionPolicy, lexical: Ranking[Ranked], vector: Ranking[Ranked]) -> list[Fused]:
    """Merges the lists, best first. Equal scores are ordered by lexical rank, then chunk id, so the order is stable."""
    by_words = {place.chunk_id: place for place in lexical.chunks}
    by_vectors = {place.chunk_id: place for place in vector.chunks}
    merge = (_rrf if policy.kind == "rrf" else _convex)(policy, lexical, vector)
    fused = [merge(chunk, by_words.get(chunk), by_vectors.get(chunk)) for chunk in {**by_words, **by_vectors}]
    return sorted(fused, key=_order)


def _order(hit: Fused) -> tuple[float, float, str]:
    return -hit.score, hit.lexical.rank if hit.lexical else float("inf"), hit.chunk_id


_Merge = Callable[[str, Ranked | None, Ranked | None], Fused]


def _rrf(policy: FusionPolicy, lexical: Ranking[Ranked], vector: Ranking[Ranked]) -> _Merge:
    k, trust_of, trusts = policy.k_rrf, _trust(vector), {place.trust for place in vector.chunks}
    # A list without a clear best is trusted less, as far as vectors are reliable.
    least, meaning = min(trusts, default=1.0), policy.vector_weight * max(trusts, default=1.0)
    clarity = _clarity([_bm25(place.score) for place in lexical.chunks])
    words = 1.0 if len(trusts) > 1 else 1 - least * (1 - clarity)
    most = (words + meaning + max(map(_exact, lexical.chunks), default=0)) / (k + 1)

    def merge(chunk_id: str, by_words: Ranked | None, by_vectors: Ranked | None) -> Fused:
        own = policy.vector_weight * trust_of(by_words, by_vectors)
        weights = Weights(words, own, _exact(by_words))
        from_words = 1 / (k + by_words.rank) if by_words else 0.0
        from_vectors = 1 / (k + by_vectors.rank) if by_vectors else 0.0
        total = (words + weights.exact) * from_words + own * from_vectors
        score = min(1.0, total / most) if most else 0.0
        parts = Parts(words * from_words, own * from_vectors, weights.exact * from_words, most)
        return Fused(chunk_id, score, from_words + from_vectors, by_words, by_vectors, weights, parts)

    return merge


def _clarity(scores: Sequence[float]) -> float:
    """How clearly the best of a list stands out, from 0 to 1: near 0 if many passages have nearly the same score."""
    ranked = sorted(scores, reverse=True)
    if len(ranked) < _COMPARED:
        return 1.0
    return min(1.0, ((ranked[0] - ranked[_COMPARED - 1]) / ranked[0] / _CLEAR) ** 3)


def best_beyond(
    policy: FusionPolicy,
    depth: int,
    lexical: Ranking[Ranked],
    vector: Ranking[Ranked],
    without_words: Sequence[Fused] = (),
) -> Fused:
    """The best score that a hit can have which is not listed yet: neither list has it among its first `depth`, or it is
    one of those `without_words`, which are not shown unless a longer list by words has them.
    """
    if policy.kind == "convex":
        return Fused("", 0.0)  # deeper hits score lower than all that were scaled to [0, 1]
    below = Ranked("", depth + 1, 0.0)
    words = below._replace(exactness=max((place.exactness or Exactness.SOME for place in lexical.chunks), default=None))
    nearest = min((place.vector.rank for place in without_words if place.vector), default=depth + 1)
    return _rrf(policy, lexical, vector)("", words, below._replace(rank=nearest))


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


def _convex(policy: FusionPolicy, lexical: Ranking[Ranked], vector: Ranking[Ranked]) -> _Merge:
    words = _scale([_bm25(place.score) for place in lexical.chunks])
    meaning = _scale([place.score for place in vector.chunks])
    trust_of = _trust(vector)

    def share(trust: float) -> float:
        for_words = (1 - policy.convex_weight) * words.prominence
        for_meaning = policy.convex_weight * trust * meaning.prominence
        total = for_words + for_meaning
        return for_meaning / total if total else policy.convex_weight

    most = 1 + max(map(_exact, lexical.chunks), default=0)

    def merge(chunk_id: str, by_words: Ranked | None, by_vectors: Ranked | None) -> Fused:
        own = share(trust_of(by_words, by_vectors))
        weights = Weights(1 - own, own, _exact(by_words))
        from_words = weights.lexical * (words.of(_bm25(by_words.score)) if by_words else 0.0)
        from_vectors = weights.vector * (meaning.of(by_vectors.score) if by_vectors else 0.0)
        parts = Parts(from_words, from_vectors, weights.exact, most)
        score = (from_words + from_vectors + weights.exact) / most
        return Fused(chunk_id, score, None, by_words, by_vectors, weights, parts)

    return merge


def _trust(vector: Ranking[Ranked]) -> Callable[[Ranked | None, Ranked | None], float]:
    """The trust in the place of a passage by vectors.

    Beside passages of another language, which words cannot find, what words have found is not trusted by its place by
    vectors too: one list of each language, so that the best of both come first in turn.
    """
    trusts = {place.trust for place in vector.chunks}
    found_by_words = 0.0 if len(trusts) > 1 else min(trusts, default=1.0)

    def trust(by_words: Ranked | None, by_vectors: Ranked | None) -> float:
        return by_vectors.trust if by_vectors and not by_words else found_by_words

    return trust


def _exact(place: Ranked | None) -> int:
    """In how many lists of exact matches a passage is: of all words, words in a row, the query as typed, and titles."""
    exactness = place.exactness if place else None
    levels = (Exactness.ALL, Exactness.PHRASE, Exactness.VERBATIM, Exactness.NAMED)
    return sum(exactness is not None and exactness >= level for level in levels)


def _bm25(score: float) -> float:
    """The bm25 value of a normalised score b / (1 + b), because these are too close to each other to be mixed."""
    return score / max(1e-12, 1 - score)
