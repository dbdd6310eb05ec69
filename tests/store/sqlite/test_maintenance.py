"""Maintaining the text index and the file: rebuilding, versions, optimising, checking, copying."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from kebab.core.errors import Corrupt, StoreError
from kebab.store.index_versions import fts_config, lexical_index_version
from kebab.store.sqlite import migrations
from kebab.store.sqlite.database import Database, our_errors
from kebab.store.sqlite.documents import SqliteWriting
from kebab.store.sqlite.health import health_checks
from kebab.store.sqlite.health import stats as stats_of
from kebab.store.sqlite.rows import stored_fts_config

if TYPE_CHECKING:
    from tests.store.conftest import Shelf


@pytest.fixture
def corpus(shelf: Shelf) -> Shelf:
    shelf.connection.remember("fts_config", json.dumps(fts_config("bigrams")))
    shelf.write("git.md", "Install git on the machine", "Branches are cheap", title="Git", tags=["vcs"])
    shelf.write("ko.md", "문서를 검색하는 방법", title="한국어")
    return shelf


def rebuild(shelf: Shelf) -> int:
    return SqliteWriting(shelf.connection, "bigrams").rebuild_fts()


def reopen(shelf: Shelf) -> None:
    """Opens the file again without cached state, as another process would."""
    shelf.reopen()


def assert_whole(shelf: Shelf) -> None:
    shelf.check_text_index()
    assert shelf.search("install") == ["git.md"]
    assert shelf.search("vcs") == ["git.md"]
    assert shelf.search("문서") == ["ko.md"]
    assert shelf.search("branch*") == ["git.md"]
    shelf.write("new.md", "freshly written")
    assert shelf.search("freshly") == ["new.md"]
    shelf.store.remove("notes", ["new.md"])
    shelf.check_text_index()


DAMAGES = {
    "the FTS table dropped": "DROP TABLE chunks_fts",
    "triggers dropped": "DROP TRIGGER chunks_ai; DROP TRIGGER chunks_ad; DROP TRIGGER chunks_au",
    "table and triggers dropped": "DROP TRIGGER chunks_ai; DROP TRIGGER chunks_ad; DROP TRIGGER chunks_au; DROP TABLE chunks_fts",
    "garbage in the index data": "UPDATE chunks_fts_data SET block = x'deadbeefdeadbeef'",
    "garbage in its pages only": "UPDATE chunks_fts_data SET block = x'deadbeefdeadbeef' WHERE id > 10",
    "all index data gone": "DELETE FROM chunks_fts_data",
    "structure record gone": "DELETE FROM chunks_fts_data WHERE id = 10",
    "document sizes gone": "DELETE FROM chunks_fts_docsize",
    "configuration gone": "DELETE FROM chunks_fts_config",
    "emptied": "INSERT INTO chunks_fts (chunks_fts) VALUES ('delete-all')",
    "vocabulary gone": "DELETE FROM words",
    "cjk terms wrong": "UPDATE chunks SET cjk = 'nonsense'",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_rebuild_repairs_the_text_index(corpus: Shelf, damage: str) -> None:
    for _ in corpus.connection.execute(DAMAGES[damage]):
        pass
    reopen(corpus)
    assert rebuild(corpus) == 3
    assert_whole(corpus)
    reopen(corpus)
    assert_whole(corpus)


def test_a_rebuild_gives_the_same_answers(corpus: Shelf) -> None:
    queries = ["install", "git", "문서 검색", "branches cheap", "vcs"]
    before = [corpus.search(query, match="any") for query in queries]
    rebuild(corpus)
    assert [corpus.search(query, match="any") for query in queries] == before


def test_a_rebuild_forgets_words_that_no_longer_occur(corpus: Shelf) -> None:
    corpus.write("gone.md", "ephemeral")
    corpus.store.remove("notes", ["gone.md"])
    assert corpus.value("SELECT count(*) FROM words WHERE word = 'ephemeral'") == 1
    rebuild(corpus)
    assert corpus.value("SELECT count(*) FROM words WHERE word = 'ephemeral'") == 0
    assert corpus.value("SELECT count(*) FROM words WHERE word = 'install'") == 1


def test_a_rebuild_that_fails_leaves_everything_as_it_was(corpus: Shelf) -> None:
    corpus.connection.execute(
        "CREATE TEMP TRIGGER fail BEFORE UPDATE ON main.chunks BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with pytest.raises(apsw.ConstraintError):
        rebuild(corpus)
    corpus.connection.execute("DROP TRIGGER fail")
    assert_whole(corpus)


def test_an_empty_index_can_be_rebuilt(shelf: Shelf) -> None:
    assert rebuild(shelf) == 0
    shelf.check_text_index()


def test_readers_see_the_old_index_until_the_new_one_is_complete(corpus: Shelf) -> None:
    reader = corpus.database.reader()
    reader.execute("BEGIN")
    sql = "SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'install'"
    assert reader.execute(sql).fetchall() == [(1,)]
    rebuild(corpus)
    assert reader.execute(sql).fetchall() == [(1,)]
    reader.execute("COMMIT")
    assert reader.execute(sql).fetchall() == [(1,)]
    reader.close()


# --- version


def test_the_index_version_names_schema_and_configuration() -> None:
    config = fts_config("bigrams")
    version = lexical_index_version(config, migrations.LATEST)
    kind, schema, digest = version.split(":")
    assert (kind, schema) == ("lex", str(migrations.LATEST))
    assert len(digest) == 8
    assert lexical_index_version(dict(reversed(config.items())), migrations.LATEST) == version


@pytest.mark.parametrize("key", ["tokenize", "columns", "korean", "analysis"])
def test_the_index_version_changes_with_the_tokenizer_and_the_rest(key: str) -> None:
    config = fts_config("bigrams")
    changed = {**config, key: "other"}
    assert lexical_index_version(changed, 1) != lexical_index_version(config, 1)
    assert lexical_index_version(config, schema=2) != lexical_index_version(config, schema=1)


def test_the_configuration_describes_the_real_table(shelf: Shelf) -> None:
    """The hashed configuration is the one that SQLite was given."""
    config = fts_config("bigrams")
    sql = shelf.value("SELECT sql FROM sqlite_master WHERE name = 'chunks_fts'")
    assert f"tokenize = '{config['tokenize']}'" in sql
    assert [row[1] for row in shelf.rows("PRAGMA table_info(chunks_fts)")] == config["columns"]


def test_a_rebuild_remembers_how_the_index_was_built(shelf: Shelf) -> None:
    assert stored_fts_config(shelf.connection) is None
    rebuild(shelf)
    assert stored_fts_config(shelf.connection) == fts_config("bigrams")


# --- optimising


def test_optimize_keeps_all_data_and_frees_space(corpus: Shelf) -> None:
    for number in range(150):
        corpus.write(f"{number}.md", f"text {number} " * 200)
    corpus.store.remove("notes", [f"{number}.md" for number in range(150)])
    rows = corpus.chunk_rows()
    corpus.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = corpus.path.stat().st_size
    SqliteWriting(corpus.connection, "bigrams").optimize()
    assert corpus.path.stat().st_size < before / 2
    assert corpus.chunk_rows() == rows
    assert_whole(corpus)


# --- checks


def checks(shelf: Shelf) -> dict[str, bool]:
    found = health_checks(Database(shelf.path), "bigrams", named=True)
    assert all(check.ok or check.hint for check in found)
    return {check.name: check.ok for check in found}


def test_only_a_failed_check_carries_a_hint(corpus: Shelf) -> None:
    found = health_checks(Database(corpus.path), "bigrams", named=True)
    assert [check.hint for check in found] == [None] * len(found)


HEALTHY = {
    "database": True,
    "file": True,
    "text index": True,
    "references": True,
    "vector index": True,
    "analysis": True,
}


def test_an_intact_database_passes_every_check(corpus: Shelf) -> None:
    assert checks(corpus) == HEALTHY


@pytest.mark.parametrize(
    "damage",
    [
        "DROP TRIGGER chunks_au; UPDATE chunks SET text = 'changed behind its back' WHERE id = 1",
        "DROP TRIGGER chunks_ad; DELETE FROM chunks WHERE id = 1",
        "INSERT INTO chunks_fts (chunks_fts) VALUES ('delete-all')",
        "UPDATE chunks_fts_data SET block = x'deadbeef' WHERE id > 10",
        "DROP TABLE chunks_fts",
    ],
)
def test_the_checks_find_a_text_index_that_differs_from_the_chunks(corpus: Shelf, damage: str) -> None:
    """Both forms of SQLite's integrity check accept a stale index."""
    for _ in corpus.connection.execute(damage):
        pass
    reopen(corpus)
    found = health_checks(Database(corpus.path), "bigrams", named=True)
    assert any(not check.ok and "--rebuild-fts" in str(check.hint) for check in found)
    assert rebuild(corpus)
    assert checks(corpus)["text index"]


