"""The SQLite file: opening it for reading or writing, its schema version, and its errors in our words."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import apsw

from kebab.core import deadline
from kebab.core.errors import Corrupt, DiskFull, Locked, NotFound, ReadOnly, SchemaAltered, StoreError, TooNew
from kebab.core.path_glob import path_matches
from kebab.core.private_files import make_file, make_folder
from kebab.store.sqlite import migrations
from kebab.store.sqlite.filters import TEXT_INDEXES
from kebab.store.sqlite.schema import refuse_altered, refuse_altered_file

APPLICATION_ID = 0x6B656261  # "keba", so that a file can be told from any other SQLite file
PAGE_SIZE = 8192
_WRITER_CACHE_KB = 65_536
_READER_CACHE_KB = 16_384
"""A quarter of the writer's: a server has a reader for each thread, and a search is no slower with it."""
_READ_WRITE_CREATE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
_MOST_MARKS = 4096
"""Values in one statement."""
_STEPS_BETWEEN_CHECKS = 500
"""Steps of SQLite's virtual machine between two looks at the deadline: 5 to 30 ms of a heavy query, at a cost of 1 %.
"""
_MOST_MAPPED = 1 << 28
"""Bytes of the file that are mapped into memory. More makes reading a little faster, but counts as the process's own
memory.
"""


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


_TRY_AGAIN = "Try again, or raise store.busy_timeout_ms."
_START_AGAIN = "Restore a backup, or delete the file and ingest again; kb doctor tells more."
_FREE_SPACE = "Free some space and run the command again: it continues."
_PERMISSIONS = "Check the path and its permissions."
_OTHER_FILE = "Check its permissions, or name another with --db."
_MEANINGS: dict[type[apsw.Error], tuple[type[StoreError], str, str]] = {
    apsw.BusyError: (Locked, "Another process kept the database busy for too long.", _TRY_AGAIN),
    apsw.NotADBError: (Corrupt, "{path} is not a Kebab database.", "Name another file with --db."),
    apsw.CorruptError: (Corrupt, "The database {path} is damaged.", _START_AGAIN),
    apsw.FullError: (DiskFull, "There is no space left for {path}.", _FREE_SPACE),
    apsw.ReadOnlyError: (ReadOnly, "{path} cannot be written to.", _OTHER_FILE),
    apsw.IOError: (StoreError, "Reading or writing {path} failed: {error}.", "Check the disk and its free space."),
    apsw.CantOpenError: (StoreError, "{path} cannot be opened: {error}.", _PERMISSIONS),
}
"""Our error, its message and its hint, by the exception of the driver."""
RESTORE = "Restore a backup, or: kb reset and ingest again"
_REBUILD = "Rebuild the text index with: kb index --rebuild-fts"
_STATEMENT_ERRORS = (apsw.SQLError, apsw.ConstraintError, apsw.MismatchError)


@contextmanager
def our_errors(path: Path) -> Iterator[None]:
    """Turns the driver's exceptions into ours; what is not about the file itself passes through."""
    try:
        yield
    except apsw.InterruptError as error:
        raise deadline.timed_out() from error
    except _STATEMENT_ERRORS as error:
        refuse_altered_file(path)
        if not any(name in str(error) for name in (*TEXT_INDEXES, "fts5")):
            raise
        raise Corrupt(f"The text index of {path} is damaged.", hint=_REBUILD, path=str(path)) from error
    except tuple(_MEANINGS) as error:
        raise _our_error(error, path) from error


def _our_error(error: apsw.Error, path: Path) -> StoreError:
    is_full = isinstance(error, apsw.IOError) and _disk_is_full(path)
    kind, message, hint = _MEANINGS[apsw.FullError if is_full else type(error)]
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB:
        hint = _REBUILD
    return kind(message.format(path=path, error=error), hint=hint, path=str(path))


def _disk_is_full(path: Path) -> bool:
    """SQLite reports some writes without room as plain I/O errors."""
    try:
        status = os.statvfs(path.parent)
    except (AttributeError, OSError):  # Windows has no statvfs
        return False
    return status.f_bavail * status.f_frsize < 1 << 20


