"""The FTS5 expression of each kind of query tree; FTS5 accepts the expression of any typed text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kebab.core.query_tree import And, Bag, Not, Or, Phrase, Prefix, QueryTree, Word, parse
from kebab.core.search import SearchFilters
from kebab.store.fts5.match_expression import MatchExpressionBuilder
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.sqlite.lexical import SqliteLexicalIndex, Vocabulary

if TYPE_CHECKING:
    from tests.store.conftest import Shelf


@pytest.fixture(scope="module")
def corpus(shared_shelf: Shelf) -> Shelf:
    shared_shelf.write("git.md", "Install git. The installation of git sets the user-agent.", title="Git")
    shared_shelf.write("ko.md", "문서를 검색하는 방법. kubernetes는 좋다.", title="한국어 문서")
    shared_shelf.write("cpp.md", "std::vector in c++ is not a list", title="C++")
    return shared_shelf


def build(
    corpus: Shelf, query: str | QueryTree, *, match: str = "all", drop: bool = False, type_ahead: bool = False
) -> str:
    tokenizer = SqliteTokenizer(corpus.connection)
    builder = MatchExpressionBuilder(tokenizer, Vocabulary(corpus.connection, tokenizer), "bigrams")
    tree = parse(query) if isinstance(query, str) else query
    return builder.build(tree, match=match, drop_stop_words=drop, type_ahead=type_ahead).text


@pytest.mark.parametrize(
    ("query", "every", "some"),
    [
        ("install git", '"install" AND "git"', '"install" OR "git"'),
        ("  install\t git ", '"install" AND "git"', '"install" OR "git"'),
        ("user-agent git", '"user agent" AND "git"', '"user" OR "agent" OR "git"'),
        ("git git", '"git"', '"git"'),
        ('"install git"', '"install git"', '"install git"'),
        ("install AND git", '("install") AND ("git")', '("install") AND ("git")'),
        ("install OR git", '("install") OR ("git")', '("install") OR ("git")'),
        ("install NOT git", '("install") NOT ("git")', '("install") NOT ("git")'),
        ("문서를 검색", 'cjk : "문서" AND cjk : "검색"', 'cjk : "문서" OR cjk : "검색"'),
        ("검색하는", 'cjk : "검색 색하"', 'cjk : "검색" OR cjk : "색하"'),
        ("kubernetes는", '"kubernetes"', '"kubernetes"'),
        ("書", 'cjk : "書" *', 'cjk : "書" *'),
        ("東京タワー", 'cjk : "東京" AND cjk : "タワ ワー"', 'cjk : "東京" OR cjk : "タワ" OR cjk : "ワー"'),
        ("", "", ""),
        ("... -- !!", "", ""),
    ],
)
def test_a_query_becomes_the_fts5_expression_for_match_all_and_any(
    corpus: Shelf, query: str, every: str, some: str
) -> None:
    assert build(corpus, query, match="all") == every
    assert build(corpus, query, match="any") == some


def test_a_query_without_operators_requires_every_word(corpus: Shelf) -> None:
    assert corpus.search("install git") == ["git.md"]
    assert corpus.search("install vector") == []
    assert sorted(corpus.search("install vector", match="any")) == ["cpp.md", "git.md"]


def test_single_quotes_pass_fts5_through(corpus: Shelf) -> None:
    assert build(corpus, "'title : git OR NEAR(a b)'") == "title : git OR NEAR(a b)"
    assert corpus.search("'text : installation NOT vector'") == ["git.md"]
    assert corpus.search("'inst*'") == ["git.md"]


SPECIAL_CHARACTERS = ['"', '""', "^", "*", ":", "(", ")", "(x", "x)", "a:b", "title:git", "^git", "git^2", "c++", "std::vector", "install AND", "NOT git",
     "AND OR NOT", "a AND OR b", "NEAR(a b)", "{title}: x", "-git", "+git", '"unclosed', 'a"b"c', "\\", "%", "\0", "\ufeff", "'", "''", ";DROP TABLE chunks", "a,b", "[x]", "@x", "#tag", "$x", "`x`", "~x", "a|b", "a&b", "🙂", "\u0301", "١٢٣", "ﬁ", "İ"]  # fmt: skip


def test_special_characters_of_fts5_are_treated_as_text(corpus: Shelf) -> None:
    for match in ["all", "any"]:
        for query in SPECIAL_CHARACTERS:
            corpus.search(query, match=match)


def test_column_filters_and_near_work_only_in_raw_queries(corpus: Shelf) -> None:
    assert build(corpus, "title:git") == '"title git"'
    assert corpus.search("title:git") == []
    assert corpus.search("'title:git'") == ["git.md"]


def test_operators_in_lower_case_are_words(corpus: Shelf) -> None:
    assert build(corpus, "install or git") == '"install" AND "or" AND "git"'


def test_upper_case_operators_phrases_and_stars_are_query_syntax(corpus: Shelf) -> None:
    assert sorted(corpus.search("installation OR vector")) == ["cpp.md", "git.md"]
    assert corpus.search("git NOT installation") == []
    assert corpus.search('"installation of git"') == ["git.md"]
    assert corpus.search('"git of installation"') == []
    assert corpus.search("installat*") == ["git.md"]


def test_not_binds_tightest_then_and_then_or(corpus: Shelf) -> None:
    assert build(corpus, "a OR b AND c NOT d") == '("a") OR (("b") AND (("c") NOT ("d")))'


def test_an_explicit_operator_keeps_its_meaning_in_any(corpus: Shelf) -> None:
    assert corpus.search("install AND vector", match="any") == []


def test_stop_words_are_dropped_unless_the_query_has_no_other_words(corpus: Shelf) -> None:
    assert build(corpus, "how to install the git", drop=True) == '"install" AND "git"'
    assert build(corpus, "how to", drop=True) == '"how" AND "to"'
    assert build(corpus, '"how to" install', drop=True) == '"how to" AND "install"'
    assert build(corpus, "문서를 어떻게 검색", drop=True) == 'cjk : "문서" AND cjk : "검색"'


def test_a_prefix_with_a_star_becomes_the_word_or_the_known_words_that_begin_with_it(corpus: Shelf) -> None:
    """FTS5's own prefix search would not find stems."""
    assert build(corpus, "install*") == '("install")'  # installation has the same stem
    assert build(corpus, "installat*") == '("installat" OR "installation")'
    assert build(corpus, "zzz*") == '("zzz")'


