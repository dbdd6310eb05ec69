"""Opens the SQLite file for reading or writing, migrates and checks its schema, and turns its errors into Kebab's."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import apsw

from kebab.core import deadline, errors
from kebab.core.files import make_file, make_folder
from kebab.core.paths import path_matches
from kebab.store.sqlite import migrations
from kebab.store.sqlite.filters import TEXT_INDEXES

APPLICATION_ID = 0x6B656261  # "keba" in ASCII; distinguishes Kebab databases from other SQLite files
PAGE_SIZE = 8192
_WRITER_CACHE_KB = 65_536
_READER_CACHE_KB = 16_384
"""A quarter of the writer's cache, because a server has a reader for each thread, and searches are as fast with it."""
_READ_WRITE_CREATE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
_STEPS_BETWEEN_CHECKS = 500
"""Steps of SQLite's virtual machine between two checks of the deadline: 5 to 30 ms of a heavy query, at a cost of 1 %.
"""
_MOST_MAPPED = 1 << 28
"""The most bytes of the file to map into memory. More is a little faster, but counts as memory of the process."""


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


_TRY_AGAIN = "Try again, or raise store.busy_timeout_ms."
_START_AGAIN = "Restore a backup, or delete the file and ingest again; kb doctor tells more."
_FREE_SPACE = "Free some space and run the command again: it continues."
_PERMISSIONS = "Check the path and its permissions."
_OTHER_FILE = "Check its permissions, or name another with --db."
_MEANINGS: dict[type[apsw.Error], tuple[type[errors.StoreError], str, str]] = {
    apsw.BusyError: (errors.Locked, "Another process kept the database busy for too long.", _TRY_AGAIN),
    apsw.NotADBError: (errors.Corrupt, "{path} is not a Kebab database.", "Name another file with --db."),
    apsw.CorruptError: (errors.Corrupt, "The database {path} is damaged.", _START_AGAIN),
    apsw.FullError: (errors.DiskFull, "There is no space left for {path}.", _FREE_SPACE),
    apsw.ReadOnlyError: (errors.ReadOnly, "{path} cannot be written to.", _OTHER_FILE),
    apsw.IOError: (
        errors.StoreError,
        "Reading or writing {path} failed: {error}.",
        "Check the disk and its free space.",
    ),
    apsw.CantOpenError: (errors.StoreError, "{path} cannot be opened: {error}.", _PERMISSIONS),
}
"""Kebab's error, its message and its hint for each exception of apsw, the SQLite driver."""
RESTORE = "Restore a backup, or: kb reset and ingest again"
_REBUILD = "Rebuild the text index with: kb index --rebuild-fts"
_STATEMENT_ERRORS = (apsw.SQLError, apsw.ConstraintError, apsw.MismatchError)


@contextmanager
def our_errors(path: Path) -> Iterator[None]:
    """Turns apsw's exceptions about the file into Kebab's errors. Other exceptions pass through."""
    try:
        yield
    except apsw.InterruptError as error:
        raise deadline.timed_out() from error
    except _STATEMENT_ERRORS as error:
        refuse_altered_file(path)
        if not any(name in str(error) for name in (*TEXT_INDEXES, "fts5")):
            raise
        raise errors.Corrupt(f"The text index of {path} is damaged.", hint=_REBUILD, path=str(path)) from error
    except tuple(_MEANINGS) as error:
        raise _our_error(error, path) from error


def _our_error(error: apsw.Error, path: Path) -> errors.StoreError:
    is_full = isinstance(error, apsw.IOError) and _disk_is_full(path)
    kind, message, hint = _MEANINGS[apsw.FullError if is_full else type(error)]
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB:
        hint = _REBUILD
    return kind(message.format(path=path, error=error), hint=hint, path=str(path))


def _disk_is_full(path: Path) -> bool:
    """Whether less than 1 MiB is free. Needed because SQLite reports some writes to a full disk as plain I/O errors."""
    try:
        status = os.statvfs(path.parent)
    except OSError:
        return False
    return status.f_bavail * status.f_frsize < 1 << 20


MetaKey = Literal["fts_config", "complete_vectors", "migrating_from", "vectors_end"]
"""complete_vectors: the models for which every chunk has a vector, because counting at every search is too slow.
migrating_from: the address of the store that an unfinished migration copies into this one.
vectors_end: how long the run that makes vectors expects to take.
"""