class Connection(apsw.Connection):
    """A connection that knows the path of its file."""

    def __init__(self, path: Path, *, uri: str | None = None, flags: int = _READ_WRITE_CREATE) -> None:
        super().__init__(uri or str(path), flags=flags)
        self.path = path

    def rows(self, sql: str, bindings: Any = ()) -> list[tuple[Any, ...]]:
        """All rows at once: a statement left half read would keep its snapshot, and with it the log, alive."""
        deadline.check()
        return cast("list[tuple[Any, ...]]", self.execute(sql, bindings).fetchall())

    def value(self, sql: str, bindings: Any = ()) -> Any:
        """The first column of the first row."""
        return self.rows(sql, bindings)[0][0]

    def rows_for(self, values: Sequence[Any], sql: str, *bindings: Any) -> list[tuple[Any, ...]]:
        """The rows of one statement for any number of values: `{marks}` in `sql` stands for some thousand of them, and
        `bindings` come before them.
        """
        rows: list[tuple[Any, ...]] = []
        for start in range(0, len(values), _MOST_MARKS):
            some = values[start : start + _MOST_MARKS]
            rows += self.rows(sql.format(marks=",".join("?" * len(some))), (*bindings, *some))
        return rows

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """A write transaction, with the driver's exceptions as ours."""
        with our_errors(self.path), write_transaction(self):
            yield

    def write(self, sql: str, bindings: Any = ()) -> int:
        """Runs one statement in a transaction of its own. Returns how many rows it changed."""
        with self.transaction():
            self.execute(sql, bindings)
            return self.changes()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All statements inside see one state of the file, even if other processes write."""
        self.execute("SAVEPOINT reading")
        try:
            yield
        finally:
            self.execute("RELEASE reading")

    def copy_to(self, target: Path) -> None:
        """A consistent copy while others read and write. It appears under its name only when it is complete."""
        unfinished = target.with_name(target.name + ".unfinished")
        try:
            unfinished.unlink(missing_ok=True)
            make_file(unfinished)
            try:
                with our_errors(target):
                    self._fill(unfinished)
                    unfinished.replace(target)
            finally:
                for suffix in ("", "-journal", "-wal", "-shm"):
                    unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)
        except OSError as error:
            message = f"{target} cannot be written: {error.strerror}."
            raise StoreError(message, hint="Name another place.", path=str(target)) from error

    def _fill(self, unfinished: Path) -> None:
        with closing(apsw.Connection(str(unfinished))) as copy:
            try:
                with copy.backup("main", self, "main") as running:
                    while not running.done:
                        running.step(1000)
                copy.pragma("journal_mode", "delete")  # one file, nothing beside it
                is_whole = copy.pragma("quick_check") == "ok"
            except apsw.CorruptError as error:  # damage found while copying is in the original
                message = f"The database {self.path} is damaged."
                raise Corrupt(message, hint=RESTORE, path=str(self.path)) from error
        if not is_whole:
            hint = "See kb doctor, check the disk, try again."
            raise Corrupt(f"The copy of {self.path} is damaged.", hint=hint, path=str(self.path))


class Database:
    """A file that may not exist yet. Connections belong to the thread that asked for them."""

    def __init__(self, path: Path, *, busy_timeout_ms: int = 5000) -> None:
        self.path = path
        self._busy_timeout_ms = busy_timeout_ms
        self.immutable = False
        """True after a reader had to take the file as it is, because its folder cannot be written to."""

    def size(self) -> int:
        """In bytes; 0 where there is no file."""
        self.refuse_folder()
        return self.path.stat().st_size if self.path.is_file() else 0

    def is_ours(self) -> bool:
        """Whether its first bytes are ours: a damaged or newer database counts, and so does an empty file."""
        with self.path.open("rb") as handle:
            head = handle.read(72)
        return not head or (
            head.startswith(b"SQLite format 3\0") and int.from_bytes(head[68:72], "big") == APPLICATION_ID
        )

    def reader(self) -> Connection:
        """A connection whose statements cannot write. NotFound if there is no file; an older schema is migrated."""
        if not self.size():
            raise self._not_there()
        connection = self._open_reader()
        if self._version(connection) < migrations.LATEST:
            connection.close()
            self.writer().close()
            connection = self._open_reader()
        with our_errors(self.path):
            refuse_altered(connection, self.path)
            connection.pragma("query_only", True)
            connection.set_progress_handler(deadline.is_over, _STEPS_BETWEEN_CHECKS)
        return connection

    def writer(self, *, mending: bool = False) -> Connection:
        """A connection that may write; makes the file and migrates its schema. `mending`: to rebuild the text index."""
        self.make_folder()
        with suppress(OSError):  # SQLite reports the error
            make_file(self.path)  # SQLite gives -wal, -shm and -journal the mode of this file
        with our_errors(self.path):
            connection = Connection(self.path)
            if connection.readonly("main"):
                raise apsw.ReadOnlyError
            self._prepare(connection, _WRITER_CACHE_KB)
            if _has_nothing(connection):
                connection.pragma("page_size", PAGE_SIZE)
            else:
                self._version(connection)
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "normal")
            self._migrate(connection)
            refuse_altered(connection, self.path, mending=mending)
            # Only now: a migration may drop a table that others refer to, and make it again.
            connection.pragma("foreign_keys", True)
        return connection

    def _not_there(self) -> NotFound:
        hint = f"Make one with: kb --db {self.path} ingest FOLDER"
        return NotFound(f"There is no database at {self.path}.", hint=hint, path=str(self.path))

    def make_folder(self) -> None:
        self.refuse_folder()
        try:
            make_folder(self.path.parent)
        except OSError as error:
            message = f"The folder of {self.path} cannot be made: {error.strerror}."
            raise StoreError(message, hint="Name another place with --db.", path=str(self.path)) from error

    def refuse_folder(self) -> None:
        """Raises a clear error for a folder: the commonest slip, for which SQLite's own words are obscure."""
        try:
            os.fsencode(self.path).decode("utf-8")
            is_folder = self.path.is_dir()
        except (OSError, ValueError) as error:
            raise StoreError(f"{self.path} cannot be opened: {error}.", hint=_PERMISSIONS) from error
        if is_folder:
            hint = f"Name a file in it, such as --db {self.path / 'kebab.sqlite'}"
            raise StoreError(f"{self.path} is a folder, not a database file.", hint=hint, path=str(self.path))

    def _open_reader(self) -> Connection:
        """Opened for writing, so that the last one to close removes -wal and -shm, and undoes what a killed writer
        began.
        """
        with our_errors(self.path):
            try:
                connection = Connection(self.path, flags=apsw.SQLITE_OPEN_READWRITE)
                self._prepare(connection)
                connection.pragma("schema_version")  # the first real access: it needs the -shm file
            except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError):
                log = self.path.with_name(self.path.name + "-wal")
                has_log = log.exists() and log.stat().st_size > 0  # then the file alone may be half of the truth
                may_write = os.access(self.path.absolute().parent, os.W_OK)
                if has_log and not may_write:
                    message = f"The latest changes of {self.path} are in {log.name}"
                    hint = "Copy both files to where they can be written to, and name the copy with --db."
                    message += ", which cannot be read in a read-only place."
                    raise ReadOnly(message, hint=hint, path=str(self.path)) from None
                if has_log or (may_write and not _disk_is_full(self.path)):
                    raise  # another process may be writing, and an immutable reader would read nonsense
                # Even to read, WAL needs a folder with room to write; without one, the file is taken as it is.
                uri, flags = f"{self.path.absolute().as_uri()}?immutable=1", apsw.SQLITE_OPEN_READONLY
                connection = Connection(self.path, uri=uri, flags=flags | apsw.SQLITE_OPEN_URI)
                self._prepare(connection)
                connection.pragma("schema_version")
                self.immutable = True
        return connection

    def _prepare(self, connection: Connection, cache_kb: int = _READER_CACHE_KB) -> None:
        connection.set_busy_timeout(self._busy_timeout_ms)
        connection.pragma("cache_size", -cache_kb)
        connection.pragma("temp_store", "memory")
        with suppress(OSError):
            connection.pragma("mmap_size", min(self.path.stat().st_size, _MOST_MAPPED))
        connection.create_scalar_function("path_matches", cast("Any", path_matches), 2, deterministic=True)

    def _version(self, connection: Connection) -> int:
        # In one snapshot: another process may be making the file, and may commit between two statements.
        with our_errors(self.path), connection.snapshot():
            application, version = connection.pragma("application_id"), connection.pragma("user_version")
            if application == version == 0 and _has_nothing(connection):
                raise self._not_there()  # another process is making it, or died while making it
        if application != APPLICATION_ID:
            raise _our_error(apsw.NotADBError(), self.path)
        if version > migrations.LATEST:
            versions = f"schema {version}, this one knows {migrations.LATEST}"
            hint = "Update Kebab, or use another database with --db."
            raise TooNew(f"{self.path} was written by a newer Kebab ({versions}).", hint=hint, path=str(self.path))
        return int(version)

    def _migrate(self, connection: Connection) -> None:
        before = connection.pragma("user_version")
        try:
            for version, names in migrations.MIGRATIONS:
                if version > before:
                    _run_migration(connection, version, names)
        except _STATEMENT_ERRORS as error:
            refuse_altered_file(self.path)  # names the difference if it can
            message = f"{self.path} cannot be brought from schema {before} to {migrations.LATEST}: {error}."
            hint = "Another program altered it: undo that, restore a backup, or: kb reset and ingest again"
            raise SchemaAltered(message, hint=hint, path=str(self.path)) from error


def _run_migration(connection: Connection, version: int, names: tuple[str, ...]) -> None:
    with write_transaction(connection):
        if connection.pragma("user_version") >= version:
            return  # another process was faster
        for name in names:
            connection.execute(migrations.statements(name)).fetchall()  # apsw stops at a statement that returns rows
        connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (version, names[0], now()))
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", version)


def _has_nothing(connection: Connection) -> bool:
    return not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()


@contextmanager
def write_transaction(connection: apsw.Connection) -> Iterator[None]:
    """IMMEDIATE, because a transaction that begins by reading fails at once when another has written meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(apsw.Error):  # a full disk may have rolled back already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
