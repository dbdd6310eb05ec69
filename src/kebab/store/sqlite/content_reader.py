"""Reads documents with their chunks, vectors and whole libraries as they were written, to copy or export them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from kebab.core.documents import Chunk, ParsedDocument
from kebab.core.libraries import VectorSpace, VersionDocument
from kebab.core.ports import ChunkVector, FileState, IndexedDocument, Key, StoredDocument
from kebab.core.records import ContentCounts, SpaceCount
from kebab.store.fts5.chunk_columns import Names, names_in
from kebab.store.sqlite.database import Connection, our_errors
from kebab.store.sqlite.documents import decompress
from kebab.store.sqlite.rows import (
    STATE,
    TAGS_OF_DOCUMENT,
    heading_list,
    spans_from_json,
    split_values,
    stored_json,
    stored_spaces,
)

_AT_ONCE = 1000
_PARSED = ("title", "doc_type", "format", "lang", "encoding")
_DOCUMENTS = f"""
SELECT {", ".join(f"d.{name}" for name in _PARSED)}, d.id, d.path, d.metadata, d.body, {TAGS_OF_DOCUMENT},
       (SELECT title FROM chunks WHERE document_id = d.id AND ordinal = 0),
       d.chunker_version, d.date, d.trust_level, d.doc_id, d.indexed_at, {STATE}
