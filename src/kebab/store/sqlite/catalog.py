"""Reads documents, chunks, sources and tags, to show, find, copy or export them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kebab.core.citations import PageSpan
from kebab.core.documents import Chunk, ParsedDocument, Repository
from kebab.core.libraries import VectorSpace, VersionDocument
from kebab.core.ports import ChunkContext, ChunkVector, FileState, IndexedDocument, Key, StoredDocument
from kebab.core.records import ContentCounts, ContextNote, DocumentRecord, SourceRecord, SpaceCount, TagRecord
from kebab.core.search import SearchFilters
from kebab.core.text import storable
from kebab.store import document_keys
from kebab.store.fts5.chunk_columns import Names, names_in
from kebab.store.sqlite import rows as chunk_rows
from kebab.store.sqlite.database import Connection, our_errors
from kebab.store.sqlite.documents import decompress, notes_by_source
from kebab.store.sqlite.filters import PERSONAL, document_filter
from kebab.store.tags import tag_records

# The fields of a DocumentRecord in their order.
_DOCUMENTS = f"""
SELECT d.doc_id, s.name, d.path, d.title, d.doc_type, d.format, d.lang, d.trust_level, {chunk_rows.TAGS_OF_DOCUMENT},
       d.date, d.size, d.encoding, d.line_count, d.chunk_count, d.content_hash, d.chunker_version, d.indexed_at,
       d.metadata, {chunk_rows.NOTES_ABOVE}
FROM documents d JOIN sources s ON s.id = d.source_id
"""


class SqliteCatalog:
    def __init__(self, connection: Connection, *, paths_on_disk: bool = True) -> None:
        self._connection = connection
        self.paths_on_disk = paths_on_disk

    def documents(self, filters: SearchFilters, *, limit: int = -1, offset: int = 0) -> list[DocumentRecord]:
        sql, bindings = document_filter(filters)
        where = f"d.id IN ({sql})" if sql else PERSONAL
        return self._documents(
            f"WHERE {where} ORDER BY s.name, d.path LIMIT :limit OFFSET :offset",
            {**bindings, "limit": limit, "offset": offset},
        )

    def count_documents(self, filters: SearchFilters) -> int:
        sql, bindings = document_filter(filters)
        selected = sql or f"SELECT d.id FROM documents d WHERE {PERSONAL}"
        return int(self._connection.value(f"SELECT count(DISTINCT id) FROM ({selected})", bindings))

    def sources(self) -> list[SourceRecord]:
        rows = self._connection.rows(
            """SELECT s.name, s.kind, s.root, s.trust_level, count(d.id), coalesce(sum(d.chunk_count), 0),
                      s.ingested_at, s.repository, s.branch, s.commit_id
               FROM sources s LEFT JOIN documents d ON d.source_id = s.id WHERE s.kind <> 'library'
               GROUP BY s.id ORDER BY s.name"""
        )
        notes = notes_by_source(self._connection)
        return [_source(row, notes.get(row[0], [])) for row in rows]

    def tags(self) -> list[TagRecord]:
        sql = f"""SELECT t.tag, count(*) FROM document_tags t JOIN documents d ON d.id = t.document_id WHERE {PERSONAL}
                GROUP BY t.tag COLLATE BINARY"""
        return tag_records(self._connection.rows(sql))

    def languages(self) -> list[str]:
        sql = f"SELECT DISTINCT d.lang FROM documents d WHERE {PERSONAL} ORDER BY d.lang"
        return [row[0] for row in self._connection.rows(sql)]

    def formats(self) -> list[str]:
        return [row[0] for row in self._connection.rows("SELECT DISTINCT format FROM documents ORDER BY format")]

    def find_document(self, key: str) -> DocumentRecord:
        """Returns the document with this id, id prefix, path, SOURCE:path or wiki link.

        Raises Ambiguous, which names the matches, if there are several.
        """
        key = storable(key)
        by_path = "d.path = :key OR s.name || ':' || d.path = :key"
        found = self._documents(f"WHERE d.doc_id = :key OR (s.kind <> 'library' AND ({by_path}))", {"key": key})
        if not found:
            found = self._in_library(key) or self._documents(*_has_prefix("d.doc_id", key)) or self._by_link(key)
        return document_keys.only_document(found, key)

    def in_libraries(self, path: str) -> dict[tuple[str, str], DocumentRecord]:
        rows = self._connection.rows(
            """SELECT l.library_id, v.tag, d.doc_id FROM documents d JOIN library_documents ld ON ld.document_id = d.id
               JOIN library_versions v ON v.id = ld.version AND NOT v.in_making JOIN libraries l ON l.id = v.library
               WHERE d.path = ? ORDER BY l.library_id, v.tag""",
            (storable(path),),
        )
        return {(library_id, tag): self.find_document(doc_id) for library_id, tag, doc_id in rows}

    def find_chunk(self, key: str) -> ChunkContext:
        key = storable(key)
        found = self._chunks("WHERE c.chunk_id = :key", {"key": key}) or self._chunks(*_has_prefix("c.chunk_id", key))
        return document_keys.only_chunk(found, key)

    def chunks_of(self, doc_id: str) -> list[ChunkContext]:
        where = "WHERE c.doc_id = :doc ORDER BY c.ordinal"
        return self._chunks(where, {"doc": doc_id})

    def body(self, doc_id: str) -> str:
        """Returns the document's text as it was when indexed."""
        rows = self._connection.rows("SELECT body FROM documents WHERE doc_id = ?", (doc_id,))
        if not rows:
            raise document_keys.no_document(doc_id)
        return decompress(rows[0][0])

    def paths_beside(self, doc_id: str, paths: Iterable[str]) -> set[str]:
        """Returns which paths are documents of this document's source, or of a library version that contains it."""
        rows = self._connection.rows(
            """WITH here AS (SELECT id, source_id FROM documents WHERE doc_id = :doc)
               SELECT path FROM documents WHERE path IN (SELECT value FROM json_each(:paths)) AND (
                   source_id = (SELECT source_id FROM here)
                   OR id IN (SELECT others.document_id FROM library_documents own
                             JOIN library_documents others ON others.version = own.version
                             WHERE own.document_id = (SELECT id FROM here)))""",
            {"doc": doc_id, "paths": json.dumps(sorted(set(paths)))},
        )
        return {row[0] for row in rows}

    def is_paged(self, doc_id: str) -> bool:
        """Whether passages of this document are cited by page."""
        sql = "SELECT source_spans FROM chunks WHERE doc_id = ? ORDER BY ordinal LIMIT 1"
        rows = self._connection.rows(sql, (doc_id,))
        return bool(rows) and isinstance(chunk_rows.spans_from_json(rows[0][0])[0], PageSpan)

    def all_documents(self) -> Iterator[DocumentRecord]:
        """Yields every document outside libraries, each from its own query, so that no read transaction stays open."""
        sql = f"SELECT d.doc_id FROM documents d WHERE {PERSONAL} ORDER BY d.source_id, d.path"
        for (doc_id,) in self._connection.rows(sql):
            yield from self._documents("WHERE d.doc_id = :key", {"key": doc_id})

    def _in_library(self, key: str) -> list[DocumentRecord]:
        """Returns the document of a library that /owner/project:path or /owner/project/version:path names."""
        place = document_keys.place_in_library(key)
        if place is None:
            return []
        return self._documents(
            """WHERE d.path = :path AND d.id IN (SELECT ld.document_id FROM libraries l
                JOIN library_versions v ON v.library = l.id AND NOT v.in_making AND v.tag = :version
                JOIN library_documents ld ON ld.version = v.id WHERE l.library_id = :library)""",
            dict(zip(("library", "version", "path"), place, strict=True)),
        )

    def _by_link(self, key: str) -> list[DocumentRecord]:
        ending = "substr('/' || d.path, -length(:name)) = :name COLLATE NOCASE"
        return self._documents(f"WHERE d.format = 'md' AND {ending}", {"name": document_keys.linked_path(key)})

    def _documents(self, where: str, bindings: dict[str, Any]) -> list[DocumentRecord]:
        return [_document(row) for row in self._connection.rows(_DOCUMENTS + where, bindings)]

    def _chunks(self, where: str, bindings: dict[str, Any]) -> list[ChunkContext]:
        return [chunk_rows.chunk_context(row) for row in self._connection.rows(chunk_rows.CONTEXTS + where, bindings)]


