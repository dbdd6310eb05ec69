"""The embedded store: opens readings and the one writing, backs up, deletes and checks the database.

Callers of this module see neither connections nor exceptions of apsw, the SQLite driver.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from kebab.core.errors import Corrupt, NotFound, StoreError
from kebab.core.ports import IndexedFile, VectorCoverage
from kebab.store.index_versions import fts_config, is_complete, lexical_index_version, seconds_left
from kebab.store.sqlite import migrations
from kebab.store.sqlite.database import Connection, Database, our_errors
from kebab.store.sqlite.lexical import SqliteLexicalIndex
from kebab.store.sqlite.libraries import SqliteLibraryCatalog
from kebab.store.sqlite.rows import SqliteChunkReader, stored_fts_config, stored_spaces
from kebab.store.sqlite.writer_lock import writer_lock

if TYPE_CHECKING:
    from kebab.core.ports import ColumnWeights, EmbeddingModels
    from kebab.core.records import Check, StoreStats
    from kebab.store.sqlite.catalog import SqliteCatalog, SqliteContentReader
    from kebab.store.sqlite.documents import SqliteWriting
    from kebab.store.sqlite.vectors import SqliteVectorStore

_LOGS = ("-wal", "-shm", "-journal")
_File = tuple[int, int] | None
"""Device and inode of a file, or None if there is no file."""


class SqliteReading:
    """One thread's view of the store."""

    def __init__(self, connection: Connection, store: SqliteStore, known_vectors: dict[str, dict[int, Any]]) -> None:
        self._connection = connection
        self._store = store
        self.chunks = partial(SqliteChunkReader, connection)
        self.libraries = partial(SqliteLibraryCatalog, connection)
        self._known_vectors = known_vectors
        self._built: dict[str, object] | None = None

    @property
    def catalog(self) -> SqliteCatalog:
        from kebab.store.sqlite.catalog import SqliteCatalog  # here, because most searches do not need it

        return SqliteCatalog(self._connection, paths_on_disk=self._store.paths_on_disk)

    @property
    def is_immutable(self) -> bool:
        """Whether the file is read as immutable, because its folder is read-only or its disk full."""
        return self._store.database.immutable

    def index_version(self) -> str:
        return lexical_index_version(self._analysis(), migrations.LATEST)

    def korean_analysis(self) -> str | None:
        built = stored_fts_config(self._connection)
        return str(built["korean"]) if built else None

    def lexical_index(self, weights: ColumnWeights) -> SqliteLexicalIndex:
        built_with = str(self._analysis()["korean"])
        return SqliteLexicalIndex(self._connection, korean_analysis=built_with, weights=weights)

    def _analysis(self) -> dict[str, object]:
        """Returns the configuration of the text index; before anything is indexed, that of the settings."""
        if self._built is None:
            self._built = stored_fts_config(self._connection)
        return self._built or fts_config(self._store.korean_analysis)

    def files(self, doc_ids: Collection[str] | None = None) -> list[IndexedFile]:
        """Returns the files of these documents, or of all documents. Documents without a file are left out."""
        sql = """SELECT d.doc_id, s.root, s.kind, d.path, d.size, d.mtime_ns, d.indexed_at,
                        coalesce(s.ingested_at, d.indexed_at)
                 FROM {some}documents d JOIN sources s ON s.id = d.source_id WHERE s.root IS NOT NULL{condition}"""
        if doc_ids is None:
            rows = self._connection.rows(sql.format(some="", condition=""))
        else:
            # CROSS JOIN makes SQLite begin with the few ids instead of reading all documents.
            some, condition = "json_each(?) AS wanted CROSS JOIN ", " AND d.doc_id = wanted.value"
            rows = self._connection.rows(sql.format(some=some, condition=condition), (json.dumps(list(doc_ids)),))
        return [IndexedFile(*row) for row in rows]

    def vectors(self) -> SqliteVectorStore:
        from kebab.store.sqlite.vectors import SqliteVectorStore  # here, because it imports numpy

        return SqliteVectorStore(self._connection, self._known_vectors)

    def vector_coverage(self, models: EmbeddingModels) -> VectorCoverage:
        """Returns how many chunks have a vector of these models, and which other models have vectors here."""
        ours = {(embedder.name, embedder.version) for embedder in models.embedders}
        spaces = stored_spaces(self._connection)
        # Only the latest space of a model and version, because an endpoint may change the dimension of its vectors.
        latest = {(space.model, space.version): space for space in spaces}
        current = [space for key, space in latest.items() if key in ours]
        others = tuple(space.fingerprint for space in spaces if space not in current)
        has_rows = "SELECT EXISTS (SELECT 1 FROM vectors WHERE space_id = ?)"
        used = [space for space in current if self._connection.value(has_rows, (space.id,))]
        version = "vec:" + ",".join(space.fingerprint for space in used)
        if used and is_complete(self._connection.remembered("complete_vectors") or "", models):
            return VectorCoverage(None, None, version, others)
        total = int(self._connection.value("SELECT count(*) FROM chunks"))
        marks = ",".join(str(space.id) for space in used)
        embedded = self._connection.value(f"SELECT count(*) FROM chunks_vec WHERE home = 1 AND space_id IN ({marks})")
        left = seconds_left(self._connection.remembered("vectors_end"))
        return VectorCoverage(total, int(embedded), version, others, left)

    def migrating_from(self) -> str | None:
        return self._connection.remembered("migrating_from")

    def content(self) -> SqliteContentReader:
        from kebab.store.sqlite.catalog import SqliteContentReader

        return SqliteContentReader(self._connection)

    def stats(self) -> StoreStats:
        from kebab.store.sqlite.health import stats

        return stats(self._connection)