FROM json_each(?) AS wanted CROSS JOIN documents d ON d.id = wanted.value ORDER BY wanted.key
"""
_SEARCHED = (
    "SELECT ld.document_id FROM library_documents ld JOIN library_versions v ON v.id = ld.version WHERE NOT v.in_making"
)
"""Selects the documents of complete library versions. Chunks of libraries have row ids below zero."""
_CARRIED = f"(c.id >= 0 OR c.document_id IN ({_SEARCHED}))"
_VECTORS = f"FROM chunks_vec cv JOIN chunks c ON c.id = cv.chunk WHERE cv.space_id = e.id AND {_CARRIED}"
_COUNTS = (
    "SELECT count(*) FROM documents d JOIN sources s ON s.id = d.source_id WHERE s.kind <> 'library'",
    "SELECT count(*) FROM chunks WHERE id >= 0",
    f"SELECT count(*) FROM documents WHERE id IN ({_SEARCHED})",
    f"SELECT count(*) FROM chunks WHERE id < 0 AND document_id IN ({_SEARCHED})",
)
"""The first fields of ContentCounts in their order."""


class SqliteContentReader:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def stored(self, source: str) -> dict[str, StoredDocument]:
        of_source = "documents d JOIN sources s ON s.id = d.source_id WHERE s.name = ? ORDER BY d.path"
        rows = self._rows(f"SELECT d.path, d.id, d.doc_id, {STATE} FROM {of_source}", source)
        return {path: StoredDocument(row, doc_id, FileState(*state)) for path, row, doc_id, *state in rows}

    def documents(self, keys: Sequence[Key]) -> list[IndexedDocument]:
        return [self._document(row) for row in self._rows(_DOCUMENTS, json.dumps(list(keys)))]

    def spaces(self) -> list[VectorSpace]:
        with our_errors(self._connection.path):
            return [VectorSpace(*space[1:4]) for space in stored_spaces(self._connection)]

    def vectors_of(self, space: VectorSpace, chunk_ids: Sequence[str]) -> dict[str, ChunkVector]:
        rows = self._rows(
            """SELECT c.chunk_id, x.text_hash, x.vector, cv.home FROM embedding_spaces e
               CROSS JOIN json_each(?) AS wanted CROSS JOIN chunks c ON c.chunk_id = wanted.value
               CROSS JOIN chunks_vec cv ON cv.chunk = c.id AND cv.space_id = e.id
               CROSS JOIN vectors x ON x.id = cv.vector_id
               WHERE e.model = ? AND e.version = ? AND e.dimension = ?""",
            json.dumps(list(chunk_ids)),
            *space,
        )
        return {
            chunk_id: ChunkVector(text_hash, vector, bool(primary)) for chunk_id, text_hash, vector, primary in rows
        }

    def complete_vectors(self) -> str | None:
        with our_errors(self._connection.path):
            return self._connection.remembered("complete_vectors") or None

    def counts(self) -> ContentCounts:
        spaces = self._rows(
            f"""SELECT e.model || '@' || e.version || ':' || e.dimension,
                    (SELECT count(*) {_VECTORS}), (SELECT count(*) {_VECTORS} AND cv.home)
                FROM embedding_spaces e ORDER BY e.id"""
        )
        counts = [int(self._rows(sql)[0][0]) for sql in _COUNTS]
        return ContentCounts._make((*counts, tuple(SpaceCount(*row) for row in spaces)))

    def library_documents(self, library_id: str) -> list[VersionDocument]:
        """Returns the documents of all complete versions, the default version first."""
        rows = self._rows(
            """SELECT nullif(v.tag, ''), v.commit_id, ld.document_id, ld.file_key, d.doc_id, d.path, d.fingerprint
               FROM libraries l
               JOIN library_versions v ON v.library = l.id AND NOT v.in_making
               JOIN library_documents ld ON ld.version = v.id JOIN documents d ON d.id = ld.document_id
               WHERE l.library_id = ? ORDER BY v.tag, d.path""",
            library_id,
        )
        return [VersionDocument(*row) for row in rows]

    def library_vectors(self, library_id: str, space: VectorSpace) -> Iterator[tuple[bytes, bytes]]:
        """Yields the hash of each embedded text of the library, and its vector as float16."""
        sql = "SELECT id FROM embedding_spaces WHERE model = ? AND version = ? AND dimension = ?"
        row = self._connection.value(sql, space)
        last = 0
        while rows := self._connection.rows(
            """SELECT x.id, x.text_hash, x.vector FROM vectors x WHERE x.space_id = ?1 AND x.id > ?2 AND EXISTS (
                   SELECT 1 FROM chunks_vec cv JOIN chunks c ON c.id = cv.chunk
                   JOIN library_documents ld ON ld.document_id = c.document_id
                   JOIN library_versions v ON v.id = ld.version AND NOT v.in_making
                   JOIN libraries l ON l.id = v.library AND l.library_id = ?3
                   WHERE cv.vector_id = x.id AND +cv.space_id = ?1)
               ORDER BY x.id LIMIT ?4""",
            (row, last, library_id, _AT_ONCE),
        ):
            yield from ((text_hash, vector) for _, text_hash, vector in rows)
            last = rows[-1][0]

    def _document(self, row: tuple[Any, ...]) -> IndexedDocument:
        parsed = dict(zip(_PARSED, row, strict=False))
        key, path, metadata, body, joined, first_title, chunker, date, trust, doc_id, indexed_at, *state = row[5:]
        text, tags = decompress(body), split_values(joined)
        names = Names((), tags) if first_title is None else names_in(first_title, path, parsed["title"], tags)
        document = ParsedDocument(
            text=text, blocks=(), tags=names.tags, aliases=names.aliases, metadata=stored_json(metadata), **parsed
        )
        chunks = self._chunks(key, text)
        return IndexedDocument("", path, FileState(*state), document, chunks, chunker, date, trust, doc_id, indexed_at)

    def _chunks(self, document: Key, text: str) -> list[Chunk]:
        rows = self._rows(
            """SELECT ordinal, start_offset, end_offset, heading_path, headings, source_spans, kind FROM chunks
               WHERE document_id = ? ORDER BY ordinal""",
            document,
        )
        return [
            Chunk(ordinal, start, end, text[start:end], heading_list(path, headings), spans_from_json(spans), kind)
            for ordinal, start, end, path, headings, spans, kind in rows
        ]

    def _rows(self, sql: str, *bindings: Any) -> list[tuple[Any, ...]]:
        # A migration reads this store while it writes another one, so errors must name this file.
        with our_errors(self._connection.path):
            return self._connection.rows(sql, bindings)