class Connection(apsw.Connection):
    """A connection that knows the path of its file."""

    def __init__(self, path: Path, *, uri: str | None = None, flags: int = _READ_WRITE_CREATE) -> None:
        super().__init__(uri or str(path), flags=flags)
        self.path = path

    def rows(self, sql: str, bindings: Any = ()) -> list[tuple[Any, ...]]:
        """Returns all rows at once, because a half-read statement would keep the write-ahead log from shrinking."""
        deadline.check()
        return cast("list[tuple[Any, ...]]", self.execute(sql, bindings).fetchall())

    def value(self, sql: str, bindings: Any = ()) -> Any:
        """Returns the first column of the first row."""
        return self.rows(sql, bindings)[0][0]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Runs the block in a write transaction, and turns apsw's exceptions into Kebab's errors."""
        with our_errors(self.path), write_transaction(self):
            yield

    def write(self, sql: str, bindings: Any = ()) -> int:
        """Runs one statement in a transaction of its own. Returns how many rows it changed."""
        with self.transaction():
            self.execute(sql, bindings)
            return self.changes()

    def remembered(self, key: MetaKey) -> str | None:
        rows = self.rows("SELECT value FROM meta WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else None

    def remember(self, key: MetaKey, value: str | None) -> None:
        """Stores a value; None removes it."""
        if value is None:
            self.execute("DELETE FROM meta WHERE key = ?", (key,))
        else:
            sql = "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
            self.execute(sql, (key, value))

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Lets all statements in the block see one state of the file, even if other processes write."""
        self.execute("SAVEPOINT reading")
        try:
            yield
        finally:
            self.execute("RELEASE reading")

    def copy_to(self, target: Path) -> None:
        """Copies the database consistently while others read and write. `target` appears only when it is complete."""
        unfinished = target.with_name(target.name + ".unfinished")
        with errors.file_errors(target, "cannot be written", "Name another place.", errors.StoreError):
            unfinished.unlink(missing_ok=True)
            make_file(unfinished)
            try:
                with our_errors(target):
                    self._fill(unfinished)
                    unfinished.replace(target)
            finally:
                for suffix in ("", "-journal", "-wal", "-shm"):
                    unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)

    def _fill(self, unfinished: Path) -> None:
        with closing(apsw.Connection(str(unfinished))) as copy:
            try:
                with copy.backup("main", self, "main") as running:
                    while not running.done:
                        running.step(1000)
                copy.pragma("journal_mode", "delete")  # leaves a single file, without -wal and -shm
                is_whole = copy.pragma("quick_check") == "ok"
            except apsw.CorruptError as error:  # damage found while copying is in the source database
                message = f"The database {self.path} is damaged."
                raise errors.Corrupt(message, hint=RESTORE, path=str(self.path)) from error
        if not is_whole:
            hint = "See kb doctor, check the disk, try again."
            raise errors.Corrupt(f"The copy of {self.path} is damaged.", hint=hint, path=str(self.path))


