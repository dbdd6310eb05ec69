"""Vector coverage: how many chunks have vectors of the models in use, which every search asks first."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from kebab.core.ports import VectorCoverage
from kebab.store.index_versions import models_key
from kebab.store.sqlite.rows import stored_spaces
from kebab.store.sqlite.store import SqliteReading, SqliteStore

if TYPE_CHECKING:
    from tests.conftest import Toy, WordEmbedder
    from tests.store.conftest import Shelf


@pytest.fixture
def words(toy: type[Toy]) -> WordEmbedder:
    return toy.embedder("words", dimension=16)


def give(shelf: Shelf, embedder: WordEmbedder, *texts: str, primary: bool = True) -> None:
    rows = shelf.chunk_rows()
    shelf.give(embedder, {rows[text]: embedder.embed([text], "passage")[0] for text in texts}, primary=primary)


def of(shelf: Shelf, toy: type[Toy], embedder: WordEmbedder) -> VectorCoverage:
    store = SqliteStore(shelf.path, named=True)
    return SqliteReading(shelf.connection, store, {}).vector_coverage(toy.models(embedder))


def test_coverage_does_not_count_chunks_while_all_have_a_vector(
    shelf: Shelf, toy: type[Toy], words: WordEmbedder
) -> None:
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


def test_vectors_complete_for_one_model_are_missing_for_another(
    shelf: Shelf, toy: type[Toy], words: WordEmbedder
) -> None:
    shelf.write("a.md", "one", "two")
    give(shelf, words, "one", "two")
    shelf.vectors.settle([words])
    other = toy.embedder("other")
    assert of(shelf, toy, other) == VectorCoverage(2, 0, "vec:", ("words@1:16",))


def test_after_a_change_of_dimension_only_the_new_vectors_count(shelf: Shelf, toy: type[Toy]) -> None:
    """An endpoint may return longer vectors under the same model name one day."""
    shelf.write("a.md", "one", "two")
    before = toy.embedder("m", dimension=16)
    give(shelf, before, "one", "two")
    shelf.vectors.settle([before])
    give(shelf, toy.embedder("m", dimension=24), "one")
    assert of(shelf, toy, toy.embedder("m", dimension=24)) == VectorCoverage(2, 1, "vec:m@1:24", ("m@1:16",))


def test_stored_spaces_have_model_version_dimension_and_codes(shelf: Shelf, words: WordEmbedder) -> None:
    assert stored_spaces(shelf.connection) == []
    shelf.write("a.md", "one")
    give(shelf, words, "one")
    (space,) = stored_spaces(shelf.connection)
    assert (space.model, space.version, space.dimension, space.has_codes) == ("words", "1", 16, False)
    assert space.fingerprint == words.fingerprint


def test_the_models_are_named_without_asking_for_their_dimension(toy: type[Toy]) -> None:
    """Asking for a dimension would need a request to the endpoint."""

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


def test_the_store_is_imported_without_numpy() -> None:
    """A lexical search in a knowledge base without vectors must not spend the time."""
    code = "import sys, kebab.store.sqlite.store, kebab.knowledge_base; print('numpy' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        == "False"
    )
