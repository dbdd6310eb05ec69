"""Libraries and their versions: reading what is known of them, and writing them.

A version is made beside the one that is searched, and takes its place when it is complete. Documents that two versions
have in common, the same bytes under the same path, are stored once. Each belongs to the source of one of the versions
that have it, and is handed on when that one goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw

from kebab.core.addresses import without_password
from kebab.core.errors import NotFound
from kebab.core.libraries import DoneFile, Library, LibraryVersion, Making
from kebab.core.ports import Key
from kebab.core.text import storable
from kebab.store.sqlite.database import now, our_errors, write_transaction
from kebab.store.sqlite.index_state import forget_complete_vectors
from kebab.store.sqlite.rows import rows_of

_LIBRARIES = """
SELECT id, library_id, title, description, titled, described, origin, origin_kind, branch, repository, stars,
       trust_score, rules
FROM libraries
"""
# The row that is searched and the one that is being made are one version to whoever asks.
_VERSIONS = """
SELECT library, tag,
       max(CASE WHEN in_making THEN '' ELSE 'indexed' END),
       max(CASE WHEN in_making THEN state ELSE '' END),
       max(CASE WHEN in_making THEN NULL ELSE commit_id END),
       max(CASE WHEN in_making THEN 0 ELSE snippets END),
       max(CASE WHEN in_making THEN NULL ELSE indexed_at END),
       max(CASE WHEN in_making THEN error ELSE NULL END)
