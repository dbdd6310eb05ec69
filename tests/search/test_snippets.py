"""A snippet is a verbatim part of the passage, within its limits, with marks on the matches."""

from __future__ import annotations

from collections.abc import Iterator

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.search import QueryTerms
from kebab.search.snippets import ELLIPSIS, Snippet, SnippetLimits, SnippetMaker, matches_in
from kebab.store.fts5.tokenizer import SqliteTokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Iterator[SqliteTokenizer]:
    connection = apsw.Connection(":memory:")
    yield SqliteTokenizer(connection)
    connection.close()


def terms(*words: str, cjk: tuple[str, ...] = ()) -> QueryTerms:
    return QueryTerms(frozenset((word,) for word in words), cjk)


TEXT = st.lists(
    st.sampled_from(["install", "git", "문서를", "검색", "word", "Installing", "🙂", "e\u0301", "漢字", "…", "a-b"])
    | st.text(max_size=9),
    max_size=120,
).map(" ".join)
TERMS = st.builds(
    QueryTerms,
    st.frozensets(st.sampled_from([("instal",), ("git",), ("word",), ("a", "b"), ("instal", "git")]), max_size=3),
    st.sampled_from([(), ("문서",), ("검색", "문서를"), ("漢字",), ("없는말",)]),
)


@given(text=TEXT, sought=TERMS, chars=st.integers(16, 400))
def test_a_snippet_is_verbatim_and_within_its_limits(
    tokenizer: SqliteTokenizer, text: str, sought: QueryTerms, chars: int
) -> None:
    snippet = SnippetMaker(tokenizer, SnippetLimits(chars)).of(text, sought)
    assert len(snippet.text) <= chars
    assert len(snippet.text.split()) <= max(1, chars // 4)
    candidates = {snippet.text}
    candidates |= {each.removeprefix(ELLIPSIS) for each in candidates}
    candidates |= {each.removesuffix(ELLIPSIS) for each in candidates}
    assert any(candidate in text for candidate in candidates)


@given(text=TEXT, sought=TERMS, chars=st.integers(16, 400))
def test_highlights_are_in_order_inside_the_snippet_and_mark_matches(
    tokenizer: SqliteTokenizer, text: str, sought: QueryTerms, chars: int
) -> None:
    snippet = SnippetMaker(tokenizer, SnippetLimits(chars)).of(text, sought)
    position = 0
    places = [text[start:end] for start, end in matches_in(text, sought, tokenizer)]
    for start, end in snippet.highlights:
        assert position <= start < end <= len(snippet.text)
        assert any(snippet.text[start:end] in place for place in places)
        position = end
    if places and chars >= 100:
        assert snippet.highlights, "where something was found, some of it is shown"


@pytest.mark.parametrize(
    ("text", "sought", "marked"),
    [
        ("How to install git", terms("instal"), "How to <b>install</b> git"),
        (
            "Installation, installing, installs",
            terms("instal"),
            "<b>Installation</b>, <b>installing</b>, <b>installs</b>",
        ),
        ("a Café menu", terms("cafe"), "a <b>Café</b> menu"),
        ("the user-agent header", QueryTerms(frozenset({("user", "agent")}), ()), "the <b>user-agent</b> header"),
        ("user and agent", QueryTerms(frozenset({("user", "agent")}), ()), "user and agent"),
        ("이 문서를 읽는다", terms(cjk=("문서",)), "이 <b>문서</b>를 읽는다"),
        ("데이터 베이스와 데이터베이스", terms(cjk=("데이터베이스",)), "데이터 베이스와 <b>데이터베이스</b>"),
        ("kubernetes는 좋다", terms("kubernet", cjk=("좋다",)), "<b>kubernetes</b>는 <b>좋다</b>"),
        ("nothing here", terms("absent"), "nothing here"),
        ("", terms("git"), ""),
    ],
)
def test_a_marked_snippet_encloses_matches_in_mark_tags(
    tokenizer: SqliteTokenizer, text: str, sought: QueryTerms, marked: str
) -> None:
    assert SnippetMaker(tokenizer, SnippetLimits(220)).of(text, sought).marked() == marked


def test_a_marked_snippet_has_sixteen_words_and_ellipses(tokenizer: SqliteTokenizer) -> None:
    text = "before " * 100 + "the git command " + "after " * 100
    snippet = SnippetMaker(tokenizer, SnippetLimits(64)).of(text, terms("git"))
    assert len(snippet.text.split()) <= 16
    assert snippet.text.startswith(ELLIPSIS)
    assert snippet.text.endswith(ELLIPSIS)
    assert "<b>git</b>" in snippet.marked()


def test_a_caller_may_choose_other_marks() -> None:
    assert Snippet("a git b", ((2, 5),)).marked("[", "]") == "a [git] b"


def test_a_short_text_is_shown_whole_and_a_long_one_from_its_beginning_when_nothing_matches(
    tokenizer: SqliteTokenizer,
) -> None:
    assert SnippetMaker(tokenizer, SnippetLimits(220)).of("short text", terms("x")).text == "short text"
    long = SnippetMaker(tokenizer, SnippetLimits(220)).of("word " * 200, terms("x"))
    assert long.text.startswith("word word")
    assert long.text.endswith("word" + ELLIPSIS)


def test_a_snippet_shows_the_part_with_most_words_of_the_query(tokenizer: SqliteTokenizer) -> None:
    text = "git " + "filler words " * 60 + "install git with brew " + "more filler " * 60
    assert "install git" in SnippetMaker(tokenizer, SnippetLimits(100)).of(text, terms("instal", "git", "brew")).text


def test_a_match_longer_than_the_snippet_is_marked_up_to_its_end(tokenizer: SqliteTokenizer) -> None:
    snippet = SnippetMaker(tokenizer, SnippetLimits(50)).of("문" * 1000, terms(cjk=("문" * 1000,)))
    assert len(snippet.text) <= 50
    assert snippet.highlights
    assert "문" in snippet.text


def test_korean_letters_and_emoji_count_as_one_character_each(tokenizer: SqliteTokenizer) -> None:
    for text in ("한국어문장이길게이어진다" * 50, "🙂" * 500, "긴 문장 " * 200):
        snippet = SnippetMaker(tokenizer, SnippetLimits(60)).of(text, terms("x"))
        assert 0 < len(snippet.text) <= 60
