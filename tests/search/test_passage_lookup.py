"""A passage is found by every kind of reference, and a reference to nothing gives the same error as fetch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

import kebab
from kebab.core.errors import Ambiguous, KebabError, NotFound, UsageError
from kebab.search.lookup import Passage, find_passage, find_span
from kebab.store.sqlite.catalog import SqliteCatalog
from kebab.store.sqlite.database import Database

WriteNotes = Callable[[Mapping[str, str]], Path]
PARTS = [f"# Part {number}\n\n{f'Sentence {number} about something else entirely. ' * 20}\n\n" for number in range(3)]
NOTE = f"---\ntitle: A note\n---\n{''.join(PARTS)}"


@pytest.fixture
def catalog(tmp_path: Path, write_notes: WriteNotes) -> Iterator[SqliteCatalog]:
    with kebab.open(tmp_path / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(write_notes({"deep/note.md": NOTE, "other.md": "# Other\n\nShort.\n"}))
    with closing(Database(tmp_path / "kb.sqlite").reader()) as connection:
        yield SqliteCatalog(connection)


def lines_of(passage: Passage) -> list[tuple[int, int] | None]:
    return [chunk.citation.lines for chunk in passage.chunks]


def test_a_reference_to_a_document_gives_all_its_chunks(catalog: SqliteCatalog, tmp_path: Path) -> None:
    doc_id = catalog.find_document("deep/note.md").doc_id
    for reference in ("deep/note.md", "notes:deep/note.md", doc_id, doc_id[:6], str(tmp_path / "notes/deep/note.md")):
        passage = find_passage(catalog, reference)
        assert (passage.document.path, passage.text) == ("deep/note.md", NOTE)
        assert list(passage.chunks) == catalog.chunks_of(doc_id)
        assert len(passage.chunks) == 3


def test_a_reference_may_be_a_chunk_id_or_its_beginning(catalog: SqliteCatalog) -> None:
    chunk = catalog.chunks_of(catalog.find_document("deep/note.md").doc_id)[1]
    for reference in (chunk.chunk_id, chunk.chunk_id[:14]):
        passage = find_passage(catalog, reference)
        assert (passage.document.path, passage.text, passage.chunks) == ("deep/note.md", chunk.text, (chunk,))


def test_a_reference_to_lines_gives_the_chunks_that_overlap_them(catalog: SqliteCatalog) -> None:
    first, second, third = catalog.chunks_of(catalog.find_document("deep/note.md").doc_id)
    start, end = second.citation.lines or (0, 0)
    assert find_passage(catalog, second.citation.uri).chunks == (second,)
    assert find_passage(catalog, second.citation.text).chunks == (second,)
    assert find_passage(catalog, f"deep/note.md#L{start}").chunks == (second,)
    assert find_passage(catalog, f"notes:deep/note.md#L4-L{end}").chunks == (first, second)
    assert find_passage(catalog, f"deep/note.md#L4-L{third.citation.lines[1]}").chunks == (first, second, third)  # type: ignore[index]


def test_a_reference_to_lines_gives_the_text_of_these_lines_and_not_of_the_chunk(catalog: SqliteCatalog) -> None:
    assert find_passage(catalog, "deep/note.md#L4").text == "# Part 0\n"


def test_lines_outside_every_chunk_give_their_text_and_no_chunk(catalog: SqliteCatalog) -> None:
    passage = find_passage(catalog, "deep/note.md#L1-L3")
    assert (passage.text, passage.chunks) == ("---\ntitle: A note\n---\n", ())


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        ("nothing.md", NotFound, "No document nothing.md is indexed."),
        ("nothing.md#L3", NotFound, "No document nothing.md is indexed."),
        ("0123456789abcdef0123", NotFound, "No chunk 0123456789abcdef0123 is indexed."),
        ("other.md#L4-L9", NotFound, "other.md has lines 1 to 3; 4 to 9 were asked for."),
        ("other.md#L0", NotFound, "other.md has lines 1 to 3; 0 to 0 were asked for."),
        ("other.md#page=2", NotFound, "other.md has lines 1 to 3, and no pages or regions."),
    ],
)
def test_a_reference_to_nothing_gives_the_same_error_as_fetch(
    catalog: SqliteCatalog, reference: str, error: type[KebabError], message: str
) -> None:
    with pytest.raises(error) as raised:
        find_passage(catalog, reference)
    assert raised.value.message == message


def test_a_citation_without_lines_is_refused_as_a_span(catalog: SqliteCatalog) -> None:
    with pytest.raises(UsageError):
        find_span(catalog, "other.md")


def test_a_path_of_two_sources_is_ambiguous(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.md").write_text(f"# {name}\n", encoding="utf-8")
    with kebab.open(tmp_path / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(tmp_path / "a", tmp_path / "b")
    with closing(Database(tmp_path / "kb.sqlite").reader()) as connection:
        catalog = SqliteCatalog(connection)
        with pytest.raises(Ambiguous):
            find_passage(catalog, "same.md")
        assert find_passage(catalog, "b:same.md").text == "# b\n"
