"""Reads and writes libraries and their versions.

While a version is indexed again, searches use its old state, which the new one replaces when it is complete. A document
with the same bytes and path in several versions is stored once. It belongs to the source of one of these versions; when
that version is removed, it moves to the source of another.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from kebab.core.addresses import without_password
from kebab.core.errors import NotFound
from kebab.core.libraries import DoneFile, Library, LibraryVersion, Making
from kebab.core.ports import Key
from kebab.core.text import storable
from kebab.store.sqlite.database import Connection, now
from kebab.store.sqlite.rows import stored_json

_IN_MAKING = " (in the making)"
# The fields of a Library in their order, without its versions.
_LIBRARIES = """
SELECT id, library_id, title, description, titled, described, origin, origin_kind, branch, repository, stars,
       trust_score, rules
FROM libraries
"""
# Joins the two rows of a version that is indexed again: its searched state, and the new state in the making.
_VERSIONS = """
SELECT library, nullif(tag, ''),
       coalesce(max(CASE WHEN in_making THEN NULL ELSE 'indexed' END), max(state)),
       max(CASE WHEN in_making THEN NULL ELSE commit_id END),
       max(CASE WHEN in_making THEN 0 ELSE snippets END),
       max(CASE WHEN in_making THEN NULL ELSE indexed_at END),
       max(CASE WHEN in_making THEN error ELSE NULL END)
