"""Searching vectors: all of a space are compared with the query, the best by their bits exactly.

A space of a few thousand vectors is compared exactly. A larger one is first compared by bit codes (`bit_codes`), and
the best of that exactly. Filters come first: the rows they leave are compared exactly when they are few, and are the
only ones ranked when they are many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kebab.core.ports import Embedder, Middle, VectorMatch
from kebab.core.search import SearchFilters
from kebab.store.sqlite import bit_codes
from kebab.store.sqlite.database import Connection
from kebab.store.sqlite.filters import document_filter
from kebab.store.sqlite.index_state import Space, stored_spaces
from kebab.store.vector_spaces import refuse_other_dimension

Array = NDArray[Any]

EXACT_UP_TO = 8192
"""Vectors compared exactly without a look at their codes: reading this many takes about 10 ms."""
CANDIDATES = 1024
"""How many of the best by their codes are compared with the query itself by their codes …"""
COMPARED = 192
"""… and how many of those are compared exactly. Recall@10 is above .99 with these two."""
_LISTED = 16_384
"""Vectors of one scope that are listed at most: that takes about 5 ms."""
# English text under a Korean title is found by Korean words too, so it counts as one of the question's own script. In
# code the column holds pieces of identifiers.
_PRIMARY = "(cv.home OR (c.cjk <> '' AND c.kind <> 'code'))"


class _Codes(NamedTuple):
    segments: tuple[int, ...]
    """The rows of vector_codes this was read from: they never change, so it is current while they are the same."""
    ids: Array
    planes: Array
    centre: Array

    def only(self, ids: Array) -> _Codes:
        kept = np.flatnonzero(np.isin(self.ids, ids))
        return self._replace(ids=self.ids[kept], planes=self.planes[:, kept])


def _codes_of(connection: Connection, space: Space, known: dict[int, _Codes]) -> _Codes:
    """Read once and kept in `known` until another process writes more. Two threads may read at once without harm."""
    current = tuple(
        row[0] for row in connection.rows("SELECT id FROM vector_codes WHERE space_id = ? ORDER BY id", (space.id,))
    )
    codes = known.get(space.id)
    if codes is None or codes.segments != current:
        codes = known[space.id] = _read_codes(connection, space, current)
    return codes


def _read_codes(connection: Connection, space: Space, segments: tuple[int, ...]) -> _Codes:
    """Row by row, so that a million codes are not in memory twice."""
    total = int(connection.value("SELECT coalesce(sum(count), 0) FROM vector_codes WHERE space_id = ?", (space.id,)))
    height = bit_codes.plane_count(space.dimension)
    ids, planes = np.empty(total, np.int64), np.empty((height, total), np.uint64)
    start = 0
    for segment in segments:
        own_ids, own_planes = connection.rows("SELECT ids, planes FROM vector_codes WHERE id = ?", (segment,))[0]
        end = start + len(own_ids) // 8
        ids[start:end] = np.frombuffer(own_ids, np.int64)
        planes[:, start:end] = np.frombuffer(own_planes, np.uint64).reshape(height, -1)
        start = end
    centre = connection.value("SELECT centre FROM embedding_spaces WHERE id = ?", (space.id,))
    return _Codes(segments, ids, planes, np.frombuffer(centre, np.float32))


class _Vectors(NamedTuple):
    """All vectors of a small space, as one connection saw them."""

    connection: Connection
    state: tuple[int, int]
    ids: Array
    matrix: Array


def _vectors_of_space(connection: Connection, space: Space, known: dict[int, _Vectors]) -> _Vectors:
    """Read once and kept in `known` until the database changes, so that many questions in a row read them once. Only
    the connection that read them knows whether it has changed, so another connection reads them anew.
    """
    state = int(connection.value("PRAGMA data_version")), connection.total_changes()
    vectors = known.get(space.id)
    if vectors is None or vectors.connection is not connection or vectors.state != state:
        rows = connection.rows("SELECT id, vector FROM vectors WHERE space_id = ?", (space.id,))
        matrix = _matrix([row[1] for row in rows], space)
        vectors = known[space.id] = _Vectors(connection, state, _first_column(rows), matrix)
    return vectors


class _Permitted(NamedTuple):
    """Which chunks may be found."""

    documents: frozenset[int] | None
    """Rows of the documents that pass the filters; None when there are no filters."""
    primary: bool | None = None
    """Whether the space must be their primary one, or must not; None when either will do."""
    chunks: int = 0
    """How many chunks those documents have."""
    kinds: frozenset[str] = frozenset()
    """Of chunks; empty for any."""

    def __bool__(self) -> bool:
        return self.documents is not None or self.primary is not None

    def allows(self, row: int, document: int, primary: int, kind: str) -> bool:
        """Without a filter everything but libraries, whose chunks have rows below zero."""
        if row < 0 if self.documents is None else document not in self.documents:
            return False
        return self.primary in (None, bool(primary)) and (not self.kinds or kind in self.kinds)


class SqliteVectorStore:
    def __init__(self, connection: Connection, known: dict[str, dict[int, Any]] | None = None) -> None:
        """`known` keeps vectors and codes for the next store of this process."""
        self._connection = connection
        known = {} if known is None else known
        self._codes: dict[int, _Codes] = known.setdefault("codes", {})
        self._vectors: dict[int, _Vectors] = known.setdefault("vectors", {})

    def holds(self, embedder: Embedder) -> bool:
        # A vector that no chunk refers to any more cannot be found.
        sql = "SELECT EXISTS (SELECT 1 FROM chunks_vec WHERE space_id = ?)"
        return any(
            (space.model, space.version) == (embedder.name, embedder.version)
            and self._connection.value(sql, (space.id,))
            for space in stored_spaces(self._connection)
        )

    def search(
        self,
        space: str,
        vector: Array,
        *,
        filters: SearchFilters,
        limit: int,
        primary_only: bool = False,
        secondary_only: bool = False,
    ) -> list[VectorMatch]:
        """The closest chunks of a space, best first; equal ones by chunk id."""
        primary = True if primary_only else False if secondary_only else None
        with self._connection.snapshot():  # row ids of dropped vectors may be used again
            spaces = {known.fingerprint: known for known in stored_spaces(self._connection)}
            if space not in spaces:
                refuse_other_dimension(space, spaces.values())
                return []
            return self._search(spaces[space], np.asarray(vector, np.float32), filters, limit, primary)

    def middle_of(self, chunk_ids: Sequence[str], embedders: Sequence[Embedder]) -> Middle | None:
        ours = {(embedder.name, embedder.version): embedder for embedder in embedders}
        with self._connection.snapshot():
            spaces = {
                space.id: space for space in stored_spaces(self._connection) if (space.model, space.version) in ours
            }
            rows = self._connection.rows_for(
                chunk_ids,
                """SELECT cv.space_id, v.vector FROM chunks c
                   CROSS JOIN chunks_vec cv ON cv.chunk = c.id AND cv.home = 1
                   CROSS JOIN vectors v ON v.id = cv.vector_id
                   WHERE c.chunk_id IN ({marks}) ORDER BY c.chunk_id""",
            )
        primaries = Counter(space for space, _ in rows if space in spaces)
        if not primaries:
            return None
        space = spaces[
            max(primaries, key=lambda number: (primaries[number], number))
        ]  # of two with as many the younger
        matrix = _matrix([vector for number, vector in rows if number == space.id], space)
        mean = matrix.mean(axis=0)
        length = float(np.linalg.norm(mean))
        return Middle(space.fingerprint, mean / length if length else mean, ours[space.model, space.version])

    def _search(
        self, known: Space, query: Array, filters: SearchFilters, limit: int, primary: bool | None
    ) -> list[VectorMatch]:
        if not filters:
            permitted = _Permitted(None, primary)
        else:
            sql, bindings = document_filter(filters)
            counts = dict(self._connection.rows(f"SELECT id, chunk_count FROM documents WHERE id IN ({sql})", bindings))
            chunks = sum(counts.values())
            permitted = _Permitted(frozenset(counts), primary, chunks, frozenset(filters.kinds))
            if chunks <= EXACT_UP_TO:
                return self._among(known, query, permitted, limit)
        if known.has_codes:
            return self._coded(known, query, limit, permitted)
        vectors = _vectors_of_space(self._connection, known, self._vectors)
        return self._matches(known, vectors.ids, _products(vectors.matrix, query), limit, permitted)

    # --- exactly

    def _among(self, space: Space, query: Array, permitted: _Permitted, limit: int) -> list[VectorMatch]:
        """All chunks of a few documents."""
        rows = self._connection.rows_for(
            sorted(permitted.documents or ()),
            f"""SELECT c.chunk_id, c.id, c.document_id, {_PRIMARY}, c.kind, v.vector
                FROM chunks c CROSS JOIN chunks_vec cv ON cv.chunk = c.id AND cv.space_id = ?
                CROSS JOIN vectors v ON v.id = cv.vector_id WHERE c.document_id IN ({{marks}})""",
            space.id,
        )
        rows = [row for row in rows if permitted.allows(*row[1:5])]
        similarities = _products(_matrix([row[5] for row in rows], space), query).tolist()
        found = [
            VectorMatch(row[0], similarity, bool(row[3])) for row, similarity in zip(rows, similarities, strict=True)
        ]
        return sorted(found, key=_order)[:limit]

    # --- by codes first

    def _coded(self, space: Space, query: Array, limit: int, permitted: _Permitted) -> list[VectorMatch]:
        """The best by codes. Some candidates are not permitted, or no chunk refers to them any more; if too few others
        are left, more candidates are taken.
        """
        codes = _codes_of(self._connection, space, self._codes)
        if permitted.documents is not None and permitted.chunks**2 < CANDIDATES * len(codes.ids):
            # So few that listing them costs less than looking at the candidates that contain enough of them.
            codes = codes.only(self._vectors_of(space, permitted.documents))
        elif permitted.primary is not None:
            few = self._few_vectors(space, permitted.primary, at_most=min(_LISTED, len(codes.ids) // 8))
            codes = codes if few is None else codes.only(few)
        differences = bit_codes.distances(codes.planes, bit_codes.encode(query[None, :], codes.centre)[:, 0])
        compared = COMPARED if 3 * limit <= COMPARED else 4 * limit
        wanted = max(CANDIDATES, 4 * compared)
        sifted = bool(permitted)  # without filters only when it turns out that too many have no chunk
        while True:
            positions = bit_codes.nearest(differences, wanted)
            if sifted:
                positions = positions[
                    np.isin(codes.ids[positions], self._permitted_vectors(space, codes.ids[positions], permitted))
                ]
            complete = sifted and wanted >= len(codes.ids)
            if complete or len(positions) >= compared or not sifted:
                best = bit_codes.closest(codes.planes, positions, query, compared)
                matches = self._matches(space, *self._similarities(space, codes.ids[best], query), limit, permitted)
                if complete or len(matches) >= limit:
                    return matches
            if sifted:
                wanted *= 4
            sifted = True

    def _vectors_of(self, space: Space, documents: frozenset[int]) -> Array:
        found = self._connection.rows_for(
            sorted(documents),
            """SELECT cv.vector_id FROM chunks c CROSS JOIN chunks_vec cv ON cv.chunk = c.id AND cv.space_id = ?
               WHERE c.document_id IN ({marks})""",
            space.id,
        )
        return _first_column(found)

    def _few_vectors(self, space: Space, primary: bool, at_most: int) -> Array | None:
        """Vectors of the chunks whose primary space this is, or is not. None if there are more than `at_most`: then
        filtering the candidates takes less time than listing them.
        """
        wanted = (space.id, at_most + 1)
        rows = self._connection.rows(
            f"SELECT vector_id FROM chunks_vec WHERE space_id = ? AND home = {int(primary)} LIMIT ?", wanted
        )
        if primary and len(rows) <= at_most:
            rows += self._connection.rows(
                """SELECT cv.vector_id FROM chunks c INDEXED BY chunks_with_cjk
                   CROSS JOIN chunks_vec cv ON cv.chunk = c.id AND cv.space_id = ?
                   WHERE c.cjk <> '' AND c.kind <> 'code' AND NOT cv.home LIMIT ?""",
                wanted,
            )
        return _first_column(rows) if len(rows) <= at_most else None

    def _permitted_vectors(self, space: Space, ids: Array, permitted: _Permitted) -> Array:
        return _first_column([row for row in self._chunks_of(space, ids.tolist()) if permitted.allows(*row[2:])])

    def _similarities(self, space: Space, ids: Array, query: Array) -> tuple[Array, Array]:
        """The ids that are still there, and how close they are."""
        rows = self._connection.rows_for(ids.tolist(), "SELECT id, vector FROM vectors WHERE id IN ({marks})")
        return _first_column(rows), _products(_matrix([row[1] for row in rows], space), query)

    # --- from vectors to chunks

    def _matches(
        self, space: Space, ids: Array, similarities: Array, limit: int, permitted: _Permitted
    ) -> list[VectorMatch]:
        """The chunks of the closest vectors; several chunks may share one, and some vectors have no chunk left."""
        found: list[VectorMatch] = []
        start, step = 0, limit + 8  # a few may have lost their chunk
        order = _closest(similarities, step)
        while start < len(similarities):
            if start >= len(order):
                order = _closest(similarities, len(similarities))
            some = order[start : start + step]
            similarity = dict(zip(ids[some].tolist(), similarities[some].tolist(), strict=True))
            for vector_id, chunk_id, row, document, primary, kind in self._chunks_of(space, list(similarity)):
                if permitted.allows(row, document, primary, kind):
                    found.append(VectorMatch(chunk_id, similarity[vector_id], bool(primary)))
            start += len(some)
            if len(found) >= limit and (start >= len(order) or similarities[order[start]] < similarities[some[-1]]):
                break
        return sorted(found, key=_order)[:limit]

    def _chunks_of(self, space: Space, vectors: list[int]) -> list[tuple[Any, ...]]:
        """Vector, chunk id, row, document, primary or not, and kind of all chunks with these vectors."""
        # The + has SQLite look for the vectors, not for the space.
        sql = f"""SELECT cv.vector_id, c.chunk_id, c.id, c.document_id, {_PRIMARY}, c.kind
                  FROM chunks_vec cv JOIN chunks c ON c.id = cv.chunk
                  WHERE +cv.space_id = ? AND cv.vector_id IN ({{marks}})"""
        return self._connection.rows_for(vectors, sql, space.id)


def _order(match: VectorMatch) -> tuple[float, str]:
    return -match.similarity, match.chunk_id


def _first_column(rows: list[tuple[Any, ...]]) -> Array:
    numbers = [row[0] for row in rows]
    return np.array(numbers, np.int64)


def _closest(similarities: Array, least: int) -> Array:
    """Positions of at least so many, the closest first and equal ones in their order, with all that are as close as the
    last of them. Sorting thousands to look at a few takes longer than comparing them.
    """
    if 4 * least >= len(similarities):
        return np.argsort(-similarities, kind="stable")
    closest = np.flatnonzero(similarities >= np.partition(similarities, -least)[-least])
    return np.asarray(closest[np.argsort(-similarities[closest], kind="stable")])


def _products(matrix: Array, query: Array) -> Array:
    # Not `@`: its last bits depend on the neighbouring rows, and equal vectors would not be equally close.
    return np.asarray(np.einsum("ij,j->i", matrix, query))


def _matrix(vectors: list[bytes], space: Space) -> Array:
    stored = np.frombuffer(b"".join(vectors), np.float16)
    return stored.reshape(-1, space.dimension).astype(np.float32)
