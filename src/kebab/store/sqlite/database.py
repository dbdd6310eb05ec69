"""The SQLite file itself: opening it for reading or writing, its schema version, and its errors in our words."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import apsw

from kebab.core import deadline
from kebab.core.errors import Corrupt, DiskFull, Locked, NotFound, ReadOnly, SchemaAltered, StoreError, TooNew
from kebab.core.path_glob import path_matches
from kebab.core.private_files import make_file, make_folder
from kebab.store.sqlite import migrations
from kebab.store.sqlite.schema import refuse_altered, refuse_altered_file

APPLICATION_ID = 0x6B656261  # "keba", so that a file can be told from any other SQLite file
PAGE_SIZE = 8192
_WRITER_CACHE_KB = 65_536
_READER_CACHE_KB = 16_384
"""A server has a reader for each of its threads; a search is no slower with a quarter of what an ingest needs."""
_STEPS_BETWEEN_CHECKS = 500
"""Steps of SQLite's virtual machine between two looks at the deadline: 5 to 30 ms of a heavy query, at a cost of 1 %.
"""
_MOST_MAPPED = 1 << 28
"""Bytes of the file that are mapped into memory. More makes reading a little faster, but what is mapped counts as the
process's own.
"""


def now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@contextmanager
def our_errors(path: Path) -> Iterator[None]:
    """Turns the driver's exceptions into ours; whatever is not about the file itself passes through."""
    where = str(path)
    try:
        yield
    except apsw.InterruptError as error:
        raise deadline.timed_out() from error
    except apsw.BusyError as error:
        raise Locked(
            "Another process kept the database busy for too long.",
            hint="Try again, or raise store.busy_timeout_ms.",
            path=where,
        ) from error
    except apsw.NotADBError as error:
        raise Corrupt(f"{path} is not a Kebab database.", hint="Name another file with --db.", path=where) from error
    except apsw.CorruptError as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB:
            hint = "Rebuild the text index with: kb index --rebuild-fts"
        else:
            hint = "Restore a backup, or delete the file and ingest again; kb doctor tells more."
        raise Corrupt(f"The database {path} is damaged.", hint=hint, path=where) from error
    except (apsw.SQLError, apsw.ConstraintError, apsw.MismatchError) as error:
        refuse_altered_file(path)
        if not any(name in str(error) for name in ("chunks_fts", "library_fts", "fts5")):
            raise
        hint = "Rebuild the text index with: kb index --rebuild-fts"
        raise Corrupt(f"The text index of {path} is damaged.", hint=hint, path=where) from error
    except apsw.FullError as error:
        raise _full(path) from error
    except apsw.ReadOnlyError as error:
        raise ReadOnly(
            f"{path} cannot be written to.", hint="Check its permissions, or name another with --db.", path=where
        ) from error
    except apsw.IOError as error:
        if _disk_is_full(path):
            raise _full(path) from error
        raise StoreError(
            f"Reading or writing {path} failed: {error}.", hint="Check the disk and its free space.", path=where
        ) from error
    except apsw.CantOpenError as error:
        raise StoreError(
            f"{path} cannot be opened: {error}.", hint="Check the path and its permissions.", path=where
        ) from error


def _full(path: Path) -> DiskFull:
    hint = "Free some space and run the command again: it continues."
    return DiskFull(f"There is no space left for {path}.", hint=hint, path=str(path))


def _disk_is_full(path: Path) -> bool:
    """SQLite reports some writes without room as plain I/O errors."""
    from shutil import disk_usage

    try:
        return disk_usage(path.parent).free < 1 << 20
    except OSError:
        return False


