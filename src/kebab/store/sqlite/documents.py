"""What the one writer does: it writes documents and notes, and rebuilds the text index.

Each call is one transaction, so readers never see half a document.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import apsw

from kebab.analysis.terms import cjk_column, terms_of_note
from kebab.core.documents import Chunk, Repository, Source, chunk_id, document_id
from kebab.core.errors import SourceError
from kebab.core.ports import Embedder, FileState, IndexedDocument
from kebab.core.records import ContextNote
from kebab.core.text import count_lines
from kebab.store.fts5.chunk_columns import ChunkColumns, Titles, columns_of, titles_of
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.index_versions import fts_config
from kebab.store.sqlite import migrations
from kebab.store.sqlite.database import Connection, now, our_errors, restore
from kebab.store.sqlite.filters import STRETCH, TEXT_INDEXES
from kebab.store.sqlite.lexical import Vocabulary
from kebab.store.sqlite.libraries import SqliteLibraryWriter
from kebab.store.sqlite.rows import STATE, spans_to_json, stored_fts_config, unsplittable_headings

if TYPE_CHECKING:
    from kebab.store.sqlite.vector_writer import SqliteVectorWriter

# The columns of a chunk that only say where it is, and those in the text index.
_PLACE = ("ordinal", "kind", "start_offset", "end_offset", "source_spans", "headings", "section_label")
_WORDS = ChunkColumns._fields
_CHUNK_COLUMNS = _PLACE + _WORDS

CHUNK_TEXTS = """
SELECT c.id, c.title, c.heading_path, c.text, c.kind, s.name, d.path, c.cjk
FROM {first}chunks c LEFT JOIN documents d ON d.id = c.document_id LEFT JOIN sources s ON s.id = d.source_id
"""
"""Selects each chunk's row, the arguments of `ChunkTerms.column`, and the stored value of the column `cjk`."""
_COMPRESSION = 3  # as fast as 1 and 5 % smaller; 6 takes 1.4 times as long for another 7 %
_encode = json.JSONEncoder(ensure_ascii=False, default=str).encode


def compress(text: str) -> bytes:
    return zlib.compress(text.encode("utf-8", "surrogatepass"), _COMPRESSION)


def decompress(body: bytes) -> str:
    text = zlib.decompress(body)
    return text.decode("utf-8", "surrogatepass")


def notes_by_source(connection: Connection) -> dict[str, list[ContextNote]]:
    """Returns the notes of each source by its name, those on outer folders first."""
    found: dict[str, list[ContextNote]] = {}
    for source, folder, text in connection.rows(
        """SELECT s.name, n.folder, n.text FROM context_notes n JOIN sources s ON s.id = n.source_id
           ORDER BY length(n.folder), n.folder"""
    ):
        found.setdefault(source, []).append(ContextNote(folder, text))
    return found


