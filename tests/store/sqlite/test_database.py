"""Opening the database file: schema version, foreign files, permissions, pragmas, and the writer's lock."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

from kebab.core.errors import Corrupt, KebabError, Locked, NotFound, ReadOnly, SchemaAltered, StoreError, TooNew
from kebab.store.sqlite import migrations
from kebab.store.sqlite.database import APPLICATION_ID, Database, our_errors, write_transaction
from kebab.store.sqlite.writer_lock import writer_lock

if TYPE_CHECKING:
    from tests.store.conftest import Shelf


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "kebab.sqlite"


def made(path: Path) -> Path:
    Database(path).writer().close()
    return path


def change(path: Path, sql: str) -> None:
    connection = apsw.Connection(str(path))
    for _ in connection.execute(sql):
        pass
    connection.close()


# --- schema


def test_a_new_file_has_the_application_id_of_kebab_and_records_its_migrations(path: Path) -> None:
    connection = Database(path).writer()
    assert connection.pragma("application_id") == APPLICATION_ID
    assert connection.pragma("user_version") == migrations.LATEST
    recorded = connection.execute("SELECT version, name FROM migrations").fetchall()
    assert recorded == [(version, names[0]) for version, names in migrations.MIGRATIONS]
    connection.close()


def test_a_reader_never_sees_a_partly_created_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a commit between two statements of the reader made it mistake the file for another program's."""
    change(path, "PRAGMA journal_mode = wal; CREATE TABLE gone (x); DROP TABLE gone")
    opened = Database._open_reader

    def meanwhile_made(self: Database) -> apsw.Connection:
        connection = opened(self)

        def make_it(cursor: object, sql: str, bindings: object) -> bool:
            if "user_version" in sql:
                connection.exec_trace = None
                made(path)
            return True

        connection.exec_trace = make_it
        return connection

    monkeypatch.setattr(Database, "_open_reader", meanwhile_made)
    with pytest.raises(NotFound):
        Database(path).reader()
    monkeypatch.undo()
    Database(path).reader().close()


def test_a_reader_undoes_the_unfinished_work_of_a_killed_writer(path: Path, tmp_path: Path) -> None:
    """Regression: a file with a rollback journal could not be read."""
    made(path)
    change(path, "PRAGMA journal_mode = delete")
    writer = apsw.Connection(str(path))
    writer.execute("PRAGMA cache_size = 5; PRAGMA cache_spill = 5; BEGIN; CREATE TABLE half (x)")
    writer.execute(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000) INSERT INTO half SELECT randomblob(500) FROM n"
    )
    left = tmp_path / "left.sqlite"
    for suffix in ("", "-journal"):  # as they are at the moment of a kill
        left.with_name(left.name + suffix).write_bytes(path.with_name(path.name + suffix).read_bytes())
    writer.close()
    connection = Database(left).reader()
    assert connection.execute("SELECT name FROM sqlite_master WHERE name = 'half'").fetchall() == []
    assert connection.pragma("quick_check") == "ok"
    connection.close()


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    assert [version for version, _ in migrations.MIGRATIONS] == list(range(1, migrations.LATEST + 1))


def test_a_migration_that_fails_half_way_leaves_neither_tables_nor_record(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = migrations.MIGRATIONS[0][1][0]
    original = migrations.statements
    monkeypatch.setattr(migrations, "statements", lambda name: original(name) if name == first else "CREATE NONSENSE")
    with pytest.raises(SchemaAltered):
        Database(path).writer()
    connection = apsw.Connection(str(path))
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
    assert connection.pragma("user_version") == 0
    connection.close()
    monkeypatch.undo()
    made(path)
    Database(path).reader().close()


def test_opening_again_changes_nothing(path: Path) -> None:
    made(path)
    before = path.read_bytes()
    made(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("way", [Database.reader, Database.writer])
def test_a_file_of_a_newer_version_is_refused_and_left_alone(
    path: Path, way: Callable[[Database], apsw.Connection]
) -> None:
    change(made(path), f"PRAGMA user_version = {migrations.LATEST + 1}")
    before = path.read_bytes()
    with pytest.raises(
        TooNew, match=f"newer Kebab .schema {migrations.LATEST + 1}, this one knows {migrations.LATEST}"
    ) as caught:
        way(Database(path))
    assert caught.value.hint
    assert caught.value.path == str(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("way", [Database.reader, Database.writer])
@pytest.mark.parametrize("content", [b"# just a note\n" * 100, b"SQLite format 3\0" + b"\xff" * 4096, b"\0" * 8192])
def test_a_file_that_is_no_database_is_refused_and_left_alone(
    path: Path, way: Callable[[Database], apsw.Connection], content: bytes
) -> None:
    path.write_bytes(content)
    with pytest.raises(Corrupt) as caught:
        way(Database(path))
    assert caught.value.hint
    assert path.read_bytes() == content


@pytest.mark.parametrize("way", [Database.reader, Database.writer])
def test_a_database_of_another_program_is_refused_and_left_alone(
    path: Path, way: Callable[[Database], apsw.Connection]
) -> None:
    change(path, "CREATE TABLE bookmarks (url)")
    before = path.read_bytes()
    with pytest.raises(Corrupt, match="not a Kebab database"):
        way(Database(path))
    assert path.read_bytes() == before


@pytest.mark.parametrize("way", [Database.reader, Database.writer])
def test_a_folder_in_place_of_the_database_file_is_a_clear_error(
    tmp_path: Path, way: Callable[[Database], apsw.Connection]
) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="is a folder, not a database file") as caught:
        way(Database(tmp_path / "folder"))
    assert "kebab.sqlite" in str(caught.value.hint)
    assert list((tmp_path / "folder").iterdir()) == []


def test_reading_a_missing_file_is_not_found_and_creates_nothing(path: Path) -> None:
    with pytest.raises(NotFound) as caught:
        Database(path).reader()
    assert "kb" in str(caught.value.hint)
    assert not path.exists()


def test_a_writer_makes_the_folder_too(tmp_path: Path) -> None:
    made(tmp_path / "a" / "b" / "kebab.sqlite")
    assert (tmp_path / "a" / "b" / "kebab.sqlite").is_file()


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError) as caught:
        Database(tmp_path / "file" / "kebab.sqlite").writer()
    assert caught.value.hint


def unborn(path: Path) -> Path:
    """A file as left by a process that is killed between its first two steps: in WAL mode, without a schema."""
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "wal")
    connection.close()
    return path