class _ThreadState(threading.local):
    """One thread's connection for reading."""

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.file: _File = None
        """The file that the connection reads."""
        self.vectors: dict[int, Any] = {}
        self.readings = 0
        """How many readings are open."""


class SqliteStore:
    """The database at `path`; connections are opened when they are needed."""

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
        """`named`: the user chose this file, so reading it raises NotFound if it does not exist.

        `paths_on_disk`: whether callers may name documents by their paths on disk.
        """
        self.path = path
        self.file: Path | None = path
        self.address = str(path)
        self.paths_on_disk = paths_on_disk
        self._named = named
        self._lock_wait_s = lock_wait_s
        self.korean_analysis = korean_analysis
        self.database = Database(path, busy_timeout_ms=busy_timeout_ms)
        self._local = _ThreadState()
        self._known_codes: tuple[_File, dict[int, Any]] = (None, {})
        """A file, and the codes of its vectors by space, kept for the next search of the same file."""

    def close(self) -> None:
        """Closes this thread's connection."""
        if self._local.connection is not None:
            self._local.connection.close()
            self._local.connection = None

    def _forget(self) -> None:
        """Closes the connection to a deleted file, and forgets its codes, because a new file may get the same inode."""
        self.close()
        self._known_codes = (None, {})

    def _known_vectors(self) -> dict[str, dict[int, Any]]:
        """Returns the codes and vectors that were read from the current file.

        All threads share the codes, which never change. Vectors belong to a connection, because only that can tell
        whether they have changed.
        """
        file, codes = self._known_codes  # one read: another thread may replace both
        if file != self._local.file:
            codes = {}
            self._known_codes = (self._local.file, codes)
        return {"codes": codes, "vectors": self._local.vectors}

    @property
    def engine(self) -> str:
        return f"SQLite {apsw.sqlite_lib_version()}"

    def index_version(self) -> str:
        return lexical_index_version(fts_config(self.korean_analysis), migrations.LATEST)

    def exists(self) -> bool:
        return self.database.size() > 0

    def size(self) -> int:
        return self.path.stat().st_size if self.path.is_file() else 0

    @contextmanager
    def reading(self, *, whole: bool = False) -> Iterator[SqliteReading | None]:  # noqa: ARG002 - always whole
        """Opens the store for reading; None if the user named no file and the default one does not exist yet."""
        local = self._local
        # An open connection would go on reading a file that was deleted, for example by `kb reset`, or replaced.
        if not local.readings and local.connection is not None and local.file != _file_at(self.path):
            self._forget()
        if local.connection is None and (self._named or self.exists()):
            # Before opening the file: if it is replaced in between, the next reading notices that and opens it again.
            file = _file_at(self.path)
            try:
                local.connection = self.database.reader()
                local.file, local.vectors = file, {}
            except NotFound:
                if self._named:
                    raise
        local.readings += 1
        try:
            with our_errors(self.path):
                if local.connection is None:
                    yield None
                else:
                    yield SqliteReading(local.connection, self, self._known_vectors())
        finally:
            local.readings -= 1

    @contextmanager
    def writing(self, purpose: str, *, existing: bool = False, mending: bool = False) -> Iterator[SqliteWriting]:
        """Opens the store for writing. `existing`: only if it exists. `mending`: to rebuild the text index."""
        from kebab.store.sqlite.documents import SqliteWriting

        if existing:
            self._require_existing()
        self.database.make_folder()
        if not self._local.readings:
            self.close()  # the writer must be the last to close, to move the log into the file, which a reader cannot
        with writer_lock(self.path, wait_s=self._lock_wait_s, purpose=purpose):
            connection = self.database.writer(mending=mending)
            with our_errors(self.path), closing(connection):
                yield SqliteWriting(connection, self.korean_analysis)

    def backup(self, target: Path, *, force: bool) -> int:
        """Copies the database to `target`, and returns the size of the copy in bytes."""
        there = target.exists()
        is_itself = there and self.path.exists() and target.samefile(self.path)
        for is_wrong, message, hint in (
            (target.is_dir(), f"{target} is a folder.", "Name a file."),
            (there and not force, f"{target} exists already.", "Overwrite it with --force, or name another file."),
            (not target.absolute().parent.is_dir(), f"The folder of {target} does not exist.", "Make it first."),
            (is_itself, f"{target} is the database itself.", "Name another file."),
        ):
            if is_wrong:
                raise StoreError(message, hint=hint, path=str(target))
        self._require_existing()
        with self.reading():
            assert self._local.connection is not None  # the database exists
            self._local.connection.copy_to(target)
        return target.stat().st_size

    def reset(self) -> bool:
        """Deletes the database. Returns whether there was one."""
        self.database.refuse_folder()
        if not self.path.exists():
            return False
        if self._named and not self.database.is_ours():  # a file in the default place is Kebab's, however damaged
            message = f"{self.path} is not a Kebab database, so it is not deleted."
            raise Corrupt(message, hint="Delete it by hand.", path=str(self.path))
        self._forget()
        with writer_lock(self.path, wait_s=self._lock_wait_s, purpose="kb reset"):
            # Logs, which contain text, are deleted first, so that an interrupted reset can run again.
            for suffix in (*_LOGS, "", ".lock"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        return True

    def health(self) -> list[Check]:
        from kebab.store.sqlite.health import health_checks

        return health_checks(self.database, self.korean_analysis, named=self._named)

    def integrity(self) -> list[Check]:
        """Returns the checks of `kb doctor` on the database, without the one that compares it with the settings."""
        return [check for check in self.health() if check.name != "analysis"]

    def own_files(self) -> set[Path]:
        """Returns the paths of the database, its logs and its lock, which ingest must skip."""
        places = (self.path.absolute(), self.path.absolute().resolve())
        return {place.with_name(place.name + suffix) for place in places for suffix in ("", *_LOGS, ".lock")}

    def _require_existing(self) -> None:
        if not self.exists():
            hint = "Begin with: kb ingest FOLDER"
            raise NotFound(f"There is no database at {self.path}.", hint=hint, path=str(self.path))


def _file_at(path: Path) -> _File:
    try:
        status = path.stat()
    except OSError:  # opening the file later reports the error
        return None
    return status.st_dev, status.st_ino
