"""Two ranked lists become one: the formula, its scale, its ties, and what must hold for any lists (R085–R091,
R123–R125).
"""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kebab.config.settings import SearchSettings
from kebab.core.search import Ranked
from kebab.search.fusion import Fused, FusionPolicy, best_beyond, fuse
from kebab.search.hybrid import policy_of

RRF = FusionPolicy()
CONVEX = FusionPolicy(kind="convex")


def ranked(*chunks: str, scores: list[float] | None = None, weak: tuple[str, ...] = ()) -> list[Ranked]:
    """A list in this order; without scores, falling ones."""
    values = scores or [1 / (2 + place) for place in range(len(chunks))]
    return [
        Ranked(chunk, place, score, chunk in weak)
        for place, (chunk, score) in enumerate(zip(chunks, values, strict=True), start=1)
    ]


def order(fused: list[Fused]) -> list[str]:
    return [hit.chunk_id for hit in fused]


def by_chunk(fused: list[Fused]) -> dict[str, Fused]:
    return {hit.chunk_id: hit for hit in fused}


# --- the formula


def test_the_constant_of_rrf_is_60_unless_a_setting_says_otherwise() -> None:
    """R079, R085, R124."""
    assert FusionPolicy().k_rrf == SearchSettings().rrf_k == 60
    assert SearchSettings().hybrid_fusion == FusionPolicy().kind == "rrf"
    assert policy_of(SearchSettings(rrf_k=7)).k_rrf == 7


def test_a_chunk_gets_the_sum_of_the_reciprocals_of_its_ranks() -> None:
    """R085, R102, R123, R124: ranks count from 1, and a list that does not hold the chunk gives nothing."""
    fused = by_chunk(fuse(RRF, ranked("a", "b", "c"), ranked("c", "a", "d")))
    assert fused["a"].rrf_score == pytest.approx(1 / 61 + 1 / 62, abs=1e-15)
    assert fused["b"].rrf_score == pytest.approx(1 / 62, abs=1e-15)
    assert fused["c"].rrf_score == pytest.approx(1 / 63 + 1 / 61, abs=1e-15)
    assert fused["d"].rrf_score == pytest.approx(1 / 63, abs=1e-15)


def test_rank_2_by_words_and_5_by_meaning_beats_a_chunk_of_one_list() -> None:
    """R127: 1/62 + 1/65 = 0.0161 + 0.0154 = 0.0315."""
    fused = fuse(RRF, ranked("one list", "both", "x", "y", "z"), ranked("p", "q", "r", "s", "both"))
    both = by_chunk(fused)["both"]
    assert both.rrf_score == pytest.approx(1 / 62 + 1 / 65, abs=1e-15)
    assert round(1 / 62, 4) + round(1 / 65, 4) == pytest.approx(round(both.rrf_score or 0, 4)) == 0.0315
    assert order(fused)[:2] == ["both", "one list"]


def test_another_constant_gives_another_sum() -> None:
    """R085, R124."""
    (hit,) = fuse(FusionPolicy(k_rrf=1), ranked("a"), ranked("a"))
    assert (hit.rrf_score, hit.score) == (1.0, 1.0)


def test_a_weight_multiplies_the_share_of_the_vector_side() -> None:
    """product.md 3.18: 1 is the plain formula."""
    policy = FusionPolicy(vector_weight=0.5, vector_weight_weak=0.1)
    strong = by_chunk(fuse(policy, ranked("a"), ranked("a", "b")))
    assert strong["a"].rrf_score == pytest.approx(1 / 61 + 0.5 / 61)
    assert strong["b"].rrf_score == pytest.approx(0.5 / 62)
    weak = by_chunk(fuse(policy, ranked("a"), ranked("a", "b", weak=("a", "b"))))
    assert weak["a"].rrf_score == pytest.approx(1 / 61 + 0.1 / 61)
    assert weak["b"].rrf_score == pytest.approx(0.1 / 62)
    assert [fused[chunk].weights for fused in (strong, weak) for chunk in "ab"] == [(1.0, 0.5)] * 2 + [(1.0, 0.1)] * 2