class Database:
    """A database file that may not exist yet. A connection belongs to the thread that opened it."""

    def __init__(self, path: Path, *, busy_timeout_ms: int = 5000) -> None:
        self.path = path
        self._busy_timeout_ms = busy_timeout_ms
        self.immutable = False
        """True after a reader had to open the file as immutable, because its folder is read-only or its disk full."""

    def size(self) -> int:
        """The size of the file in bytes, or 0 if there is none."""
        self.refuse_folder()
        return self.path.stat().st_size if self.path.is_file() else 0

    def is_ours(self) -> bool:
        """Whether the file begins like a Kebab database or is empty. Damaged and newer databases count."""
        with self.path.open("rb") as handle:
            head = handle.read(72)
        return not head or (
            head.startswith(b"SQLite format 3\0") and int.from_bytes(head[68:72], "big") == APPLICATION_ID
        )

    def reader(self) -> Connection:
        """Opens a connection that cannot write. Migrates an older schema; raises NotFound if there is no file."""
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
        """Opens a connection for writing; creates the file and migrates its schema. `mending`: allows schema
        differences that rebuilding the text index repairs.
        """
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
            # Only after the migration, which may drop and recreate a table that others refer to.
            connection.pragma("foreign_keys", True)
        return connection

    def _not_there(self) -> errors.NotFound:
        hint = f"Make one with: kb --db {self.path} ingest FOLDER"
        return errors.NotFound(f"There is no database at {self.path}.", hint=hint, path=str(self.path))

    def make_folder(self) -> None:
        self.refuse_folder()
        try:
            make_folder(self.path.parent)
        except OSError as error:
            message = f"The folder of {self.path} cannot be made: {error.strerror}."
            raise errors.StoreError(message, hint="Name another place with --db.", path=str(self.path)) from error

    def refuse_folder(self) -> None:
        """Raises StoreError if the path is a folder or cannot be used, because SQLite's message for that is obscure."""
        try:
            os.fsencode(self.path).decode("utf-8")
            is_folder = self.path.is_dir()
        except (OSError, ValueError) as error:
            raise errors.StoreError(f"{self.path} cannot be opened: {error}.", hint=_PERMISSIONS) from error
        if is_folder:
            hint = f"Name a file in it, such as --db {self.path / 'kebab.sqlite'}"
            raise errors.StoreError(f"{self.path} is a folder, not a database file.", hint=hint, path=str(self.path))

    def _open_reader(self) -> Connection:
        """Opens a connection for reading. SQLite may still write, to undo what a killed writer began, and so that the
        last connection to close can remove -wal and -shm.
        """
        with our_errors(self.path):
            try:
                connection = Connection(self.path, flags=apsw.SQLITE_OPEN_READWRITE)
                self._prepare(connection)
                connection.pragma("schema_version")  # the first access to the file, which needs -shm
            except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError):
                log = self.path.with_name(self.path.name + "-wal")
                has_log = log.exists() and log.stat().st_size > 0  # the file alone may then lack changes
                may_write = os.access(self.path.absolute().parent, os.W_OK)
                if has_log and not may_write:
                    message = f"The latest changes of {self.path} are in {log.name}"
                    hint = "Copy both files to where they can be written to, and name the copy with --db."
                    message += ", which cannot be read in a read-only place."
                    raise errors.ReadOnly(message, hint=hint, path=str(self.path)) from None
                if has_log or (may_write and not _disk_is_full(self.path)):
                    raise  # another process may be writing, so the file must not be read as immutable
                # Even reading needs room for -shm in WAL mode; without it, the file is opened as immutable.
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
        # In one snapshot, because another process that creates the file may commit between two statements.
        with our_errors(self.path), connection.snapshot():
            application, version = connection.pragma("application_id"), connection.pragma("user_version")
            if application == version == 0 and _has_nothing(connection):
                raise self._not_there()  # another process is creating it, or died while doing so
        if application != APPLICATION_ID:
            raise _our_error(apsw.NotADBError(), self.path)
        if version > migrations.LATEST:
            versions = f"schema {version}, this one knows {migrations.LATEST}"
            hint = "Update Kebab, or use another database with --db."
            raise errors.TooNew(
                f"{self.path} was written by a newer Kebab ({versions}).", hint=hint, path=str(self.path)
            )
        return int(version)

    def _migrate(self, connection: Connection) -> None:
        before = connection.pragma("user_version")
        try:
            for version, names in migrations.MIGRATIONS:
                if version > before:
                    _run_migration(connection, version, names)
        except _STATEMENT_ERRORS as error:
            refuse_altered_file(self.path)  # raises an error that names the differences, if it finds any
            message = f"{self.path} cannot be brought from schema {before} to {migrations.LATEST}: {error}."
            hint = "Another program altered it: undo that, restore a backup, or: kb reset and ingest again"
            raise errors.SchemaAltered(message, hint=hint, path=str(self.path)) from error


def _run_migration(connection: Connection, version: int, names: tuple[str, ...]) -> None:
    with write_transaction(connection):
        if connection.pragma("user_version") >= version:
            return  # another process was faster
        for name in names:
            connection.execute(migrations.statements(name)).fetchall()  # without it, apsw stops at rows
        connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (version, names[0], now()))
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", version)


def _has_nothing(connection: Connection) -> bool:
    return not connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()


