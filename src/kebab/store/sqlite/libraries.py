"""Reading what is known of libraries and their versions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import apsw

from kebab.core.errors import NotFound
from kebab.core.libraries import Library, LibraryVersion
from kebab.core.text import storable
from kebab.store.sqlite.rows import rows_of

_LIBRARIES = """
SELECT id, library_id, title, description, titled, described, origin, origin_kind, branch, repository, stars, trust_score, rules
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
