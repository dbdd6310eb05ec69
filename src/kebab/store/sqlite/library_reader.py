"""Reading a whole library back out of the store: documents as they were stored, and their vectors."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from kebab.core.libraries import VectorSpace, VersionDocument
from kebab.core.ports import IndexedDocument, Key
from kebab.store.sqlite.content_reader import SqliteContentReader
from kebab.store.sqlite.rows import rows_of

_AT_ONCE = 1000


class SqliteLibraryReader:
    def __init__(self, connection: apsw.Connection, content: SqliteContentReader, library_id: str) -> None:
        self._connection = connection
        self._content = content
        self._library_id = library_id

    def version_documents(self) -> list[VersionDocument]:
        """Of the versions that are searched, the default one first."""
        rows = rows_of(
            self._connection,
            """SELECT nullif(v.tag, ''), v.commit_id, ld.document_id, ld.file_key, d.doc_id, d.path, d.fingerprint FROM libraries l
               JOIN library_versions v ON v.library = l.id AND NOT v.in_making
               JOIN library_documents ld ON ld.version = v.id JOIN documents d ON d.id = ld.document_id
               WHERE l.library_id = ? ORDER BY v.tag, d.path""",
            (self._library_id,),
        )
        return [VersionDocument(*row) for row in rows]

    def document(self, row: Key) -> IndexedDocument:
        """Without a source: it belongs to several."""
        return self._content.documents([row])[0]

    def spaces(self) -> list[VectorSpace]:
        return self._content.spaces()

    def vectors(self, space: VectorSpace) -> Iterator[tuple[bytes, bytes]]:
        """Hash of the embedded text, and float16."""
        sql = "SELECT id FROM embedding_spaces WHERE model = ? AND version = ? AND dimension = ?"
        row = rows_of(self._connection, sql, space)[0][0]
        last = 0
        while rows := rows_of(
            self._connection,
            """SELECT x.id, x.text_hash, x.vector FROM vectors x WHERE x.space_id = ?1 AND x.id > ?2 AND EXISTS (
                   SELECT 1 FROM chunks_vec cv JOIN chunks c ON c.id = cv.chunk
                   JOIN library_documents ld ON ld.document_id = c.document_id
                   JOIN library_versions v ON v.id = ld.version AND NOT v.in_making
                   JOIN libraries l ON l.id = v.library AND l.library_id = ?3
                   WHERE cv.vector_id = x.id AND +cv.space_id = ?1)
               ORDER BY x.id LIMIT ?4""",
            (row, last, self._library_id, _AT_ONCE),
        ):
            yield from ((text_hash, vector) for _, text_hash, vector in rows)
            last = rows[-1][0]
