"""The terms that an expression looks for, and the check of a passage by the expression: both agree with a real index."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kebab.core.query_tree import And, Bag, Not, Or, Phrase, Prefix, QueryTree, Word, parse
from kebab.store.fts5.chunk_columns import ChunkColumns
from kebab.store.fts5.match_expression import MatchExpression, MatchExpressionBuilder
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.fts5.wanted_terms import IndexTerm, WantedTerms, matching, wanted_terms
from kebab.store.sqlite.lexical import Vocabulary

if TYPE_CHECKING:
    from tests.store.conftest import Shelf

TOKENIZER = SqliteTokenizer()


@pytest.fixture(scope="module")
def corpus(shared_shelf: Shelf) -> Shelf:
    shared_shelf.write(
        "git.md", "Install git. Running the installation sets the user-agent.", "user of an agent", title="Git setup"
    )
    shared_shelf.write("ko.md", "문서를 검색하는 방법. kubernetes는 좋다.", "물을 끓인다", title="한국어 문서")
    shared_shelf.write("ja.md", "東京タワーの書", "runs 문서 검색 user", title="Tower", headings=("Tokyo", "東京"))
    return shared_shelf


def build(corpus: Shelf, query: str | QueryTree, match: str = "any") -> MatchExpression:
    builder = MatchExpressionBuilder(TOKENIZER, Vocabulary(corpus.connection, TOKENIZER), "bigrams")
    return builder.build(parse(query) if isinstance(query, str) else query, match=match, drop_stop_words=False)


def wanted(corpus: Shelf, query: str, match: str = "any") -> WantedTerms:
    return wanted_terms(build(corpus, query, match), TOKENIZER)


def latin(*stems: str) -> list[IndexTerm]:
    return [IndexTerm(stem, in_cjk=False, is_beginning=False) for stem in stems]


def test_wanted_terms_are_stems_counted_as_often_as_the_query_has_them(corpus: Shelf) -> None:
    """FTS5 adds the ranks of all quoted texts: run and running count twice for one stem, the same word only once."""
    assert list(wanted(corpus, "Running run git git").flat()) == latin("run", "run", "git")
    assert wanted(corpus, "user-agent").phrases == (tuple(latin("user")), tuple(latin("agent")))
    assert wanted(corpus, "user-agent", "all").phrases == (tuple(latin("user", "agent")),)


def test_cjk_terms_are_in_their_own_column_and_a_single_character_is_a_prefix(corpus: Shelf) -> None:
    assert list(wanted(corpus, "검색하는").flat()) == [IndexTerm("검색", True, False), IndexTerm("색하", True, False)]
    assert list(wanted(corpus, "書").flat()) == [IndexTerm("書", True, True)]


def test_a_prefix_becomes_all_known_words_that_begin_with_it(corpus: Shelf) -> None:
    assert [term.text for term in wanted(corpus, "installat*").flat()] == ["installat", "instal"]


@pytest.mark.parametrize(
    ("query", "plain"),
    [("git user", True), ("git OR user", True), ("문서를 검색", True), ("installat*", True), ('"git"', True), ("", True),
     ('"install git"', False), ("git AND user", False), ("git NOT user", False), ('git "문서를 검색"', False), ('"git 문서"', False)],
)  # fmt: skip
def test_only_expressions_of_alternatives_need_no_check_of_the_passage(corpus: Shelf, query: str, plain: bool) -> None:
    assert wanted(corpus, query).is_plain is plain
    assert not wanted(corpus, "git user", "all").is_plain
    assert wanted(corpus, "git", "all").is_plain


def test_excluded_words_are_not_wanted_terms(corpus: Shelf) -> None:
    assert list(wanted(corpus, "git NOT user").flat()) == latin("git")


def test_a_raw_expression_has_no_terms(corpus: Shelf) -> None:
    assert wanted(corpus, "'git OR user'") == ((), False)


words = st.sampled_from(
    [
        "git",
        "Running",
        "user",
        "user-agent",
        "agent",
        "of",
        "nowhere",
        "문서를",
        "문서",
        "검색하는",
        "물",
        "書",
        "東京タワー",
        "git문서",
    ]
)
operands = st.one_of(
    st.builds(Word, words),
    st.builds(Prefix, words),
    st.builds(Phrase, st.lists(words, min_size=1, max_size=3).map(" ".join)),
)
trees: st.SearchStrategy[QueryTree] = st.recursive(
    st.lists(operands, max_size=3).map(lambda found: Bag(tuple(found))),
    lambda below: st.one_of(st.builds(And, below, below), st.builds(Or, below, below), st.builds(Not, below, below)),
    max_leaves=5,
)


def has(columns: ChunkColumns, term: IndexTerm) -> bool:
    found = TOKENIZER.stems(columns.cjk if term.in_cjk else "\n".join(columns))
    return any(stem.startswith(term.text) for stem in found) if term.is_beginning else term.text in found


@given(tree=trees, match=st.sampled_from(["all", "any"]))
@example(tree=Not(Bag((Word("git"),)), Bag((Word("user"),))), match="any")
def test_terms_and_check_agree_with_the_index(corpus: Shelf, tree: QueryTree, match: str) -> None:
    rows = corpus.rows("SELECT chunk_id, heading_path, text, title, cjk FROM chunks")
    passages = {row[0]: ChunkColumns(*row[1:]) for row in rows}
    expression = build(corpus, tree, match)
    sql = "SELECT c.chunk_id FROM chunks_fts JOIN chunks c ON c.id = chunks_fts.rowid WHERE chunks_fts MATCH ?"
    found = {row[0] for row in corpus.rows(sql, (expression.text,))} if expression.text else set()
    assert matching(expression.text, passages) == found
    terms = wanted_terms(expression, TOKENIZER)
    having = {key for key, columns in passages.items() if any(has(columns, term) for term in terms.flat())}
    assert found <= having
    if terms.is_plain:
        assert found == having


def test_passages_may_be_empty_or_contain_unpaired_surrogates() -> None:
    passages = {"half": ChunkColumns("", "git \ud800", "", ""), "empty": ChunkColumns("", "", "", "")}
    assert matching('"git"', passages) == {"half"}
    assert matching("", passages) == set()
    assert matching('"git"', {}) == set()