@pytest.mark.parametrize("kind", ["rrf", "convex"])
def test_where_vectors_are_weak_a_passage_with_all_the_words_stands_before_everything_without(kind: Any) -> None:
    """Regression: an English page that was merely the closest came before the Korean note with the very word."""
    words = [hit._replace(all_words=hit.chunk_id == "it") for hit in ranked("it", "part", scores=[0.9, 0.89])]
    meaning = ranked("foreign", "part", *"abcdefgh", weak=("part", *"abcdefgh"))
    fused = fuse(FusionPolicy(kind=kind), words, meaning)
    assert fused[0].chunk_id == "it"
    assert all(0 <= hit.score <= 1 for hit in fused)
    strong = fuse(FusionPolicy(kind=kind), words, ranked("part", "a"))
    assert order(strong) == order(
        fuse(FusionPolicy(kind=kind), ranked("it", "part", scores=[0.9, 0.89]), ranked("part", "a"))
    )


def test_a_hit_that_is_first_on_both_sides_scores_one_also_where_words_weigh_little() -> None:
    """R086."""
    assert fuse(FusionPolicy(), ranked("a", "b", weak=("a", "b")), ranked("a"))[0].score == 1.0


def test_where_words_say_little_they_have_a_smaller_weight() -> None:
    policy = FusionPolicy(lexical_weight_weak=0.25)
    fused = by_chunk(fuse(policy, ranked("a", "b", weak=("a",)), ranked("b", "a")))
    assert fused["a"].rrf_score == pytest.approx(0.25 / 61 + 1 / 62)
    assert fused["b"].rrf_score == pytest.approx(1 / 62 + 1 / 61)
    assert (fused["a"].weights, fused["b"].weights) == ((0.25, 1.0), (1.0, 1.0))


def test_the_closest_passage_in_another_language_stands_beside_the_best_that_words_have_found() -> None:
    """product.md 3.18: weak hits count less, those that the lexical side could not see count in full."""
    own = ranked(*"abcdef")
    fused = fuse(RRF, own, ranked("foreign", *"abcdef", weak=tuple("abcdef")))
    assert order(fused)[0] == "foreign"
    assert order(fused)[1:] == list("abcdef")
    weights = {hit.chunk_id: hit.weights[1] for hit in fused}
    assert weights["a"] == RRF.vector_weight_weak < RRF.vector_weight <= weights["foreign"]


# --- the scale


def test_first_in_both_lists_is_one_and_first_in_one_list_is_one_half() -> None:
    """R086."""
    fused = by_chunk(fuse(RRF, ranked("both", "b"), ranked("both", "v")))
    assert fused["both"].score == 1.0
    alone = by_chunk(fuse(RRF, ranked("l"), ranked("v")))
    assert alone["l"].score == alone["v"].score == 0.5
    assert [hit.score for hit in fuse(RRF, ranked("l"), [])] == [0.5], "also when the other list is empty"


def test_the_score_is_the_sum_divided_by_the_most_there_can_be() -> None:
    """R086: raw / (lists / (k + 1))."""
    for hit in fuse(RRF, ranked(*"abcde"), ranked(*"dexyz")):
        assert hit.score == pytest.approx((hit.rrf_score or 0) / (2 / 61), abs=1e-12)


def test_with_weights_the_most_there_can_be_is_their_sum() -> None:
    """R086, product.md 3.7."""
    policy = FusionPolicy(vector_weight=0.5, vector_weight_weak=0.1)
    assert fuse(policy, ranked("a"), ranked("a"))[0].score == 1.0
    assert fuse(policy, ranked("a"), ranked("b"))[0].score == pytest.approx(1 / 1.5)
    assert fuse(policy, ranked("a"), ranked("a", weak=("a",)))[0].score == 1.0
    assert fuse(policy, ranked("a"), ranked("b", weak=("b",)))[0].score == pytest.approx(1 / 1.1)
    assert fuse(policy, ranked("w"), ranked("w", "s", weak=("w",)))[0].score == 1.0, (
        "a hit in another language takes nothing away"
    )


