"""The embedded store as a whole: who may read, who may write, and what they get to do it with.

Above this module nobody sees a connection or a driver's exception.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from kebab.core.errors import Corrupt, NotFound, StoreError
from kebab.core.ports import IndexedFile
from kebab.store.fts5.index_config import fts_config, lexical_index_version
from kebab.store.sqlite import migrations
from kebab.store.sqlite.database import Database, our_errors
from kebab.store.sqlite.index_state import coverage, migrating_from, stored_fts_config
from kebab.store.sqlite.lexical import SqliteLexicalIndex
from kebab.store.sqlite.rows import SqliteChunkReader, rows_of
from kebab.store.sqlite.writer_lock import WriterLock

if TYPE_CHECKING:
    from kebab.core.ports import ColumnWeights, EmbeddingModels, VectorCoverage
    from kebab.core.records import Check, StoreStats
    from kebab.store.sqlite.catalog import SqliteCatalog
    from kebab.store.sqlite.content_reader import SqliteContentReader, SqliteLibraryReader
    from kebab.store.sqlite.libraries import SqliteLibraryCatalog
    from kebab.store.sqlite.vectors import SqliteVectorStore
    from kebab.store.sqlite.writing import SqliteWriting

_LOGS = ("-wal", "-shm", "-journal")
_BESIDE = (*_LOGS, ".lock")
_File = tuple[int, int] | None
"""Which file it is, whatever it is called and whatever is in it; None where there is none."""


class SqliteReading:
    """One thread's view of the store."""

    def __init__(
        self,
        connection: apsw.Connection,
        database: Database,
        known_vectors: dict[str, dict[int, Any]],
        paths_on_disk: bool,
        korean_analysis: str,
    ) -> None:
        self._connection = connection
        self._database = database
        self._known_vectors = known_vectors
        self._paths_on_disk = paths_on_disk
        self._korean_analysis = korean_analysis
        self._built: dict[str, object] | None = None

    @property
    def catalog(self) -> SqliteCatalog:
        from kebab.store.sqlite.catalog import SqliteCatalog  # most searches do without it

        return SqliteCatalog(self._connection, paths_on_disk=self._paths_on_disk)

    @property
    def is_immutable(self) -> bool:
        """Whether the file is taken as it stands, because its folder cannot be written to."""
        return self._database.immutable

    def index_version(self) -> str:
        return lexical_index_version(self._analysis(), migrations.LATEST)

    def korean_analysis(self) -> str | None:
        built = stored_fts_config(self._connection)
        return str(built["korean"]) if built else None

    def lexical_index(self, weights: ColumnWeights) -> SqliteLexicalIndex:
        built_with = str(self._analysis()["korean"])
        return SqliteLexicalIndex(self._connection, korean_analysis=built_with, weights=weights)

    def _analysis(self) -> dict[str, object]:
        """How the text index was built; before anything is indexed, how it would be."""
        if self._built is None:
            self._built = stored_fts_config(self._connection)
        return self._built or fts_config(self._korean_analysis)

    def files(self, doc_ids: Collection[str] | None = None) -> list[IndexedFile]:
        """Of these documents or of all, as far as they come from files."""
        # Led by the few ids: SQLite would rather read all documents in order.
        some = "" if doc_ids is None else "json_each(?) AS wanted CROSS JOIN "
        on = "" if doc_ids is None else "ON d.doc_id = wanted.value"
        rows = rows_of(
            self._connection,
            f"""SELECT d.doc_id, s.root, s.kind, d.path, d.size, d.mtime_ns, d.indexed_at,
                       coalesce(s.ingested_at, d.indexed_at)
                FROM {some} documents d {on} JOIN sources s ON s.id = d.source_id WHERE s.root IS NOT NULL""",
            () if doc_ids is None else (json.dumps(list(doc_ids)),),
        )
        return [IndexedFile(*row) for row in rows]

    def vectors(self) -> SqliteVectorStore:
        from kebab.store.sqlite.vectors import SqliteVectorStore  # brings numpy

        return SqliteVectorStore(self._connection, self._known_vectors)

    def vector_coverage(self, models: EmbeddingModels) -> VectorCoverage:
        return coverage(self._connection, models)

    def chunks(self) -> SqliteChunkReader:
        return SqliteChunkReader(self._connection)

    def libraries(self) -> SqliteLibraryCatalog:
        from kebab.store.sqlite.libraries import SqliteLibraryCatalog

        return SqliteLibraryCatalog(self._connection)

    def library_reader(self, library_id: str) -> SqliteLibraryReader:
        from kebab.store.sqlite.content_reader import SqliteLibraryReader

        return SqliteLibraryReader(self._connection, self.content(), library_id)

    def content(self) -> SqliteContentReader:
        from kebab.store.sqlite.content_reader import SqliteContentReader

        return SqliteContentReader(self._connection, self._database.path)

    def migrating_from(self) -> str | None:
        return migrating_from(self._connection)

    def stats(self) -> StoreStats:
        from kebab.store.sqlite import maintenance

        return maintenance.stats(self._connection, self._database)

    def backup(self, target: Path) -> None:
        from kebab.store.sqlite import maintenance

        maintenance.backup(self._connection, self._database.path, target)


