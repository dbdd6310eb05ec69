"""Writing documents: edit, rename, delete, re-add, duplicates, two sources; what did not change keeps its row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw
import pytest

from kebab.core.documents import Source, chunk_id, document_id
from kebab.core.errors import SourceError
from kebab.core.ports import FileState
from kebab.store.sqlite.catalog import SqliteCatalog
from kebab.store.sqlite.derived_terms import cjk_column
from kebab.store.sqlite.documents import compress, decompress

if TYPE_CHECKING:
    from tests.store.conftest import Shelf


def test_a_new_document_is_found_with_all_that_was_said_of_it(shelf: Shelf) -> None:
    assert shelf.write("a/b.md", "first part", "second part", title="Guide", tags=["x", "y"], metadata={"author": "Kim"}) == 2
    record = SqliteCatalog(shelf.connection).find_document("a/b.md")
    assert (record.source, record.path, record.title, record.tags) == ("notes", "a/b.md", "Guide", ("x", "y"))
    assert record.chunk_count == 2
    assert record.metadata == {"author": "Kim"}
    assert record.doc_id == document_id("notes", "a/b.md")
    assert shelf.texts() == [("a/b.md", "first part"), ("a/b.md", "second part")]


def test_writing_the_same_again_changes_no_chunk(shelf: Shelf) -> None:
    shelf.write("a.md", "one", "two")
    before = shelf.rows("SELECT * FROM chunks")
    index = shelf.rows("SELECT id, block FROM chunks_fts_data")
    assert shelf.write("a.md", "one", "two") == 0
    assert shelf.rows("SELECT * FROM chunks") == before
    assert shelf.rows("SELECT id, block FROM chunks_fts_data") == index


def test_an_edit_touches_only_the_chunk_that_changed(shelf: Shelf) -> None:
    shelf.write("a.md", "one", "two", "three")
    before = shelf.chunk_rows()
    assert shelf.write("a.md", "one", "zwo", "three") == 1
    after = shelf.chunk_rows()
    assert after["one"] == before["one"]
    assert after["three"] == before["three"]
    assert set(after) == {"one", "zwo", "three"}
    assert shelf.matching("two") == []
    assert shelf.matching("zwo") == [after["zwo"]]
    shelf.check_text_index()


def test_a_chunk_that_only_moved_keeps_its_row_and_learns_its_new_place(shelf: Shelf) -> None:
    shelf.write("a.md", "short", "moves down")
    row = shelf.chunk_rows()["moves down"]
    shelf.write("a.md", "short, now\nover two lines", "moves down")
    assert shelf.chunk_rows()["moves down"] == row
    offset = shelf.value("SELECT start_offset FROM chunks WHERE text = 'moves down'")
    assert offset == len("short, now\nover two lines") + 2
    shelf.check_text_index()


def test_a_shorter_version_loses_its_last_chunks(shelf: Shelf) -> None:
    shelf.write("a.md", "one", "two", "three")
    shelf.write("a.md", "one")
    assert shelf.texts() == [("a.md", "one")]
    assert shelf.value("SELECT chunk_count FROM documents") == 1
    assert shelf.matching("two OR three") == []
    shelf.check_text_index()


def test_equal_chunks_of_one_document_stay_apart(shelf: Shelf) -> None:
    shelf.write("a.md", "same", "same", "same")
    assert shelf.texts() == [("a.md", "same")] * 3
    assert len({row[0] for row in shelf.rows("SELECT chunk_id FROM chunks")}) == 3


def test_a_new_title_reaches_every_chunk_in_the_index(shelf: Shelf) -> None:
    shelf.write("a.md", "one", "two", title="Alter Titel")
    before = shelf.chunk_rows()
    shelf.write("a.md", "one", "two", title="Fresh heading")
    assert shelf.chunk_rows() == before
    assert shelf.matching("title : alter") == []
    assert shelf.matching("title : fresh") == sorted(before.values())
    shelf.check_text_index()


def test_new_headings_reach_the_index(shelf: Shelf) -> None:
    shelf.write("a.md", "one", headings=("Old",))
    shelf.write("a.md", "one", headings=("New", "Inner"))
    assert shelf.matching("heading_path : old") == []
    assert len(shelf.matching("heading_path : inner")) == 1
    assert shelf.value("SELECT heading_path FROM chunks") == "New > Inner"
    shelf.check_text_index()


@pytest.mark.parametrize("headings", [("A > B", "C"), ("A", "B > C"), (">",), ("", "x"), ()])
def test_headings_come_back_as_they_were_even_with_the_separator_inside(shelf: Shelf, headings: tuple[str, ...]) -> None:
    shelf.write("a.md", "one", headings=headings)
    catalog = SqliteCatalog(shelf.connection)
    assert catalog.chunks_of(document_id("notes", "a.md"))[0].heading_path == headings


def test_tags_and_aliases_are_searchable_once_per_document(shelf: Shelf) -> None:
    shelf.write("a.md", "one", "two", title="T", tags=["kubernetes"], aliases=["Cluster handbook"])
    rows = shelf.chunk_rows()
    assert shelf.matching("kubernetes") == [rows["one"]]
    assert shelf.matching("handbook") == [rows["one"]]


def test_tags_are_replaced_not_added_up(shelf: Shelf) -> None:
    shelf.write("a.md", "one", tags=["x", "y"])
    shelf.write("a.md", "one", tags=["y", "z"])
    assert [tag for (tag,) in shelf.rows("SELECT tag FROM document_tags ORDER BY tag")] == ["y", "z"]
    assert shelf.matching("x") == []


def test_tags_that_differ_only_in_case_are_one(shelf: Shelf) -> None:
    shelf.write("a.md", "one", tags=["Ops", "ops", "OPS"])
    assert shelf.value("SELECT count(*) FROM document_tags") == 1


def test_r128_tags_are_matched_without_regard_to_case(shelf: Shelf) -> None:
    shelf.write("a.md", "one", tags=["Ops"])
    assert shelf.search("one", tags_any=("ops",)) == ["a.md"]
    assert shelf.search("one", tags_all=("OPS",)) == ["a.md"]


def test_a_removed_document_is_gone_from_everywhere(shelf: Shelf) -> None:
    shelf.write("a.md", "one", tags=["x"])
    shelf.write("b.md", "one")
    assert shelf.store.remove("notes", ["a.md", "never-there.md"]) == 1
    assert shelf.texts() == [("b.md", "one")]
    assert shelf.value("SELECT count(*) FROM document_tags") == 0
    assert len(shelf.matching("one")) == 1
    shelf.check_text_index()


def test_a_document_added_again_is_the_same_document(shelf: Shelf) -> None:
    shelf.write("a.md", "one")
    before = shelf.rows("SELECT doc_id, chunk_id FROM chunks")
    shelf.store.remove("notes", ["a.md"])
    shelf.write("a.md", "one")
    assert shelf.rows("SELECT doc_id, chunk_id FROM chunks") == before
    assert shelf.search("one") == ["a.md"]


def test_a_renamed_document_has_another_id_and_the_old_one_is_gone(shelf: Shelf) -> None:
    shelf.write("old.md", "one")
    old = shelf.value("SELECT doc_id FROM documents")
    shelf.write("new.md", "one", title="old.md")
    shelf.store.remove("notes", ["old.md"])
    assert shelf.texts() == [("new.md", "one")]
    assert shelf.value("SELECT doc_id FROM documents") != old


def test_the_same_text_in_two_files_is_two_documents(shelf: Shelf) -> None:
    shelf.write("a.md", "same text")
    shelf.write("copy/a.md", "same text")
    assert sorted(shelf.search("same")) == ["a.md", "copy/a.md"]
    shelf.store.remove("notes", ["a.md"])
    assert shelf.search("same") == ["copy/a.md"]


def test_the_same_path_in_two_sources_is_two_documents(shelf: Shelf) -> None:
    shelf.write("a.md", "from one", source="one")
    shelf.write("a.md", "from two", source="two")
    shelf.write("a.md", "from one, edited", source="one")
    assert sorted(text for _, text in shelf.texts()) == ["from one, edited", "from two"]
    shelf.store.remove("one", ["a.md"])
    assert [text for _, text in shelf.texts()] == ["from two"]
    assert list(shelf.store.known_files("two")) == ["a.md"]
    assert shelf.store.known_files("one") == {}


def test_ids_do_not_depend_on_where_the_source_lies() -> None:
    assert document_id("notes", "a.md") == document_id("notes", "a.md")
    assert len({document_id("notes", "a.md"), document_id("note", "sa.md"), document_id("notes", "b.md")}) == 3
    assert len({chunk_id("d", 0, "x"), chunk_id("d", 1, "x"), chunk_id("d", 0, "y"), chunk_id("e", 0, "x")}) == 4


def test_what_is_known_of_files_is_what_was_written(shelf: Shelf) -> None:
    state = FileState(123, 456, "abc", "def")
    shelf.write("a.md", "one", state=state)
    assert shelf.store.known_files("notes") == {"a.md": state}
    shelf.store.touch("notes", "a.md", FileState(123, 789, "abc", "def"), "2024-05-31")
    assert shelf.store.date_of("notes", "a.md") == "2024-05-31"
    assert shelf.store.known_files("notes") == {"a.md": FileState(123, 789, "abc", "def")}


def test_a_young_file_is_remembered_without_its_time(shelf: Shelf) -> None:
    shelf.write("a.md", "one", state=FileState(1, None, "h", "f"))
    assert shelf.store.known_files("notes")["a.md"].mtime_ns is None


def test_a_source_name_is_taken_once(shelf: Shelf) -> None:
    shelf.add_source("notes")
    with pytest.raises(SourceError, match="already a source named notes"):
        shelf.store.add_source(Source("notes", "folder", "/elsewhere"))
    assert [source.root for source in shelf.store.sources()] == ["/notes"]


def test_r074_a_document_that_fails_half_way_leaves_the_old_version_whole(shelf: Shelf) -> None:
    shelf.write("a.md", "old one", "old two")
    shelf.connection.execute(
        "CREATE TEMP TRIGGER fail BEFORE INSERT ON main.chunks WHEN new.text = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with pytest.raises(apsw.ConstraintError):
        shelf.write("a.md", "new one", "bad", title="New", tags=["t"])
    assert shelf.texts() == [("a.md", "old one"), ("a.md", "old two")]
    assert shelf.value("SELECT title FROM documents") == "a.md"
    assert shelf.value("SELECT count(*) FROM document_tags") == 0
    assert shelf.matching("new") == []
    shelf.check_text_index()
    shelf.connection.execute("DROP TRIGGER fail")
    shelf.write("a.md", "new one", "bad")
    assert shelf.search("bad") == ["a.md"]
    assert shelf.value("SELECT count(*) FROM words WHERE word = 'bad'") == 1  # the vocabulary noticed the rollback


def test_documents_written_together_are_what_they_are_alone(shelf: Shelf) -> None:
    shelf.write("kept.md", "stays", "goes")
    documents = [
        shelf.document("kept.md", "stays", "comes"),
        shelf.document("new.md", "stays", "another", tags=["t"]),
        shelf.document("third.md", "more"),
    ]
    assert shelf.store.write(*documents) == 4
    assert shelf.texts() == [
        ("kept.md", "stays"), ("kept.md", "comes"), ("new.md", "stays"), ("new.md", "another"), ("third.md", "more"),
    ]  # fmt: skip
    assert shelf.search("goes") == []
    assert sorted(shelf.search("stays")) == ["kept.md", "new.md"]
    assert shelf.search("another", tags_any=("t",)) == ["new.md"]
    assert shelf.store.write(*documents) == 0
    shelf.check_text_index()


def test_r074_of_documents_written_together_all_are_there_or_none(shelf: Shelf) -> None:
    """R074: the second one cannot be written, so the first is not there either; a reader never sees a part."""
    shelf.write("a.md", "old")
    broken = shelf.document("b.md", "new")
    with pytest.raises(apsw.Error):
        shelf.store.write(shelf.document("a.md", "young"), broken._replace(date=None))  # type: ignore[arg-type]  # what must not be
    assert shelf.texts() == [("a.md", "old")]
    assert (shelf.search("old"), shelf.search("young")) == (["a.md"], [])
    shelf.check_text_index()


def test_many_documents_are_removed_at_once(shelf: Shelf) -> None:
    for number in range(5):
        shelf.write(f"{number}.md", f"text of {number}")
    assert shelf.store.remove("notes", ["0.md", "3.md", "never.md"]) == 2
    assert [path for path, _ in shelf.texts()] == ["1.md", "2.md", "4.md"]
    assert shelf.store.remove("notes", []) == 0
    shelf.check_text_index()


@pytest.mark.parametrize("text", ["", "plain", "문서\r\n🙂\n", "a\udc80b", "x" * 100_000])
def test_the_stored_body_is_the_text_unchanged(text: str) -> None:
    assert decompress(compress(text)) == text


def test_the_body_read_back_is_the_document(shelf: Shelf) -> None:
    shelf.write("a.md", "첫째 줄\r\n둘째", "three")
    assert SqliteCatalog(shelf.connection).body(document_id("notes", "a.md")) == "첫째 줄\r\n둘째\n\nthree\n\n"


def test_the_cjk_column_holds_title_headings_and_text(shelf: Shelf) -> None:
    shelf.write("a.md", "본문입니다", title="제목", headings=("머리",))
    assert shelf.value("SELECT cjk FROM chunks").split() == ["제목", "목", "머리", "리", "본문", "문입", "입니", "니다", "다"]
    assert cjk_column("bigrams", "only latin", "words") == ""


def test_r054_search_finds_what_was_just_written(shelf: Shelf) -> None:
    details: dict[str, Any] = {"title": "Install Git"}
    shelf.write("git.md", "Run the installer and follow it.", **details)
    assert shelf.search("install git") == ["git.md"]