def _has_prefix(column: str, key: str) -> tuple[str, dict[str, Any]]:
    """Returns a condition for ids that begin with `key`. It matches no id if `key` is too short or not hexadecimal."""
    if not document_keys.is_id_prefix(key):
        return "WHERE false", {}
    return f"WHERE {column} >= :key AND {column} < :key || 'g'", {"key": key}


def _document(row: tuple[Any, ...]) -> DocumentRecord:
    values = dict(zip(DocumentRecord._fields, row, strict=True))
    values |= {name: chunk_rows.split_values(values[name]) for name in ("tags", "context")}
    return DocumentRecord(**{**values, "metadata": chunk_rows.stored_json(values["metadata"])})


def _source(row: tuple[Any, ...], notes: list[ContextNote]) -> SourceRecord:
    *facts, repository, branch, commit = row
    belongs_to = Repository(repository, branch, commit) if repository is not None else None
    return SourceRecord._make((*facts, belongs_to, tuple(notes)))


# --- documents with their chunks, vectors and whole libraries, to copy or export them


_AT_ONCE = 1000
_PARSED = ("title", "doc_type", "format", "lang", "encoding")
_WITH_TEXTS = f"""
SELECT {", ".join(f"d.{name}" for name in _PARSED)}, d.id, d.path, d.metadata, d.body, {chunk_rows.TAGS_OF_DOCUMENT},
       (SELECT title FROM chunks WHERE document_id = d.id AND ordinal = 0),
       d.chunker_version, d.date, d.trust_level, d.doc_id, d.indexed_at, {chunk_rows.STATE}
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
        rows = self._rows(f"SELECT d.path, d.id, d.doc_id, {chunk_rows.STATE} FROM {of_source}", source)
        return {path: StoredDocument(row, doc_id, FileState(*state)) for path, row, doc_id, *state in rows}

    def documents(self, keys: Sequence[Key]) -> list[IndexedDocument]:
        return [self._document(row) for row in self._rows(_WITH_TEXTS, json.dumps(list(keys)))]

    def spaces(self) -> list[VectorSpace]:
        with our_errors(self._connection.path):
            return [VectorSpace(*space[1:4]) for space in chunk_rows.stored_spaces(self._connection)]

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
        text, tags = decompress(body), chunk_rows.split_values(joined)
        names = Names((), tags) if first_title is None else names_in(first_title, path, parsed["title"], tags)
        document = ParsedDocument(
            text=text,
            blocks=(),
            tags=names.tags,
            aliases=names.aliases,
            metadata=chunk_rows.stored_json(metadata),
            **parsed,
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
            Chunk(
                ordinal,
                start,
                end,
                text[start:end],
                chunk_rows.heading_list(path, headings),
                chunk_rows.spans_from_json(spans),
                kind,
            )
            for ordinal, start, end, path, headings, spans, kind in rows
        ]

    def _rows(self, sql: str, *bindings: Any) -> list[tuple[Any, ...]]:
        # A migration reads this store while it writes another one, so errors must name this file.
        with our_errors(self._connection.path):
            return self._connection.rows(sql, bindings)
