"""Chunks by their ids, with what a hit needs to know of their documents (R094)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kebab.core.ports import ChunkContext
from kebab.core.spans import LineSpan
from kebab.core.text import content_hash
from kebab.store.sqlite.chunk_contexts import SqliteChunkReader

if TYPE_CHECKING:
    from tests.conftest import Toy
    from tests.store.conftest import Shelf


def test_a_chunk_comes_with_its_document_and_the_model_that_embedded_it(shelf: Shelf, toy: type[Toy]) -> None:
    """R094."""
    shelf.write(
        "a/b.md", "the text", title="T", headings=("One", "A > B"), tags=["y", "x"], lang="ko", trust="secondary", date="2026-02-03"
    )
    embedder = toy.embedder("model", version="7")
    ((chunk, row),) = shelf.rows("SELECT chunk_id, id FROM chunks")
    shelf.give(embedder, {row: embedder.embed(["the text"], "passage")[0]})
    assert SqliteChunkReader(shelf.connection).contexts([chunk]) == {
        chunk: ChunkContext(
            chunk_id=chunk,
            doc_id=shelf.value("SELECT doc_id FROM documents"),
            doc_path="a/b.md",
            title="T",
            heading_path=("One", "A > B"),
            section_label="A > B",
            text="the text",
            spans=(LineSpan(1, 1),),
            content_hash=content_hash("the text"),
            chunker_version="test-1",
            doc_type="markdown",
            lang="ko",
            tags=("x", "y"),
            trust_level="secondary",
            source="notes",
            indexed_at=shelf.value("SELECT indexed_at FROM documents"),
            date="2026-02-03",
            embedding_model="model",
        )
    }


def test_the_model_named_is_that_of_the_space_where_a_chunk_is_at_home(shelf: Shelf, toy: type[Toy]) -> None:
    shelf.write("a.md", "one", "two")
    rows = shelf.chunk_rows()
    early, late = toy.embedder("early"), toy.embedder("late")
    for embedder, home, text in ((early, True, "one"), (late, False, "one"), (early, False, "two"), (late, True, "two")):
        shelf.give(embedder, {rows[text]: embedder.embed([text], "passage")[0]}, home=home)
    ids = [chunk for (chunk,) in shelf.rows("SELECT chunk_id FROM chunks ORDER BY ordinal")]
    found = SqliteChunkReader(shelf.connection).contexts(ids)
    assert [found[chunk].embedding_model for chunk in ids] == ["early", "late"]


def test_what_is_gone_is_left_out_and_a_chunk_without_vector_has_no_model(shelf: Shelf) -> None:
    shelf.write("a.md", "text")
    (chunk,) = (chunk for (chunk,) in shelf.rows("SELECT chunk_id FROM chunks"))
    found = SqliteChunkReader(shelf.connection).contexts(["nonsense", chunk, "' OR 1"])
    assert list(found) == [chunk]
    assert found[chunk].embedding_model is None
    assert SqliteChunkReader(shelf.connection).contexts([]) == {}


def test_any_number_of_chunks_may_be_asked_for(shelf: Shelf) -> None:
    shelf.write("a.md", *(f"text {number}" for number in range(2500)))
    ids = [chunk for (chunk,) in shelf.rows("SELECT chunk_id FROM chunks")]
    assert set(SqliteChunkReader(shelf.connection).contexts(ids)) == set(ids)
