"""Reading what is stored: documents, chunks, sources, tags, by id, by id prefix, or by path."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import apsw

from kebab.core.documents import Repository
from kebab.core.errors import Ambiguous, NotFound
from kebab.core.records import ChunkRecord, ContextNote, DocumentRecord, SourceRecord, TagRecord
from kebab.core.search import SearchFilters
from kebab.core.spans import PageSpan
from kebab.core.text import content_hash, storable
from kebab.store.sqlite.documents import decompress, notes_by_source
from kebab.store.sqlite.filters import PERSONAL, document_filter
from kebab.store.sqlite.rows import NOTES_ABOVE, TAGS_OF_DOCUMENT, heading_list, rows_of, spans_from_json, split_values
from kebab.store.tags import tag_records

_DOCUMENTS = f"""
SELECT d.doc_id, s.name, d.path, d.title, d.doc_type, d.format, d.lang, d.trust_level,
       {TAGS_OF_DOCUMENT},
       d.date, d.size, d.encoding, d.line_count, d.chunk_count, d.content_hash, d.chunker_version,
       d.indexed_at, d.metadata,
       {NOTES_ABOVE}
FROM documents d JOIN sources s ON s.id = d.source_id
"""
_CHUNKS = f"""
SELECT c.chunk_id, c.doc_id, s.name, d.path, d.title, c.ordinal, c.kind, c.heading_path, c.headings, c.section_label,
       c.start_offset, c.end_offset, c.source_spans, c.text, d.chunker_version, {NOTES_ABOVE}