class SqliteStore:
    def __init__(
        self,
        path: Path,
        *,
        named: bool,
        busy_timeout_ms: int = 5000,
        lock_wait_s: float = 10.0,
        korean_analysis: str = "bigrams",
        paths_on_disk: bool = True,
    ) -> None:
        """`named`: the user asked for this very file, so reading it when it is not there is an error. `paths_on_disk`:
        whether documents may be named by where their files lie.
        """
        self.path = path
        self._paths_on_disk = paths_on_disk
        self._named = named
        self._lock_wait_s = lock_wait_s
        self._korean_analysis = korean_analysis
        self._database = Database(path, busy_timeout_ms=busy_timeout_ms)
        self._local = threading.local()
        self._known_codes: tuple[_File, dict[int, Any]] = (None, {})
        """Codes of vectors that were read, by space, for the next search of the same file."""

    def close(self) -> None:
        """Closes this thread's connection."""
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None

    def _close_if_replaced(self) -> None:
        """A connection goes on reading a file that was deleted, by `kb reset` or by putting another in its place."""
        if getattr(self._local, "connection", None) is not None and self._local.file != _file_at(self.path):
            self._forget()

    def _forget(self) -> None:
        """Of a file that is no more. Nothing may outlast the connection to it: once that is closed, the next file may
        get its number.
        """
        self.close()
        self._known_codes = (None, {})

    def _vectors_of(self, file: _File) -> dict[str, dict[int, Any]]:
        """In another file, the same numbers are those of other vectors. Codes never change, so all threads share them;
        whether vectors have, only the connection knows that read them, so they go with it.
        """
        known_file, codes = self._known_codes
        if known_file != file:
            codes = {}
            self._known_codes = (file, codes)
        return {"codes": codes, "vectors": self._local.vectors}

    @property
    def address(self) -> str:
        return str(self.path)

    @property
    def file(self) -> Path:
        return self.path

    @property
    def engine(self) -> str:
        return f"SQLite {apsw.sqlite_lib_version()}"

    def index_version(self) -> str:
        return lexical_index_version(fts_config(self._korean_analysis), migrations.LATEST)

    def exists(self) -> bool:
        return self._database.exists()

    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    @contextmanager
    def reading(self, *, whole: bool = False) -> Iterator[SqliteReading | None]:  # noqa: ARG002 - all is here
        """None for a default store that does not exist yet: an empty corpus, not an error."""
        if not getattr(self._local, "readings", 0):
            self._close_if_replaced()
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None and (self._named or self._database.exists()):
            # Looked at before it is opened: when it is replaced in between, it is opened once more.
            file = _file_at(self.path)
            try:
                connection = self._local.connection = self._database.reader()
                self._local.file = file
                self._local.vectors = {}
            except NotFound:
                if self._named:
                    raise
        self._local.readings = getattr(self._local, "readings", 0) + 1
        try:
            with our_errors(self.path):
                if connection is None:
                    yield None
                else:
                    yield SqliteReading(
                        connection,
                        self._database,
                        self._vectors_of(self._local.file),
                        self._paths_on_disk,
                        self._korean_analysis,
                    )
        finally:
            self._local.readings -= 1

    @contextmanager
    def writing(self, purpose: str, *, existing: bool = False, mending: bool = False) -> Iterator[SqliteWriting]:
        """`existing`: there must be something already. `mending`: to rebuild the text index."""
        from kebab.store.sqlite.writing import SqliteWriting

        if existing:
            self._require_existing()
        self._database.make_folder()
        if not getattr(self._local, "readings", 0):
            self.close()  # only the last connection to go moves the log into the file, and a reader cannot
        with WriterLock(self.path, wait_s=self._lock_wait_s, purpose=purpose):
            connection = self._database.writer(mending=mending)
            with our_errors(self.path), closing(connection):
                yield SqliteWriting(connection, self.path, self._korean_analysis)

    def backup(self, target: Path, *, force: bool) -> int:
        """The size of the copy."""
        if target.is_dir():
            raise StoreError(f"{target} is a folder.", hint="Name a file.", path=str(target))
        if target.exists() and not force:
            raise StoreError(
                f"{target} exists already.", hint="Overwrite it with --force, or name another file.", path=str(target)
            )
        if not target.absolute().parent.is_dir():
            raise StoreError(f"The folder of {target} does not exist.", hint="Make it first.", path=str(target))
        if target.exists() and self.path.exists() and target.samefile(self.path):
            raise StoreError(f"{target} is the database itself.", hint="Name another file.", path=str(target))
        self._require_existing()
        with self.reading() as reading:
            assert reading is not None  # it exists
            reading.backup(target)
        return target.stat().st_size

    def reset(self) -> bool:
        """Deletes the database; whether there was one."""
        self._database.refuse_folder()
        if not self.path.exists():
            return False
        if self._named and not self._database.is_ours():  # what stands in our own place is ours, however damaged
            raise Corrupt(
                f"{self.path} is not a Kebab database, so it is not deleted.",
                hint="Delete it by hand.",
                path=str(self.path),
            )
        self._forget()
        with WriterLock(self.path, wait_s=self._lock_wait_s, purpose="kb reset"):
            # The logs hold text. While the database itself is there, a reset that was interrupted can be run again and
            # deletes them.
            for suffix in (*_LOGS, "", ".lock"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        return True

    def health(self) -> list[Check]:
        from kebab.store.sqlite import maintenance

        return maintenance.health_checks(self._database, self._korean_analysis, named=self._named)

    def wholeness(self) -> list[Check]:
        """The checks of `kb doctor`, in which SQLite compares every row and every word; an index that was built with
        other settings may well be whole.
        """
        return [check for check in self.health() if check.name != "analysis"]

    def own_files(self) -> set[Path]:
        """The database and what stands beside it: never to be ingested."""
        places = (self.path.absolute(), self.path.absolute().resolve())
        return {place.with_name(place.name + suffix) for place in places for suffix in ("", *_BESIDE)}

    def _require_existing(self) -> None:
        self._database.refuse_folder()
        if not self._database.exists():
            raise NotFound(
                f"There is no database at {self.path}.", hint="Begin with: kb ingest FOLDER", path=str(self.path)
            )


def _file_at(path: Path) -> _File:
    try:
        status = path.stat()
    except OSError:  # what is wrong is told by opening it
        return None
    return status.st_dev, status.st_ino