def test_a_file_without_content_from_a_killed_writer_counts_as_missing(path: Path) -> None:
    with pytest.raises(NotFound):
        Database(unborn(path)).reader()


def test_a_file_without_content_from_a_killed_writer_is_completed_by_the_next_writer(path: Path) -> None:
    made(unborn(path))
    Database(path).reader().close()


def test_damage_in_the_middle_of_the_file_is_reported_as_damage(shelf: Shelf) -> None:
    for number in range(200):
        shelf.write(f"{number}.md", f"text {number} " * 50)
    shelf.close()
    size = shelf.path.stat().st_size
    with shelf.path.open("r+b") as handle:
        handle.seek(8192)
        handle.write(b"\xee" * (size - 8192))
    database = Database(shelf.path)
    with pytest.raises(Corrupt) as caught, our_errors(shelf.path):
        connection = database.reader()
        try:
            connection.execute("SELECT sum(length(text)) FROM chunks").fetchall()
        finally:
            connection.close()
    assert caught.value.hint
    shelf.connection = Database(shelf.path.with_name("other.sqlite")).writer()


# --- connections


def test_a_writer_sets_the_documented_pragmas(path: Path) -> None:
    connection = Database(path, busy_timeout_ms=1234).writer()
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 1  # NORMAL
    assert connection.pragma("foreign_keys") == 1
    assert connection.pragma("cache_size") == -65536
    assert connection.pragma("temp_store") == 2  # MEMORY
    assert connection.pragma("page_size") == 8192
    assert connection.pragma("busy_timeout") == 1234
    connection.close()
    reader = Database(path).reader()
    assert reader.pragma("cache_size") == -16384
    reader.close()


def test_a_reader_cannot_write(shelf: Shelf) -> None:
    shelf.write("a.md", "text")
    reader = shelf.database.reader()
    assert reader.pragma("query_only") == 1
    for sql in ("DELETE FROM chunks", "INSERT INTO chunks_fts (chunks_fts) VALUES ('optimize')", "CREATE TABLE t (x)"):
        with pytest.raises(apsw.ReadOnlyError):
            reader.execute(sql)
    reader.close()


def test_a_reader_keeps_reading_while_a_writer_is_inside_a_transaction(shelf: Shelf) -> None:
    shelf.write("a.md", "text")
    reader = Database(shelf.path, busy_timeout_ms=0).reader()
    with write_transaction(shelf.connection):
        shelf.connection.execute("UPDATE chunks SET text = 'changed'")
        assert reader.execute("SELECT text FROM chunks").fetchall() == [("text",)]
    assert reader.execute("SELECT text FROM chunks").fetchall() == [("changed",)]
    reader.close()


def test_a_second_transaction_waits_and_then_reports_the_lock(shelf: Shelf) -> None:
    other = Database(shelf.path, busy_timeout_ms=50).writer()
    with (
        write_transaction(shelf.connection),
        pytest.raises(Locked) as caught,
        our_errors(shelf.path),
        write_transaction(other),
    ):
        pass
    assert caught.value.hint
    with our_errors(shelf.path), write_transaction(other):
        pass
    other.close()