class SqliteDocumentStore:
    def __init__(self, connection: Connection, *, korean_analysis: str, for_libraries: bool = False) -> None:
        """`for_libraries`: chunks get row ids below zero, which searches of the user's own documents leave out."""
        self._connection = connection
        self._for_libraries = for_libraries
        self._korean_analysis = korean_analysis
        self._vocabulary = Vocabulary(connection, SqliteTokenizer(connection))

    # --- sources

    def sources(self) -> list[Source]:
        sql = "SELECT name, kind, root, trust_level FROM sources WHERE kind <> 'library' ORDER BY name"
        return [Source(*row) for row in self._connection.rows(sql)]

    def add_source(self, source: Source) -> None:
        with self._connection.transaction():
            if self._connection.rows("SELECT 1 FROM sources WHERE name = ?", (source.name,)):
                raise SourceError(f"There is already a source named {source.name}.", hint="Choose another with --name.")
            self._connection.execute(
                "INSERT INTO sources (name, kind, root, trust_level, created_at) VALUES (?, ?, ?, ?, ?)",
                (source.name, source.kind, source.root, source.trust_level, now()),
            )

    def remove_source(self, name: str) -> None:
        self._connection.write("DELETE FROM sources WHERE name = ?", (name,))

    def absorb_source(self, lone: str, folder: str, path: str) -> None:
        """Removes the source `lone`, whose only file is now `path` in the source `folder`, and moves its note there."""
        with self._connection.transaction():
            self._connection.execute(
                """UPDATE OR IGNORE context_notes SET source_id = (SELECT id FROM sources WHERE name = ?), folder = ?
                   WHERE source_id = (SELECT id FROM sources WHERE name = ?)""",
                (folder, path, lone),
            )
            self._connection.execute("DELETE FROM sources WHERE name = ?", (lone,))

    def source_ingested(self, name: str, repository: Repository | None, at: str | None = None) -> None:
        self._connection.write(
            "UPDATE sources SET ingested_at = ?, repository = ?, branch = ?, commit_id = ? WHERE name = ?",
            (at or now(), *(repository or (None, None, None)), name),
        )

    def has_chunks(self) -> bool:
        """Whether there is any chunk, of the user or of libraries."""
        return bool(self._connection.value("SELECT EXISTS (SELECT 1 FROM chunks)"))

    # --- documents

    def known_files(self, source: str) -> dict[str, FileState]:
        sql = f"SELECT d.path, {STATE} FROM documents d JOIN sources s ON s.id = d.source_id WHERE s.name = ?"
        return {path: FileState(*state) for path, *state in self._connection.rows(sql, (source,))}

    def write(self, *documents: IndexedDocument) -> int:
        """Writes documents, and returns how many chunks are new or changed. Unchanged chunks keep their rows."""
        try:
            with self._connection.transaction():
                self._connection.remember("complete_vectors", None)
                changes = _ChunkChanges()
                terms = ChunkTerms(self._connection, self._korean_analysis)
                for document in documents:
                    self._write(document, terms.of_notes(document.source, document.path), changes)
                self._remove_chunks(changes.gone)
                self._insert_chunks(changes.new, documents)
                return changes.updated + len(changes.new)
        except BaseException:
            self._vocabulary.forget_seen()
            raise

    def touch(self, source: str, path: str, state: FileState, date: str) -> None:
        """Stores the new size, time and date of a file whose content is unchanged."""
        self._connection.write(
            "UPDATE documents SET size = ?, mtime_ns = ?, date = ? WHERE doc_id = ?",
            (state.size, state.mtime_ns, date, document_id(source, path)),
        )

    def date_of(self, source: str, path: str) -> str:
        sql = "SELECT date FROM documents WHERE doc_id = ?"
        return str(self._connection.value(sql, (document_id(source, path),)))

    def remove(self, source: str, paths: Iterable[str]) -> int:
        gone = json.dumps([document_id(source, path) for path in paths])
        return self._connection.write("DELETE FROM documents WHERE doc_id IN (SELECT value FROM json_each(?))", (gone,))

    def _write(self, document: IndexedDocument, note_terms: str, changes: _ChunkChanges) -> None:
        doc_id = document.doc_id or document_id(document.source, document.path)
        row_id = self._write_document(doc_id, document)
        self._write_tags(row_id, document.parsed.tags)
        sql = f"SELECT chunk_id, id, {', '.join(_CHUNK_COLUMNS)} FROM chunks WHERE document_id = ?"
        old = {identifier: (chunk_row, row) for identifier, chunk_row, *row in self._connection.rows(sql, (row_id,))}
        titles = titles_of(document)
        for chunk in document.chunks:
            identifier = chunk_id(doc_id, chunk.ordinal, chunk.text)
            row = self._chunk_row(chunk, titles, note_terms)
            if identifier not in old:
                changes.new.append((identifier, doc_id, row_id, *row))
                continue
            chunk_row, before = old.pop(identifier)
            if before != row:
                changes.updated += 1
                self._update_chunk(chunk_row, before, row)
        changes.gone += [chunk_row for chunk_row, _ in old.values()]
        self._vocabulary.add((titles.first, *(chunk.text for chunk in document.chunks)))

    # Chunks are removed and inserted in few large statements, which are several times as fast as many small ones: with
    # triggers, FTS5 flushes its buffer at the end of every statement.

    def _remove_chunks(self, rows: list[int]) -> None:
        if rows:
            self._connection.execute(
                "DELETE FROM chunks WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(rows),)
            )

    def _last_row(self, documents: Sequence[IndexedDocument]) -> int:
        """Returns the last row id in use: the highest of the user's chunks, or the lowest in the library's range."""
        if not self._for_libraries:
            return int(self._connection.value("SELECT max(0, coalesce(max(id), 0)) FROM chunks"))
        library = self._connection.value(
            "SELECT v.library FROM library_versions v JOIN sources s ON s.id = v.source_id WHERE s.name = ?",
            (documents[0].source,),
        )
        last = self._connection.value(
            f"SELECT min(id) FROM chunks WHERE id > -((?1 + 1) << {STRETCH}) AND id < -(?1 << {STRETCH})", (library,)
        )
        return int(-(library << STRETCH) if last is None else last)

    def _insert_chunks(self, rows: list[tuple[Any, ...]], documents: Sequence[IndexedDocument]) -> None:
        columns = ", ".join(("chunk_id", "doc_id", "document_id", *_CHUNK_COLUMNS))
        self._connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS new_chunks ({columns})")
        marks = ", ".join("?" * (3 + len(_CHUNK_COLUMNS)))
        self._connection.executemany(f"INSERT INTO temp.new_chunks VALUES ({marks})", rows)
        number = f"{self._last_row(documents)} {'-' if self._for_libraries else '+'} rowid"
        self._connection.execute(
            f"INSERT INTO chunks (id, {columns}) SELECT {number}, {columns} FROM temp.new_chunks ORDER BY rowid"
        )
        self._connection.execute("DELETE FROM temp.new_chunks")

    def _write_document(self, doc_id: str, document: IndexedDocument) -> int:
        parsed = document.parsed
        columns = {
            "doc_id": doc_id,
            "path": document.path,
            **{name: getattr(parsed, name) for name in ("title", "doc_type", "format", "lang", "encoding")},
            "trust_level": document.trust_level,
            "date": document.date,
            **document.state._asdict(),
            "line_count": count_lines(parsed.text),
            "chunk_count": len(document.chunks),
            "metadata": _encode(parsed.metadata),
            "chunker_version": document.chunker_version,
            "indexed_at": document.indexed_at or now(),
            "body": compress(parsed.text),
        }
        updates = ", ".join(f"{name} = excluded.{name}" for name in columns if name != "doc_id")
        sql = f"""INSERT INTO documents (source_id, {", ".join(columns)})
                VALUES ((SELECT id FROM sources WHERE name = :source), {", ".join(f":{name}" for name in columns)})
                ON CONFLICT (doc_id) DO UPDATE SET {updates} RETURNING id"""
        return int(self._connection.value(sql, {**columns, "source": document.source}))

    def _write_tags(self, row_id: int, tags: tuple[str, ...]) -> None:
        self._connection.execute("DELETE FROM document_tags WHERE document_id = ?", (row_id,))
        self._connection.executemany(
            "INSERT INTO document_tags (document_id, tag) VALUES (?, ?) ON CONFLICT DO NOTHING",
            [(row_id, tag) for tag in tags],
        )

    def _chunk_row(self, chunk: Chunk, titles: Titles, note_terms: str) -> list[Any]:
        """Returns the values of _CHUNK_COLUMNS."""
        place = [
            chunk.ordinal,
            chunk.kind,
            chunk.start,
            chunk.end,
            spans_to_json(chunk.spans),
            unsplittable_headings(chunk.heading_path),
            chunk.section_label,
        ]
        return [*place, *columns_of(chunk, titles, self._korean_analysis, note_terms)]

    def _update_chunk(self, chunk_row: int, before: list[Any], row: list[Any]) -> None:
        """Updates the changed part of a chunk: its place, its words or both. Only new words update the text index."""
        for columns in (_PLACE, _WORDS):
            part = slice(_CHUNK_COLUMNS.index(columns[0]), _CHUNK_COLUMNS.index(columns[-1]) + 1)
            if before[part] != row[part]:
                assignments = ", ".join(f"{column} = ?" for column in columns)
                self._connection.execute(f"UPDATE chunks SET {assignments} WHERE id = ?", (*row[part], chunk_row))