FROM library_versions GROUP BY library, tag
"""


class SqliteLibraryCatalog:
    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def libraries(self) -> list[Library]:
        return self._read("ORDER BY library_id", ())

    def find(self, library_id: str) -> Library:
        found = self._read("WHERE library_id = ?", (storable(library_id),))
        if not found:
            raise NotFound(f"There is no library {library_id}.", hint="See what is there with: kb lib list")
        return found[0]

    def named(self, name: str) -> list[Library]:
        """Those with this in their title, id or description, in any case of any alphabet; % and _ are letters like any
        other.
        """
        return [library for library in self.libraries() if library.is_named(name)]

    def kinds_of(self, chunk_ids: Iterable[str]) -> dict[str, str]:
        """code or info."""
        sql = "SELECT c.chunk_id, c.kind FROM json_each(?) AS wanted CROSS JOIN chunks c ON c.chunk_id = wanted.value"
        return dict(rows_of(self._connection, sql, (json.dumps(list(chunk_ids)),)))

    def _read(self, where: str, bindings: Any) -> list[Library]:
        rows = rows_of(self._connection, f"{_LIBRARIES} {where}", bindings)
        versions: dict[int, list[LibraryVersion]] = {row[0]: [] for row in rows}
        for library, tag, done, making, commit, snippets, indexed_at, error in (
            rows_of(self._connection, _VERSIONS) if rows else ()
        ):
            if library in versions:
                state = done or making
                versions[library].append(LibraryVersion(tag or None, state, commit, snippets, indexed_at, error))
        return [
            Library(
                library_id=row[1],
                title=row[2],
                description=row[3],
                titled=bool(row[4]),
                described=bool(row[5]),
                origin=row[6],
                origin_kind=row[7],
                branch=row[8],
                repository=row[9],
                stars=row[10],
                trust_score=row[11],
                rules=tuple(json.loads(row[12])),
                versions=tuple(versions[row[0]]),
            )
            for row in rows
        ]


_KIND = "library"


class SqliteLibraryWriter:
    def __init__(self, connection: apsw.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def describe(self, library: Library) -> None:
        """Adds a library, or changes what is said of it; its versions stay."""
        values = {
            "library_id": library.library_id,
            "title": storable(library.title),
            "description": storable(library.description),
            "titled": library.titled,
            "described": library.described,
            "origin": storable(without_password(library.origin)),
            "origin_kind": library.origin_kind,
            "branch": library.branch,
            "repository": library.repository,
            "stars": library.stars,
            "trust_score": library.trust_score,
            "rules": json.dumps([storable(rule) for rule in library.rules], ensure_ascii=False),
            "created_at": now(),
        }
        names = ", ".join(values)
        updates = ", ".join(f"{name} = excluded.{name}" for name in values if name not in ("library_id", "created_at"))
        with our_errors(self._path), write_transaction(self._connection):
            self._connection.execute(
                f"INSERT INTO libraries ({names}) VALUES ({', '.join(f':{name}' for name in values)}) "
                f"ON CONFLICT (library_id) DO UPDATE SET {updates}",
                values,
            )

    def begin(self, library_id: str, tag: str | None, commit: str | None) -> Making:
        """Goes on with what was begun."""
        with our_errors(self._path), write_transaction(self._connection):
            library = self._library(library_id)
            begun = rows_of(
                self._connection,
                """SELECT v.id, s.name FROM library_versions v JOIN sources s ON s.id = v.source_id
                   WHERE v.library = ? AND v.tag = ? AND v.in_making""",
                (library, tag or ""),
            )
            if begun:
                row, name = begun[0]
                self._connection.execute(
                    "UPDATE library_versions SET state = 'indexing', error = NULL, commit_id = ? WHERE id = ?",
                    (commit, row),
                )
            else:
                row, name = self._new_making(library, library_id, tag, commit)
            done = rows_of(
                self._connection,
                """SELECT d.path, d.id, ld.file_key, d.fingerprint FROM library_documents ld
                   JOIN documents d ON d.id = ld.document_id WHERE ld.version = ?""",
                (row,),
            )
        return Making(row, name, {path: DoneFile(*file) for path, *file in done})

    def drop(self, making: Making, files: Iterable[DoneFile]) -> None:
        """What an earlier attempt left that is no part of the version any more, or is to be read again; and whatever
        was written and then not said to belong to it, because the run was killed in between.
        """
        with our_errors(self._path), write_transaction(self._connection):
            self._connection.executemany(
                "DELETE FROM library_documents WHERE version = ? AND document_id = ?",
                [(making.key, file.document) for file in files],
            )
            source = rows_of(self._connection, "SELECT source_id FROM library_versions WHERE id = ?", (making.key,))[0][
                0
            ]
            self._hand_on(making.key, source)
            self._connection.execute(
                "DELETE FROM documents WHERE source_id = ? AND id NOT IN (SELECT document_id FROM library_documents)",
                (source,),
            )

    def known(self, library_id: str, fingerprints: Iterable[str]) -> dict[tuple[str, str], Key]:
        """Documents of all versions that need not be read again, by path and key of their file."""
        rows = rows_of(
            self._connection,
            """SELECT d.path, ld.file_key, d.id FROM library_documents ld
               JOIN library_versions v ON v.id = ld.version JOIN libraries l ON l.id = v.library
               JOIN documents d ON d.id = ld.document_id
               WHERE l.library_id = ? AND d.fingerprint IN (SELECT value FROM json_each(?))""",
            (library_id, json.dumps(list(fingerprints))),
        )
        return {(path, key): document for path, key, document in rows}

    def share(self, making: Making, documents: Sequence[tuple[Key, str]]) -> None:
        """Documents (row, key of their file) that other versions have too."""
        with our_errors(self._path), write_transaction(self._connection):
            self._connection.executemany(
                "INSERT OR REPLACE INTO library_documents (version, document_id, file_key) VALUES (?, ?, ?)",
                [(making.key, document, key) for document, key in documents],
            )

    def link(self, making: Making, documents: Sequence[tuple[str, str]]) -> None:
        """Documents (id, key of their file) that were just written."""
        with our_errors(self._path), write_transaction(self._connection):
            self._connection.executemany(
                """INSERT OR REPLACE INTO library_documents (version, document_id, file_key)
                   SELECT ?, id, ? FROM documents WHERE doc_id = ?""",
                [(making.key, key, doc_id) for doc_id, key in documents],
            )

    def finish(self, making: Making, indexed_at: str | None = None) -> int:
        """Puts it in the place of the version that is searched; how many snippets it has. `indexed_at`: if not now."""
        with our_errors(self._path), write_transaction(self._connection):
            library, tag, source = rows_of(
                self._connection, "SELECT library, tag, source_id FROM library_versions WHERE id = ?", (making.key,)
            )[0]
            before = rows_of(
                self._connection,
                """SELECT v.id, v.source_id, s.name FROM library_versions v JOIN sources s ON s.id = v.source_id
                   WHERE v.library = ? AND v.tag = ? AND NOT v.in_making""",
                (library, tag),
            )
            for row, old_source, _ in before:
                self._drop(row, old_source)
            name = before[0][2] if before else making.source.removesuffix(_IN_MAKING)
            snippets = rows_of(
                self._connection,
                """SELECT coalesce(sum(d.chunk_count), 0) FROM library_documents ld
                   JOIN documents d ON d.id = ld.document_id
                   WHERE ld.version = ?""",
                (making.key,),
            )[0][0]
            self._connection.execute(
                "UPDATE sources SET name = ?, ingested_at = ? WHERE id = ?", (name, indexed_at or now(), source)
            )
            self._connection.execute(
                "UPDATE library_versions SET in_making = 0, state = 'indexed', error = NULL, snippets = ?, "
                "indexed_at = ? WHERE id = ?",
                (snippets, indexed_at or now(), making.key),
            )
            forget_complete_vectors(self._connection)
        return int(snippets)

    def fail(self, library_id: str, tag: str | None, reason: str) -> None:
        """What was begun stays, to go on from; what is searched stays too."""
        with our_errors(self._path), write_transaction(self._connection):
            library = self._library(library_id)
            self._connection.execute(
                "UPDATE library_versions SET state = 'failed', error = ? WHERE library = ? AND tag = ? AND in_making",
                (storable(reason), library, tag or ""),
            )
            if not self._connection.changes():
                row, _ = self._new_making(library, library_id, tag, None)
                self._connection.execute(
                    "UPDATE library_versions SET state = 'failed', error = ? WHERE id = ?", (storable(reason), row)
                )

    def forget_attempt(self, library_id: str, tag: str | None) -> None:
        """What was begun and failed is not wanted after all; what is searched stays."""
        with our_errors(self._path), write_transaction(self._connection):
            for row, source in rows_of(
                self._connection,
                "SELECT id, source_id FROM library_versions WHERE library = ? AND tag = ? AND in_making",
                (self._library(library_id), tag or ""),
            ):
                self._drop(row, source)

    def remove(self, library_id: str, tag: str | None = None, *, whole: bool = True) -> None:
        """A version, or the whole library."""
        with our_errors(self._path), write_transaction(self._connection):
            library = self._library(library_id)
            some = "" if whole else " AND tag = ?"
            rows = rows_of(
                self._connection,
                f"SELECT id, source_id FROM library_versions WHERE library = ?{some}",
                (library,) if whole else (library, tag or ""),
            )
            for row, source in rows:
                self._drop(row, source)
            if whole:
                self._connection.execute("DELETE FROM libraries WHERE id = ?", (library,))

    def _library(self, library_id: str) -> int:
        return int(rows_of(self._connection, "SELECT id FROM libraries WHERE library_id = ?", (library_id,))[0][0])

    def _new_making(self, library: int, library_id: str, tag: str | None, commit: str | None) -> tuple[int, str]:
        name = f"{library_id}{f'/{tag}' if tag else ''}{_IN_MAKING}"
        source = rows_of(
            self._connection,
            "INSERT INTO sources (name, kind, root, trust_level, created_at) VALUES (?, ?, NULL, 'secondary', ?) "
            "RETURNING id",
            (name, _KIND, now()),
        )[0][0]
        row = rows_of(
            self._connection,
            """INSERT INTO library_versions (library, tag, in_making, source_id, commit_id, state)
               VALUES (?, ?, 1, ?, ?, 'indexing') RETURNING id""",
            (library, tag or "", source, commit),
        )[0][0]
        return int(row), name

    def _drop(self, version: int, source: int) -> None:
        """A version, and the documents that no other one has; the others are handed on."""
        self._connection.execute("DELETE FROM library_documents WHERE version = ?", (version,))
        self._hand_on(version, source)
        self._connection.execute("DELETE FROM library_versions WHERE id = ?", (version,))
        self._connection.execute("DELETE FROM sources WHERE id = ?", (source,))

    def _hand_on(self, version: Key, source: int) -> None:
        """Documents that this version has no more and another one has go to the source of that one. So a source owns
        only documents of its version, and never two under one path.
        """
        self._connection.execute(
            """UPDATE documents SET source_id = (
                   SELECT v.source_id FROM library_documents ld JOIN library_versions v ON v.id = ld.version
                   WHERE ld.document_id = documents.id LIMIT 1
               ) WHERE source_id = ?1 AND id IN (SELECT document_id FROM library_documents)
                 AND id NOT IN (SELECT document_id FROM library_documents WHERE version = ?2)""",
            (source, version),
        )


_IN_MAKING = " (in the making)"