def test_an_unknown_last_word_is_searched_as_a_prefix(corpus: Shelf) -> None:
    assert build(corpus, "git installat") == '"git" AND ("installat" OR "installation")'
    assert build(corpus, "installat git") == '"installat" AND "git"'
    assert build(corpus, "git inst", type_ahead=True).startswith('"git" AND ("inst" OR "install')


def test_a_known_last_word_is_searched_as_a_prefix_only_with_type_ahead(corpus: Shelf) -> None:
    assert build(corpus, "user") == '"user"'
    assert build(corpus, "use", type_ahead=True) == '("use" OR "user")'


@pytest.mark.parametrize("query", ["문서", "검색", "문서를", "검색 방법", "한국어", "kubernetes", "kubernetes는", "문"])
def test_korean_words_are_found_inside_longer_ones(corpus: Shelf, query: str) -> None:
    assert corpus.search(query) == ["ko.md"]


def test_a_mixed_query_finds_both_scripts(corpus: Shelf) -> None:
    assert corpus.search("kubernetes 문서") == ["ko.md"]
    assert sorted(corpus.search("git 문서", match="any")) == ["git.md", "ko.md"]


@pytest.mark.parametrize("operator", ["AND", "OR", "NOT"])
@pytest.mark.parametrize("count", [2, 30, 128, 300])
def test_long_chains_of_operators_are_accepted(corpus: Shelf, operator: str, count: int) -> None:
    """The parser of FTS5 has a small stack, so chains of one operator must not nest."""
    query = f" {operator} ".join(f"w{number}" for number in range(count))
    for match in ("all", "any"):
        assert corpus.search(query, match=match) == []


