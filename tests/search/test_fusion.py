"""Merging two ranked lists into one: the formula, the scale of its scores, ties, and properties that hold for any
lists.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kebab.config.settings import SearchSettings
from kebab.core.search import Exactness, Ranked, Ranking, Weights
from kebab.search.fusion import Fused, FusionPolicy, best_beyond
from kebab.search.fusion import fuse as fuse_rankings
from kebab.search.hybrid import policy_of

RRF = FusionPolicy()
CONVEX = FusionPolicy(kind="convex")


def ranked(*chunks: str, scores: list[float] | None = None, exact: dict[str, Exactness] | None = None) -> list[Ranked]:
    """A ranked list in this order; if no scores are given, they decrease."""
    values = scores or [1 / (2 + place) for place in range(len(chunks))]
    return [
        Ranked(chunk, place, score, (exact or {}).get(chunk))
        for place, (chunk, score) in enumerate(zip(chunks, values, strict=True), start=1)
    ]


def fuse(policy: FusionPolicy, lexical: list[Ranked], vector: list[Ranked], *, trust: float = 1.0) -> list[Fused]:
    return fuse_rankings(policy, Ranking(lexical), Ranking([hit._replace(trust=trust) for hit in vector]))


def order(fused: list[Fused]) -> list[str]:
    return [hit.chunk_id for hit in fused]


def by_chunk(fused: list[Fused]) -> dict[str, Fused]:
    return {hit.chunk_id: hit for hit in fused}


# --- the formula


def test_the_constant_of_rrf_is_60_unless_a_setting_says_otherwise() -> None:
    assert FusionPolicy().k_rrf == SearchSettings().rrf_k == 60
    assert SearchSettings().hybrid_fusion == FusionPolicy().kind == "rrf"
    assert policy_of(SearchSettings(rrf_k=7)).k_rrf == 7


def test_a_chunk_gets_the_sum_of_the_reciprocals_of_its_ranks() -> None:
    """Ranks count from 1, and a list without the chunk adds nothing."""
    fused = by_chunk(fuse(RRF, ranked("a", "b", "c"), ranked("c", "a", "d")))
    assert fused["a"].rrf_score == pytest.approx(1 / 61 + 1 / 62, abs=1e-15)
    assert fused["b"].rrf_score == pytest.approx(1 / 62, abs=1e-15)
    assert fused["c"].rrf_score == pytest.approx(1 / 63 + 1 / 61, abs=1e-15)
    assert fused["d"].rrf_score == pytest.approx(1 / 63, abs=1e-15)
    (hit,) = fuse(FusionPolicy(k_rrf=1), ranked("a"), ranked("a"))
    assert (hit.rrf_score, hit.score) == (1.0, 1.0)


def test_rank_2_by_words_and_5_by_meaning_beats_a_chunk_that_is_in_one_list_only() -> None:
    fused = fuse(RRF, ranked("one list", "both", "x", "y", "z"), ranked("p", "q", "r", "s", "both"))
    both = by_chunk(fused)["both"]
    assert both.rrf_score == pytest.approx(1 / 62 + 1 / 65, abs=1e-15)
    assert round(1 / 62, 4) + round(1 / 65, 4) == pytest.approx(round(both.rrf_score or 0, 4)) == 0.0315
    assert order(fused)[:2] == ["both", "one list"]


def test_weights_change_the_order_but_not_the_rrf_score() -> None:
    policy, words, meaning = FusionPolicy(vector_weight=0.5), ranked("a", "b"), ranked("c", "b")
    fused = by_chunk(fuse(policy, words, meaning, trust=0.4))
    assert {chunk: hit.rrf_score for chunk, hit in fused.items()} == {
        chunk: hit.rrf_score for chunk, hit in by_chunk(fuse(RRF, words, meaning)).items()
    }
    assert {hit.weights for hit in fused.values()} == {Weights(1.0, 0.2, 0)}
    assert fused["c"].score == pytest.approx(0.2 / 1.2)


def test_a_lexical_list_whose_best_score_is_not_clearly_higher_counts_less() -> None:
    chunks, meaning = [f"c{number:02}" for number in range(20)], ranked("v")
    flat = fuse(RRF, ranked(*chunks, scores=[0.5 - place / 1000 for place in range(20)]), meaning)
    clear = fuse(RRF, ranked(*chunks, scores=[0.9, *[0.3 - place / 1000 for place in range(19)]]), meaning)
    assert order(flat)[0] == "v"
    assert order(clear)[0] == "c00"
    assert clear[0].weights.lexical == 1.0 > flat[0].weights.lexical
    unsure = fuse(RRF, [hit.lexical for hit in flat if hit.lexical], meaning, trust=0.1)
    assert order(unsure)[0] == "c00", "also an unclear list is better than weak vectors"


def test_passages_by_words_and_those_in_another_language_come_in_turn() -> None:
    """The best passages by words, and those in another language that words cannot find, come in turn."""
    foreign = [Ranked("x", 1, 0.9), Ranked("y", 2, 0.8)]
    meaning = [*foreign, *[Ranked(chunk, 3 + n, 0.8, trust=0.1) for n, chunk in enumerate("abcd")]]
    fused = fuse_rankings(RRF, Ranking(ranked(*"abc")), Ranking(meaning))
    assert order(fused) == ["a", "x", "b", "y", "c", "d"]
    weights = {hit.chunk_id: hit.weights.vector for hit in fused}
    assert weights == {"x": 1.0, "y": 1.0, "a": 0.0, "b": 0.0, "c": 0.0, "d": 0.1}


@pytest.mark.parametrize("policy", [RRF, CONVEX], ids=["rrf", "convex"])
def test_the_parts_of_a_score_divided_by_the_highest_possible_sum_give_the_score(policy: FusionPolicy) -> None:
    meaning = [Ranked("foreign", 1, 0.9), *[Ranked(chunk, 2 + n, 0.8, trust=0.1) for n, chunk in enumerate("cbd")]]
    words = ranked(*"abc", exact={"a": Exactness.PHRASE, "b": Exactness.ALL})
    for hit in fuse_rankings(policy, Ranking(words), Ranking(meaning)):
        *parts, most = hit.parts
        assert hit.score == pytest.approx(sum(parts) / most, abs=1e-12)


# --- exact matches


@pytest.mark.parametrize("kind", ["rrf", "convex"])
@pytest.mark.parametrize("exactness", [Exactness.PHRASE, Exactness.VERBATIM])
def test_a_passage_that_contains_the_phrase_comes_before_passages_that_are_in_both_lists(
    kind: Any, exactness: Exactness
) -> None:
    exact = {"it": exactness, "a": Exactness.ALL, "b": Exactness.ALL}
    fused = fuse(FusionPolicy(kind=kind), ranked("it", "a", "b", "c", exact=exact), ranked("a", "b", "c"))
    assert order(fused)[0] == "it"
    assert (fused[0].weights.exact, fused[0].exact_rank) == (2 + (exactness is Exactness.VERBATIM), 1)


def test_a_passage_with_all_words_gets_an_additional_share_and_one_with_some_gets_none() -> None:
    exact = {"all": Exactness.ALL, "near": Exactness.NEAR, "some": Exactness.SOME}
    fused = by_chunk(fuse(RRF, ranked("near", "all", "some", exact=exact), ranked("some")))
    assert {chunk: (hit.weights.exact, hit.exact_rank) for chunk, hit in fused.items()} == {
        "near": (1, 1),
        "all": (1, 2),
        "some": (0, None),
    }
    assert fused["all"].score == pytest.approx((2 / 62) / (3 / 61))


# --- the scale


def test_a_chunk_that_is_first_in_both_lists_scores_1_and_in_one_list_one_half() -> None:
    fused = by_chunk(fuse(RRF, ranked("both", "b"), ranked("both", "v")))
    assert fused["both"].score == 1.0
    alone = by_chunk(fuse(RRF, ranked("l"), ranked("v")))
    assert alone["l"].score == alone["v"].score == 0.5
    assert [hit.score for hit in fuse(RRF, ranked("l"), [])] == [0.5], "also when the other list is empty"


def test_the_highest_possible_score_is_computed_from_the_weights() -> None:
    policy = FusionPolicy(vector_weight=0.5)
    assert fuse(policy, ranked("a"), ranked("a"))[0].score == 1.0
    assert fuse(policy, ranked("a"), ranked("b"))[0].score == pytest.approx(1 / 1.5)
    assert fuse(policy, ranked("a", exact={"a": Exactness.PHRASE}), ranked("a"), trust=0.1)[0].score == pytest.approx(1)


# --- the order


def test_equal_scores_are_ordered_by_lexical_rank_then_by_chunk_id() -> None:
    assert order(fuse(RRF, ranked("z"), ranked("a"))) == ["z", "a"]
    assert order(fuse(RRF, ranked("x", "y"), ranked("y", "x"))) == ["x", "y"]
    assert order(fuse(RRF, ranked("z", "y"), ranked("a", "b"))) == ["z", "a", "y", "b"]
    nobody = FusionPolicy(vector_weight=0.0)
    assert order(fuse(nobody, ranked("b"), ranked("z", "y", "a"))) == ["b", "a", "y", "z"], (
        "a missing lexical rank comes last"
    )


def test_a_fused_hit_keeps_its_ranks_in_both_lists() -> None:
    words, meaning = ranked("a", "b", scores=[0.9, 0.2]), ranked("b", "c", scores=[0.8, 0.7])
    fused = by_chunk(fuse(RRF, words, meaning))
    assert (fused["a"].lexical, fused["a"].vector) == (words[0], None)
    assert (fused["b"].lexical, fused["b"].vector) == (words[1], meaning[0])
    assert (fused["c"].lexical, fused["c"].vector) == (None, meaning[1])


@pytest.mark.parametrize("policy", [RRF, CONVEX], ids=["rrf", "convex"])
def test_fusing_two_empty_lists_gives_an_empty_list(policy: FusionPolicy) -> None:
    assert fuse(policy, [], []) == []
    assert order(fuse(policy, ranked("a", "b"), [])) == ["a", "b"]
    assert order(fuse(policy, [], ranked("a", "b"))) == ["a", "b"]


# --- for any lists

CHUNKS = st.lists(
    st.sampled_from([f"{letter}{number}" for letter in "abc" for number in range(10)]), max_size=30, unique=True
)


@st.composite
def lists(draw: Any, *, plain: bool = False) -> tuple[list[Ranked], list[Ranked]]:
    """Two lists as retrievers return them: exact matches first, lexical scores in (0, 1) and cosines in [0, 1].
    `plain`: without exact matches, and too short to lack a clear best hit.
    """
    sides: list[list[Ranked]] = []
    for highest in (0.999, 1.0):
        chunks = draw(CHUNKS)[: 19 if plain else 30]
        scores = sorted(
            draw(st.lists(st.floats(1e-6, highest), min_size=len(chunks), max_size=len(chunks))), reverse=True
        )
        levels = sorted(draw(st.lists(st.sampled_from(Exactness), min_size=len(chunks), max_size=len(chunks))))
        exact = {} if plain or sides else dict(zip(chunks, reversed(levels), strict=True))
        sides.append(ranked(*chunks, scores=scores, exact=exact) if chunks else [])
    return sides[0], sides[1]


POLICIES = st.builds(
    FusionPolicy,
    kind=st.sampled_from(["rrf", "convex"]),
    k_rrf=st.integers(1, 1000),
    vector_weight=st.floats(0, 10),
    convex_weight=st.floats(0, 1),
)


@given(lists(plain=True), st.integers(1, 1000))
def test_without_exactness_and_weights_hits_are_in_the_order_of_their_rrf_score(
    both: tuple[list[Ranked], list[Ranked]], k: int
) -> None:
    fused = fuse(FusionPolicy(k_rrf=k), *both)
    for hit in fused:
        raw = sum(1 / (k + side.rank) for side in (hit.lexical, hit.vector) if side is not None)
        assert hit.rrf_score == pytest.approx(raw, abs=1e-15)
        assert hit.score == pytest.approx(raw / (2 / (k + 1)), abs=1e-12)
        assert hit.weights == Weights()
    for one, other in itertools.pairwise(fused):
        assert (one.rrf_score or 0) >= (other.rrf_score or 0) - 1e-15


@given(POLICIES, lists(), st.floats(0, 1))
def test_fused_scores_are_between_0_and_1_and_decrease(
    policy: FusionPolicy, both: tuple[list[Ranked], list[Ranked]], trust: float
) -> None:
    fused = fuse(policy, *both, trust=trust)
    assert all(0 <= hit.score <= 1 for hit in fused)
    assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)
    assert {hit.chunk_id for hit in fused} == {hit.chunk_id for side in both for hit in side}
    assert len(fused) == len({hit.chunk_id for hit in fused})


@given(POLICIES, lists(), st.floats(0, 1))
def test_a_verbatim_match_is_first_unless_vectors_weigh_more_than_words(
    policy: FusionPolicy, both: tuple[list[Ranked], list[Ranked]], trust: float
) -> None:
    policy = policy._replace(vector_weight=min(1.0, policy.vector_weight))
    typed = Ranked("typed", 1, 0.5, Exactness.VERBATIM)
    others = [place._replace(rank=place.rank + 1) for place in both[0]]
    others = [place._replace(exactness=min(Exactness.PHRASE, place.exactness or Exactness.SOME)) for place in others]
    assert fuse(policy, [typed, *others], both[1], trust=trust)[0].chunk_id == "typed"


@given(POLICIES, lists(), st.randoms(use_true_random=False))
def test_the_fused_order_depends_only_on_ranks_and_scores(
    policy: FusionPolicy, both: tuple[list[Ranked], list[Ranked]], shuffler: random.Random
) -> None:
    """Whatever order the hits are passed in."""
    once = fuse(policy, *both)
    assert fuse(policy, *both) == once
    for side in both:
        shuffler.shuffle(side)
    again = fuse(policy, *both)
    assert [hit.chunk_id for hit in again] == [hit.chunk_id for hit in once] or policy.kind == "convex"
    assert by_chunk(again).keys() == by_chunk(once).keys()


@given(lists(plain=True), st.integers(1, 1000))
def test_a_better_rank_in_one_list_never_lowers_a_chunk_in_the_fused_list(
    both: tuple[list[Ranked], list[Ranked]], k: int
) -> None:
    lexical, vector = both
    assume(lexical and vector)
    fused = fuse(FusionPolicy(k_rrf=k), lexical, vector)
    both_lists = [hit for hit in fused if hit.lexical and hit.vector]
    for place, one in enumerate(both_lists):
        for other in both_lists[place + 1 :]:
            assert one.lexical and one.vector and other.lexical and other.vector  # noqa: PT018 - for the type checker
            assert not (other.lexical.rank < one.lexical.rank and other.vector.rank < one.vector.rank)


# --- convex


def test_convex_fusion_adds_weighted_scores_scaled_from_0_to_1() -> None:
    """If both lists are equally clear, the weight of the policy is not changed."""
    words = ranked("a", "b", "c", scores=[0.75, 2 / 3, 0.5])  # bm25 of 3, 2 and 1
    meaning = ranked("b", "c", "a", scores=[0.9, 0.8, 0.7])
    fused = by_chunk(fuse(FusionPolicy(kind="convex", convex_weight=0.6), words, meaning))
    assert fused["a"].score == pytest.approx(0.4 * 1 + 0.6 * 0)
    assert fused["b"].score == pytest.approx(0.4 * 0.5 + 0.6 * 1)
    assert fused["c"].score == pytest.approx(0.4 * 0 + 0.6 * 0.5)
    assert fused["a"].weights == pytest.approx((0.4, 0.6, 0))
    assert {hit.rrf_score for hit in fused.values()} == {None}


def test_convex_fusion_weighs_a_list_less_if_its_best_scores_are_close_together() -> None:
    flat = [0.51, *[0.5 - place / 1000 for place in range(19)]]
    clear = [0.9, *[0.3 - place / 1000 for place in range(19)]]
    chunks = [f"c{number:02}" for number in range(20)]
    even = FusionPolicy(kind="convex", convex_weight=0.5)
    words_clear = fuse(even, ranked(*chunks, scores=clear), ranked(*reversed(chunks), scores=flat))
    meaning_clear = fuse(even, ranked(*chunks, scores=flat), ranked(*reversed(chunks), scores=clear))
    assert (words_clear[0].chunk_id, meaning_clear[0].chunk_id) == ("c00", "c19")
    assert words_clear[0].weights.lexical > 0.5
    assert meaning_clear[0].weights.vector > 0.5


@given(lists(), st.floats(0, 1), st.floats(0, 1))
@example(([], ranked("a")), 0.0, 1.0)
@example((ranked("a", "b", scores=[0.999, 0.999]), ranked("a", "b", scores=[0.3, 0.3])), 0.5, 1.0)
def test_the_shares_of_both_lists_in_convex_fusion_add_up_to_1_and_are_not_negative(
    both: tuple[list[Ranked], list[Ranked]], weight: float, trust: float
) -> None:
    for hit in fuse(FusionPolicy(kind="convex", convex_weight=weight), *both, trust=trust):
        assert hit.weights.lexical + hit.weights.vector == pytest.approx(1)
        assert all(0 <= share <= 1 for share in hit.weights[:2])


@given(lists(plain=True))
def test_convex_fusion_with_all_weight_on_one_list_keeps_its_order(both: tuple[list[Ranked], list[Ranked]]) -> None:
    lexical, vector = both
    by_words = [hit for hit in fuse(FusionPolicy(kind="convex", convex_weight=0.0), lexical, vector) if hit.lexical]
    by_meaning = [hit for hit in fuse(FusionPolicy(kind="convex", convex_weight=1.0), lexical, vector) if hit.vector]
    words = [hit.lexical.score for hit in by_words if hit.lexical]
    meaning = [hit.vector.score for hit in by_meaning if hit.vector]
    if lexical:
        assert all(one >= other or one == pytest.approx(other, abs=1e-9) for one, other in itertools.pairwise(words))
    if vector:
        assert all(one >= other or one == pytest.approx(other, abs=1e-9) for one, other in itertools.pairwise(meaning))


@given(depth=st.integers(1, 2000), k=st.integers(1, 1000), weight=st.floats(0, 10))
def test_no_chunk_beyond_the_depth_of_both_lists_can_score_higher_than_best_beyond(
    depth: int, k: int, weight: float
) -> None:
    policy = FusionPolicy(k_rrf=k, vector_weight=weight)
    ranks = [Ranked(f"c{rank}", rank, 0.5, Exactness.ALL) for rank in range(1, depth + 20)]
    bound = best_beyond(policy, depth, Ranking(ranks[:depth]), Ranking(ranks[:depth]))
    deeper = {hit.chunk_id: hit for hit in fuse(policy, ranks[:depth], ranks[:depth])}
    for hit in fuse(policy, ranks, ranks):
        if hit.chunk_id not in deeper:
            assert (hit.rrf_score or 0) <= (bound.rrf_score or 0) + 1e-12
