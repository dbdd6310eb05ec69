"""Writing vectors: which chunks still need one, and giving it to them.

A space of vectors is a named vector of the collection of chunks. A collection cannot be given another one, so a new
model means a new collection: the chunks are moved into it, and searches go on in the old one until all are there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from kebab.core.libraries import VectorSpace
from kebab.core.ports import Embedder, Key, NewVector, PendingChunk
from kebab.store.qdrant.collection import Filter, Point, batches
from kebab.store.qdrant.filters import one_of
from kebab.store.qdrant.index_writer import IndexWriter
from kebab.store.qdrant.kept_vectors import KeptVectors
from kebab.store.qdrant.schema import WORDS
from kebab.store.qdrant.state import remember
from kebab.store.qdrant.vectors import holds_any, stored_spaces
from kebab.store.vector_spaces import models_key

_AT_ONCE = 250
_LENGTH_OFF = 0.02
"""How far the length of a vector may be from 1: it has half the digits."""
_DIGITS = 5
"""That say which float16 is meant, wherever the point stands in it."""
_OF_PENDING = ["path", "title", "headings", "text", "chunk"]


class QdrantVectorWriter:
    def __init__(self, writer: IndexWriter) -> None:
        self._writer = writer
        self._schema = writer.schema
        self._kept = KeptVectors(writer.schema.catalog)

    # --- what is to be done

    def pending(self, embedders: Sequence[Embedder], *, after: Key | None, limit: int) -> list[PendingChunk]:
        return self._pending({"must_not": [one_of("homes", map(self._space, embedders))]}, after, limit)

    def pending_in(self, embedder: Embedder, *, after: Key | None, limit: int) -> list[PendingChunk]:
        return self._pending({"must_not": [{"has_vector": self._space(embedder)}]}, after, limit)

    def chunks(self, keys: Sequence[Key]) -> list[PendingChunk]:
        return list(map(_pending_chunk, self._schema.chunks.retrieve(keys, payload=_OF_PENDING)))

    def count_pending(self, embedders: Sequence[Embedder]) -> int:
        return self._schema.chunks.count({"must_not": [one_of("homes", map(self._space, embedders))]})

    def count_pending_in(self, embedder: Embedder) -> int:
        return self._schema.chunks.count({"must_not": [{"has_vector": self._space(embedder)}]})

    def is_home(self, embedder: Embedder) -> bool:
        return bool(self._schema.chunks.count({"must": [one_of("homes", [self._space(embedder)])]}))

    def _pending(self, chosen: Filter, after: Key | None, limit: int) -> list[PendingChunk]:
        from itertools import islice

        points = self._schema.chunks.scroll(chosen, payload=_OF_PENDING, at_once=min(limit, 1000) + 1, after=after)
        return list(map(_pending_chunk, islice(points, limit)))

    # --- storing

    def link(self, embedder: Embedder, chunks: Sequence[tuple[Key, bytes]], *, home: bool) -> Collection[Key]:
        space = self._space(embedder)
        known = self._known_vectors(space, {text_hash.hex() for _, text_hash in chunks})
        linked = [(key, known[text_hash.hex()]) for key, text_hash in chunks if text_hash.hex() in known]
        self._give(embedder, linked, home=home)
        return {key for key, _ in linked}

    def add(self, embedder: Embedder, vectors: Sequence[NewVector], *, home: bool) -> None:
        self._give(
            embedder, [(chunk, _numbers(vector)) for _, vector, chunks in vectors for chunk in chunks], home=home
        )

    def keep(self, embedder: Embedder, vectors: Sequence[tuple[bytes, bytes]]) -> int:
        space = self._space(embedder)
        good = {
            text_hash.hex(): stored
            for text_hash, stored in vectors
            if abs(float(np.linalg.norm(np.frombuffer(stored, np.float16).astype(np.float32))) - 1) < _LENGTH_OFF
        }
        known = self._known_vectors(space, set(good))
        return self._kept.keep(
            space, {text_hash: stored for text_hash, stored in good.items() if text_hash not in known}
        )

    def _known_vectors(self, space: str, hashes: set[str]) -> dict[str, list[float]]:
        """By the hash of their texts."""
        found: dict[str, list[float]] = {}
        for some in batches(sorted(hashes), _AT_ONCE):
            chosen = {"must": [one_of("text_hash", some), {"has_vector": space}]}
            for point in self._schema.chunks.scroll(chosen, payload=["text_hash"], vectors=[space]):
                found[point["payload"]["text_hash"]] = point["vector"][space]
        return found | self._kept.find(space, hashes - found.keys())

    def _give(self, embedder: Embedder, vectors: Sequence[tuple[Key, list[float]]], *, home: bool) -> None:
        """A chunk that has vanished meanwhile needs none. What is said of a vector comes after the vector."""
        space = self._space(embedder)
        for some in batches(vectors, _AT_ONCE):
            self._schema.chunks.set_vectors({"id": key, "vector": {space: vector}} for key, vector in some)
            points = self._schema.chunks.retrieve([key for key, _ in some], payload=["homes", "spaces"])
            self._say(points, space, embedder.name, home=home)

    def _say(self, points: Sequence[Point], space: str, model: str, *, home: bool) -> None:
        """Points with the same homes and spaces are many, and changed together."""
        alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Key]] = {}
        for point in points:
            homes, spaces = ({*point["payload"][key]} for key in ("homes", "spaces"))
            homes = homes | {space} if home else homes - {space}
            alike.setdefault((tuple(sorted(homes)), tuple(sorted(spaces | {space}))), []).append(point["id"])
        for (new_homes, new_spaces), ids in alike.items():
            # The model that a hit names is that of the first home; where there is none, any.
            named = {"model": model} if home or not set(new_homes) & set(new_spaces) else {}
            self._schema.chunks.set_payload({"homes": new_homes, "spaces": new_spaces, **named}, ids)

    # --- forgetting

    def clear(self, embedders: Sequence[Embedder]) -> None:
        gone = {(embedder.name, embedder.version) for embedder in embedders}
        self._use_spaces(lambda space: (space.model, space.version) not in gone)
        self.remember_complete(None)

    def settle(self, embedders: Sequence[Embedder], second: Embedder | None = None, *, refused: int = 0) -> None:
        ours = set(map(self._space, embedders))
        self._use_spaces(lambda space: space.fingerprint in ours)
        if second is None:  # what was made for other scripts' questions is not kept up any more
            for space in ours - {self._space(embedders[0])}:
                guests = {"must": [{"has_vector": space}], "must_not": [one_of("homes", [space])]}
                self._forget_vectors(space, guests)
        if self.count_pending(embedders) <= refused:
            other_scripts = len(embedders) > 1 and self.is_home(embedders[-1])
            self.remember_complete(models_key(embedders, second, other_scripts=other_scripts))
        self._kept.clear(if_many=True)

    def drop_unused(self) -> None:
        self._kept.clear()

    def remember_complete(self, models: str | None) -> None:
        held = (
            None
            if models is None
            else [name for name in (space.fingerprint for space in self._spaces()) if holds_any(self._schema, name)]
        )
        remember(self._schema.catalog, complete_vectors=models, held_spaces=held)
        self._writer.state.meta.update(complete_vectors=models, held_spaces=held)

    def _forget_vectors(self, space: str, chosen: Filter) -> None:
        for some in batches(self._schema.chunks.scroll(chosen, payload=["homes", "spaces"]), _AT_ONCE):
            alike: dict[tuple[tuple[str, ...], tuple[str, ...]], list[Key]] = {}
            for point in some:
                homes, spaces = (tuple(sorted({*point["payload"][key]} - {space})) for key in ("homes", "spaces"))
                alike.setdefault((homes, spaces), []).append(point["id"])
            for (new_homes, new_spaces), ids in alike.items():
                self._schema.chunks.set_payload({"homes": new_homes, "spaces": new_spaces}, ids)
                self._schema.chunks.delete_vectors([space], ids)

    # --- spaces

    def _space(self, embedder: Embedder) -> str:
        """The name of its vectors; where there are none yet, chunks are moved to where they can have some."""
        if embedder.fingerprint not in (space.fingerprint for space in self._spaces()):
            self.prepare([VectorSpace(embedder.name, embedder.version, embedder.dimension)])
        return embedder.fingerprint

    def prepare(self, spaces: Sequence[VectorSpace]) -> None:
        """Makes room for vectors of these models."""
        new = [space for space in spaces if space not in self._spaces()]
        if not new:
            return
        wanted = [*self._spaces(), *new]
        self.remember_complete(None)  # what was complete lies in another space
        if not {space.fingerprint for space in wanted} <= set(self._schema.spaces()):
            self._move_chunks(wanted)
        self._remember_spaces(wanted)

    def _spaces(self) -> list[VectorSpace]:
        return stored_spaces(self._writer.state)

    def _remember_spaces(self, spaces: Sequence[VectorSpace]) -> None:
        stored = [list(space) for space in spaces]
        remember(self._schema.catalog, spaces=stored)
        self._writer.state.meta["spaces"] = stored

    def _use_spaces(self, is_kept: Callable[[VectorSpace], bool]) -> None:
        """Vectors of the others are deleted; the room they took in the collection stays until chunks are moved for
        another reason.
        """
        for space in self._spaces():
            if not is_kept(space):
                name = space.fingerprint
                # Also what only says that it has one: otherwise nobody would make it again.
                self._forget_vectors(
                    name, {"should": [{"has_vector": name}, one_of("homes", [name]), one_of("spaces", [name])]}
                )
        self._remember_spaces([space for space in self._spaces() if is_kept(space)])

    def _move_chunks(self, spaces: Sequence[VectorSpace]) -> None:
        names = {space.fingerprint for space in spaces} & set(self._schema.spaces())
        target = self._schema.next_chunks(spaces)
        for some in batches(self._schema.chunks.scroll(vectors=True, at_once=_AT_ONCE), _AT_ONCE):
            target.upsert(_without_others(point, names) for point in some)
        self._schema.use_chunks(target)
        remember(self._schema.catalog, quantization=self._schema.quantization)


def _pending_chunk(point: Point) -> PendingChunk:
    payload = point["payload"]
    return PendingChunk(
        point["id"], payload["path"], payload["title"], tuple(payload["headings"]), payload["text"], payload["chunk"]
    )


def _without_others(point: Point, names: set[str]) -> Point:
    vectors: dict[str, Any] = {
        name: vector for name, vector in point["vector"].items() if name == WORDS or name in names
    }
    return {"id": point["id"], "payload": point["payload"], "vector": vectors}


def _numbers(vector: Any) -> list[float]:
    """As a file keeps them."""
    return [float(f"{value:.{_DIGITS}g}") for value in np.asarray(vector, np.float16).tolist()]
