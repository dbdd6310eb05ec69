"""The table of search options behind every surface: values are checked, and errors list the valid ones."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.errors import UsageError
from kebab.core.search import SearchFilters
from kebab.search.options import SearchRequest, absolute_date, join_library, split_library

NOW = datetime(2026, 3, 31, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("options", "name", "value"),
    [
        ({"top": 5}, "k", 5),
        ({"tag": "a"}, "tags_any", ("a",)),
        ({"tags": "a, b"}, "tags_all", ("a", "b")),
        ({"tags_all": ["a", "b"]}, "tags_all", ("a", "b")),
        ({"type": "code"}, "type", ("code",)),
        ({"types": ["code", "note"]}, "type", ("code", "note")),
        ({"path_glob": "*.md"}, "path", "*.md"),
        ({"exclude_tags": "x"}, "exclude_tag", ("x",)),
        ({"min_score": 1}, "min_score", 1),
        ({"k": None}, "k", None),
        ({"explain": True}, "explain", True),
    ],
)
def test_options_have_aliases_and_lists_may_be_text(options: dict[str, Any], name: str, value: Any) -> None:
    assert getattr(SearchRequest.from_options(options), name) == value


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"type": "movie"}, "pdf, markdown, code, note"),
        ({"mode": "psychic"}, "lexical, vector, hybrid"),
        ({"match": "some"}, "auto, all, any"),
        ({"sort": "size"}, "relevance, date"),
        ({"trust_min": "total"}, "generated, secondary, primary"),
        ({"k": 0}, "1 to 1000"),
        ({"k": 1001}, "1 to 1000"),
        ({"k": "5"}, "For example 10"),
        ({"k": True}, "For example 10"),
        ({"offset": -1}, "0 to"),
        ({"explain": "yes"}, "For example true"),
        ({"min_score": "high"}, "0.02"),
        ({"min_score": float("nan")}, "0.02"),
        ({"min_score": 1.01}, "0 to 1"),
        ({"min_score": -0.1}, "0 to 1"),
        ({"threshold": -1}, "0 to 2"),
        ({"threshold": float("inf")}, "0 to 2"),
        ({"query": 5}, "quotes"),
        ({"tags_any": [1]}, '["a", "b"]'),
        ({"tags_any": {"a": 1}}, '["a", "b"]'),
        ({"tga": "x"}, "Did you mean tag"),
        ({"zzzzzz": 1}, "Options:"),
    ],
)
def test_the_error_for_a_wrong_name_or_value_lists_the_valid_ones(options: dict[str, Any], hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        SearchRequest.from_options(options)
    assert hint in (caught.value.hint or "")


def test_options_that_are_not_given_keep_the_default_request_values() -> None:
    defaults = SearchRequest.from_options({"k": 3, "tags_any": ["a"]})
    assert SearchRequest.from_options({"query": "x", "k": 5}, defaults) == SearchRequest.from_options(
        {"query": "x", "k": 5, "tags_any": ["a"]}
    )
    assert SearchRequest.from_options({"k": None}, defaults).k == 3


def test_a_request_without_filters_has_none() -> None:
    assert SearchRequest.from_options({"query": "x"}).filters() == SearchFilters()
    assert not SearchFilters()
    assert SearchFilters(lang="ko")


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2026-01-31", "2026-01-31"),
        (" 2026-01-31 ", "2026-01-31"),
        ("2026-01-31T10:20", "2026-01-31T10:20"),
        ("2026-01-31 10:20:30", "2026-01-31T10:20:30"),
        ("1 week", "2026-03-24"),
        ("2 weeks ago", "2026-03-17"),
        ("3 days", "2026-03-28"),
        ("1 Month", "2026-03-01"),
        ("1y", "2025-03-31"),
        ("999999 years", "0001-01-01"),
    ],
)
def test_dates_are_absolute_or_counted_back_from_now(text: str, date: str) -> None:
    assert absolute_date(text, "after", NOW) == date


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "2026-02-30", "week", "1 fortnight", "-1 week"])
def test_the_error_for_a_wrong_date_has_examples(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        absolute_date(text, "after", NOW)
    assert "2 weeks" in (caught.value.hint or "")


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.lists(st.text() | st.integers())
    | st.dictionaries(st.text(), st.text())
)


@given(st.dictionaries(st.sampled_from(SearchRequest._fields) | st.text(), VALUES))
def test_any_options_give_a_request_or_a_usage_error(options: dict[str, Any]) -> None:
    try:
        SearchRequest.from_options(options).filters()
    except UsageError as error:
        assert error.hint


@pytest.mark.parametrize(
    ("library", "version"),
    [
        ("/acme/widget", None),
        (" /acme/widget ", None),
        ("/acme/widget/", None),
        ("/acme/widget@", None),
        ("/acme/widget/v1.0", "v1.0"),
        ("/acme/widget@v1.0", "v1.0"),
        ("/acme/widget/widget@1.0.0", "widget@1.0.0"),
        ("/acme/widget@widget@1.0.0", "widget@1.0.0"),
        ("/acme/widget/@acme/widget@1.0.0", "@acme/widget@1.0.0"),
        ("/acme/widget@release/1.0", "release/1.0"),
    ],
)
def test_the_version_after_a_library_id_is_kept_verbatim(library: str, version: str | None) -> None:
    assert split_library(library) == ("/acme/widget", version)


@given(st.none() | st.text(min_size=1).filter(lambda version: not version.isspace()))
def test_joining_a_library_id_and_a_version_and_splitting_them_gives_both_back(version: str | None) -> None:
    place = join_library("/acme/widget", version)
    assert split_library(place) == ("/acme/widget", version)
    assert SearchRequest(library=place).filters().library_version == (version or "")


@given(st.text(alphabet="/@ aé."))
def test_any_text_is_split_into_a_library_id_or_refused_with_an_example(text: str) -> None:
    try:
        library_id, _ = split_library(text)
    except UsageError as error:
        assert "/owner/project" in str(error.hint)
    else:
        assert library_id.count("/") == 2
        assert "@" not in library_id