class Database:
    """A file that may not exist yet. Connections belong to the thread that asked for them."""

    def __init__(self, path: Path, *, busy_timeout_ms: int = 5000) -> None:
        self.path = path
        self._busy_timeout_ms = busy_timeout_ms
        self.immutable = False
        """True after a reader had to take the file as it is, because its folder cannot be written to."""

    def exists(self) -> bool:
        self.refuse_folder()
        return self.path.is_file() and self.path.stat().st_size > 0

    def is_ours(self) -> bool:
        """Told by the first bytes alone, so that a damaged or newer database still counts; an empty file may be ours
        too.
        """
        with self.path.open("rb") as handle:
            head = handle.read(72)
        return not head or (
            head.startswith(b"SQLite format 3\0") and int.from_bytes(head[68:72], "big") == APPLICATION_ID
        )

    def reader(self) -> apsw.Connection:
        """A connection whose statements cannot write. The file must exist and be of our version (an older one is
        brought up first).
        """
        self.refuse_folder()
        if not self.exists():
            raise self._not_there()
        connection = self._open_reader()
        version = self._version(connection)
        if version < migrations.LATEST:
            connection.close()
            self.writer().close()
            connection = self._open_reader()
        with our_errors(self.path):
            refuse_altered(connection, self.path)
            connection.pragma("query_only", True)
            connection.set_progress_handler(deadline.is_over, _STEPS_BETWEEN_CHECKS)
        return connection

    def writer(self, *, mending: bool = False) -> apsw.Connection:
        """A connection that may write; makes the file and brings its schema up to date. `mending`: to rebuild the text
        index.
        """
        self.make_folder()
        with suppress(OSError):  # SQLite says what is wrong
            make_file(self.path)  # SQLite gives -wal, -shm and -journal the mode of this file
        with our_errors(self.path):
            connection = apsw.Connection(str(self.path))
            if connection.readonly("main"):
                raise apsw.ReadOnlyError
            self._prepare(connection, cache_kb=_WRITER_CACHE_KB)
            if _has_nothing(connection):
                connection.pragma("page_size", PAGE_SIZE)
            else:
                self._version(connection)
            connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "normal")
            self._migrate(connection)
            refuse_altered(connection, self.path, mending=mending)
            connection.pragma(
                "foreign_keys", True
            )  # only now: a migration may drop a table that others refer to, and make it anew
        return connection

    def _not_there(self) -> NotFound:
        hint = f"Make one with: kb --db {self.path} ingest FOLDER"
        return NotFound(f"There is no database at {self.path}.", hint=hint, path=str(self.path))

    def make_folder(self) -> None:
        self.refuse_folder()
        try:
            make_folder(self.path.parent)
        except OSError as error:
            raise StoreError(
                f"The folder of {self.path} cannot be made: {error.strerror}.",
                hint="Name another place with --db.",
                path=str(self.path),
            ) from error

    def refuse_folder(self) -> None:
        """A folder where a file is meant is the commonest slip, and SQLite's own words for it are obscure."""
        try:
            os.fsencode(self.path).decode("utf-8")
            is_folder = self.path.is_dir()
        except (OSError, ValueError) as error:
            raise StoreError(
                f"{self.path} cannot be opened: {error}.", hint="Check the path and its permissions."
            ) from error
        if is_folder:
            raise StoreError(
                f"{self.path} is a folder, not a database file.",
                hint=f"Name a file in it, such as --db {self.path / 'kebab.sqlite'}",
                path=str(self.path),
            )

    def _open_reader(self) -> apsw.Connection:
        """Opened for writing, so that the last one to close takes -wal and -shm away, and undoes what a killed writer
        had begun.
        """
        with our_errors(self.path):
            try:
                connection = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READWRITE)
                self._prepare(connection)
                connection.pragma("schema_version")  # the first real access: it needs the -shm file
            except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.IOError):
                log = self.path.with_name(self.path.name + "-wal")
                has_log = log.exists() and log.stat().st_size > 0  # then the file alone may be half of the truth
                may_write = os.access(self.path.absolute().parent, os.W_OK)
                if has_log and not may_write:
                    raise ReadOnly(
                        f"The latest changes of {self.path} are in {log.name}, which cannot be read in a read-only "
                        "place.",
                        hint="Copy both files to where they can be written to, and name the copy with --db.",
                        path=str(self.path),
                    ) from None
                if has_log or (may_write and not _disk_is_full(self.path)):
                    raise  # somebody may be writing, and a reader who believes that nobody is reads nonsense
                from urllib.parse import quote

                # WAL needs a folder with room to write even to read; without one, take the file as it stands.
                connection = apsw.Connection(
                    f"file:{quote(str(self.path.absolute()))}?immutable=1",
                    flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI,
                )
                self._prepare(connection)
                connection.pragma("schema_version")
                self.immutable = True
        return connection

    def _prepare(self, connection: apsw.Connection, *, cache_kb: int = _READER_CACHE_KB) -> None:
        connection.set_busy_timeout(self._busy_timeout_ms)
        connection.pragma("cache_size", -cache_kb)
        connection.pragma("temp_store", "memory")
        with suppress(OSError):
            connection.pragma("mmap_size", min(self.path.stat().st_size, _MOST_MAPPED))
        connection.create_scalar_function("path_matches", cast("Any", path_matches), 2, deterministic=True)

    def _version(self, connection: apsw.Connection) -> int:
        # In one state of the file: another process may just be making it, and its first commit falls between any two
        # looks.
        with our_errors(self.path), read_transaction(connection):
            application, version = connection.pragma("application_id"), connection.pragma("user_version")
            if application == version == 0 and _has_nothing(connection):
                raise self._not_there()  # it is just being made, or its maker died at that
        if application != APPLICATION_ID:
            raise Corrupt(
                f"{self.path} is not a Kebab database.", hint="Name another file with --db.", path=str(self.path)
            )
        if version > migrations.LATEST:
            raise TooNew(
                f"{self.path} was written by a newer Kebab (schema {version}, this one knows {migrations.LATEST}).",
                hint="Update Kebab, or use another database with --db.",
                path=str(self.path),
            )
        return int(version)

    def _migrate(self, connection: apsw.Connection) -> None:
        before = connection.pragma("user_version")
        if before == migrations.LATEST:
            return
        try:
            self._run_migrations(connection)
        except (apsw.SQLError, apsw.ConstraintError, apsw.MismatchError) as error:
            refuse_altered_file(self.path)  # names the difference if it can
            raise SchemaAltered(
                f"{self.path} cannot be brought from schema {before} to {migrations.LATEST}: {error}.",
                hint="Another program altered it: undo that, restore a backup, or: kb reset and ingest again",
                path=str(self.path),
            ) from error

    def _run_migrations(self, connection: apsw.Connection) -> None:
        for version, names in migrations.MIGRATIONS:
            with write_transaction(connection):
                if connection.pragma("user_version") >= version:
                    continue  # another process was faster
                for name in names:
                    run_script(connection, migrations.statements(name))
                connection.execute("INSERT INTO migrations VALUES (?, ?, ?)", (version, names[0], now()))
                connection.pragma("application_id", APPLICATION_ID)
                connection.pragma("user_version", version)


def _has_nothing(connection: apsw.Connection) -> bool:
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


@contextmanager
def read_transaction(connection: apsw.Connection) -> Iterator[None]:
    """All statements inside see one state of the file, whatever others write meanwhile."""
    connection.execute("SAVEPOINT reading")
    try:
        yield
    finally:
        connection.execute("RELEASE reading")


def run_script(connection: apsw.Connection, script: str) -> None:
    """Every statement of it: apsw stops at one that returns rows unless they are taken."""
    for _ in connection.execute(script):
        pass
