"""R169 to R173: the parts of the score, their bounds, and their sum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.library.trust_score import trust_score


def score(stars: int | None = 0, total_snippets: int = 0, **facts: bool) -> float:
    return trust_score(
        stars=stars,
        total_snippets=total_snippets,
        **{"is_github": False, "is_indexed": False, "has_description": False, **facts},
    )


@pytest.mark.parametrize(
    ("stars", "points"), [(None, 0.0), (0, 0.0), (9, 1.0), (99, 2.0), (999, 3.0), (9_999, 4.0), (10_000, 4.0), (10**9, 4.0), (1, 0.3), (-5, 0.0)]
)  # fmt: skip
def test_r170_stars_count_by_their_order_of_magnitude_up_to_four(stars: int | None, points: float) -> None:
    """R170"""
    assert score(stars) == points


@pytest.mark.parametrize(
    ("snippets", "points"), [(0, 0.0), (50, 0.1), (500, 1.0), (750, 1.5), (1_500, 3.0), (1_000_000, 3.0)]
)
def test_r171_coverage_counts_up_to_three(snippets: int, points: float) -> None:
    """R171"""
    assert score(total_snippets=snippets) == points


@pytest.mark.parametrize("fact", ["is_github", "is_indexed", "has_description"])
def test_r172_each_of_three_facts_is_one_point(fact: str) -> None:
    """R172"""
    assert score(**{fact: True}) == 1.0


def test_r173_all_together_are_ten_and_never_more() -> None:
    """R173"""
    assert score(10**12, 10**12, is_github=True, is_indexed=True, has_description=True) == 10.0


@given(st.integers(0, 10**9) | st.none(), st.integers(0, 10**7), st.booleans(), st.booleans(), st.booleans())
def test_r173_the_score_is_between_zero_and_ten_with_one_decimal(
    stars: int | None, snippets: int, github: bool, indexed: bool, described: bool
) -> None:
    """R173"""
    found = score(stars, snippets, is_github=github, is_indexed=indexed, has_description=described)
    assert 0 <= found <= 10
    assert found == round(found, 1)
