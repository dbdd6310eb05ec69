"""Reading a whole library back out of the store: documents as they were stored, and their vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import apsw

from kebab.core.documents import Chunk, ParsedDocument
from kebab.core.libraries import VectorSpace, VersionDocument
from kebab.core.paths import file_stem
from kebab.core.ports import FileState, IndexedDocument
from kebab.store.sqlite.documents import decompress
from kebab.store.sqlite.rows import heading_list, rows_of, spans_from_json, split_values

_AT_ONCE = 1000


class SqliteLibraryReader:
    def __init__(self, connection: apsw.Connection, library_id: str) -> None:
        self._connection = connection
        self._library_id = library_id

    def version_documents(self) -> list[VersionDocument]:
        """Of the versions that are searched, the default one first."""
        rows = rows_of(
            self._connection,
            """SELECT nullif(v.tag, ''), v.commit_id, ld.document_id, ld.file_key FROM libraries l
               JOIN library_versions v ON v.library = l.id AND NOT v.in_making
               JOIN library_documents ld ON ld.version = v.id JOIN documents d ON d.id = ld.document_id
               WHERE l.library_id = ? ORDER BY v.tag, d.path""",
            (self._library_id,),
        )
        return [VersionDocument(*row) for row in rows]

    def document(self, row: int) -> IndexedDocument:
        """Without a source: it belongs to several."""
        path, title, doc_type, format_, lang, encoding, metadata, body, tags = self._columns(
            row,
            """path, title, doc_type, format, lang, encoding, metadata, body,
               (SELECT group_concat(tag, char(31)) FROM (SELECT tag FROM document_tags WHERE document_id = d.id ORDER BY tag))""",
        )
        text, tag_list = decompress(body), split_values(tags)
        parsed = ParsedDocument(
            text=text,
            title=title,
            blocks=(),
            doc_type=doc_type,
            format=format_,
            lang=lang,
            tags=tag_list,
            aliases=self._aliases(row, path, title, len(tag_list)),
            metadata=json.loads(metadata),
            encoding=encoding,
        )
        state = FileState(*self._columns(row, "size, mtime_ns, content_hash, fingerprint"))
        rest = self._columns(row, "chunker_version, date, trust_level, doc_id")
        return IndexedDocument("", path, state, parsed, self._chunks(row, text), *rest)

    def spaces(self) -> list[VectorSpace]:
        return [
            VectorSpace(*row) for row in rows_of(self._connection, "SELECT model, version, dimension FROM embedding_spaces ORDER BY id")
        ]

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

    def _columns(self, document: int, columns: str) -> tuple[Any, ...]:
        return rows_of(self._connection, f"SELECT {columns} FROM documents d WHERE id = ?", (document,))[0]

    def _chunks(self, document: int, text: str) -> list[Chunk]:
        rows = rows_of(
            self._connection,
            """SELECT ordinal, start_offset, end_offset, heading_path, headings, source_spans, kind FROM chunks
               WHERE document_id = ? ORDER BY ordinal""",
            (document,),
        )
        return [
            Chunk(ordinal, start, end, text[start:end], heading_list(path, headings), spans_from_json(spans), kind)
            for ordinal, start, end, path, headings, spans, kind in rows
        ]

    def _aliases(self, document: int, path: str, title: str, tags: int) -> tuple[str, ...]:
        """They stand nowhere else than among the names by which the first passage is found: title, aliases, tags, name of the file."""
        first = rows_of(self._connection, "SELECT title FROM chunks WHERE document_id = ? AND ordinal = 0", (document,))
        names = first[0][0].split("\n")[1:] if first else []
        if names and names[-1] == file_stem(path) and file_stem(path).casefold() not in title.casefold():
            names.pop()
        return tuple(names[: len(names) - tags])
