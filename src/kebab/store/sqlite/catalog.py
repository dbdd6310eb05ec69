"""Reads documents, chunks, sources and tags, and finds documents and chunks by id, id prefix or path."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from kebab.core.documents import Repository
from kebab.core.ports import ChunkContext
from kebab.core.records import ContextNote, DocumentRecord, SourceRecord, TagRecord
from kebab.core.search import SearchFilters
from kebab.core.spans import PageSpan
from kebab.core.text import storable
from kebab.store import document_keys
from kebab.store.sqlite.database import Connection
from kebab.store.sqlite.documents import decompress, notes_by_source
from kebab.store.sqlite.filters import PERSONAL, document_filter
from kebab.store.sqlite.rows import (
    CONTEXTS,
    NOTES_ABOVE,
    TAGS_OF_DOCUMENT,
    chunk_context,
    spans_from_json,
    split_values,
    stored_json,
)
from kebab.store.tags import tag_records

# The fields of a DocumentRecord in their order.
_DOCUMENTS = f"""
SELECT d.doc_id, s.name, d.path, d.title, d.doc_type, d.format, d.lang, d.trust_level, {TAGS_OF_DOCUMENT},
       d.date, d.size, d.encoding, d.line_count, d.chunk_count, d.content_hash, d.chunker_version, d.indexed_at,
       d.metadata, {NOTES_ABOVE}
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
        return bool(rows) and isinstance(spans_from_json(rows[0][0])[0], PageSpan)

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
        return [chunk_context(row) for row in self._connection.rows(CONTEXTS + where, bindings)]


def _has_prefix(column: str, key: str) -> tuple[str, dict[str, Any]]:
    """Returns a condition for ids that begin with `key`. It matches no id if `key` is too short or not hexadecimal."""
    if not document_keys.is_id_prefix(key):
        return "WHERE false", {}
    return f"WHERE {column} >= :key AND {column} < :key || 'g'", {"key": key}


def _document(row: tuple[Any, ...]) -> DocumentRecord:
    values = dict(zip(DocumentRecord._fields, row, strict=True))
    values |= {name: split_values(values[name]) for name in ("tags", "context")}
    return DocumentRecord(**{**values, "metadata": stored_json(values["metadata"])})


def _source(row: tuple[Any, ...], notes: list[ContextNote]) -> SourceRecord:
    *facts, repository, branch, commit = row
    belongs_to = Repository(repository, branch, commit) if repository is not None else None
    return SourceRecord._make((*facts, belongs_to, tuple(notes)))
