"""What the one writer may do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from kebab.core.ports import Embedder
from kebab.store.fts5.index_config import fts_config
from kebab.store.sqlite import maintenance
from kebab.store.sqlite.database import our_errors, write_transaction
from kebab.store.sqlite.documents import SqliteDocumentStore, SqliteNoteStore
from kebab.store.sqlite.index_state import (
    migrating_from,
    remember_fts_config,
    remember_migration,
    stored_fts_config,
)
from kebab.store.sqlite.libraries import SqliteLibraryWriter

if TYPE_CHECKING:
    from kebab.store.sqlite.vector_writer import SqliteVectorWriter


class SqliteWriting:
    """What the one writer may do, while it holds the writer's lock."""

    def __init__(self, connection: apsw.Connection, path: Path, korean_analysis: str) -> None:
        self._connection = connection
        self._path = path
        self._korean_analysis = korean_analysis

    def documents(self, *, for_libraries: bool = False) -> SqliteDocumentStore:
        return SqliteDocumentStore(
            self._connection, self._path, korean_analysis=self._korean_analysis, for_libraries=for_libraries
        )

    def libraries(self) -> SqliteLibraryWriter:
        return SqliteLibraryWriter(self._connection, self._path)

    def notes(self) -> SqliteNoteStore:
        return SqliteNoteStore(self._connection, self._path, korean_analysis=self._korean_analysis)

    def vectors(self) -> SqliteVectorWriter:
        from kebab.store.sqlite.vector_writer import SqliteVectorWriter

        return SqliteVectorWriter(self._connection, self._path)

    def expect_vectors(self, embedders: Sequence[Embedder]) -> None:
        """They need no preparation here."""

    def settle_analysis(self, built_with: str | None = None) -> int:
        self._korean_analysis = built_with or self._korean_analysis
        wanted, stored = fts_config(self._korean_analysis), stored_fts_config(self._connection)
        if stored is None:
            with our_errors(self._path), write_transaction(self._connection):
                remember_fts_config(self._connection, wanted)
        return self.rebuild_fts() if stored not in (None, wanted) else 0

    def rebuild_fts(self) -> int:
        return maintenance.rebuild_fts(self._connection, self._path, self._korean_analysis)

    def optimize(self) -> None:
        maintenance.optimize(self._connection, self._path)

    def migrating_from(self) -> str | None:
        return migrating_from(self._connection)

    def remember_migration(self, origin: str | None) -> None:
        with our_errors(self._path), write_transaction(self._connection):
            remember_migration(self._connection, origin)
