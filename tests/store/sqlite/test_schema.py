"""The tables, the text index and its triggers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kebab.store.sqlite.database import write_transaction

if TYPE_CHECKING:
    from tests.store.conftest import Shelf

COLUMNS = ["chunk_id", "doc_id", "heading_path", "text", "title", "cjk"]


def definition(shelf: Shelf, name: str) -> str:
    return " ".join(str(shelf.value("SELECT sql FROM sqlite_master WHERE name = ?", (name,))).split())


def test_the_text_index_has_its_columns_in_this_order_and_text_is_column_3(shelf: Shelf) -> None:
    columns = [row[1] for row in shelf.rows("PRAGMA table_info(chunks_fts)")]
    assert columns == COLUMNS
    assert columns.index("text") == 3
    assert "chunk_id UNINDEXED, doc_id UNINDEXED, heading_path, text, title, cjk" in definition(shelf, "chunks_fts")


def test_unindexed_columns_cannot_be_searched(shelf: Shelf) -> None:
    shelf.write("a.md", "some words")
    chunk_id, doc_id = shelf.rows("SELECT chunk_id, doc_id FROM chunks")[0]
    assert shelf.matching(f'"{chunk_id}"') == []
    assert shelf.matching(f'"{doc_id}"') == []


def test_the_tokenizer_is_porter_over_unicode61_without_diacritics(shelf: Shelf) -> None:
    assert "tokenize = 'porter unicode61 remove_diacritics 2'" in definition(shelf, "chunks_fts")


@pytest.mark.parametrize("text", ["café", "cafe", "CAFÉ", "cafe\u0301"])
@pytest.mark.parametrize("query", ["café", "cafe", "Café", "cafe\u0301"])
def test_accents_do_not_distinguish_words(shelf: Shelf, text: str, query: str) -> None:
    shelf.write("a.md", f"the {text} at the corner")
    assert len(shelf.matching(f'"{query}"')) == 1


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("installation", "install"),
        ("install", "installing"),
        ("chunks", "chunk"),
        ("running", "runs"),
        ("indexed", "indexing"),
    ],
)
def test_words_of_one_english_stem_match(shelf: Shelf, written: str, asked: str) -> None:
    shelf.write("a.md", f"a note on {written} here")
    assert len(shelf.matching(asked)) == 1


def test_the_text_index_is_external_content_over_chunks(shelf: Shelf) -> None:
    sql = definition(shelf, "chunks_fts")
    assert "content = 'own_chunks'" in sql
    assert "FROM chunks WHERE id >= 0" in definition(shelf, "own_chunks"), "libraries have an index of their own"
    assert "content_rowid = 'id'" in sql
    assert {"chunks_fts_content"}.isdisjoint(name for (name,) in shelf.rows("SELECT name FROM sqlite_master"))
    columns = {row[1]: (row[2], row[5]) for row in shelf.rows("PRAGMA table_info(chunks)")}
    assert columns["id"] == ("INTEGER", 1)  # an explicit key: VACUUM must not renumber rows
    assert set(COLUMNS) <= set(columns)


@pytest.mark.parametrize(
    ("name", "event"),
    [
        ("chunks_ai", "AFTER INSERT ON chunks"),
        ("chunks_ad", "AFTER DELETE ON chunks"),
        ("chunks_au", "AFTER UPDATE OF"),
    ],
)
def test_the_triggers_exist_by_name(shelf: Shelf, name: str, event: str) -> None:
    assert shelf.value("SELECT type || ' ' || tbl_name FROM sqlite_master WHERE name = ?", (name,)) == "trigger chunks"
    assert event in definition(shelf, name)


def test_removal_is_fts5s_delete_command_with_the_old_values(shelf: Shelf) -> None:
    """A plain DELETE corrupts an external-content index."""
    for name in ("chunks_ad", "chunks_au"):
        sql = definition(shelf, name)
        assert (
            "VALUES ('delete', old.id, old.chunk_id, old.doc_id, old.heading_path, old.text, old.title, old.cjk)" in sql
        )
        assert "DELETE FROM chunks_fts" not in sql


def insert(shelf: Shelf, text: str = "alpha beta", title: str = "Title", **values: str) -> int:
    """Inserts a chunk of the document a.md by SQL."""
    if not shelf.rows("SELECT 1 FROM documents"):
        shelf.write("a.md", "zero")
    number = shelf.value("SELECT max(id) + 1 FROM chunks")
    row = {"heading_path": "A > B", "text": text, "title": title, "cjk": "", **values}
    shelf.connection.execute(
        """INSERT INTO chunks (id, chunk_id, doc_id, document_id, ordinal, kind, start_offset, end_offset, source_spans,
                               heading_path, text, title, cjk)
           VALUES (:id, 'c' || :id, 'd', 1, :id, 'text', 0, 0, '[]', :heading_path, :text, :title, :cjk)""",
        {"id": number, **row},
    )
    return int(number)


def test_an_insert_copies_every_column_into_the_index(shelf: Shelf) -> None:
    row = insert(shelf, "bodyword", "titleword", heading_path="headword", cjk="문서")
    for column, word in (("heading_path", "headword"), ("text", "bodyword"), ("title", "titleword"), ("cjk", "문서")):
        assert shelf.matching(f"{column} : {word}") == [row]
    copied = shelf.rows(
        "SELECT chunk_id, doc_id, heading_path, text, title, cjk FROM chunks_fts WHERE rowid = ?", (row,)
    )
    assert copied == [(f"c{row}", "d", "headword", "bodyword", "titleword", "문서")]
    shelf.check_text_index()


def test_a_delete_takes_the_row_out_of_the_index(shelf: Shelf) -> None:
    row = insert(shelf, "vanishing words")
    kept = insert(shelf, "staying words")
    shelf.connection.execute("DELETE FROM chunks WHERE id = ?", (row,))
    assert shelf.matching("vanishing") == []
    assert shelf.matching("words") == [kept]
    shelf.check_text_index()


def test_deleting_a_source_takes_everything_below_it_out_of_the_index(shelf: Shelf) -> None:
    """Also if SQLite deletes chunks by cascade from source to document to chunk."""
    shelf.write("a.md", "alpha", source="one", tags=["x"])
    shelf.write("a.md", "alpha", source="two", tags=["x"])
    shelf.store.remove_source("one")
    assert len(shelf.matching("alpha")) == 1
    assert shelf.value("SELECT count(*) FROM document_tags") == 1
    shelf.check_text_index()


@pytest.mark.parametrize("column", ["heading_path", "text", "title", "cjk"])
def test_an_update_replaces_the_old_words_by_the_new(shelf: Shelf, column: str) -> None:
    row = insert(shelf, **{column: "oldword"})
    shelf.connection.execute(f"UPDATE chunks SET {column} = 'newword' WHERE id = ?", (row,))
    assert shelf.matching("oldword") == []
    assert shelf.matching(f"{column} : newword") == [row]
    shelf.check_text_index()


def test_an_update_of_other_columns_leaves_the_index_alone(shelf: Shelf) -> None:
    row = insert(shelf, "unmoved")
    before = shelf.rows("SELECT id, block FROM chunks_fts_data ORDER BY id")
    shelf.connection.execute("UPDATE chunks SET ordinal = 99, start_offset = 7 WHERE id = ?", (row,))
    assert shelf.rows("SELECT id, block FROM chunks_fts_data ORDER BY id") == before
    assert shelf.matching("unmoved") == [row]
    shelf.check_text_index()


class RolledBackError(Exception):
    pass


@pytest.mark.parametrize("change", ["INSERT", "UPDATE", "DELETE"])
def test_a_rollback_leaves_no_trace_in_the_index(shelf: Shelf, change: str) -> None:
    """The triggers run inside the writer's transaction."""
    row = insert(shelf, "before")
    with pytest.raises(RolledBackError), write_transaction(shelf.connection):
        if change == "INSERT":
            insert(shelf, "during")
        elif change == "UPDATE":
            shelf.connection.execute("UPDATE chunks SET text = 'during' WHERE id = ?", (row,))
        else:
            shelf.connection.execute("DELETE FROM chunks WHERE id = ?", (row,))
        raise RolledBackError
    assert shelf.matching("during") == []
    assert shelf.matching("before") == [row]
    shelf.check_text_index()


