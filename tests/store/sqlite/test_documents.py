"""Writing documents: unchanged chunks keep their rows, and a failed write leaves nothing. The rest is in the contract
of every store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import pytest

from kebab.analysis.terms import cjk_column
from kebab.core.documents import chunk_id, document_id
from kebab.store.sqlite.documents import compress, decompress

if TYPE_CHECKING:
    from tests.store.conftest import Shelf


def test_writing_an_unchanged_document_changes_no_chunk(shelf: Shelf) -> None:
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


def test_a_moved_chunk_keeps_its_row_and_gets_its_new_place(shelf: Shelf) -> None:
    shelf.write("a.md", "short", "moves down")
    row = shelf.chunk_rows()["moves down"]
    shelf.write("a.md", "short, now\nover two lines", "moves down")
    assert shelf.chunk_rows()["moves down"] == row
    offset = shelf.value("SELECT start_offset FROM chunks WHERE text = 'moves down'")
    assert offset == len("short, now\nover two lines") + 2
    shelf.check_text_index()


def test_ids_do_not_depend_on_the_location_of_the_source() -> None:
    assert document_id("notes", "a.md") == document_id("notes", "a.md")
    assert len({document_id("notes", "a.md"), document_id("note", "sa.md"), document_id("notes", "b.md")}) == 3
    assert len({chunk_id("d", 0, "x"), chunk_id("d", 1, "x"), chunk_id("d", 0, "y"), chunk_id("e", 0, "x")}) == 4


def test_a_document_that_fails_half_way_leaves_the_old_version_whole(shelf: Shelf) -> None:
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


def test_documents_of_one_write_are_all_stored_or_none(shelf: Shelf) -> None:
    """The second document cannot be written, so the first is not stored either, and no reader sees it."""
    shelf.write("a.md", "old")
    broken = shelf.document("b.md", "new")
    with pytest.raises(apsw.Error):
        shelf.store.write(shelf.document("a.md", "young"), broken._replace(date=None))  # type: ignore[arg-type]  # what must not be
    assert shelf.texts() == [("a.md", "old")]
    assert (shelf.search("old"), shelf.search("young")) == (["a.md"], [])
    shelf.check_text_index()


@pytest.mark.parametrize("text", ["", "plain", "문서\r\n🙂\n", "a\udc80b", "x" * 100_000])
def test_the_stored_body_is_the_text_unchanged(text: str) -> None:
    assert decompress(compress(text)) == text


def test_the_cjk_column_holds_title_headings_and_text(shelf: Shelf) -> None:
    shelf.write("a.md", "본문입니다", title="제목", headings=("머리",))
    assert shelf.value("SELECT cjk FROM chunks").split() == [
        "제목",
        "목",
        "머리",
        "리",
        "본문",
        "문입",
        "입니",
        "니다",
        "다",
    ]
    assert cjk_column("bigrams", "only latin", "words") == ""