def test_every_write_transaction_begins_immediate(shelf: Shelf) -> None:
    """A deferred transaction that reads first fails with BUSY_SNAPSHOT at once, without waiting."""
    seen: list[str] = []
    shelf.connection.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: seen.append(event["sql"]))
    shelf.write("a.md", "text")
    shelf.store.touch("notes", "a.md", shelf.store.known_files("notes")["a.md"], "2024-05-31")
    shelf.store.remove("notes", ["a.md"])
    begins = [sql for sql in seen if sql.upper().startswith("BEGIN")]
    assert begins
    assert set(begins) == {"BEGIN IMMEDIATE"}


# --- folders without permission to write


def without_the_powers_of_root() -> None:
    """Runs without the two capabilities of root that override permission bits."""
    if os.geteuid() == 0:
        import ctypes

        libc = ctypes.CDLL(None)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            assert libc.prctl(24, capability, 0, 0, 0) == 0


def run_without_permission(code: str, *arguments: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=without_the_powers_of_root,
    )


READ = """
import sys
from pathlib import Path
from kebab.store.sqlite.database import Database
database = Database(Path(sys.argv[1]))
connection = database.reader()
print(database.immutable, connection.execute("SELECT text FROM chunks").fetchall())
"""


def test_a_database_in_a_read_only_folder_is_read_as_immutable(shelf: Shelf) -> None:
    shelf.write("a.md", "still readable")
    shelf.close()
    folder = shelf.path.parent
    (folder / "kebab.sqlite").chmod(0o444)
    folder.chmod(0o555)
    try:
        ran = run_without_permission(READ, shelf.path)
    finally:
        folder.chmod(0o755)
    assert ran.stdout == "True [('still readable',)]\n", ran.stderr
    shelf.path.chmod(0o644)
    shelf.connection = shelf.database.writer()


WRITE = """
import sys
from pathlib import Path
from kebab.core.errors import KebabError
from kebab.store.sqlite.database import Database
from kebab.store.sqlite.writer_lock import writer_lock
try:
    with writer_lock(Path(sys.argv[1]), wait_s=0, purpose="test"):
        Database(Path(sys.argv[1])).writer()
except KebabError as error:
    print(type(error).__name__, bool(error.hint))
"""


def test_writing_into_a_read_only_folder_is_a_read_only_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        ran = run_without_permission(WRITE, tmp_path / "kebab.sqlite")
    finally:
        tmp_path.chmod(0o755)
    assert ran.stdout == f"{ReadOnly.__name__} True\n", ran.stderr


REFUSED = """
import sys
from pathlib import Path
from kebab.core.errors import StoreError
from kebab.store.sqlite.database import Database
for way in (Database.reader, Database.writer):
    try:
        way(Database(Path(sys.argv[1])))
    except StoreError as error:
        print(bool(error.hint))
"""


def test_a_database_in_a_folder_that_cannot_be_entered_is_a_clear_error(tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    made(folder / "kebab.sqlite")
    folder.chmod(0o000)
    try:
        ran = run_without_permission(REFUSED, folder / "kebab.sqlite")
    finally:
        folder.chmod(0o755)
    assert ran.stdout == "True\nTrue\n", ran.stderr


# --- the lock of the one writer

HOLD = """
import sys, time
from pathlib import Path
from kebab.store.sqlite.writer_lock import writer_lock
with writer_lock(Path(sys.argv[1]), wait_s=0, purpose="kb ingest"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def ended(process: subprocess.Popen[str], number: int) -> None:
    process.send_signal(number)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_the_error_for_a_second_writer_names_the_first(path: Path, holder: subprocess.Popen[str]) -> None:
    try:
        with pytest.raises(Locked) as caught, writer_lock(path, wait_s=0.1, purpose="kb ingest"):
            pass
    finally:
        ended(holder, signal.SIGTERM)
    assert re.search(rf"process {holder.pid} \(kb ingest, since \d{{4}}-\d\d-\d\d", caught.value.message)
    assert caught.value.hint


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_process_leaves_no_lock(path: Path, holder: subprocess.Popen[str], number: int) -> None:
    ended(holder, number)
    with writer_lock(path, wait_s=0, purpose="kb ingest"):
        pass


def test_a_second_writer_waits_for_the_first_to_finish(path: Path, holder: subprocess.Popen[str]) -> None:
    import threading

    timer = threading.Timer(0.3, ended, (holder, signal.SIGKILL))
    timer.start()
    with writer_lock(path, wait_s=10, purpose="kb ingest"):
        pass
    timer.join()


def test_the_lock_can_be_taken_again_after_an_error(path: Path) -> None:
    with pytest.raises(KebabError), writer_lock(path, wait_s=0, purpose="first"):
        raise KebabError("something else")
    with (
        writer_lock(path, wait_s=0, purpose="second"),
        pytest.raises(Locked, match="second"),
        writer_lock(path, wait_s=0, purpose="third"),
    ):
        pass