@contextmanager
def write_transaction(connection: apsw.Connection) -> Iterator[None]:
    """Runs the block in a transaction that locks the database for writing at its start, because a transaction that
    begins by reading fails if another process writes before it does.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(apsw.Error):  # SQLite may have rolled back already, for example on a full disk
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


# --- the schema of a file, compared with the one that the migrations create

_MOST_NAMED = 5
_SHADOW_TABLES = tuple(f"{index}_" for index in TEXT_INDEXES)
"""Prefixes of tables that FTS5 creates itself, so their definitions depend on the version of SQLite."""


class SchemaObject(NamedTuple):
    type: str
    """table, index, trigger or view"""
    name: str
    table: str
    """The table of an index or trigger; for a table or view, its own name."""
    sql: str

    @property
    def holds_data(self) -> bool:
        """Whether this is a table with data. `kb index --rebuild-fts` restores all other objects."""
        return self.type == "table" and self.name not in TEXT_INDEXES


class Difference(NamedTuple):
    made: SchemaObject | None
    """The object as the migrations create it, or None if another program added it."""
    found: SchemaObject | None
    """The object in the file, or None if it is missing."""
    words: str

    @property
    def is_repairable(self) -> bool:
        return not any(one is not None and one.holds_data for one in (self.made, self.found))


def digest(connection: apsw.Connection) -> str:
    objects = repr(_objects(connection))
    return sha256(objects.encode()).hexdigest()


def refuse_altered(connection: apsw.Connection, path: Path, *, mending: bool = False) -> None:
    """Raises SchemaAltered if the schema differs. `mending` allows what a rebuild of the text index repairs."""
    if digest(connection) == migrations.DIGEST:
        return
    found = [difference for difference in differences(connection) if not (mending and difference.is_repairable)]
    if not found:
        return
    named = "; ".join(difference.words for difference in found[:_MOST_NAMED])
    more = f"; and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    if all(difference.is_repairable for difference in found):
        hint = "Put it in order with: kb index --rebuild-fts"
    else:
        hint = "Undo the change with the tool that made it, restore a backup, or: kb reset and ingest again"
    raise errors.SchemaAltered(
        f"Another program altered the schema of {path}: {named}{more}.", hint=hint, path=str(path)
    )


def refuse_altered_file(path: Path) -> None:
    """Raises SchemaAltered if the schema of the file differs. Called after a failed statement, to explain it."""
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    except apsw.Error:
        return
    with closing(connection):
        refuse_altered(connection, path)


def differences(connection: apsw.Connection) -> list[Difference]:
    """Returns the differences from the schema of the file's version, except tables of other programs."""
    with closing(apsw.Connection(":memory:")) as fresh:
        version = connection.pragma("user_version")
        for step, names in migrations.MIGRATIONS:
            for name in names if step <= version else ():
                fresh.execute(migrations.statements(name)).fetchall()
        expected = {(one.type, one.name): one for one in _objects(fresh)}
        found = {(one.type, one.name): one for one in _objects(connection)}
        tables = {one.table for one in expected.values()}
        return [
            Difference(made, other, _words(made, other, fresh, connection))
            for made, other in ((expected.get(key), found.get(key)) for key in sorted(expected.keys() | found.keys()))
            if made != other and (made or (other and other.table in tables))
        ]


def restore(connection: apsw.Connection) -> None:
    """Recreates indexes, triggers and views as the migrations do, and drops added ones. Tables stay unchanged."""
    for made, found, _ in differences(connection):
        if (made or found).type == "table":  # type: ignore[union-attr]  # one of them is not None
            continue
        if found:
            connection.execute(f'DROP {found.type} "{found.name}"')
        if made:
            connection.execute(made.sql)


def _objects(connection: apsw.Connection) -> list[SchemaObject]:
    rows = connection.execute(
        "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"
    )
    return [SchemaObject(*row) for row in rows if not row[1].startswith(("sqlite_", *_SHADOW_TABLES))]


def _words(
    made: SchemaObject | None, found: SchemaObject | None, fresh: apsw.Connection, connection: apsw.Connection
) -> str:
    if made is None:
        assert found is not None
        return f"{found.type} {found.name} was added to {found.table}"
    if found is None:
        return f"{made.type} {made.name} is missing"
    before, now = _columns(fresh, made.name), _columns(connection, made.name)
    changes = [f"{name} is missing" for name in before if name not in now] + [
        f"{name} was added" for name in now if name not in before
    ]
    return f"{made.type} {made.name} was changed" + (f" (column {', column '.join(changes)})" if changes else "")


def _columns(connection: apsw.Connection, table: str) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
