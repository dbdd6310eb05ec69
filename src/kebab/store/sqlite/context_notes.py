"""Notes on sources and folders: what is stored of them, and their words in every passage below."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import apsw

from kebab.analysis.derived_terms import cjk_column, terms_of_note
from kebab.core.records import ContextNote
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.sqlite.database import our_errors, write_transaction
from kebab.store.sqlite.rows import rows_of
from kebab.store.sqlite.vocabulary import Vocabulary

_DOCUMENTS_AT_ONCE = 200


def notes_by_source(connection: apsw.Connection) -> dict[str, list[ContextNote]]:
    """By the name of the source, the outermost first."""
    found: dict[str, list[ContextNote]] = {}
    for source, folder, text in rows_of(
        connection,
        "SELECT s.name, n.folder, n.text FROM context_notes n JOIN sources s ON s.id = n.source_id ORDER BY length(n.folder), n.folder",
    ):
        found.setdefault(source, []).append(ContextNote(folder, text))
    return found


class NoteTerms:
    """The terms that passages get from the notes above them, as the notes are now."""

    def __init__(self, connection: apsw.Connection, korean_analysis: str) -> None:
        self._korean_analysis = korean_analysis
        self._notes = notes_by_source(connection)
        self._terms: dict[str, str] = {}

    def of(self, source: str, path: str) -> str:
        """For a document of this source."""
        return " ".join(self._analysed(note.text) for note in self._notes.get(source, ()) if note.covers(path))

    def _analysed(self, text: str) -> str:
        if text not in self._terms:
            self._terms[text] = terms_of_note(self._korean_analysis, text)
        return self._terms[text]


class SqliteNoteStore:
    """Writing notes. A note and the terms of all passages below it are one transaction: whatever interrupts it, they
    agree.
    """

    def __init__(self, connection: apsw.Connection, path: Path, *, korean_analysis: str) -> None:
        self._connection = connection
        self._path = path
        self._korean_analysis = korean_analysis

    def source_names(self) -> list[str]:
        with our_errors(self._path):
            return [name for (name,) in rows_of(self._connection, "SELECT name FROM sources ORDER BY name")]

    def notes(self, source: str) -> list[ContextNote]:
        with our_errors(self._path):
            return notes_by_source(self._connection).get(source, [])

    def document_paths(self, source: str) -> list[str]:
        with our_errors(self._path):
            return [path for _, path in self._documents(source)]

    def put(self, source: str, note: ContextNote) -> int:
        """In place of the one that was there; how many chunks have other terms because of it."""
        with our_errors(self._path), write_transaction(self._connection):
            self._connection.execute(
                """INSERT INTO context_notes VALUES ((SELECT id FROM sources WHERE name = ?), ?, ?)
                   ON CONFLICT DO UPDATE SET text = excluded.text""",
                (source, note.folder, note.text),
            )
            Vocabulary(self._connection, SqliteTokenizer(self._connection)).add([note.text])
            return self._analyse_again(source, note)

    def remove(self, source: str, note: ContextNote) -> int:
        with our_errors(self._path), write_transaction(self._connection):
            self._connection.execute(
                "DELETE FROM context_notes WHERE source_id = (SELECT id FROM sources WHERE name = ?) AND folder = ?",
                (source, note.folder),
            )
            return self._analyse_again(source, note)

    def _documents(self, source: str) -> list[tuple[int, str]]:
        rows = rows_of(
            self._connection,
            "SELECT d.id, d.path FROM documents d JOIN sources s ON s.id = d.source_id WHERE s.name = ? ORDER BY d.path",
            (source,),
        )
        return [(int(row), str(path)) for row, path in rows]

    def _analyse_again(self, source: str, note: ContextNote) -> int:
        """Gives every chunk below the note the terms it should have now; those that have them already are left alone."""
        below = [(row, path) for row, path in self._documents(source) if note.covers(path)]
        terms = NoteTerms(self._connection, self._korean_analysis)
        self._connection.execute("CREATE TEMP TABLE IF NOT EXISTS new_terms (id INTEGER PRIMARY KEY, cjk TEXT)")
        changed = 0
        for start in range(0, len(below), _DOCUMENTS_AT_ONCE):
            some = dict(below[start : start + _DOCUMENTS_AT_ONCE])
            changes = list(self._changed_terms(source, some, terms))
            self._connection.executemany("INSERT INTO temp.new_terms VALUES (?, ?)", changes)
            # One statement for many chunks: FTS5 flushes at the end of every one.
            self._connection.execute(
                """UPDATE chunks SET cjk = (SELECT t.cjk FROM temp.new_terms t WHERE t.id = chunks.id)
                   WHERE id IN (SELECT id FROM temp.new_terms)"""
            )
            self._connection.execute("DELETE FROM temp.new_terms")
            changed += len(changes)
        return changed

    def _changed_terms(self, source: str, paths: dict[int, str], terms: NoteTerms) -> Iterator[tuple[int, str]]:
        for chunk, document, title, headings, text, kind, before in rows_of(
            self._connection,
            """SELECT c.id, c.document_id, c.title, c.heading_path, c.text, c.kind, c.cjk
               FROM json_each(?) AS wanted CROSS JOIN chunks c ON c.document_id = wanted.value""",
            (json.dumps(list(paths)),),
        ):
            of_note = terms.of(source, paths[document])
            after = cjk_column(self._korean_analysis, title, headings, text, is_code=kind == "code", note_terms=of_note)
            if after != before:
                yield chunk, after
