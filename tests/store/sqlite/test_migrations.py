"""Databases of earlier versions (tests/fixtures/databases) are migrated when opened, and then give the same answers as
new ones.
"""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import apsw
import pytest

import kebab
from kebab.core.documents import Repository
from kebab.core.errors import SchemaAltered
from kebab.store.sqlite import migrations
from kebab.store.sqlite.database import Database, digest

DATABASES = Path(__file__).parents[2] / "fixtures" / "databases"
VERSIONS = sorted(path.name.removesuffix(".sqlite.gz") for path in DATABASES.glob("*.gz"))
NOTE = "what the team in Busan writes"
LIBRARY = "/teapot/teapot"
QUERIES = (
    "sourdough rye",
    "roll back the release",
    "restart_workers",
    "water tomatoes",
    "백업",
    "배추 소금물",
    "kitchen",
    '"load balancer"',
)
QUESTIONS = ("how do I undo a bad release?", "양념은 어떻게 만들지?", "when are backups made?")
CHECKSUMS = {
    "0001_documents_and_chunks.sql": "fcc8c96d9b5446a168af846e2e872549fc5101a421c6120ccd703f41e2052ba0",
    "0001_text_index.sql": "6b5754e30c6c347dbfa8af909d93df09c25f367506b929f4d6695f697149a9e6",
    "0002_vectors.sql": "cbcf26dc4908bb5a8a5288c17f2fdf9edb2d6545635fe4866e074f5a3dc593d8",
    "0003_context_notes.sql": "04fafc8913cd65ecae90cc6934fb2943523d131a776a462c902b337463edef98",
    "0004_repositories.sql": "26cce21022a62a55b82ec0ec4ccfff229392e69d65a0b7a1a86e9e0932212ce4",
    "0005_vector_scopes.sql": "41d78d68292da04748e79bedc81f4c9d40d5c19accfc46455ce22631bf67d151",
    "0006_libraries.sql": "5f7b64363337ee945e376742a034d03c0fc736621b5cd67cda25354afeef09c1",
    "0006_text_index.sql": "c6e5a3162a2f6b4b59f4abf637b7d2ec5ac2cb3a26a3520f121756965b8f45ac",
    "0007_one_schema_6.sql": "06f783d9916538998efcd1a55b9a48aa2576723311e44cda52da0e58d0c1cf7b",
}


def test_no_released_migration_file_is_edited() -> None:
    """Databases exist that were made with them. Make every change a new step and add its checksum here."""
    found = {
        file.name: sha256(file.read_bytes()).hexdigest()
        for file in files(migrations).iterdir()
        if file.name.endswith(".sql")
    }
    assert found == CHECKSUMS


def test_the_digest_is_that_of_the_schema_that_all_steps_make(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "new.sqlite").writer()) as connection:
        assert digest(connection) == migrations.DIGEST


