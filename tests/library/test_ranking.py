"""Ranking of libraries by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kebab.library.ranking import composite_score, ranked

if TYPE_CHECKING:
    from tests.library.conftest import MakeLibrary


@pytest.mark.parametrize(
    ("name", "score"),
    [
        ("widget", 100 + 50 + 0.42 + 60),
        ("WIDGET", 100 + 50 + 0.42 + 60),
        ("wid", 50 + 0.42 + 60),
        ("get", 0.42 + 60),
        ("gauges", 20 + 0.42 + 60),
        ("DASH", 20 + 0.42 + 60),
        ("nothing", 0.42 + 60),
    ],
)
def test_the_score_is_the_sum_of_its_parts_and_an_exact_title_counts_as_a_prefix_too(
    library: MakeLibrary, name: str, score: float
) -> None:
    assert composite_score(library(), name) == pytest.approx(score)


def test_a_library_without_a_trust_score_counts_as_zero(library: MakeLibrary) -> None:
    assert composite_score(library(trust_score=None), "nothing") == pytest.approx(0.42)


def test_best_library_comes_first_in_any_input_order(library: MakeLibrary) -> None:
    exact, prefix, described = library("react"), library("react-router"), library("preact", description="Like react")
    named = frozenset(one.library_id for one in (exact, prefix, described))
    for order in ([exact, prefix, described], [described, prefix, exact], [prefix, exact, described]):
        found = ranked(order, "react", named=named, matching={})
        assert [match.library.title for match in found] == ["react", "react-router", "preact"]
        assert [match.score for match in found] == sorted((match.score for match in found), reverse=True)


def test_libraries_found_by_name_come_before_those_found_by_snippets(library: MakeLibrary) -> None:
    famous, named = library("Famous", trust_score=10.0, snippets=100_000), library("Dial", trust_score=None, snippets=1)
    found = ranked([famous, named], "dial", named=frozenset({named.library_id}), matching={famous.library_id: 50})
    assert [match.library.title for match in found] == ["Dial", "Famous"]


def test_ties_are_broken_by_matching_snippets_and_then_by_id(library: MakeLibrary) -> None:
    a, b, c = (library(title) for title in ("aaa", "bbb", "ccc"))
    found = ranked([c, b, a], "zzz", named=frozenset(), matching={c.library_id: 2})
    assert [match.library.title for match in found] == ["ccc", "aaa", "bbb"]
    assert [match.matching_snippets for match in found] == [2, 0, 0]
