"""What part of a corpus has vectors of the models in use: what every search asks first, and what it says to the user (R108, R118)."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from kebab.core.ports import VectorCoverage
from kebab.store.sqlite.vector_coverage import coverage, models_key, stored_spaces

if TYPE_CHECKING:
    from tests.conftest import Toy, WordEmbedder
    from tests.store.conftest import Shelf


@pytest.fixture
def words(toy: type[Toy]) -> WordEmbedder:
    return toy.embedder("words", dimension=16)


def give(shelf: Shelf, embedder: WordEmbedder, *texts: str, home: bool = True) -> None:
    rows = shelf.chunk_rows()
    shelf.give(embedder, {rows[text]: embedder.embed([text], "passage")[0] for text in texts}, home=home)


def of(shelf: Shelf, toy: type[Toy], embedder: WordEmbedder) -> VectorCoverage:
    return coverage(shelf.connection, toy.models(embedder))


def test_without_vectors_there_is_nothing_to_search(shelf: Shelf, toy: type[Toy], words: WordEmbedder) -> None:
    assert of(shelf, toy, words) == VectorCoverage(0, 0, "vec:", ())
    shelf.write("a.md", "one", "two")
    covered = of(shelf, toy, words)
    assert (covered.any, covered.missing, covered) == (False, 2, VectorCoverage(2, 0, "vec:", ()))


def test_chunks_with_and_without_a_vector_are_counted(shelf: Shelf, toy: type[Toy], words: WordEmbedder) -> None:
    shelf.write("a.md", "one", "two", "three")
    give(shelf, words, "one", "two")
    covered = of(shelf, toy, words)
    assert covered == VectorCoverage(3, 2, "vec:words@1:16", ())
    assert (covered.any, covered.missing) == (True, 1)


def test_nobody_counts_while_all_have_one(shelf: Shelf, toy: type[Toy], words: WordEmbedder) -> None:
    shelf.write("a.md", "one", "two")
    give(shelf, words, "one", "two")
    shelf.vectors.settle([words])
    covered = of(shelf, toy, words)
    assert covered == VectorCoverage(None, None, "vec:words@1:16", ())
    assert (covered.any, covered.missing) == (True, 0)
    statements: list[str] = []
    shelf.connection.exec_trace = lambda _, sql, __: statements.append(sql) or True  # type: ignore[func-returns-value]
    of(shelf, toy, words)
    shelf.connection.exec_trace = None
    assert not [sql for sql in statements if "count(" in sql]


def test_a_chunk_written_later_is_missing_at_once(shelf: Shelf, toy: type[Toy], words: WordEmbedder) -> None:
    shelf.write("a.md", "one")
    give(shelf, words, "one")
    shelf.vectors.settle([words])
    shelf.write("b.md", "two")
    assert of(shelf, toy, words).missing == 1
    shelf.store.remove("notes", ["b.md"])
    assert of(shelf, toy, words).missing == 0


def test_vectors_of_other_models_and_versions_do_not_count_and_are_named(shelf: Shelf, toy: type[Toy], words: WordEmbedder) -> None:
    """R118: vectors of a model that is not in use are as good as none."""
    shelf.write("a.md", "one", "two")
    former, older = toy.embedder("former", dimension=24), toy.embedder("words", version="0", dimension=16)
    for embedder in (former, older):
        give(shelf, embedder, "one", "two")
    covered = of(shelf, toy, words)
    assert covered == VectorCoverage(2, 0, "vec:", ("former@1:24", "words@0:16"))
    assert not covered.any
    give(shelf, words, "one")
    assert of(shelf, toy, words) == VectorCoverage(2, 1, "vec:words@1:16", ("former@1:24", "words@0:16"))


def test_what_is_complete_for_one_model_is_not_for_another(shelf: Shelf, toy: type[Toy], words: WordEmbedder) -> None:
    shelf.write("a.md", "one", "two")
    give(shelf, words, "one", "two")
    shelf.vectors.settle([words])
    other = toy.embedder("other")
    assert of(shelf, toy, other) == VectorCoverage(2, 0, "vec:", ("words@1:16",))


def test_the_versions_of_several_spaces_are_joined_and_unused_ones_left_out(shelf: Shelf, toy: type[Toy]) -> None:
    """R096: product.md 3.10."""
    two = toy.two_scripts()
    shelf.write("a.md", "one", "둘")
    shelf.vectors.count_pending(two.embedders)  # makes both spaces
    give(shelf, two.latin, "one")
    assert coverage(shelf.connection, two) == VectorCoverage(2, 1, "vec:latin@1:32", ())
    give(shelf, two.everything, "둘")
    assert coverage(shelf.connection, two) == VectorCoverage(2, 2, "vec:latin@1:32,everything@1:48", ())


def test_a_chunk_that_is_in_two_spaces_counts_once(shelf: Shelf, toy: type[Toy]) -> None:
    two = toy.two_scripts()
    shelf.write("a.md", "one", "two", "둘")
    give(shelf, two.latin, "one")
    give(shelf, two.everything, "one", home=False)
    give(shelf, two.everything, "둘")
    covered = coverage(shelf.connection, two)
    assert (covered.chunks, covered.embedded) == (3, 2)


def test_after_a_change_of_dimension_only_the_new_vectors_count(shelf: Shelf, toy: type[Toy]) -> None:
    """R118: an endpoint may give longer vectors one day under the same name."""
    shelf.write("a.md", "one", "two")
    before = toy.embedder("m", dimension=16)
    give(shelf, before, "one", "two")
    shelf.vectors.settle([before])
    give(shelf, toy.embedder("m", dimension=24), "one")
    assert of(shelf, toy, toy.embedder("m", dimension=24)) == VectorCoverage(2, 1, "vec:m@1:24", ("m@1:16",))


def test_spaces_are_listed_with_what_they_are(shelf: Shelf, words: WordEmbedder) -> None:
    assert stored_spaces(shelf.connection) == []
    shelf.write("a.md", "one")
    give(shelf, words, "one")
    (space,) = stored_spaces(shelf.connection)
    assert (space.model, space.version, space.dimension, space.has_codes) == ("words", "1", 16, False)
    assert space.fingerprint == words.fingerprint


def test_the_models_are_named_without_asking_for_their_dimension(toy: type[Toy]) -> None:
    """An endpoint would have to be reached for that."""

    class Unreachable:
        name, version = "far away", "2"

        @property
        def dimension(self) -> int:
            raise AssertionError("asked")

        @property
        def fingerprint(self) -> str:
            raise AssertionError("asked")

        def embed(self, *_: object) -> None:
            raise AssertionError("asked")

    assert models_key([Unreachable(), toy.embedder("words")]) == "far away@2,words@1"


def test_it_is_found_out_without_numpy() -> None:
    """A lexical search of a knowledge base without vectors must not pay for it."""
    code = "import sys, kebab.store.sqlite.vector_coverage, kebab.knowledge_base; print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
