"""Searches the vectors of a space.

In a space of a few thousand vectors, the query is compared with every vector exactly. In a larger space, it is first
compared with the bit codes of all vectors (`bit_codes`), and then exactly with the closest. Filters come first: if few
chunks pass them, these are compared exactly; otherwise only these are candidates.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kebab.core.ports import Embedder, Middle, VectorMatch
from kebab.core.search import SearchFilters
from kebab.store.index_versions import refuse_other_dimension
from kebab.store.sqlite import bit_codes
from kebab.store.sqlite.database import Connection
from kebab.store.sqlite.filters import document_filter
from kebab.store.sqlite.rows import Space, stored_spaces

Array = NDArray[Any]

EXACT_UP_TO = 8192
"""Up to this many vectors are compared exactly, without codes: reading them takes about 10 ms."""
CANDIDATES = 1024
"""How many codes that differ in the fewest bits are then ranked by their products with the query."""
COMPARED = 192
"""How many of the CANDIDATES are then compared exactly. With both numbers, Recall@10 is above .99."""
_READ_AT_ONCE = 4096
"""How many vectors are read and compared at once, because all that a deep page needs would fill the memory."""
_LISTED = 16_384
"""The most vectors that `_few_vectors` lists, which takes about 5 ms."""
# A chunk counts as primary too if it has CJK terms, such as English text under a Korean title, because Korean words
# find it. In code, the column `cjk` contains parts of identifiers, so it does not count.
_PRIMARY = "(cv.home OR (c.cjk <> '' AND c.kind <> 'code'))"


class _Codes(NamedTuple):
    segments: tuple[int, ...]
    """The rows of vector_codes that were read. Rows never change, so the codes are current while the ids are equal."""
    ids: Array
    planes: Array
    centre: Array

    def only(self, ids: Array) -> _Codes:
        kept = np.flatnonzero(np.isin(self.ids, ids))
        return self._replace(ids=self.ids[kept], planes=self.planes[:, kept])


def _codes_of(connection: Connection, space: Space, known: dict[int, _Codes]) -> _Codes:
    """Returns the codes of a space, from `known` unless new codes were written since. Threads may share `known`."""
    current = tuple(
        row[0] for row in connection.rows("SELECT id FROM vector_codes WHERE space_id = ? ORDER BY id", (space.id,))
    )
    codes = known.get(space.id)
    if codes is None or codes.segments != current:
        codes = known[space.id] = _read_codes(connection, space, current)
    return codes


def _read_codes(connection: Connection, space: Space, segments: tuple[int, ...]) -> _Codes:
    """Reads the codes row by row, so that a million codes are not in memory twice."""
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
    """All vectors of a small space, as read by one connection."""

    connection: Connection
    state: tuple[int, int]
    ids: Array
    matrix: Array


def _vectors_of_space(connection: Connection, space: Space, known: dict[int, _Vectors]) -> _Vectors:
    """Returns all vectors of a space, from `known` unless the database has changed since.
    Only the connection that read them can tell whether the database has changed, so another connection reads again.
    """
    state = int(connection.value("PRAGMA data_version")), connection.total_changes()
    vectors = known.get(space.id)
    if vectors is None or vectors.connection is not connection or vectors.state != state:
        rows = connection.rows("SELECT id, vector FROM vectors WHERE space_id = ?", (space.id,))
        matrix = _matrix([row[1] for row in rows], space)
        vectors = known[space.id] = _Vectors(connection, state, _first_column(rows), matrix)
    return vectors


class _Permitted(NamedTuple):
    """The chunks that a search may return. It is true if filters or the primary space restrict them."""

    documents: frozenset[int] | None
    """Rows of the documents that pass the filters, or None if there are no filters."""
    primary: bool | None = None
    """Whether the searched space must, or must not, be the primary space of the chunk; None if both are allowed."""
    chunks: int = 0
    """How many chunks those documents have."""
    kinds: frozenset[str] = frozenset()
    """The permitted kinds of chunks; empty if all are permitted."""

    def __bool__(self) -> bool:
        return self.documents is not None or self.primary is not None

    def allows(self, row: int, document: int, primary: int, kind: str) -> bool:
        """Whether a chunk is permitted. Without filters, only libraries, whose chunks have rows below zero, are not."""
        if row < 0 if self.documents is None else document not in self.documents:
            return False
        return self.primary in (None, bool(primary)) and (not self.kinds or kind in self.kinds)


class SqliteVectorStore:
    def __init__(self, connection: Connection, known: dict[str, dict[int, Any]] | None = None) -> None:
        """`known` is a cache of vectors and codes, shared by the stores of this process."""
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
        primary: bool | None = None,
    ) -> list[VectorMatch]:
        """Returns the closest chunks of a space, best first, and equally close ones by chunk id."""
        with self._connection.snapshot():  # row ids of deleted vectors may be used again
            spaces = {known.fingerprint: known for known in stored_spaces(self._connection)}
            if space not in spaces:
                refuse_other_dimension(space, spaces)
                return []
            return self._search(spaces[space], np.asarray(vector, np.float32), filters, limit, primary)

    def middle_of(self, chunk_ids: Sequence[str], embedders: Sequence[Embedder]) -> Middle | None:
        ours = {(embedder.name, embedder.version): embedder for embedder in embedders}
        with self._connection.snapshot():
            spaces = {
                space.id: space for space in stored_spaces(self._connection) if (space.model, space.version) in ours
            }
            rows = self._connection.rows(
                """SELECT cv.space_id, v.vector FROM chunks c
                   CROSS JOIN chunks_vec cv ON cv.chunk = c.id AND cv.home = 1
                   CROSS JOIN vectors v ON v.id = cv.vector_id
                   WHERE c.chunk_id IN (SELECT value FROM json_each(?)) ORDER BY c.chunk_id""",
                (json.dumps(list(chunk_ids)),),
            )
        primaries = Counter(space for space, _ in rows if space in spaces)
        if not primaries:
            return None
        space = spaces[
            max(primaries, key=lambda number: (primaries[number], number))
        ]  # of two with equal numbers, the newer space
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
        """Exact search: compares the query with every permitted chunk of these few documents; returns the closest."""
        rows = self._connection.rows(
            f"""SELECT c.chunk_id, c.id, c.document_id, {_PRIMARY}, c.kind, d.doc_type, v.vector
                FROM chunks c CROSS JOIN documents d ON d.id = c.document_id
                CROSS JOIN chunks_vec cv ON cv.chunk = c.id AND cv.space_id = ?
                CROSS JOIN vectors v ON v.id = cv.vector_id WHERE c.document_id IN (SELECT value FROM json_each(?))""",
            (space.id, json.dumps(list(permitted.documents or ()))),
        )
        rows = [row for row in rows if permitted.allows(*row[1:5])]
        similarities = _products(_matrix([row[6] for row in rows], space), query).tolist()
        found = [
            VectorMatch(row[0], similarity, bool(row[3]), row[5])
            for row, similarity in zip(rows, similarities, strict=True)
        ]
        return sorted(found, key=_order)[:limit]

    # --- by codes first

    def _coded(self, space: Space, query: Array, limit: int, permitted: _Permitted) -> list[VectorMatch]:
        """Searches by codes first, and compares the best candidates exactly. Takes more candidates if too few of them
        are permitted and still belong to a chunk.
        """
        codes = _codes_of(self._connection, space, self._codes)
        if permitted.documents is not None and permitted.chunks**2 < CANDIDATES * len(codes.ids):
            # Listing so few vectors takes less time than taking candidates until enough of them are permitted.
            codes = codes.only(self._vectors_of(space, permitted.documents))
        elif permitted.primary is not None:
            few = self._few_vectors(space, permitted.primary, at_most=min(_LISTED, len(codes.ids) // 8))
            codes = codes if few is None else codes.only(few)
        differences = bit_codes.distances(codes.planes, bit_codes.encode(query[None, :], codes.centre)[:, 0])
        compared = COMPARED if 3 * limit <= COMPARED else 4 * limit
        wanted = max(CANDIDATES, 4 * compared)
        sifted = bool(permitted)  # without filters, only after too many candidates turned out to have no chunk
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
        found = self._connection.rows(
            """SELECT cv.vector_id FROM chunks c CROSS JOIN chunks_vec cv ON cv.chunk = c.id AND cv.space_id = ?
               WHERE c.document_id IN (SELECT value FROM json_each(?))""",
            (space.id, json.dumps(list(documents))),
        )
        return _first_column(found)

    def _few_vectors(self, space: Space, primary: bool, at_most: int) -> Array | None:
        """Returns the vectors of chunks whose primary space this is, or is not; None if there are more than `at_most`,
        because filtering the candidates then takes less time than listing.
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
        return _first_column([row for row in self._chunks_of(space, ids.tolist()) if permitted.allows(*row[2:6])])

    def _similarities(self, space: Space, ids: Array, query: Array) -> tuple[Array, Array]:
        """Returns the ids that still exist, and the similarity of each vector to the query."""
        found, similarities = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
        for start in range(0, len(ids), _READ_AT_ONCE):
            sql = "SELECT id, vector FROM vectors WHERE id IN (SELECT value FROM json_each(?))"
            rows = self._connection.rows(sql, (json.dumps(ids[start : start + _READ_AT_ONCE].tolist()),))
            found.append(_first_column(rows))
            similarities.append(_products(_matrix([row[1] for row in rows], space), query))
        return np.concatenate(found), np.concatenate(similarities)

    # --- from vectors to chunks

    def _matches(
        self, space: Space, ids: Array, similarities: Array, limit: int, permitted: _Permitted
    ) -> list[VectorMatch]:
        """Returns the chunks of the closest vectors. Chunks may share a vector, and some vectors have no chunk."""
        found: list[VectorMatch] = []
        start, step = 0, limit + 8  # 8 more, because a few vectors may have no chunk
        order = _closest(similarities, step)
        while start < len(similarities):
            if start >= len(order):
                order = _closest(similarities, len(similarities))
            some = order[start : start + step]
            similarity = dict(zip(ids[some].tolist(), similarities[some].tolist(), strict=True))
            for vector_id, chunk_id, row, document, primary, kind, doc_type in self._chunks_of(space, list(similarity)):
                if permitted.allows(row, document, primary, kind):
                    found.append(VectorMatch(chunk_id, similarity[vector_id], bool(primary), doc_type))
            start += len(some)
            if len(found) >= limit and (start >= len(order) or similarities[order[start]] < similarities[some[-1]]):
                break
        return sorted(found, key=_order)[:limit]

    def _chunks_of(self, space: Space, vectors: list[int]) -> list[tuple[Any, ...]]:
        """Returns vector, chunk id, row, document, primary or not, kind and document type of the vectors' chunks."""
        # The + makes SQLite use the index of vectors instead of the index of spaces.
        sql = f"""SELECT cv.vector_id, c.chunk_id, c.id, c.document_id, {_PRIMARY}, c.kind, d.doc_type
                  FROM chunks_vec cv JOIN chunks c ON c.id = cv.chunk JOIN documents d ON d.id = c.document_id
                  WHERE +cv.space_id = ? AND cv.vector_id IN (SELECT value FROM json_each(?))"""
        return self._connection.rows(sql, (space.id, json.dumps(vectors)))


def _order(match: VectorMatch) -> tuple[float, str]:
    return -match.similarity, match.chunk_id


def _first_column(rows: list[tuple[Any, ...]]) -> Array:
    numbers = [row[0] for row in rows]
    return np.array(numbers, np.int64)


def _closest(similarities: Array, least: int) -> Array:
    """Returns the positions of the `least` most similar, and of all others equal to the last, in stable order.

    Selects them before sorting, because sorting thousands takes longer than comparing them with the query.
    """
    if 4 * least >= len(similarities):
        return np.argsort(-similarities, kind="stable")
    closest = np.flatnonzero(similarities >= np.partition(similarities, -least)[-least])
    return np.asarray(closest[np.argsort(-similarities[closest], kind="stable")])


def _products(matrix: Array, query: Array) -> Array:
    # Not `@`, whose last bits depend on neighbouring rows, so that equal vectors could get different similarities.
    return np.asarray(np.einsum("ij,j->i", matrix, query))


def _matrix(vectors: list[bytes], space: Space) -> Array:
    stored = np.frombuffer(b"".join(vectors), np.float16)
    return stored.reshape(-1, space.dimension).astype(np.float32)
