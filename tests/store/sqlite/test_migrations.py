"""A file of an earlier version is brought up to date when it is opened, and keeps everything it had."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

import kebab
from kebab.core.documents import Source
from kebab.store.sqlite import migrations
from kebab.store.sqlite.database import Database
from kebab.store.sqlite.documents import SqliteDocumentStore

if TYPE_CHECKING:
    from tests.conftest import Toy
    from tests.store.conftest import Shelf

TEXTS = ("git keeps every version", "rebase moves commits", "한국어 문서를 검색한다")
TABLES_OF_2 = {"embedding_spaces", "vectors", "chunks_vec", "vector_codes"}


@pytest.fixture
def of_schema_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shelf: Shelf) -> Path:
    """Made by the first migration alone, with documents in it."""
    path = tmp_path / "old" / "kebab.sqlite"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:1])
        patch.setattr(migrations, "LATEST", 1)
        with closing(Database(path).writer()) as connection:
            store = SqliteDocumentStore(connection, path, korean_analysis="bigrams")
            store.add_source(Source("notes", "folder", str(tmp_path / "notes")))
            store.write(shelf.document("git.md", *TEXTS, tags=["vcs"], title="Git"))
            assert connection.pragma("user_version") == 1
            assert not TABLES_OF_2 & tables(connection)
    return path


def tables(connection: apsw.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def contents(connection: apsw.Connection) -> dict[str, list[Any]]:
    return {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("sources", "documents", "document_tags", "chunks")}


@pytest.mark.parametrize("way", [Database.reader, Database.writer], ids=["reading", "writing"])
def test_a_file_of_schema_1_is_brought_to_2_with_all_it_has(of_schema_1: Path, way: Callable[[Database], apsw.Connection]) -> None:
    with closing(apsw.Connection(str(of_schema_1))) as connection:
        before = contents(connection)
    with closing(way(Database(of_schema_1))) as connection:
        assert connection.pragma("user_version") == migrations.LATEST == 2
        assert tables(connection) >= TABLES_OF_2
        assert contents(connection) == before
        assert [version for (version,) in connection.execute("SELECT version FROM migrations ORDER BY version")] == [1, 2]
        assert connection.execute("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'rebase'").fetchall() == [(1,)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


def test_a_second_migration_that_fails_leaves_the_first_version_as_it_was(of_schema_1: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = migrations.statements
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "statements", lambda name: really(name) + ("\nSELECT nonsense;" if name.startswith("0002") else ""))
        with pytest.raises(apsw.SQLError):
            Database(of_schema_1).writer()
    with closing(apsw.Connection(str(of_schema_1))) as connection:
        assert connection.pragma("user_version") == 1
        assert not TABLES_OF_2 & tables(connection)
    Database(of_schema_1).writer().close()


def test_an_old_knowledge_base_answers_by_words_and_gets_vectors_by_the_next_ingest(
    of_schema_1: Path, tmp_path: Path, toy: type[Toy]
) -> None:
    """R096, R108."""
    models = toy.models()
    with toy.open(of_schema_1, models) as kb:
        response = kb.search("rebase commits")
        assert (response.method, [notice.code for notice in response.notices]) == ("lexical", ["no_vectors"])
        assert len(response) == 1
        (tmp_path / "notes").mkdir()
        (tmp_path / "notes" / "git.md").write_text("# Git\n\n" + "\n\n".join(TEXTS), encoding="utf-8")
        report = kb.ingest(tmp_path / "notes")
        assert report.vectors_made == 1
        response = kb.search("rebase commits")
        assert (response.method, response.notices) == ("hybrid", ())


def test_an_old_file_in_use_by_a_lexical_search_works_without_any_model(of_schema_1: Path) -> None:
    with kebab.open(of_schema_1) as kb:
        assert [hit.doc_path for hit in kb.search("rebase", mode="lexical")] == ["git.md"]