def test_the_checks_find_rows_without_an_owner(corpus: Shelf) -> None:
    corpus.connection.pragma("foreign_keys", False)
    corpus.connection.execute("INSERT INTO document_tags VALUES (4711, 'x')")
    assert checks(corpus) == {**HEALTHY, "references": False}


def test_the_checks_find_an_index_of_another_analysis(corpus: Shelf) -> None:
    corpus.connection.remember("fts_config", json.dumps(fts_config("morphemes")))
    assert checks(corpus) == {**HEALTHY, "analysis": False}


def test_a_busy_writer_is_not_reported_as_a_damaged_index(corpus: Shelf) -> None:
    """`kb doctor` during an ingest must not advise a rebuild."""
    corpus.connection.execute("BEGIN IMMEDIATE")
    try:
        found = health_checks(Database(corpus.path, busy_timeout_ms=50), "bigrams", named=True)
    finally:
        corpus.connection.execute("ROLLBACK")
    assert not any("--rebuild-fts" in str(check.hint) for check in found)


def test_statistics_count_what_is_there(corpus: Shelf) -> None:
    stats = stats_of(corpus.connection)
    assert (stats.sources, stats.documents, stats.chunks, stats.tags, stats.schema) == (1, 2, 3, 1, migrations.LATEST)
    assert stats.index_version == lexical_index_version(fts_config("bigrams"), migrations.LATEST)


