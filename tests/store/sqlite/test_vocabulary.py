"""The known words, with which an incomplete word is completed and misspellings are found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.analysis.word_forms import edit_distance
from kebab.store.fts5.known_words import MAX_EXPANSIONS, MAX_NEAR
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.sqlite.database import Connection
from kebab.store.sqlite.lexical import Vocabulary

if TYPE_CHECKING:
    from tests.store.conftest import Shelf


@pytest.fixture
def vocabulary(shelf: Shelf) -> Vocabulary:
    return Vocabulary(shelf.connection, SqliteTokenizer(shelf.connection))


def test_a_prefix_expands_to_the_known_words_that_begin_with_it(vocabulary: Vocabulary) -> None:
    vocabulary.add(["installation instal installers", "instance"])
    assert vocabulary.expand("installat") == ["installation"]
    assert set(vocabulary.expand("insta")) >= {"instal", "instance"}
    assert vocabulary.expand("xyz") == []


def test_words_of_one_stem_are_offered_once(vocabulary: Vocabulary) -> None:
    vocabulary.add(["connect connects connected connecting connection"])
    assert vocabulary.expand("connec") == ["connect"]


def test_expansions_of_a_prefix_are_the_shortest_words_and_at_most_fifty(vocabulary: Vocabulary) -> None:
    vocabulary.add([" ".join(f"pre{'z' * (number % 20)}{number}" for number in range(80))])
    found = vocabulary.expand("pre")
    assert len(found) == MAX_EXPANSIONS == 50
    assert [len(word) for word in found] == sorted(len(word) for word in found)


def test_known_words_are_normalised_as_in_the_index(vocabulary: Vocabulary) -> None:
    vocabulary.add(["Café NAÏVE Über-flieger"])
    folded = {"cafe", "naive", "uber", "flieger"}
    assert vocabulary.known([*folded, "Café"]) == folded


def test_single_letters_hashes_and_cjk_words_are_left_out(shelf: Shelf, vocabulary: Vocabulary) -> None:
    vocabulary.add(["a b kubernetes", "f" * 64, "문서를 한글 日本語"])
    assert shelf.rows("SELECT word FROM words") == [("kubernetes",)]


def test_words_added_twice_are_stored_once_and_known_to_other_vocabulary_objects(
    shelf: Shelf, vocabulary: Vocabulary
) -> None:
    vocabulary.add(["alpha"])
    vocabulary.add(["alpha beta"])
    other = Vocabulary(shelf.connection, SqliteTokenizer(shelf.connection))
    other.add(["alpha beta"])
    assert other.expand("al") == ["alpha"]
    assert shelf.value("SELECT count(*) FROM words") == 2


def test_words_of_title_aliases_tags_and_text_are_known(shelf: Shelf, vocabulary: Vocabulary) -> None:
    shelf.write("a.md", "bodyword", title="titleword", aliases=["aliasword"], tags=["tagword"])
    words = {"bodyword", "titleword", "aliasword", "tagword"}
    assert vocabulary.known(words) == words


def test_words_of_headings_are_known(shelf: Shelf, vocabulary: Vocabulary) -> None:
    """The heading of a chunk may be in the text of an earlier chunk, but it is in some chunk's text."""
    shelf.write("a.md", "# Headword\n\nbody", headings=("Headword",))
    assert vocabulary.known({"headword"})


def test_words_of_a_removed_document_stay_known(shelf: Shelf, vocabulary: Vocabulary) -> None:
    """The table only grows; `kb index --rebuild-fts` makes it again."""
    shelf.write("a.md", "ephemeral")
    shelf.store.remove("notes", ["a.md"])
    assert vocabulary.known({"ephemeral"})


def test_a_prefix_is_taken_literally(vocabulary: Vocabulary) -> None:
    vocabulary.add(["percent under_score"])
    assert vocabulary.expand("%") == []
    assert vocabulary.expand("_") == []
    assert vocabulary.expand("") != []


# --- misspelt words


def near(vocabulary: Vocabulary, word: str, edits: int = 1) -> list[tuple[str, int]]:
    return [(known.word, known.edits) for known in vocabulary.near(word, edits)]


@pytest.mark.parametrize(
    "typed", ["kubernets", "kubernettes", "kubernates", "kuebrnetes", "ubernetes", "kubernetesx", "kubenretes"]
)
def test_a_word_with_one_wrong_letter_anywhere_is_near(vocabulary: Vocabulary, typed: str) -> None:
    vocabulary.add(["kubernetes something else"])
    assert near(vocabulary, typed) == [("kubernetes", 1)]


def test_swapping_two_neighbouring_letters_is_one_edit(vocabulary: Vocabulary) -> None:
    """Also where two of the searched pieces of the word meet."""
    for word in ("form", "words", "swapped", "neighbour"):
        vocabulary.add([word])
        for place in range(len(word) - 1):
            typed = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
            assert (word, 1) in near(vocabulary, typed) or typed == word


@given(word=st.text("abcd", min_size=4, max_size=9), data=st.data())
def test_every_word_at_a_distance_of_one_edit_is_near(word: str, data: st.DataObject) -> None:
    """Compared with a search of all words."""
    others = data.draw(st.sets(st.text("abcd", min_size=3, max_size=10), max_size=30))
    connection = Connection(Path(":memory:"))
    connection.execute("CREATE TABLE words (word TEXT PRIMARY KEY, stem TEXT NOT NULL) WITHOUT ROWID")
    connection.executemany("INSERT INTO words VALUES (?1, ?1)", [(other,) for other in others])
    expected = {other for other in others if edit_distance(word, other, 1)}
    assert {known.word for known in Vocabulary(connection, SqliteTokenizer(connection)).near(word, 1)} == expected


def test_words_two_edits_away_are_near_only_if_two_edits_are_allowed(vocabulary: Vocabulary) -> None:
    vocabulary.add(["deployment"])
    assert near(vocabulary, "deplyomnet") == []
    assert near(vocabulary, "deplyomnet", 2) == [("deployment", 2)]
    assert near(vocabulary, "deploymnt", 2) == [("deployment", 1)]


def test_near_words_are_the_nearest_of_each_stem_and_sorted_by_distance(vocabulary: Vocabulary) -> None:
    vocabulary.add(["deployment deployments deploymant"])
    assert near(vocabulary, "deploymnet", 2) == [("deployment", 1), ("deploymant", 2)]
    vocabulary.add(["renew renewal"])
    assert near(vocabulary, "renewl") == [("renewal", 1)]


def test_near_words_exclude_the_word_itself_and_are_limited(vocabulary: Vocabulary) -> None:
    letters = "abcdfghjkmnpqrtuvwxz"
    vocabulary.add(
        [
            "okapi",
            " ".join(f"{'okapi'[:place]}{letter}{'okapi'[place + 1 :]}" for place in range(5) for letter in letters),
        ]
    )
    found = near(vocabulary, "okapi")
    assert "okapi" not in dict(found)
    assert len(found) == MAX_NEAR