@pytest.mark.parametrize("count", [50, 256, 5000])
def test_a_query_as_long_as_a_page_is_accepted(corpus: Shelf, count: int) -> None:
    query = " ".join(f"w{number} 문서{number} user-agent{number}" for number in range(count))
    for match in ("all", "any"):
        corpus.search(query, match=match)


def test_a_very_long_word_is_accepted(corpus: Shelf) -> None:
    for query in ("x" * 200_000, "문" * 20_000, "a-" * 20_000, '"' + "a " * 20_000 + '"'):
        for match in ("all", "any"):
            corpus.search(query, match=match)


pieces = st.one_of(
    st.text(max_size=12),
    st.text(st.characters(), max_size=6),  # surrogates too
    st.sampled_from(
        [
            '"',
            "'",
            "(",
            ")",
            "*",
            ":",
            "^",
            "-",
            "+",
            "AND",
            "OR",
            "NOT",
            "NEAR",
            "git",
            "문서를",
            "東京",
            "the",
            "\0",
            "\udc80",
        ]
    ),
)
texts = st.lists(pieces, max_size=8).map(" ".join)


def accepted(corpus: Shelf, tree: QueryTree, match: str, drop: bool, ahead: bool) -> None:
    index = SqliteLexicalIndex(corpus.connection, korean_analysis="bigrams")
    index.search(tree, match=match, drop_stop_words=drop, filters=SearchFilters(), limit=3, type_ahead=ahead)


@given(text=texts, match=st.sampled_from(["all", "any"]), drop=st.booleans(), ahead=st.booleans())
@example(text="a\udc80b", match="all", drop=False, ahead=False)
@example(text='"a\udc80b"', match="all", drop=False, ahead=False)
def test_fts5_accepts_the_expression_of_any_typed_query(
    shared_corpus: Shelf, text: str, match: str, drop: bool, ahead: bool
) -> None:
    """Only a query in single quotes may be refused."""
    if not (
        len(text.replace("\0", " ").strip()) > 2
        and text.replace("\0", " ").strip()[0] == text.replace("\0", " ").strip()[-1] == "'"
    ):
        accepted(shared_corpus, parse(text), match, drop, ahead)


@pytest.fixture(scope="module")
def shared_corpus(corpus: Shelf) -> Shelf:
    return corpus


operands = st.one_of(st.builds(Word, pieces), st.builds(Prefix, pieces), st.builds(Phrase, pieces))
trees: st.SearchStrategy[QueryTree] = st.recursive(
    st.lists(operands, max_size=4).map(lambda found: Bag(tuple(found))),
    lambda below: st.one_of(st.builds(And, below, below), st.builds(Or, below, below), st.builds(Not, below, below)),
    max_leaves=12,
)


@given(tree=trees, match=st.sampled_from(["all", "any"]), drop=st.booleans(), ahead=st.booleans())
def test_fts5_accepts_the_expression_of_every_query_tree(
    shared_corpus: Shelf, tree: QueryTree, match: str, drop: bool, ahead: bool
) -> None:
    """Also trees that no query gives: a Not without its left side, an empty And, a phrase of quotes."""
    accepted(shared_corpus, tree, match, drop, ahead)


def test_a_korean_word_of_one_syllable_is_searched_together_with_other_words(shelf: Shelf) -> None:
    """Regression: 물 and 차 were left out for being short, and found nowhere."""
    shelf.write("a.md", "물에 찻잎을 넣는다")
    assert shelf.search("물 비등점", match="any", drop_stop_words=True) == ["a.md"]
