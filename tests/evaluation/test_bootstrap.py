"""The paired bootstrap is reproducible, and finds only real differences significant."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab.evaluation.metrics import LEAST_QUERIES, Interval, paired_difference

VALUES = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40)


@settings(max_examples=25)
@given(VALUES)
def test_the_interval_lies_within_the_differences_and_changes_its_sign_if_runs_are_exchanged(
    pairs: list[tuple[float, float]],
) -> None:
    a, b = [one for one, _ in pairs], [other for _, other in pairs]
    interval = paired_difference(a, b)
    assert interval == paired_difference(a, b)
    differences = [other - one for one, other in pairs]
    nothing = [0.0] if len(pairs) < LEAST_QUERIES else []
    assert min(differences + nothing) - 1e-9 <= interval.low <= interval.high <= max(differences + nothing) + 1e-9
    assert interval.mean == pytest.approx(sum(differences) / len(differences), abs=1e-9)
    turned = paired_difference(b, a)
    assert (turned.mean, turned.low, turned.high) == pytest.approx(interval.turned(), abs=1e-9)


def test_equal_values_have_no_difference() -> None:
    assert paired_difference([0.5, 1.0], [0.5, 1.0]) == Interval(0.0, 0.0, 0.0)
    assert paired_difference([0.5], [0.5]).verdict == "same"


def test_a_small_steady_gain_is_significant_and_noise_is_not() -> None:
    random_numbers = random.Random(3)
    before = [random_numbers.random() for _ in range(200)]
    assert (
        paired_difference(before, [value + 0.02 + 0.05 * (random_numbers.random() - 0.5) for value in before]).verdict
        == "better"
    )
    assert paired_difference(before, [value - 0.1 for value in before]).verdict == "worse"
    # As many up as down, and as far.
    shaken = [value + (0.2 if place % 2 else -0.2) for place, value in enumerate(before)]
    assert paired_difference(before, shaken).verdict == "same"


def test_interval_contains_the_true_mean_in_about_95_of_100_samples() -> None:
    """Of 100 intervals between 85 and 100 must contain the mean."""
    random_numbers = random.Random(7)
    covered = 0
    for _ in range(100):
        differences = [random_numbers.gauss(0.1, 1) for _ in range(60)]
        interval = paired_difference([0.0] * 60, differences)
        covered += interval.low <= 0.1 <= interval.high
    assert 85 <= covered <= 100


def test_values_of_different_numbers_of_queries_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match="same queries"):
        paired_difference([1.0], [1.0, 2.0])


@pytest.mark.parametrize("count", [1, 2, 4])
def test_few_queries_are_never_significant(count: int) -> None:
    """Regression: one additional found query made a run significantly better."""
    interval = paired_difference([0.0] * count, [1.0] * count)
    assert (interval.mean, interval.verdict) == (1.0, "same")
    assert paired_difference([0.0] * 5, [1.0] * 5).verdict == "better"