# --- the order


def test_hits_are_sorted_by_their_fused_score() -> None:
    """R088, R125."""
    fused = fuse(RRF, ranked("a", "b", "c"), ranked("c", "b", "d"))
    scores = [hit.score for hit in fused]
    assert scores == sorted(scores, reverse=True)
    assert order(fused) == ["c", "b", "a", "d"]


def test_equal_scores_are_ordered_by_lexical_rank_then_by_chunk_id() -> None:
    """R091, R103: found by words alone stands before found by meaning alone."""
    assert order(fuse(RRF, ranked("z"), ranked("a"))) == ["z", "a"]
    assert order(fuse(RRF, ranked("x", "y"), ranked("y", "x"))) == ["x", "y"]
    assert order(fuse(RRF, ranked("z", "y"), ranked("a", "b"))) == ["z", "a", "y", "b"]
    nobody = FusionPolicy(vector_weight=0.0)
    assert order(fuse(nobody, ranked("b"), ranked("z", "y", "a"))) == ["b", "a", "y", "z"], (
        "a missing lexical rank comes last"
    )


def test_a_fused_hit_keeps_the_ranks_of_both_sides() -> None:
    """R089, R090: None where a side has not seen the chunk."""
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
    st.sampled_from([f"{letter}{number}" for letter in "abc" for number in range(10)]), max_size=20, unique=True
)


@st.composite
def lists(draw: Any, *, may_be_weak: bool = True) -> tuple[list[Ranked], list[Ranked]]:
    """Two lists as retrievers give them: scores fall, words in (0, 1), cosines in [0, 1]."""
    sides: list[list[Ranked]] = []
    for highest in (0.999, 1.0):
        chunks = draw(CHUNKS)
        scores = sorted(
            draw(st.lists(st.floats(1e-6, highest), min_size=len(chunks), max_size=len(chunks))), reverse=True
        )
        weak = draw(st.sets(st.sampled_from(chunks))) if chunks and sides and may_be_weak else ()
        sides.append(ranked(*chunks, scores=scores, weak=tuple(weak)) if chunks else [])
    return sides[0], sides[1]


POLICIES = st.builds(
    FusionPolicy,
    kind=st.sampled_from(["rrf", "convex"]),
    k_rrf=st.integers(1, 1000),
    vector_weight=st.floats(0, 10),
    vector_weight_weak=st.floats(0, 10),
    vector_weight_other=st.floats(0, 10),
    lexical_weight_weak=st.floats(0, 10),
    lexical_weight_all=st.floats(0, 10),
    convex_weight=st.floats(0, 1),
    convex_weight_weak=st.floats(0, 1),
)


PLAIN = FusionPolicy(vector_weight_weak=1, vector_weight_other=1, lexical_weight_weak=1, lexical_weight_all=1)


@given(lists(), st.randoms(use_true_random=False))
def test_with_all_weights_one_every_hit_has_the_plain_score(
    both: tuple[list[Ranked], list[Ranked]], chance: random.Random
) -> None:
    """R085, product.md 3.18."""
    sides = [
        [hit._replace(weak=chance.random() < 0.5, all_words=chance.random() < 0.5) for hit in side] for side in both
    ]
    for hit in fuse(PLAIN, *sides):
        raw = sum(1 / (60 + side.rank) for side in (hit.lexical, hit.vector) if side is not None)
        assert hit.rrf_score == pytest.approx(raw, abs=1e-15)
        assert hit.score == pytest.approx(raw / (2 / 61), abs=1e-12)


