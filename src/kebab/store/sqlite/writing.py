"""The operations of the one writer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import apsw

from kebab.core.ports import Embedder
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.index_versions import fts_config
from kebab.store.sqlite import migrations
from kebab.store.sqlite.database import Connection, our_errors, restore
from kebab.store.sqlite.documents import CHUNK_TEXTS, ChunkTerms, SqliteDocumentStore, SqliteNoteStore
from kebab.store.sqlite.filters import TEXT_INDEXES
from kebab.store.sqlite.lexical import Vocabulary
from kebab.store.sqlite.libraries import SqliteLibraryWriter
from kebab.store.sqlite.rows import stored_fts_config

if TYPE_CHECKING:
    from kebab.store.sqlite.vector_writer import SqliteVectorWriter

_BATCH = 500


class SqliteWriting:
    """The operations of the one writer, which holds the writer's lock."""

    def __init__(self, connection: Connection, korean_analysis: str) -> None:
        self._connection = connection
        self._korean_analysis = korean_analysis
        self.libraries = partial(SqliteLibraryWriter, connection)

    def documents(self, *, for_libraries: bool = False) -> SqliteDocumentStore:
        return SqliteDocumentStore(self._connection, korean_analysis=self._korean_analysis, for_libraries=for_libraries)

    def notes(self) -> SqliteNoteStore:
        return SqliteNoteStore(self._connection, korean_analysis=self._korean_analysis)

    def vectors(self) -> SqliteVectorWriter:
        from kebab.store.sqlite.vector_writer import SqliteVectorWriter  # here, because it imports numpy

        return SqliteVectorWriter(self._connection)

    def expect_vectors(self, embedders: Sequence[Embedder]) -> None:
        """Does nothing, because SQLite needs no preparation for vectors."""

    def settle_analysis(self, built_with: str | None = None) -> int:
        self._korean_analysis = built_with or self._korean_analysis
        wanted, stored = fts_config(self._korean_analysis), stored_fts_config(self._connection)
        if stored is None:
            with self._connection.transaction():
                self._connection.remember("fts_config", json.dumps(wanted))
        return self.rebuild_fts() if stored not in (None, wanted) else 0

    def rebuild_fts(self) -> int:
        """Analyses all chunks again, rebuilds the text indexes and known words, and returns the number of chunks."""
        connection = self._connection
        with connection.transaction():
            restore(connection)
            # Without the triggers, which would update a possibly damaged index row by row.
            for index in TEXT_INDEXES:
                for event in ("ai", "ad", "au"):
                    connection.execute(f"DROP TRIGGER IF EXISTS {index.removesuffix('_fts')}_{event}")
            terms = ChunkTerms(connection, self._korean_analysis)
            count = 0
            for batch in self._chunk_batches():
                columns = [(terms.column(*texts), row) for row, *texts, _ in batch]
                connection.executemany("UPDATE chunks SET cjk = ? WHERE id = ?", columns)
                count += len(batch)
            self._rebuild_vocabulary()
            for index in TEXT_INDEXES:
                with suppress(apsw.Error):  # FTS5 refuses even to drop the table if its version is missing
                    connection.execute(f"REPLACE INTO {index}_config VALUES ('version', 4)")
            connection.execute(migrations.statements(migrations.TEXT_INDEX)).fetchall()
            connection.remember("fts_config", json.dumps(fts_config(self._korean_analysis)))
        return count

    def optimize(self) -> None:
        """Removes all traces of deleted documents from the file: vectors, words, index entries and free pages."""
        self.vectors().drop_unused()
        with self._connection.transaction():
            self._rebuild_vocabulary()
        with our_errors(self._connection.path):
            for index in TEXT_INDEXES:
                self._connection.execute(f"INSERT INTO {index} ({index}) VALUES ('optimize')")
            self._connection.execute("ANALYZE")
            self._connection.execute("VACUUM")
            self._connection.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def migrating_from(self) -> str | None:
        return self._connection.remembered("migrating_from")

    def remember_migration(self, origin: str | None) -> None:
        with self._connection.transaction():
            self._connection.remember("migrating_from", origin)

    def _chunk_batches(self) -> Iterator[list[tuple[Any, ...]]]:
        sql, last = f"{CHUNK_TEXTS.format(first='')} WHERE c.id > ? ORDER BY c.id LIMIT ?", -(2**63)
        while batch := self._connection.rows(sql, (last, _BATCH)):
            yield batch
            last = batch[-1][0]

    def _rebuild_vocabulary(self) -> None:
        """Rebuilds the known words from the stored chunks and notes, inside the caller's transaction."""
        vocabulary = Vocabulary(self._connection, SqliteTokenizer(self._connection))
        self._connection.execute("DELETE FROM words")
        vocabulary.add(text for (text,) in self._connection.rows("SELECT text FROM context_notes"))
        for batch in self._chunk_batches():
            vocabulary.add(part for _, title, _, text, *_ in batch for part in (title, text))