FROM library_versions GROUP BY library, tag
"""


class SqliteLibraryCatalog:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def libraries(self, where: str = "", bindings: Any = ()) -> list[Library]:
        rows = self._connection.rows(f"{_LIBRARIES} {where} ORDER BY library_id", bindings)
        versions: dict[int, list[LibraryVersion]] = {row[0]: [] for row in rows}
        for library, *version in self._connection.rows(_VERSIONS) if rows else ():
            if library in versions:
                versions[library].append(LibraryVersion(*version))
        return [_library(row, versions[row[0]]) for row in rows]

    def find(self, library_id: str) -> Library:
        found = self.libraries("WHERE library_id = ?", (storable(library_id),))
        if not found:
            raise NotFound(f"There is no library {library_id}.", hint="See what is there with: kb lib list")
        return found[0]


def _library(row: tuple[Any, ...], versions: list[LibraryVersion]) -> Library:
    _, library_id, title, description, titled, described, *facts, rules = row
    flags = bool(titled), bool(described)
    return Library._make((library_id, title, description, *flags, *facts, tuple(stored_json(rules)), tuple(versions)))


class SqliteLibraryWriter:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def describe(self, library: Library) -> None:
        """Adds a library or changes its metadata. Its versions stay."""
        values = library._asdict() | {
            "title": storable(library.title),
            "description": storable(library.description),
            "origin": storable(without_password(library.origin)),
            "rules": json.dumps([storable(rule) for rule in library.rules], ensure_ascii=False),
            "created_at": now(),
        }
        del values["versions"]
        updates = ", ".join(f"{name} = excluded.{name}" for name in values if name not in ("library_id", "created_at"))
        self._connection.write(
            f"INSERT INTO libraries ({', '.join(values)}) VALUES ({', '.join(f':{name}' for name in values)}) "
            f"ON CONFLICT (library_id) DO UPDATE SET {updates}",
            values,
        )

    def begin(self, library_id: str, tag: str | None, commit: str | None) -> Making:
        """Begins to index a version, or continues an unfinished attempt, whose finished files it returns."""
        with self._connection.transaction():
            library = self._library(library_id)
            begun = self._connection.rows(
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
            done = self._connection.rows(
                """SELECT d.path, d.id, ld.file_key, d.fingerprint FROM library_documents ld
                   JOIN documents d ON d.id = ld.document_id WHERE ld.version = ?""",
                (row,),
            )
        return Making(row, name, {path: DoneFile(*file) for path, *file in done})

    def drop(self, making: Making, files: Iterable[DoneFile]) -> None:
        """Removes these files of an earlier attempt from the version in the making, and deletes documents that the
        attempt wrote but did not link to the version before it was killed.
        """
        with self._connection.transaction():
            self._connection.executemany(
                "DELETE FROM library_documents WHERE version = ? AND document_id = ?",
                [(making.key, file.document) for file in files],
            )
            source = self._connection.value("SELECT source_id FROM library_versions WHERE id = ?", (making.key,))
            self._hand_on(making.key, source)
            self._connection.execute(
                "DELETE FROM documents WHERE source_id = ? AND id NOT IN (SELECT document_id FROM library_documents)",
                (source,),
            )

    def known(self, library_id: str, fingerprints: Iterable[str]) -> dict[tuple[str, str], Key]:
        """Returns documents of all versions that need not be parsed again, by path and file key."""
        rows = self._connection.rows(
            """SELECT d.path, ld.file_key, d.id FROM library_documents ld
               JOIN library_versions v ON v.id = ld.version JOIN libraries l ON l.id = v.library
               JOIN documents d ON d.id = ld.document_id
               WHERE l.library_id = ? AND d.fingerprint IN (SELECT value FROM json_each(?))""",
            (library_id, json.dumps(list(fingerprints))),
        )
        return {(path, key): document for path, key, document in rows}

    def share(self, making: Making, documents: Sequence[tuple[Key, str]]) -> None:
        """Links documents of other versions (row, file key) to the version in the making."""
        with self._connection.transaction():
            self._connection.executemany(
                "INSERT OR REPLACE INTO library_documents (version, document_id, file_key) VALUES (?, ?, ?)",
                [(making.key, document, key) for document, key in documents],
            )

    def link(self, making: Making, documents: Sequence[tuple[str, str]]) -> None:
        """Links newly written documents (id, file key) to the version in the making."""
        with self._connection.transaction():
            self._connection.executemany(
                """INSERT OR REPLACE INTO library_documents (version, document_id, file_key)
                   SELECT ?, id, ? FROM documents WHERE doc_id = ?""",
                [(making.key, key, doc_id) for doc_id, key in documents],
            )

    def finish(self, making: Making, indexed_at: str | None = None) -> int:
        """Replaces the searched state of the version with the new one, and returns how many snippets that has.
        `indexed_at` is the time to store instead of now.
        """
        with self._connection.transaction():
            library, tag, source = self._connection.rows(
                "SELECT library, tag, source_id FROM library_versions WHERE id = ?", (making.key,)
            )[0]
            before = self._connection.rows(
                """SELECT v.id, v.source_id, s.name FROM library_versions v JOIN sources s ON s.id = v.source_id
                   WHERE v.library = ? AND v.tag = ? AND NOT v.in_making""",
                (library, tag),
            )
            for row, old_source, _ in before:
                self._drop(row, old_source)
            name = before[0][2] if before else making.source.removesuffix(_IN_MAKING)
            snippets = self._connection.value(
                """SELECT coalesce(sum(d.chunk_count), 0) FROM library_documents ld
                   JOIN documents d ON d.id = ld.document_id
                   WHERE ld.version = ?""",
                (making.key,),
            )
            self._connection.execute(
                "UPDATE sources SET name = ?, ingested_at = ? WHERE id = ?", (name, indexed_at or now(), source)
            )
            self._connection.execute(
                "UPDATE library_versions SET in_making = 0, state = 'indexed', error = NULL, snippets = ?, "
                "indexed_at = ? WHERE id = ?",
                (snippets, indexed_at or now(), making.key),
            )
            self._connection.remember("complete_vectors", None)
        return int(snippets)

    def fail(self, library_id: str, tag: str | None, reason: str) -> None:
        """Records why an attempt failed. Its documents stay, to continue from, and so does the searched version."""
        with self._connection.transaction():
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
        """Removes a failed attempt. The searched version stays."""
        with self._connection.transaction():
            self._drop_all("library = ? AND tag = ? AND in_making", self._library(library_id), tag or "")

    def remove(self, library_id: str, tag: str | None = None, *, whole: bool = True) -> None:
        """Removes the whole library, or only one version if `whole` is False."""
        with self._connection.transaction():
            library = self._library(library_id)
            if whole:
                self._drop_all("library = ?", library)
                self._connection.execute("DELETE FROM libraries WHERE id = ?", (library,))
            else:
                self._drop_all("library = ? AND tag = ?", library, tag or "")

    def _library(self, library_id: str) -> int:
        return int(self._connection.value("SELECT id FROM libraries WHERE library_id = ?", (library_id,)))

    def _new_making(self, library: int, library_id: str, tag: str | None, commit: str | None) -> tuple[int, str]:
        name = f"{library_id}{f'/{tag}' if tag else ''}{_IN_MAKING}"
        source = self._connection.value(
            """INSERT INTO sources (name, kind, root, trust_level, created_at)
               VALUES (?, 'library', NULL, 'secondary', ?) RETURNING id""",
            (name, now()),
        )
        row = self._connection.value(
            """INSERT INTO library_versions (library, tag, in_making, source_id, commit_id, state)
               VALUES (?, ?, 1, ?, ?, 'indexing') RETURNING id""",
            (library, tag or "", source, commit),
        )
        return int(row), name

    def _drop_all(self, condition: str, *bindings: Any) -> None:
        versions = f"SELECT id, source_id FROM library_versions WHERE {condition}"
        for version, source in self._connection.rows(versions, bindings):
            self._drop(version, source)

    def _drop(self, version: int, source: int) -> None:
        """Removes a version and its documents, except documents that other versions share."""
        self._connection.execute("DELETE FROM library_documents WHERE version = ?", (version,))
        self._hand_on(version, source)
        self._connection.execute("DELETE FROM library_versions WHERE id = ?", (version,))
        self._connection.execute("DELETE FROM sources WHERE id = ?", (source,))

    def _hand_on(self, version: Key, source: int) -> None:
        """Moves documents that this version no longer has to the source of another version that has them, so that two
        documents of one source never have the same path.
        """
        self._connection.execute(
            """UPDATE documents SET source_id = (
                   SELECT v.source_id FROM library_documents ld JOIN library_versions v ON v.id = ld.version
                   WHERE ld.document_id = documents.id LIMIT 1
               ) WHERE source_id = ?1 AND id IN (SELECT document_id FROM library_documents)
                 AND id NOT IN (SELECT document_id FROM library_documents WHERE version = ?2)""",
            (source, version),
        )