FROM chunks c JOIN documents d ON d.id = c.document_id JOIN sources s ON s.id = d.source_id
"""
_SHORTEST_ID_PREFIX = 4
_WIKI_LINK = re.compile(r"!?\[\[([^\[\]|#]+)(?:[|#][^\[\]]*)?\]\]")


class SqliteCatalog:
    def __init__(self, connection: apsw.Connection, *, paths_on_disk: bool = True) -> None:
        self._connection = connection
        self.paths_on_disk = paths_on_disk

    def documents(self, filters: SearchFilters, *, limit: int = -1, offset: int = 0) -> list[DocumentRecord]:
        sql, bindings = document_filter(filters)
        where = f"WHERE d.id IN ({sql})" if sql else f"WHERE {PERSONAL}"
        rows = rows_of(
            self._connection,
            f"{_DOCUMENTS} {where} ORDER BY s.name, d.path LIMIT :limit OFFSET :offset",
            {**bindings, "limit": limit, "offset": offset},
        )
        return [_document(row) for row in rows]

    def count_documents(self, filters: SearchFilters) -> int:
        sql, bindings = document_filter(filters)
        return self._number(
            f"SELECT count(DISTINCT id) FROM ({sql or f'SELECT d.id FROM documents d WHERE {PERSONAL}'})", bindings
        )

    def sources(self) -> list[SourceRecord]:
        rows = rows_of(
            self._connection,
            """SELECT s.name, s.kind, s.root, s.trust_level, count(d.id), coalesce(sum(d.chunk_count), 0),
                      s.ingested_at,
                      s.repository, s.branch, s.commit_id
               FROM sources s LEFT JOIN documents d ON d.source_id = s.id WHERE s.kind <> 'library'
               GROUP BY s.id ORDER BY s.name""",
        )
        notes = notes_by_source(self._connection)
        return [_source(row, notes.get(row[0], [])) for row in rows]

    def tags(self) -> list[TagRecord]:
        rows = rows_of(
            self._connection,
            f"""SELECT t.tag, count(*) FROM document_tags t JOIN documents d ON d.id = t.document_id WHERE {PERSONAL}
                GROUP BY t.tag COLLATE BINARY""",
        )
        return tag_records(rows)

    def languages(self) -> list[str]:
        return [
            row[0]
            for row in rows_of(
                self._connection, f"SELECT DISTINCT d.lang FROM documents d WHERE {PERSONAL} ORDER BY d.lang"
            )
        ]

    def formats(self) -> list[str]:
        return [row[0] for row in rows_of(self._connection, "SELECT DISTINCT format FROM documents ORDER BY format")]

    def find_document(self, key: str) -> DocumentRecord:
        """By id, the beginning of an id, path, SOURCE:path, or as notes link to it. Several matches are an error that
        names them.
        """
        key = storable(key)
        rows = self._select(
            f"{_DOCUMENTS} WHERE d.doc_id = :key OR (s.kind <> 'library' AND (d.path = :key OR s.name || ':' || "
            "d.path = :key))",
            {"key": key},
        )
        if not rows:
            rows = self._in_library(key) or self._by_prefix(_DOCUMENTS, "d.doc_id", key) or self._by_link(key)
        found = [_document(row) for row in rows]
        if len(found) > 1:
            raise Ambiguous(
                f"{key} fits {len(found)} documents: {_some(f'{record.source}:{record.path}' for record in found)}.",
                hint="Name one of them, as SOURCE:path or by its id.",
            )
        if not found:
            raise NotFound(f"No document {key} is indexed.", hint="See what is there with: kb list docs")
        return found[0]

    def in_libraries(self, path: str) -> dict[tuple[str, str], DocumentRecord]:
        rows = rows_of(
            self._connection,
            """SELECT l.library_id, v.tag, d.doc_id FROM documents d JOIN library_documents ld ON ld.document_id = d.id
               JOIN library_versions v ON v.id = ld.version AND NOT v.in_making JOIN libraries l ON l.id = v.library
               WHERE d.path = ? ORDER BY l.library_id, v.tag""",
            (storable(path),),
        )
        return {(library_id, tag): self.find_document(doc_id) for library_id, tag, doc_id in rows}

    def find_chunk(self, key: str) -> ChunkRecord:
        key = storable(key)
        rows = self._select(f"{_CHUNKS} WHERE c.chunk_id = :key", {"key": key}) or self._by_prefix(
            _CHUNKS, "c.chunk_id", key
        )
        if len(rows) > 1:
            raise Ambiguous(f"{key} is the beginning of {len(rows)} chunk ids.", hint="Give more of it.")
        if not rows:
            raise NotFound(
                f"No chunk {key} is indexed.", hint="It may have changed since: search again for its current id."
            )
        return _chunk(rows[0])

    def chunks_of(self, doc_id: str) -> list[ChunkRecord]:
        return [
            _chunk(row)
            for row in rows_of(self._connection, f"{_CHUNKS} WHERE c.doc_id = ? ORDER BY c.ordinal", (doc_id,))
        ]

    def body(self, doc_id: str) -> str:
        """The document's text as it was when indexed."""
        rows = rows_of(self._connection, "SELECT body FROM documents WHERE doc_id = ?", (doc_id,))
        if not rows:
            raise NotFound(f"No document {doc_id} is indexed.", hint="See what is there with: kb list docs")
        return decompress(rows[0][0])

    def paths_beside(self, doc_id: str, paths: Iterable[str]) -> set[str]:
        """Which of these are documents of the same source, or of a version of a library that has this one."""
        rows = rows_of(
            self._connection,
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
        """Whether its passages are cited by page."""
        rows = rows_of(
            self._connection, "SELECT source_spans FROM chunks WHERE doc_id = ? ORDER BY ordinal LIMIT 1", (doc_id,)
        )
        return bool(rows) and isinstance(spans_from_json(rows[0][0])[0], PageSpan)

    def all_documents(self) -> Iterator[DocumentRecord]:
        """One at a time, each read on its own, so that no read transaction stays open while the caller works."""
        ids = [
            row[0]
            for row in rows_of(
                self._connection, f"SELECT d.doc_id FROM documents d WHERE {PERSONAL} ORDER BY d.source_id, d.path"
            )
        ]
        for doc_id in ids:
            for row in self._select(f"{_DOCUMENTS} WHERE d.doc_id = :key", {"key": doc_id}):
                yield _document(row)

    def _in_library(self, key: str) -> list[tuple[Any, ...]]:
        """/owner/project:path, or /owner/project/version:path."""
        place, colon, path = key.partition(":")
        parts = place.split("/", 3)
        if not colon or len(parts) < 3 or parts[0]:
            return []
        return self._select(
            f"""{_DOCUMENTS} WHERE d.path = :path AND d.id IN (SELECT ld.document_id FROM libraries l
                JOIN library_versions v ON v.library = l.id AND NOT v.in_making AND v.tag = :version
                JOIN library_documents ld ON ld.version = v.id WHERE l.library_id = :library)""",
            {"path": path, "library": f"/{parts[1]}/{parts[2]}", "version": parts[3] if len(parts) > 3 else ""},
        )

    def _by_prefix(self, select: str, column: str, key: str) -> list[tuple[Any, ...]]:
        if len(key) < _SHORTEST_ID_PREFIX or not set(key) <= set("0123456789abcdef"):
            return []
        return self._select(f"{select} WHERE {column} >= :key AND {column} < :key || 'g'", {"key": key})

    def _by_link(self, key: str) -> list[tuple[Any, ...]]:
        """`Page` or `[[folder/Page#Heading|shown so]]`: a note by the end of its path, without its extension."""
        link = _WIKI_LINK.fullmatch(key.strip())
        name = f"/{link[1].strip() if link else key}.md"
        ending = "substr('/' || d.path, -length(:name)) = :name COLLATE NOCASE"
        return self._select(f"{_DOCUMENTS} WHERE d.format = 'md' AND {ending}", {"name": name})

    def _select(self, sql: str, bindings: dict[str, str]) -> list[tuple[Any, ...]]:
        return rows_of(self._connection, sql, bindings)

    def _number(self, sql: str, bindings: dict[str, str] | None = None) -> int:
        return int(rows_of(self._connection, sql, bindings or {})[0][0])


def _document(row: tuple[Any, ...]) -> DocumentRecord:
    values = dict(zip(DocumentRecord._fields, row, strict=True))
    values |= {name: split_values(values[name]) for name in ("tags", "context")}
    return DocumentRecord(**{**values, "metadata": json.loads(values["metadata"])})


def _source(row: tuple[Any, ...], notes: list[ContextNote]) -> SourceRecord:
    name, kind, root, trust_level, documents, chunks, ingested_at, repository, branch, commit = row
    belongs_to = Repository(repository, branch, commit) if repository is not None else None
    return SourceRecord(name, kind, root, trust_level, documents, chunks, ingested_at, belongs_to, tuple(notes))


def _chunk(row: tuple[Any, ...]) -> ChunkRecord:
    (
        chunk_id,
        doc_id,
        source,
        path,
        title,
        ordinal,
        kind,
        heading_path,
        headings,
        label,
        start,
        end,
        spans,
        text,
        chunker,
        notes,
    ) = row
    return ChunkRecord(
        chunk_id=chunk_id,
        doc_id=doc_id,
        source=source,
        doc_path=path,
        title=title,
        ordinal=ordinal,
        kind=kind,
        heading_path=heading_list(heading_path, headings),
        section_label=label,
        start_offset=start,
        end_offset=end,
        spans=spans_from_json(spans),
        text=text,
        content_hash=content_hash(text),
        chunker_version=chunker,
        context=split_values(notes),
    )


def _some(names: Iterator[str], most: int = 5) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (" …" if len(listed) > most else "")