def test_another_connection_sees_chunk_and_index_row_together_or_neither(shelf: Shelf) -> None:
    insert(shelf, "first")
    reader = shelf.database.reader()
    sql = "SELECT (SELECT count(*) FROM chunks WHERE text = 'second'), (SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'second')"
    with write_transaction(shelf.connection):
        insert(shelf, "second")
        assert reader.execute(sql).fetchall() == [(0, 0)]
    assert reader.execute(sql).fetchall() == [(1, 1)]
    reader.close()


def test_a_chunk_without_a_document_is_refused(shelf: Shelf) -> None:
    insert(shelf)
    with pytest.raises(apsw.ConstraintError):
        shelf.connection.execute("UPDATE chunks SET document_id = 4711")


words = st.lists(
    st.sampled_from(["install", "git", "문서를", "café", "user-agent", "", "\u0301", "🙂"]), max_size=6
).map(" ".join)
changes = st.lists(
    st.tuples(st.sampled_from(["a.md", "b.md", "c.md"]), st.one_of(st.none(), st.lists(words, max_size=4))), max_size=12
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=changes)
def test_the_index_matches_the_chunks_after_any_writes_and_removals(
    shared_shelf: Shelf, changes: list[tuple[str, list[str] | None]]
) -> None:
    now: dict[str, list[str]] = {}
    shared_shelf.add_source("notes")
    shared_shelf.store.remove("notes", ["a.md", "b.md", "c.md"])
    for path, texts in changes:
        if texts is None:
            shared_shelf.store.remove("notes", [path])
            now.pop(path, None)
        else:
            shared_shelf.write(path, *texts, title=" ".join(texts)[:9])
            now[path] = texts
    assert shared_shelf.texts() == [(path, text) for path in sorted(now) for text in now[path]]
    shared_shelf.check_text_index()