# --- copies


def test_a_backup_is_one_whole_file_equal_to_the_original(corpus: Shelf, tmp_path: Path) -> None:
    target = tmp_path / "copies" / "copy.sqlite"
    target.parent.mkdir()
    reader = corpus.database.reader()
    reader.copy_to(target)
    reader.close()
    assert [path.name for path in target.parent.iterdir()] == ["copy.sqlite"]
    copy = Database(target).writer()
    assert copy.execute("SELECT * FROM chunks").fetchall() == corpus.rows("SELECT * FROM chunks")
    copy.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
    copy.close()


def test_a_backup_during_writes_is_one_consistent_state(corpus: Shelf, tmp_path: Path) -> None:
    """Every document has as many chunks as its record says, and the text index is that of these chunks."""
    stop = threading.Event()
    written: list[int] = []

    def keep_writing() -> None:
        from kebab.store.sqlite.documents import SqliteDocumentStore

        connection = Database(corpus.path).writer()
        store = SqliteDocumentStore(connection, korean_analysis="bigrams")
        number = 0
        while not stop.is_set():
            number += 1
            texts = [f"round {number} part {part} " * 40 for part in range(1 + number % 5)]
            store.write(corpus.document(f"{number % 7}.md", *texts))
            written.append(number)
        connection.close()

    thread = threading.Thread(target=keep_writing)
    thread.start()
    try:
        reader = Database(corpus.path).reader()
        for number in range(3):
            while len(written) < 20 * (number + 1):
                pass
            reader.copy_to(tmp_path / f"copy{number}.sqlite")
        reader.close()
    finally:
        stop.set()
        thread.join()
    for number in range(3):
        copy = Database(tmp_path / f"copy{number}.sqlite").writer()
        wrong = copy.execute(
            "SELECT path FROM documents d WHERE chunk_count <> (SELECT count(*) FROM chunks c WHERE c.document_id = d.id)"
        ).fetchall()
        assert wrong == []
        copy.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
        copy.close()


def test_a_backup_that_cannot_be_written_leaves_nothing_behind(corpus: Shelf, tmp_path: Path) -> None:
    reader = corpus.database.reader()
    with pytest.raises(StoreError):
        reader.copy_to(tmp_path / "missing" / "copy.sqlite")
    reader.close()
    assert not (tmp_path / "missing").exists()


def test_the_error_of_a_damaged_text_index_names_the_rebuild(corpus: Shelf) -> None:
    corpus.connection.execute("UPDATE chunks_fts_data SET block = x'deadbeefdeadbeef'")
    reopen(corpus)
    with pytest.raises(Corrupt) as caught, our_errors(corpus.path):
        corpus.search("install")
    assert "--rebuild-fts" in str(caught.value.hint)