def test_every_schema_version_has_a_database() -> None:
    assert {int(name.split("-")[1]) for name in VERSIONS} == set(range(1, migrations.LATEST))


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The notes that are in the old databases."""
    return shutil.copytree(DATABASES / "notes", tmp_path / "notes")


def written_by(name: str, notes: Path) -> Path:
    """A copy of an old database whose source is moved to where its notes are now."""
    path = notes.parent / "old.sqlite"
    path.write_bytes(gzip.decompress((DATABASES / f"{name}.sqlite.gz").read_bytes()))
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE sources SET root = ? WHERE root = '/notes'", (str(notes),))
    return path


def contents(connection: apsw.Connection, columns: dict[str, str]) -> dict[str, list[Any]]:
    return {
        table: connection.execute(f"SELECT {shown} FROM {table} ORDER BY 1, 2").fetchall()
        for table, shown in columns.items()
    }


def columns_of_tables(connection: apsw.Connection) -> dict[str, str]:
    tables = [
        name
        for (name,) in connection.execute("SELECT name FROM pragma_table_list WHERE type = 'table' AND schema = 'main'")
    ]
    return {
        table: ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))
        for table in tables
        if not table.startswith("sqlite_") and table != "migrations"
    }


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory, model_cache: Path) -> Iterator[dict[bool, kebab.KnowledgeBase]]:
    """New databases of the same notes, without and with a note on the source; the second also with the library."""
    folder = tmp_path_factory.mktemp("fresh")
    with pytest.MonkeyPatch.context() as patch, ExitStack() as opened:
        patch.delenv("KEBAB_EMBEDDING_MODEL")
        patch.setenv("XDG_CACHE_HOME", str(model_cache))
        made = {
            described: opened.enter_context(kebab.open(folder / f"{described}.sqlite")) for described in (False, True)
        }
        for described, kb in made.items():
            kb.ingest(DATABASES / "notes", embed=described)
        complete(made[True])
        yield made


def complete(kb: kebab.KnowledgeBase) -> None:
    """Adds what databases of the earliest versions did not have."""
    if not kb.sources()[0].notes:
        kb.describe_source("notes", NOTE)
    if not kb.libraries.all():
        kb.libraries.add(str(DATABASES / "library"), library_id=LIBRARY)


def documents(kb: kebab.KnowledgeBase, query: str) -> list[str]:
    """The documents in order, each once: old databases keep the passages as they were cut then."""
    return list(dict.fromkeys(hit.doc_path for hit in kb.search(query, mode="lexical")))


def answer(kb: kebab.KnowledgeBase, query: str, mode: str) -> tuple[Any, ...]:
    response = kb.search(query, mode=mode)
    return response.method, response.notices, [(hit.chunk_id, hit.text, round(hit.score, 6)) for hit in response]


@pytest.mark.parametrize("name", VERSIONS)
def test_a_database_of_an_earlier_version_answers_like_a_fresh_one(
    name: str, notes: Path, fresh: dict[bool, kebab.KnowledgeBase], bundled_models: None
) -> None:
    path = written_by(name, notes)
    with closing(apsw.Connection(str(path))) as connection:
        columns = columns_of_tables(connection)
        before = contents(connection, columns)
    with kebab.open(path) as kb:
        new = fresh[bool(kb.sources()[0].notes)]
        for query in QUERIES:
            assert documents(kb, query) == documents(new, query)
        with closing(apsw.Connection(str(path))) as connection:
            assert digest(connection) == migrations.DIGEST
            assert contents(connection, columns) == before
        report = kb.verify()
        assert report.whole, (report.checks, report.differences)

        kb.ingest(notes)
        complete(kb)
        assert kb.verify().whole
        assert [check for check in kb.health() if not check.ok] == []
        for query in (*QUERIES, *QUESTIONS, "Busan deploy"):
            for mode in ("lexical", "hybrid"):
                assert answer(kb, query, mode) == answer(fresh[True], query, mode)
        assert (
            kb.libraries.docs(LIBRARY, "brew tea").snippets == fresh[True].libraries.docs(LIBRARY, "brew tea").snippets
        )


@pytest.mark.parametrize("name", VERSIONS)
def test_an_upgrade_without_the_files_makes_of_an_earlier_version_what_a_fresh_one_is(
    name: str, notes: Path, fresh: dict[bool, kebab.KnowledgeBase], bundled_models: None
) -> None:
    path = written_by(name, notes)
    shutil.rmtree(notes)
    with kebab.open(path) as kb:
        report = kb.upgrade()
        assert report.scanned == report.updated >= 5
        assert kb.upgrade().scanned == 0
        complete(kb)
        assert [check for check in kb.verify().checks if not check.ok] == []
        for query in (*QUERIES, *QUESTIONS, "Busan deploy"):
            for mode in ("lexical", "hybrid"):
                assert answer(kb, query, mode) == answer(fresh[True], query, mode)
        assert (
            kb.libraries.docs(LIBRARY, "brew tea").snippets == fresh[True].libraries.docs(LIBRARY, "brew tea").snippets
        )


def test_a_migration_that_fails_leaves_the_earlier_version_as_it_was(
    notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written_by("schema-1", notes)
    before = path.read_bytes()
    really = migrations.statements
    with monkeypatch.context() as patch:
        patch.setattr(
            migrations,
            "statements",
            lambda name: really(name) + ("\nSELECT nonsense;" if name.startswith("0002") else ""),
        )
        with pytest.raises(SchemaAltered, match="no such column: nonsense"):
            Database(path).writer()
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "delete")
        assert connection.pragma("user_version") == 1
    assert path.read_bytes()[100:] == before[100:], "all but the header, which counts changes"
    Database(path).writer().close()


def test_the_next_ingest_adds_the_repository_to_a_source_of_schema_3(notes: Path) -> None:
    (notes / ".git").mkdir()
    (notes / ".git" / "HEAD").write_text("ref: refs/heads/main")
    with kebab.open(written_by("schema-3", notes)) as kb:
        assert [source.repository for source in kb.sources()] == [None]
        kb.ingest()
        assert [source.repository for source in kb.sources()] == [Repository("notes", "main", None)]
