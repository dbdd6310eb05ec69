"""A database whose schema another program altered is refused by every command with a clear error, and repaired if no
data is lost.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import apsw
import pytest
from tests.conftest import Kb
from tests.interfaces.mcp.sessions import over_stdio

import kebab
from kebab.core.errors import Corrupt, SchemaAltered
from kebab.store.sqlite.database import Connection, Database, SchemaObject, digest

Alter = Callable[[str], Path]


def schema(path: Path) -> list[SchemaObject]:
    with closing(Connection(path)) as connection:
        rows = connection.rows("SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return [SchemaObject(*row) for row in rows if not row[1].startswith(("sqlite_", "chunks_fts_", "library_fts_"))]


def run(path: Path, script: str) -> Path:
    """Alters the file as another program would."""
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(script).fetchall()
    return path


@pytest.fixture
def alter(sample_db: Path, tmp_path: Path) -> Alter:
    """A function that makes an altered copy of the sample database."""
    copies = (tmp_path / f"altered-{number}.sqlite" for number in count())
    return lambda script: run(Path(shutil.copy(sample_db, next(copies))), script)


def refusal(path: Path) -> SchemaAltered:
    """The error of opening the file, which is the same for readers and writers and comes before anything is changed."""
    with kebab.open(path) as kb:
        raised = []
        for way in (
            lambda: kb.search("git"),
            kb.ingest,
            kb.documents,
            kb.verify,
            kb.stats,
            kb.optimize,
            kb.libraries.all,
        ):
            with pytest.raises(SchemaAltered) as caught:
                way()
            raised.append(caught.value)
        health = {check.name: check for check in kb.health()}["database"]
    assert len({(error.message, error.hint) for error in raised} | {(health.message, health.hint)}) == 1
    assert not health.ok
    return raised[0]


def test_a_dropped_part_of_the_schema_is_named_and_restored_unless_it_is_a_table(sample_db: Path, alter: Alter) -> None:
    for part in schema(sample_db):
        path = alter(f"DROP {part.type} {part.name}")
        error = refusal(path)
        assert f"{part.type} {part.name} is missing" in error.message
        with kebab.open(path) as kb:
            if part.holds_data:
                assert "kb reset" in str(error.hint)
                with pytest.raises(SchemaAltered):
                    kb.rebuild_fts()
            else:
                assert "kb index --rebuild-fts" in str(error.hint)
                kb.rebuild_fts()
                assert [
                    check for check in kb.health() if check.name in ("database", "text index") and not check.ok
                ] == []
                assert kb.search("git")


@pytest.mark.parametrize(
    ("script", "named", "repairable"),
    [
        (
            "ALTER TABLE documents ADD COLUMN mine TEXT NOT NULL DEFAULT ''",
            "table documents was changed (column mine was added)",
            False,
        ),
        ("ALTER TABLE words RENAME COLUMN stem TO root", "column stem is missing, column root was added", False),
        ("ALTER TABLE words RENAME TO mots", "table words is missing", False),
        ("CREATE INDEX mine ON documents (title)", "index mine was added to documents", True),
        (
            "CREATE TRIGGER mine BEFORE INSERT ON chunks BEGIN SELECT RAISE(ABORT, 'no'); END",
            "trigger mine was added to chunks",
            True,
        ),
        (
            "DROP TRIGGER chunks_ai; CREATE TRIGGER chunks_ai AFTER INSERT ON chunks BEGIN SELECT 1; END",
            "chunks_ai was changed",
            True,
        ),
        ("DROP TABLE chunks_fts; CREATE VIEW chunks_fts AS SELECT * FROM chunks", "table chunks_fts is missing", True),
        (
            "DROP TABLE chunks_fts; CREATE VIRTUAL TABLE chunks_fts USING fts5 (text)",
            "table chunks_fts was changed",
            True,
        ),
    ],
)
def test_other_altered_parts_of_the_schema_are_named(alter: Alter, script: str, named: str, repairable: bool) -> None:
    path = alter(script)
    error = refusal(path)
    assert named in error.message
    assert ("kb index --rebuild-fts" in str(error.hint)) is repairable
    if repairable:
        with kebab.open(path) as kb:
            kb.rebuild_fts()
            assert kb.verify().sound


def test_tables_of_other_programs_do_not_matter(alter: Alter) -> None:
    path = alter(
        "CREATE TABLE theirs (a); CREATE INDEX theirs_a ON theirs (a); CREATE VIEW shown AS SELECT title FROM documents; ANALYZE"
    )
    with kebab.open(path) as kb:
        assert kb.search("git")
        kb.optimize()
        assert kb.verify().sound


def test_an_alteration_while_the_database_is_open_is_reported(alter: Alter) -> None:
    path = alter("SELECT 1")
    with kebab.open(path) as kb:
        assert kb.search("git")
        run(path, "ALTER TABLE documents RENAME COLUMN path TO place")
        with pytest.raises(SchemaAltered, match="column path is missing"):
            kb.search("git")


def test_if_a_migration_fails_the_error_names_what_was_altered_in_the_old_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kebab.store.sqlite import migrations

    path = tmp_path / "old.sqlite"
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "MIGRATIONS", migrations.MIGRATIONS[:3])
        patch.setattr(migrations, "LATEST", 3)
        with closing(Database(path).writer()) as connection:
            connection.execute("DROP TABLE sources")
    with pytest.raises(SchemaAltered, match="table sources is missing"):
        Database(path).reader()


@pytest.mark.parametrize(
    "command", ["search git", "ingest", "verify", "list docs", "serve --port 0", "backup copy.sqlite", "lib list"]
)
def test_every_command_ends_with_the_same_error(alter: Alter, kb: Kb, command: str) -> None:
    ran = kb("--db", alter("ALTER TABLE chunks RENAME COLUMN kind TO sort"), *command.split(), "--json")
    assert ran.code == 2, ran
    assert "Traceback" not in ran.err + ran.out
    assert "column kind is missing" in ran.out + ran.err
    assert "schema_altered" in ran.out + ran.err


def test_mcp_reports_the_same_error(alter: Alter, tmp_path: Path) -> None:
    with over_stdio(alter("DROP TABLE documents"), tmp_path) as agent:
        error = agent.fails("search", query="git")
    assert (error["code"], "table documents is missing" in error["message"]) == ("schema_altered", True)


def test_opening_compares_the_digest_without_running_the_migrations(
    sample_db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kebab.store.sqlite.migrations.statements", None)
    with closing(Database(sample_db).reader()) as connection:
        assert digest(connection)


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("PRAGMA user_version = 6", "schema_altered"),
        ("PRAGMA user_version = 0", "schema_altered"),
        ("PRAGMA user_version = -1", "schema_altered"),
        ("PRAGMA user_version = 1; DROP TABLE vectors; CREATE TABLE vectors (x)", "schema_altered"),
        ("UPDATE meta SET value = 'junk' WHERE key = 'fts_config'", "corrupt"),
        ("UPDATE meta SET value = '{}' WHERE key = 'fts_config'", "corrupt"),
    ],
)
def test_an_impossible_version_or_value_is_reported_without_a_traceback(
    alter: Alter, kb: Kb, script: str, code: str
) -> None:
    path = alter(script)
    for command in ("search git", "ingest", "list docs", "doctor"):
        ran = kb("--db", path, *command.split(), "--json")
        assert ran.code in (0, 2, 3), (command, ran)
        assert "Traceback" not in ran.err, (command, ran.err)
    ran = kb("--db", path, "search", "git", "--json")
    assert (ran.code, ran.json()["code"]) == (2, code)
    assert ran.json()["hint"]


@pytest.mark.parametrize(
    "script",
    [
        "UPDATE chunks SET source_spans = '{'",
        """UPDATE chunks SET source_spans = '[["moon", 1, 2]]'""",
        "UPDATE chunks SET headings = '['",
        "UPDATE documents SET metadata = '{'",
    ],
)
def test_a_value_that_another_program_wrote_is_an_error_with_a_hint(alter: Alter, script: str) -> None:
    """Regression: the command ended with a traceback and the advice to report a defect."""
    with kebab.open(alter(script)) as kb, pytest.raises(Corrupt, match="did not write") as caught:
        kb.search("git")
        kb.documents()
    assert "backup" in (caught.value.hint or "")