class _ChunkChanges:
    """The changes that writing a group of documents makes to the table of chunks."""

    def __init__(self) -> None:
        self.new: list[tuple[Any, ...]] = []
        self.gone: list[int] = []
        self.updated = 0


class ChunkTerms:
    """Computes the column `cjk` of chunks, including the terms of the current notes on their source and folders."""

    def __init__(self, connection: Connection, korean_analysis: str) -> None:
        self._korean_analysis = korean_analysis
        self._notes = notes_by_source(connection)
        self._terms_of = cache(partial(terms_of_note, korean_analysis))

    def of_notes(self, source: str, path: str) -> str:
        return " ".join(self._terms_of(note.text) for note in self._notes.get(source, ()) if note.covers(path))

    def column(self, title: str, headings: str, text: str, kind: str, source: str, path: str) -> str:
        note_terms = self.of_notes(source, path)
        return cjk_column(self._korean_analysis, title, headings, text, is_code=kind == "code", note_terms=note_terms)


_DOCUMENTS_AT_ONCE = 200


class SqliteNoteStore:
    """Writes notes. One transaction changes a note and the terms of all chunks below its folder: they always agree."""

    def __init__(self, connection: Connection, *, korean_analysis: str) -> None:
        self._connection = connection
        self._korean_analysis = korean_analysis

    def source_names(self) -> list[str]:
        return [name for (name,) in self._connection.rows("SELECT name FROM sources ORDER BY name")]

    def notes(self, source: str) -> list[ContextNote]:
        by_source = notes_by_source(self._connection)
        return by_source.get(source, [])

    def put(self, source: str, note: ContextNote) -> int:
        """Adds or replaces the note on a folder, and returns how many chunks have other terms because of it."""
        with self._connection.transaction():
            self._connection.execute(
                """INSERT INTO context_notes VALUES ((SELECT id FROM sources WHERE name = ?), ?, ?)
                   ON CONFLICT DO UPDATE SET text = excluded.text""",
                (source, note.folder, note.text),
            )
            Vocabulary(self._connection, SqliteTokenizer(self._connection)).add([note.text])
            return self._analyse_again(source, note)

    def remove(self, source: str, note: ContextNote) -> int:
        with self._connection.transaction():
            self._connection.execute(
                "DELETE FROM context_notes WHERE source_id = (SELECT id FROM sources WHERE name = ?) AND folder = ?",
                (source, note.folder),
            )
            return self._analyse_again(source, note)

    def _documents(self, source: str) -> list[tuple[int, str]]:
        sql = (
            "SELECT d.id, d.path FROM documents d JOIN sources s ON s.id = d.source_id WHERE s.name = ? ORDER BY d.path"
        )
        return [(int(row), str(path)) for row, path in self._connection.rows(sql, (source,))]

    def _analyse_again(self, source: str, note: ContextNote) -> int:
        """Updates the terms of all chunks below the note's folder, and returns how many of them changed."""
        below = [row for row, path in self._documents(source) if note.covers(path)]
        terms = ChunkTerms(self._connection, self._korean_analysis)
        self._connection.execute("CREATE TEMP TABLE IF NOT EXISTS new_terms (id INTEGER PRIMARY KEY, cjk TEXT)")
        changed = 0
        for start in range(0, len(below), _DOCUMENTS_AT_ONCE):
            changes = list(self._changed_terms(below[start : start + _DOCUMENTS_AT_ONCE], terms))
            self._connection.executemany("INSERT INTO temp.new_terms VALUES (?, ?)", changes)
            # One statement for many chunks, because FTS5 flushes its buffer at the end of every statement.
            self._connection.execute(
                """UPDATE chunks SET cjk = (SELECT t.cjk FROM temp.new_terms t WHERE t.id = chunks.id)
                   WHERE id IN (SELECT id FROM temp.new_terms)"""
            )
            self._connection.execute("DELETE FROM temp.new_terms")
            changed += len(changes)
        return changed

    def _changed_terms(self, documents: list[int], terms: ChunkTerms) -> Iterator[tuple[int, str]]:
        sql = CHUNK_TEXTS.format(first="json_each(?) AS wanted CROSS JOIN ") + "WHERE c.document_id = wanted.value"
        for chunk, *place, before in self._connection.rows(sql, (json.dumps(documents),)):
            after = terms.column(*place)
            if after != before:
                yield chunk, after


# --- the operations of the one writer


_CHUNKS_AT_ONCE = 500


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
        while batch := self._connection.rows(sql, (last, _CHUNKS_AT_ONCE)):
            yield batch
            last = batch[-1][0]

    def _rebuild_vocabulary(self) -> None:
        """Rebuilds the known words from the stored chunks and notes, inside the caller's transaction."""
        vocabulary = Vocabulary(self._connection, SqliteTokenizer(self._connection))
        self._connection.execute("DELETE FROM words")
        vocabulary.add(text for (text,) in self._connection.rows("SELECT text FROM context_notes"))
        for batch in self._chunk_batches():
            vocabulary.add(part for _, title, _, text, *_ in batch for part in (title, text))
