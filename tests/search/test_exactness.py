"""How literally a passage contains the words of a query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.search import Exactness
from kebab.search.lexical import Wording
from kebab.store.fts5.tokenizer import SqliteTokenizer

VERBATIM, PHRASE, NEAR, ALL = Exactness.VERBATIM, Exactness.PHRASE, Exactness.NEAR, Exactness.ALL
FAR = "and then something quite different follows for a long while, " * 3


def exactness(query: str, text: str, *, title: str = "Title", dropped: tuple[str, ...] = ()) -> Exactness:
    return Wording(query.split(), dropped, SqliteTokenizer()).exactness_of(title, ("Heading",), text)


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("kubectl drain", "Run `kubectl  drain` first.", VERBATIM),
        ("kubectl drain", "kubectl\ndrain", VERBATIM),
        ("kubectl drain", "kubectl drains the node", PHRASE),
        ("kubectl drain", "kubectl: draining", PHRASE),
        ("kubectl drain", "drain a node by kubectl", NEAR),
        ("kubectl drain", f"kubectl {FAR} drain", ALL),
        ("kubectl drain", "mykubectl drain is not that, kubectl and drain are", NEAR),
        ("kubectl drain", f"kubectl drainage {FAR} drain", ALL),
        ("C++ templates", "About C++ templates.", VERBATIM),
        ("C++ templates", "About C templates.", PHRASE),
        ("v1.28.3", "since v1.28.3.", VERBATIM),
        ("v1.28.3", "since v1.28-3", PHRASE),
        ("parseHTTPHeader", "def parseHTTPHeader(line):", VERBATIM),
        ("user-agent", "the user agent", PHRASE),
        ("docs/servers.xlsx", "see docs/servers.xlsx", VERBATIM),
        ("cafe menu", "two café menus", PHRASE),
        ("café menu", "two cafe menus", PHRASE),
        ("café menu", "two cafe\u0301 menus", PHRASE),
        ("drain", "drained", ALL),
        ("drain", "drain", VERBATIM),
        ("파드의 수명", "모든 파드의 수명은 짧다", VERBATIM),
        ("파드의 수명을", "모든 파드의 수명은 짧다", PHRASE),
        ("파드 수명", "파드의 짧은 수명", NEAR),
        ("kubernetes 설치", "kubernetes 설치를 한다", VERBATIM),
        ("kubernetes는 무료", "kubernetes 무료", NEAR),
        ("東京 タワー", "東京 タワーに行く", VERBATIM),
    ],
)
def test_passages_are_ordered_by_words_as_typed_then_in_a_row_then_near_each_other(
    query: str, text: str, expected: Exactness
) -> None:
    assert exactness(query, text) is expected


def test_stop_words_count_only_between_other_words_of_the_query() -> None:
    question, little = "how do I undo the last commit", ("how", "do", "I", "the")
    assert exactness(question, "undo the last commit", dropped=little) is PHRASE
    assert exactness("the state of", "it is the state of things", dropped=("the", "of")) is VERBATIM
    assert exactness("the state of", "a state", dropped=("the", "of")) is ALL
    assert exactness(question, "undo my last commit", dropped=little) is NEAR


def test_words_in_the_title_count_less_than_words_in_the_passage() -> None:
    assert exactness("kubectl drain", f"drain {FAR} kubectl", title="kubectl drain") is NEAR
    assert exactness("kubectl drain", f"drain {FAR} kubectl", title="kubectl") is ALL


def test_a_long_query_of_repeated_words_is_not_compared_as_a_phrase() -> None:
    """Comparing it at each place of a text that repeats the same words took 9 s of CPU time for 32,000 words."""
    assert Wording(["x"] * 64, (), SqliteTokenizer()).is_checked
    assert not Wording(["x"] * 65, (), SqliteTokenizer()).is_checked
    assert not Wording(["x_" * 65], (), SqliteTokenizer()).is_checked


def test_a_query_of_many_silent_and_telling_words_takes_linear_time() -> None:
    # No clock: quadratic code needs minutes.
    assert not Wording(["a", "x"] * 100_000, ["a,"] * 100_000, SqliteTokenizer()).is_checked


def test_verbatim_matches_and_titles_are_called_phrase_in_the_json() -> None:
    assert [level.label for level in Exactness] == ["some", "all", "near", "phrase", "phrase", "phrase"]


WORDS = st.lists(
    st.from_regex(r"[a-z]{2,8}|[가-힣]{2,4}|[A-Za-z]\w{1,5}\.\w{1,3}", fullmatch=True), min_size=2, max_size=5
)


@given(WORDS, st.text(max_size=200), st.text(max_size=200))
def test_a_query_inside_any_text_is_recognised_as_verbatim(words: list[str], before: str, after: str) -> None:
    assert exactness(" ".join(words), f"{before} {' '.join(words)} {after}") is VERBATIM


@given(st.text(max_size=300), st.text(max_size=2000))
def test_any_query_and_any_text_have_an_exactness(query: str, text: str) -> None:
    assert exactness(query, text) >= ALL