@given(lists(), st.integers(1, 1000))
def test_bringing_scores_to_0_and_1_leaves_their_order_alone(both: tuple[list[Ranked], list[Ranked]], k: int) -> None:
    """R087, R110: the order is that of exact arithmetic on the raw sums."""
    lexical, vector = both
    policy = FusionPolicy(k_rrf=k)
    fused = fuse(policy, lexical, [hit._replace(weak=False) for hit in vector])
    raw = {
        hit.chunk_id: sum(
            (Fraction(1, k + side.rank) for side in (hit.lexical, hit.vector) if side is not None), Fraction(0)
        )
        for hit in fused
    }
    for one, other in itertools.pairwise(fused):
        assert raw[one.chunk_id] >= raw[other.chunk_id] or float(raw[one.chunk_id]) == pytest.approx(
            float(raw[other.chunk_id]), rel=1e-14
        )
        assert ((one.rrf_score or 0) >= (other.rrf_score or 0)) is (one.score >= other.score)


@given(POLICIES, lists())
def test_scores_lie_between_0_and_1_and_fall(policy: FusionPolicy, both: tuple[list[Ranked], list[Ranked]]) -> None:
    """R086, R088."""
    fused = fuse(policy, *both)
    assert all(0 <= hit.score <= 1 for hit in fused)
    assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)
    assert {hit.chunk_id for hit in fused} == {hit.chunk_id for side in both for hit in side}
    assert len(fused) == len({hit.chunk_id for hit in fused})


@given(POLICIES, lists(), st.randoms(use_true_random=False))
def test_the_order_depends_on_ranks_and_scores_and_on_nothing_else(
    policy: FusionPolicy, both: tuple[list[Ranked], list[Ranked]], shuffler: random.Random
) -> None:
    """R103: the same every time, in whatever order the hits are handed over."""
    once = fuse(policy, *both)
    assert fuse(policy, *both) == once
    for side in both:
        shuffler.shuffle(side)
    again = fuse(policy, *both)
    assert [hit.chunk_id for hit in again] == [hit.chunk_id for hit in once] or policy.kind == "convex"
    assert by_chunk(again).keys() == by_chunk(once).keys()


@given(lists(may_be_weak=False))
def test_at_weight_one_both_sides_count_alike(both: tuple[list[Ranked], list[Ranked]]) -> None:
    """R085: exchanging the lists changes no score."""
    lexical, vector = both
    one, other = by_chunk(fuse(RRF, lexical, vector)), by_chunk(fuse(RRF, vector, lexical))
    assert {chunk: hit.rrf_score for chunk, hit in one.items()} == {
        chunk: hit.rrf_score for chunk, hit in other.items()
    }


@given(lists())
def test_a_chunk_of_one_list_never_gets_more_than_one_half_at_weight_one(
    both: tuple[list[Ranked], list[Ranked]],
) -> None:
    """R086."""
    lexical, vector = both
    for hit in fuse(RRF, lexical, [item._replace(weak=False) for item in vector]):
        if hit.lexical is None or hit.vector is None:
            assert hit.score <= 0.5
        assert hit.score >= 0.5 * 61 / (60 + 20)


@given(lists(), st.integers(1, 1000))
def test_a_better_rank_never_costs_a_chunk_its_place(both: tuple[list[Ranked], list[Ranked]], k: int) -> None:
    """R087, R125: whoever is better placed in both lists stands before."""
    lexical, vector = both
    assume(lexical and vector)
    fused = fuse(FusionPolicy(k_rrf=k), lexical, [hit._replace(weak=False) for hit in vector])
    both_lists = [hit for hit in fused if hit.lexical and hit.vector]
    for place, one in enumerate(both_lists):
        for other in both_lists[place + 1 :]:
            assert one.lexical and one.vector and other.lexical and other.vector  # noqa: PT018 - for the type checker
            assert not (other.lexical.rank < one.lexical.rank and other.vector.rank < one.vector.rank)


# --- convex


