"""Writes vectors, finds the chunks without one, and maintains the bit codes of large spaces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kebab.core.libraries import VectorSpace
from kebab.core.ports import Embedder, Key, NewVector, PendingChunk
from kebab.store.index_versions import expected_end, models_key
from kebab.store.sqlite import bit_codes
from kebab.store.sqlite.database import Connection, now
from kebab.store.sqlite.rows import heading_list
from kebab.store.sqlite.vectors import EXACT_UP_TO

Array = NDArray[Any]

_BEFORE_ALL = -(2**63)
"""A row id below all others: chunks of libraries have negative row ids."""
_SEGMENT = 16384
"""The number of codes in a full row of vector_codes."""
_MOST_SMALL_SEGMENTS = 32
_LENGTH_OFF = 0.02
"""How far the length of a vector may be from 1, because float16 is not exact."""
_UNUSED_SHARE = 0.5
"""Vectors without a chunk may be up to this share of all vectors before they are deleted."""
_UNUSED_KEPT = 20_000
"""So many unused vectors (about 20 MB) always stay, so that a folder moved away and back needs no new vectors."""


class SqliteVectorWriter:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._spaces: dict[str, int] = {}

    # --- chunks to embed

    def pending(
        self, embedders: Sequence[Embedder], *, primary: bool = True, after: Key | None, limit: int
    ) -> list[PendingChunk]:
        vectors = self._vectors(embedders, primary=primary)
        return self._chunks(f"NOT EXISTS ({vectors} AND v.chunk = c.id)", after, limit)

    def chunks(self, keys: Sequence[Key]) -> list[PendingChunk]:
        return self._chunks(f"c.id IN ({', '.join(map(str, keys))})", None, len(keys))

    def count_pending(self, embedders: Sequence[Embedder], *, primary: bool = True) -> int:
        vectors = self._vectors(embedders, primary=primary)
        return self._number(f"SELECT count(*) FROM chunks WHERE id NOT IN ({vectors})")

    def is_primary(self, embedder: Embedder) -> bool:
        """Whether this model's space is the primary space of any chunk."""
        return bool(self._number(f"SELECT EXISTS ({self._vectors([embedder], primary=True)})"))

    def _vectors(self, embedders: Sequence[Embedder], *, primary: bool) -> str:
        home = " AND v.home = 1" if primary else ""
        return f"SELECT v.chunk FROM chunks_vec v WHERE v.space_id IN ({self._rows_of(embedders)}){home}"

    def _chunks(self, condition: str, after: Key | None, limit: int) -> list[PendingChunk]:
        rows = self._connection.rows(
            f"""SELECT c.id, d.path, d.title, c.heading_path, c.headings, c.text, c.chunk_id
                FROM chunks c JOIN documents d ON d.id = c.document_id
                WHERE c.id > ? AND {condition} ORDER BY c.id LIMIT ?""",
            (_BEFORE_ALL if after is None else after, limit),
        )
        return [PendingChunk._make((*row[:3], heading_list(*row[3:5]), *row[5:])) for row in rows]

    # --- writing

    def link(self, embedder: Embedder, chunks: Sequence[tuple[Key, bytes]], *, primary: bool) -> set[Key]:
        """Links chunks (row, hash of their text) to stored vectors of their text. Returns the linked rows."""
        space = self._space(embedder)
        linked: set[Key] = set()
        with self._connection.transaction():
            for row, text_hash in chunks:
                for (vector,) in self._vector_of(space, text_hash):
                    self._link(row, space, vector, primary)
                    linked.add(row)
        return linked

    def add(self, embedder: Embedder, vectors: Sequence[NewVector], *, primary: bool) -> None:
        """Stores vectors, their codes and their links to chunks in one transaction."""
        space = self._space(embedder)
        with self._connection.transaction():
            added: list[tuple[int, Array]] = []
            for text_hash, vector, chunks in vectors:
                stored = np.asarray(vector, np.float16)
                row, is_new = self._put(space, text_hash, stored.tobytes())
                if is_new:
                    added.append((row, stored))
                for chunk in chunks:
                    self._link(chunk, space, row, primary)
            self._add_codes(space, added)

    def keep(self, embedder: Embedder, vectors: Sequence[tuple[bytes, bytes]]) -> int:
        """Stores vectors (hash of the text, float16) for texts that may be added later. Returns how many are new. Skips
        vectors whose length is not 1.
        """
        space = self._space(embedder)
        kept: list[tuple[int, Array]] = []
        with self._connection.transaction():
            for text_hash, stored in vectors:
                vector = np.frombuffer(stored, np.float16)
                if not abs(float(np.linalg.norm(vector.astype(np.float32))) - 1) < _LENGTH_OFF:
                    continue
                row, is_new = self._put(space, text_hash, stored)
                if is_new:
                    kept.append((row, vector))
            self._add_codes(space, kept)
        return len(kept)

    def prepare(self, spaces: Sequence[VectorSpace]) -> None:
        for space in spaces:
            self._row_of(space)

    def expect_end(self, seconds: float) -> None:
        with self._connection.transaction():
            self._connection.remember("vectors_end", expected_end(seconds))

    def remember_complete(self, models: str | None) -> None:
        with self._connection.transaction():
            self._connection.remember("complete_vectors", models)

    def _put(self, space: int, text_hash: bytes, vector: bytes) -> tuple[int, bool]:
        """Stores the vector of a text if it has none. Returns the vector's row, and whether it is new."""
        new = self._connection.rows(
            "INSERT INTO vectors (space_id, text_hash, vector) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING id",
            (space, text_hash, vector),
        )
        known = new or self._vector_of(space, text_hash)
        return int(known[0][0]), bool(new)

    def _vector_of(self, space: int, text_hash: bytes) -> list[tuple[Any, ...]]:
        sql = "SELECT id FROM vectors WHERE space_id = ? AND text_hash = ?"
        return self._connection.rows(sql, (space, text_hash))

    def _link(self, chunk: Key, space: int, vector: int, primary: bool) -> None:
        """Links a chunk to a vector, unless the chunk was removed meanwhile."""
        self._connection.execute(
            """INSERT INTO chunks_vec (chunk, space_id, vector_id, home) SELECT id, ?, ?, ? FROM chunks WHERE id = ?
               ON CONFLICT (chunk, space_id) DO UPDATE SET vector_id = excluded.vector_id, home = excluded.home""",
            (space, vector, int(primary), chunk),
        )

    def clear(self, embedders: Sequence[Embedder]) -> None:
        """Deletes the vectors of these models. Vectors of other models stay until `settle`."""
        with self._connection.transaction():
            for embedder in embedders:
                self._connection.execute(
                    "DELETE FROM embedding_spaces WHERE model = ? AND version = ?", (embedder.name, embedder.version)
                )
            self._connection.remember("complete_vectors", None)
        self._spaces.clear()

    def settle(self, embedders: Sequence[Embedder], second: Embedder | None = None, *, refused: int = 0) -> None:
        """Deletes the vectors of other models, and unused vectors if there are many of them. Called after `embedders`,
        and `second` if given, have embedded all chunks but the `refused` ones; records that nothing is missing then.
        """
        keep = self._rows_of(embedders)
        if self._number(f"SELECT EXISTS (SELECT 1 FROM embedding_spaces WHERE id NOT IN ({keep}))"):
            self._connection.write(f"DELETE FROM embedding_spaces WHERE id NOT IN ({keep})")
        if second is None:  # second vectors in other spaces are no longer kept up to date
            self._connection.write(
                f"DELETE FROM chunks_vec WHERE home = 0 AND space_id IN ({keep}) AND space_id <> ?",
                (self._space(embedders[0]),),
            )
        if self.count_pending(embedders) <= refused:
            other_scripts = len(embedders) > 1 and self.is_primary(embedders[-1])
            self.remember_complete(models_key(embedders, second, other_scripts=other_scripts))
        total = self._number("SELECT count(*) FROM vectors")
        unused = self._number("SELECT count(*) FROM vectors WHERE id NOT IN (SELECT vector_id FROM chunks_vec)")
        if unused > max(_UNUSED_KEPT, total * _UNUSED_SHARE):
            self.drop_unused()

    def drop_unused(self) -> None:
        with self._connection.transaction():
            self._connection.execute("DELETE FROM vectors WHERE id NOT IN (SELECT vector_id FROM chunks_vec)")
            for (space,) in self._connection.rows("SELECT id FROM embedding_spaces WHERE centre IS NOT NULL"):
                self._make_codes(space)

    # --- codes

    def _add_codes(self, space: int, added: list[tuple[int, Array]]) -> None:
        """Adds codes for new vectors. Small spaces have no codes; a space that has grown large gets codes for all."""
        if not added:
            return
        centre = self._connection.value("SELECT centre FROM embedding_spaces WHERE id = ?", (space,))
        if centre is None:
            if self._number(f"SELECT count(*) FROM vectors WHERE space_id = {space}") > EXACT_UP_TO:
                self._make_codes(space)
            return
        ids = np.array([row for row, _ in added], np.int64)
        matrix = np.stack([vector for _, vector in added])
        self._insert_codes(space, ids, bit_codes.encode(matrix, np.frombuffer(centre, np.float32)))
        self._merge_small(space)

    def _make_codes(self, space: int) -> None:
        """Recreates all codes of a space. Its centre is the mean of its first vectors, and never changes."""
        self._connection.execute("DELETE FROM vector_codes WHERE space_id = ?", (space,))
        stored = self._connection.value("SELECT centre FROM embedding_spaces WHERE id = ?", (space,))
        centre = None if stored is None else np.frombuffer(stored, np.float32)
        last = 0
        while rows := self._connection.rows(
            "SELECT id, vector FROM vectors WHERE space_id = ? AND id > ? ORDER BY id LIMIT ?", (space, last, _SEGMENT)
        ):
            vectors = np.frombuffer(b"".join(row[1] for row in rows), np.float16)
            matrix = vectors.reshape(len(rows), -1).astype(np.float32)
            if centre is None:
                centre = matrix.mean(axis=0, dtype=np.float64).astype(np.float32)
                self._connection.execute(
                    "UPDATE embedding_spaces SET centre = ? WHERE id = ?", (centre.tobytes(), space)
                )
            self._insert_codes(space, np.array([row[0] for row in rows], np.int64), bit_codes.encode(matrix, centre))
            last = rows[-1][0]

    def _insert_codes(self, space: int, ids: Array, planes: Array) -> None:
        self._connection.execute(
            "INSERT INTO vector_codes (space_id, count, ids, planes) VALUES (?, ?, ?, ?)",
            (space, len(ids), ids.tobytes(), planes.tobytes()),
        )

    def _merge_small(self, space: int) -> None:
        """Merges the small rows of vector_codes, which every commit adds, if there are many of them."""
        rows = self._connection.rows(
            "SELECT id, ids, planes FROM vector_codes WHERE space_id = ? AND count < ? ORDER BY id", (space, _SEGMENT)
        )
        if len(rows) <= _MOST_SMALL_SEGMENTS:
            return
        ids = np.concatenate([np.frombuffer(row[1], np.int64) for row in rows])
        planes = np.concatenate(
            [np.frombuffer(row[2], np.uint64).reshape(-1, len(row[1]) // 8) for row in rows], axis=1
        )
        self._connection.executemany("DELETE FROM vector_codes WHERE id = ?", [(row[0],) for row in rows])
        for start in range(0, len(ids), _SEGMENT):
            part = slice(start, start + _SEGMENT)
            self._insert_codes(space, ids[part], np.ascontiguousarray(planes[:, part]))

    # --- spaces

    def _space(self, embedder: Embedder) -> int:
        """Returns the row of this model in embedding_spaces, and adds it if it is missing."""
        if embedder.fingerprint not in self._spaces:
            space = VectorSpace(embedder.name, embedder.version, embedder.dimension)
            self._spaces[embedder.fingerprint] = self._row_of(space)
        return self._spaces[embedder.fingerprint]

    def _row_of(self, space: VectorSpace) -> int:
        found = self._connection.rows(
            "SELECT id FROM embedding_spaces WHERE model = ? AND version = ? AND dimension = ?", space
        )
        if not found:
            with self._connection.transaction():
                found = self._connection.rows(
                    "INSERT INTO embedding_spaces (model, version, dimension, created_at) VALUES (?, ?, ?, ?) "
                    "RETURNING id",
                    (*space, now()),
                )
                self._connection.remember("complete_vectors", None)  # the chunks have no vectors in the new space yet
        return int(found[0][0])

    def _rows_of(self, embedders: Iterable[Embedder]) -> str:
        return ", ".join(str(self._space(embedder)) for embedder in embedders)

    def _number(self, sql: str) -> int:
        return int(self._connection.value(sql) or 0)
