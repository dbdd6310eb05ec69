"""Chunks by their ids, with what a hit needs to know of their documents."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from kebab.core.ports import ChunkContext
from kebab.store.sqlite.rows import CHUNK_CONTEXT, chunk_context, rows_of

_AT_ONCE = 1000


class SqliteChunkReader:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def contexts(self, chunk_ids: Sequence[str]) -> dict[str, ChunkContext]:
        found: dict[str, ChunkContext] = {}
        for start in range(0, len(chunk_ids), _AT_ONCE):
            some = chunk_ids[start : start + _AT_ONCE]
            rows = rows_of(
                self._connection,
                f"""SELECT (SELECT e.model FROM chunks_vec v JOIN embedding_spaces e ON e.id = v.space_id
                            WHERE v.chunk = c.id ORDER BY v.home DESC, e.id DESC LIMIT 1), {CHUNK_CONTEXT}
                    FROM chunks c JOIN documents d ON d.id = c.document_id JOIN sources s ON s.id = d.source_id
                    WHERE c.chunk_id IN ({",".join("?" * len(some))})""",
                some,
            )
            found.update((row[1], chunk_context(row[1:], row[0])) for row in rows)
        return found
