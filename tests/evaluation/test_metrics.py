"""Metrics of ranked lists: values computed by hand, and properties of any list."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.evaluation import metrics
from kebab.evaluation.metrics import Lines

GRADES = st.lists(st.integers(0, 3), max_size=30)
K = st.integers(1, 20)


@st.composite
def lists(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    """The gains of a ranked list, all wanted grades, and k."""
    gains = draw(GRADES)
    missed = draw(st.lists(st.integers(1, 3), max_size=5))
    return gains, [*(gain for gain in gains if gain), *missed], draw(K)


def test_metrics_equal_values_computed_by_hand() -> None:
    gains, wanted = [0, 2, 0, 1], [2, 1, 1]
    assert metrics.ndcg(gains, wanted, 10) == pytest.approx(
        (2 / math.log2(3) + 1 / math.log2(5)) / (2 + 1 / math.log2(3) + 1 / 2)
    )
    assert metrics.recall(gains, wanted, 3) == pytest.approx(1 / 3)
    assert metrics.precision(gains, 4) == 0.5
    assert metrics.reciprocal_rank(gains, 10) == 0.5
    assert (metrics.hit(gains, 1), metrics.hit(gains, 2)) == (0.0, 1.0)


@given(lists())
def test_every_metric_lies_between_0_and_1(case: tuple[list[int], list[int], int]) -> None:
    gains, wanted, k = case
    values = [
        metrics.ndcg(gains, wanted, k),
        metrics.recall(gains, wanted, k),
        metrics.precision(gains, k),
        metrics.reciprocal_rank(gains, k),
        metrics.hit(gains, k),
    ]
    assert all(0 <= value <= 1 + 1e-12 for value in values)


@given(lists())
def test_the_best_order_has_the_best_ndcg_and_a_whole_list_of_it_has_1(case: tuple[list[int], list[int], int]) -> None:
    gains, wanted, k = case
    assert metrics.ndcg(sorted(gains, reverse=True), wanted, k) >= metrics.ndcg(gains, wanted, k) - 1e-12
    if wanted:
        assert metrics.ndcg(sorted(wanted, reverse=True), wanted, k) == pytest.approx(1)


@given(lists())
def test_a_larger_k_never_finds_less(case: tuple[list[int], list[int], int]) -> None:
    gains, wanted, k = case
    assert metrics.recall(gains, wanted, k + 1) >= metrics.recall(gains, wanted, k)
    assert metrics.hit(gains, k + 1) >= metrics.hit(gains, k)
    assert metrics.reciprocal_rank(gains, k + 1) >= metrics.reciprocal_rank(gains, k)


@given(lists())
def test_unwanted_hits_after_the_last_wanted_one_change_nothing(case: tuple[list[int], list[int], int]) -> None:
    gains, wanted, k = case
    for metric in (metrics.ndcg, metrics.recall):
        assert metric([*gains, 0, 0], wanted, k) == metric(gains, wanted, k)


def _lines(doc: str, first: int, last: int) -> Lines:
    return Lines(doc, first, last)


def test_line_recall_is_the_share_of_expected_lines_that_are_cited() -> None:
    expected = [_lines("a", 1, 10)]
    assert metrics.line_recall(expected, [_lines("a", 6, 20)]) == 0.5
    assert metrics.line_recall(expected, [_lines("a", 1, 4), _lines("a", 3, 5), _lines("b", 6, 10)]) == 0.5
    assert metrics.line_recall([*expected, _lines("b", 3, 3)], [_lines("a", 1, 10)]) == 0.5
    assert metrics.line_recall(expected, []) == 0.0


def test_a_page_is_covered_by_a_citation_of_that_page_only() -> None:
    page = Lines("a", 3, 3, page=True)
    assert metrics.line_recall([page], [page]) == 1.0
    assert metrics.line_recall([page], [Lines("a", 4, 4, page=True), Lines("a", 1, 9)]) == 0.0


SPANS = st.lists(
    st.builds(
        lambda doc, first, size: Lines(doc, first, first + size),
        st.sampled_from("ab"),
        st.integers(1, 30),
        st.integers(0, 9),
    ),
    max_size=6,
)


@given(SPANS, SPANS, SPANS)
def test_citing_more_lines_never_lowers_line_recall(
    expected: list[Lines], cited: list[Lines], more: list[Lines]
) -> None:
    assert 0 <= metrics.line_recall(expected, cited) <= metrics.line_recall(expected, [*cited, *more]) <= 1 + 1e-12
    if expected:
        assert metrics.line_recall(expected, [*more, *expected]) == pytest.approx(1)


def test_means_are_over_the_rows_that_have_the_metric() -> None:
    assert metrics.means([{"a": 1.0}, {"a": 0.0, "b": 1.0}]) == ({"a": 0.5, "b": 1.0}, {"a": 2, "b": 1})


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_a_value_that_as_many_do_not_exceed(values: list[float], share: float) -> None:
    found = metrics.percentile(values, share)
    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) - 1e-6


def test_strings_are_matched_verbatim() -> None:
    assert metrics.share_contained(["sudo apt", "Brew"], ["run sudo apt install", "brew"]) == 0.5