def test_convex_mixes_scores_that_both_sides_have_brought_to_0_and_1() -> None:
    """Lists that are equally clear share by the weight as it is."""
    words = ranked("a", "b", "c", scores=[0.75, 2 / 3, 0.5])  # bm25 of 3, 2 and 1
    meaning = ranked("b", "c", "a", scores=[0.9, 0.8, 0.7])
    fused = by_chunk(fuse(FusionPolicy(kind="convex", convex_weight=0.6), words, meaning))
    assert fused["a"].score == pytest.approx(0.4 * 1 + 0.6 * 0)
    assert fused["b"].score == pytest.approx(0.4 * 0.5 + 0.6 * 1)
    assert fused["c"].score == pytest.approx(0.4 * 0 + 0.6 * 0.5)
    assert order(fuse(FusionPolicy(kind="convex", convex_weight=0.6), words, meaning)) == ["b", "a", "c"]
    assert fused["a"].weights == pytest.approx((0.4, 0.6))


def test_convex_has_no_rrf_score() -> None:
    """product.md 3.7."""
    assert {hit.rrf_score for hit in fuse(CONVEX, ranked("a", "b"), ranked("b", "c"))} == {None}


def test_a_list_without_a_clear_favourite_has_less_of_a_say_in_convex() -> None:
    flat = [0.51, *[0.5 - place / 1000 for place in range(19)]]
    clear = [0.9, *[0.3 - place / 1000 for place in range(19)]]
    chunks = [f"c{number:02}" for number in range(20)]
    even = FusionPolicy(kind="convex", convex_weight=0.5)
    words_clear = fuse(even, ranked(*chunks, scores=clear), ranked(*reversed(chunks), scores=flat))
    meaning_clear = fuse(even, ranked(*chunks, scores=flat), ranked(*reversed(chunks), scores=clear))
    assert words_clear[0].chunk_id == "c00"
    assert words_clear[0].weights[0] > 0.5
    assert meaning_clear[0].chunk_id == "c19"
    assert meaning_clear[0].weights[1] > 0.5


def test_weak_hits_have_a_weight_of_their_own_in_convex_too() -> None:
    policy = FusionPolicy(kind="convex", convex_weight=0.8, convex_weight_weak=0.1)
    words, scores = ranked("a", "b", "c", scores=[0.75, 2 / 3, 0.5]), [0.9, 0.8, 0.7]
    strong = by_chunk(fuse(policy, words, ranked("b", "c", "a", scores=scores)))
    weak = by_chunk(fuse(policy, words, ranked("b", "c", "a", scores=scores, weak=("a", "b", "c"))))
    assert strong["b"].weights == pytest.approx((0.2, 0.8))
    assert weak["b"].weights == pytest.approx((0.9, 0.1))
    mixed = by_chunk(
        fuse(policy, ranked("x", "y", scores=[0.7, 0.6]), ranked("w", "foreign", scores=[0.9, 0.8], weak=("w",)))
    )
    assert mixed["x"].weights == pytest.approx((0.9, 0.1)), "not seen by a side that knows less: judged by its words"
    assert mixed["foreign"].weights[1] >= 0.8


@given(lists(may_be_weak=False), st.floats(0, 1))
@example(([], ranked("a")), 0.0)
@example((ranked("a", "b", scores=[0.999, 0.999]), ranked("a", "b", scores=[0.3, 0.3])), 0.5)
def test_the_shares_of_convex_add_up_to_one_and_none_is_negative(
    both: tuple[list[Ranked], list[Ranked]], weight: float
) -> None:
    for hit in fuse(FusionPolicy(kind="convex", convex_weight=weight), *both):
        assert sum(hit.weights) == pytest.approx(1)
        assert all(0 <= share <= 1 for share in hit.weights)


@given(lists(may_be_weak=False))
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
def test_nothing_beyond_the_depth_of_both_lists_is_better_than_the_bound(depth: int, k: int, weight: float) -> None:
    policy = FusionPolicy(k_rrf=k, vector_weight=weight)
    bound = best_beyond(policy, depth)
    ranks = [Ranked(f"c{rank}", rank, 1.0) for rank in range(1, depth + 20)]
    beyond = {hit.chunk_id for hit in ranks[depth:]}
    for hit in fuse(policy, ranks, ranks):
        if hit.chunk_id in beyond:
            assert hit.score <= bound.score + 1e-12
            assert (hit.rrf_score or 0) <= (bound.rrf_score or 0) + 1e-12
