"""The trust score: its parts, their bounds, their sum, and how it is rounded."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.library.ranking import to_fixed, trust_score


def score(stars: int | None = 0, total_snippets: int = 0, **facts: bool) -> float:
    return trust_score(
        stars=stars,
        total_snippets=total_snippets,
        **{"is_github": False, "is_indexed": False, "has_description": False, **facts},
    )


@pytest.mark.parametrize(
    ("stars", "points"), [(None, 0.0), (0, 0.0), (9, 1.0), (99, 2.0), (999, 3.0), (9_999, 4.0), (10_000, 4.0), (10**9, 4.0), (1, 0.3), (-5, 0.0)]
)  # fmt: skip
def test_stars_add_their_logarithm_up_to_four_points(stars: int | None, points: float) -> None:
    assert score(stars) == points


@pytest.mark.parametrize(
    ("snippets", "points"), [(0, 0.0), (50, 0.1), (500, 1.0), (750, 1.5), (1_500, 3.0), (1_000_000, 3.0)]
)
def test_snippets_add_up_to_three_points(snippets: int, points: float) -> None:
    assert score(total_snippets=snippets) == points


@pytest.mark.parametrize("fact", ["is_github", "is_indexed", "has_description"])
def test_each_of_three_facts_adds_one_point(fact: str) -> None:
    assert score(**{fact: True}) == 1.0


def test_trust_score_is_at_most_ten() -> None:
    assert score(10**12, 10**12, is_github=True, is_indexed=True, has_description=True) == 10.0


@given(st.integers(0, 10**9) | st.none(), st.integers(0, 10**7), st.booleans(), st.booleans(), st.booleans())
def test_the_score_is_between_zero_and_ten_with_one_decimal(
    stars: int | None, snippets: int, github: bool, indexed: bool, described: bool
) -> None:
    found = score(stars, snippets, is_github=github, is_indexed=indexed, has_description=described)
    assert 0 <= found <= 10
    assert found == round(found, 1)


@given(st.floats(0, 128) | st.integers(0, 12_800).map(lambda hundredths: hundredths / 100))
def test_a_score_is_rounded_to_the_nearest_tenth_of_its_exact_value_and_halves_up(score: float) -> None:
    """JavaScript's toFixed takes the n for which n / 10 is nearest, and of two such n the larger one."""
    tenths = round(to_fixed(score) * 10)
    assert to_fixed(score) == tenths / 10
    assert Fraction(-1, 20) < Fraction(tenths, 10) - Fraction(score) <= Fraction(1, 20)


@pytest.mark.parametrize(
    ("given", "shown"), [(6.25, 6.3), (0.25, 0.3), (6.75, 6.8), (0.35, 0.3), (1.45, 1.4), (10.0, 10.0)]
)
def test_scores_that_round_differently_elsewhere(given: float, shown: float) -> None:
    assert to_fixed(given) == shown
