"""A file of an earlier version is brought up to date when it is opened, and keeps everything it had."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

import kebab
from kebab.core.documents import Repository, Source
from kebab.store.sqlite import migrations
from kebab.store.sqlite.database import Database

if TYPE_CHECKING:
    from tests.conftest import Toy
    from tests.store.conftest import Shelf

TEXTS = ("git keeps every version", "rebase moves commits", "한국어 문서를 검색한다")
TABLES_OF_2 = {"embedding_spaces", "vectors", "chunks_vec", "vector_codes"}


def made_by(version: int, folder: Path, patch: pytest.MonkeyPatch, shelf: Shelf) -> Path:
    """A file of the first migrations alone, with documents in it. The store of today writes tables that it has not, so they are copied."""
    shelf.store.add_source(Source("notes", "folder", str(folder / "notes")))
    shelf.store.write(shelf.document("git.md", *TEXTS, tags=["vcs"], title="Git"))
    path = folder / "old" / "kebab.sqlite"
    patch.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:version])
    patch.setattr(migrations, "LATEST", version)
    with closing(Database(path).writer()) as connection:
        connection.execute("ATTACH ? AS today", (str(shelf.path),))
        for table in ("sources", "documents", "document_tags", "chunks", "words"):
            columns = ", ".join(row[1] for row in connection.execute(f"PRAGMA main.table_info({table})"))
            connection.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM today.{table}")
        assert connection.pragma("user_version") == version
    return path


@pytest.fixture
def of_schema_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shelf: Shelf) -> Path:
    with monkeypatch.context() as patch:
        path = made_by(1, tmp_path, patch, shelf)
    with closing(apsw.Connection(str(path))) as connection:
        assert not TABLES_OF_2 & tables(connection)
    return path


@pytest.fixture
def of_schema_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shelf: Shelf) -> Path:
    with monkeypatch.context() as patch:
        path = made_by(2, tmp_path, patch, shelf)
    with closing(apsw.Connection(str(path))) as connection:
        assert tables(connection) >= TABLES_OF_2
        assert "context_notes" not in tables(connection)
    return path


def tables(connection: apsw.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def contents(connection: apsw.Connection) -> dict[str, list[Any]]:
    """Of the columns that every version has."""
    columns = {
        "sources": "id, name, kind, root, trust_level, created_at, ingested_at",
        "documents": "*",
        "document_tags": "*",
        "chunks": "*",
    }
    return {table: connection.execute(f"SELECT {shown} FROM {table}").fetchall() for table, shown in columns.items()}


@pytest.mark.parametrize("way", [Database.reader, Database.writer], ids=["reading", "writing"])
def test_a_file_of_schema_1_is_brought_up_with_all_it_has(of_schema_1: Path, way: Callable[[Database], apsw.Connection]) -> None:
    with closing(apsw.Connection(str(of_schema_1))) as connection:
        before = contents(connection)
    with closing(way(Database(of_schema_1))) as connection:
        assert connection.pragma("user_version") == migrations.LATEST
        assert tables(connection) >= TABLES_OF_2
        assert contents(connection) == before
        assert [version for (version,) in connection.execute("SELECT version FROM migrations ORDER BY version")] == list(
            range(1, migrations.LATEST + 1)
        )
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


def test_a_file_of_schema_2_can_be_described_and_finds_by_the_note(of_schema_2: Path) -> None:
    with kebab.open(of_schema_2) as kb:
        before = [hit.chunk_id for hit in kb.search("rebase", mode="lexical")]
        assert [source.notes for source in kb.sources()] == [()]
        kb.describe_source("notes", "what team-a writes")
        (hit,) = kb.search("team-a rebase", mode="lexical", match="all")
        assert ([hit.chunk_id], hit.context) == (before, ("what team-a writes",))


def test_a_file_of_schema_3_learns_of_repositories_by_the_next_ingest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shelf: Shelf
) -> None:
    with monkeypatch.context() as patch:
        path = made_by(3, tmp_path, patch, shelf)
    (tmp_path / "notes" / ".git").mkdir(parents=True)
    (tmp_path / "notes" / ".git" / "HEAD").write_text("ref: refs/heads/main")
    (tmp_path / "notes" / "git.md").write_text("git keeps every version")
    with kebab.open(path) as kb:
        assert [source.repository for source in kb.sources()] == [None]
        kb.ingest()
        assert [source.repository for source in kb.sources()] == [Repository("notes", "main", None)]
