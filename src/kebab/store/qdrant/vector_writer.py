"""Writing vectors: which chunks still need one, and giving it to them.

A vector space is a named vector of the collection of chunks. A collection cannot be given another one, so a new model
means a new collection: the chunks are copied into it, and searches use the old one until all are there.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import islice
from math import hypot
from typing import Any

from kebab.core.libraries import VectorSpace
from kebab.core.ports import Embedder, Key, NewVector, PendingChunk
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Collection as PointCollection
from kebab.store.qdrant.collection import Filter, Point, batches, one_of, point_id, where
from kebab.store.qdrant.index_writer import IndexWriter
from kebab.store.qdrant.schema import WORDS
from kebab.store.qdrant.state import remember
from kebab.store.vector_spaces import models_key

_BATCH = 250
_LENGTH_OFF = 0.02
"""How far the length of a float16 vector may be from 1."""
_DIGITS = 5
"""That identify a float16."""
_MOST_UNUSED = 20_000
"""More unused vectors than these are deleted."""
_PENDING_FIELDS = ["path", "title", "headings", "text", "chunk"]


class UnusedVectors:
    """Vectors of texts that no chunk has (any more), by the hash of the text. What is moved away and back is not
    embedded twice.
    """

    def __init__(self, catalog: PointCollection) -> None:
        self._catalog = catalog

    def keep(self, space: str, vectors: Mapping[str, bytes]) -> int:
        """How many of these float16 vectors were not there yet."""
        points = {point_id("kept vector", space, text_hash): data for text_hash, data in vectors.items()}
        known = {point["id"] for point in self._catalog.retrieve(points, payload=False)}
        new = {identifier: data for identifier, data in points.items() if identifier not in known}
        self._catalog.upsert(
            {"id": identifier, "vector": {}, "payload": {"what": "kept_vector", "data": b64encode(data).decode()}}
            for identifier, data in new.items()
        )
        return len(new)

    def keep_of(self, chunks: Iterable[Point]) -> None:
        """Keeps the vectors of chunks that are about to be deleted."""
        by_space: dict[str, dict[str, bytes]] = {}
        for point in chunks:
            for space, vector in point["vector"].items():
                if space != WORDS:
                    by_space.setdefault(space, {})[point["payload"]["text_hash"]] = codec.to_float16(vector)
        for space, vectors in by_space.items():
            self.keep(space, vectors)

    def find(self, space: str, hashes: Iterable[str]) -> dict[str, list[float]]:
        wanted = {point_id("kept vector", space, text_hash): text_hash for text_hash in hashes}
        if not wanted or not self._catalog.has_any(where("what", "kept_vector")):
            return {}
        found = self._catalog.retrieve(wanted)
        return {wanted[point["id"]]: codec.from_float16(b64decode(point["payload"]["data"])) for point in found}

    def clear(self, *, if_many: bool = False) -> None:
        chosen = where("what", "kept_vector")
        if not if_many or self._catalog.count(chosen) > _MOST_UNUSED:
            self._catalog.delete(chosen)


class QdrantVectorWriter:
    def __init__(self, writer: IndexWriter) -> None:
        self._schema = writer.schema
        self._chunks = writer.schema.chunks
        self._state = writer.state
        self._unused = UnusedVectors(writer.schema.catalog)

    # --- pending chunks

    def pending(self, embedders: Sequence[Embedder], *, after: Key | None, limit: int) -> list[PendingChunk]:
        return self._pending(self._without_primary(embedders), after, limit)

    def pending_in(self, embedder: Embedder, *, after: Key | None, limit: int) -> list[PendingChunk]:
        return self._pending(self._without(embedder), after, limit)

    def _pending(self, chosen: Filter, after: Key | None, limit: int) -> list[PendingChunk]:
        points = self._chunks.scroll(chosen, payload=_PENDING_FIELDS, batch=min(limit, 1000) + 1, after=after)
        return list(map(_pending_chunk, islice(points, limit)))

    def chunks(self, keys: Sequence[Key]) -> list[PendingChunk]:
        return list(map(_pending_chunk, self._chunks.retrieve(keys, payload=_PENDING_FIELDS)))

    def count_pending(self, embedders: Sequence[Embedder]) -> int:
        return self._chunks.count(self._without_primary(embedders))

    def count_pending_in(self, embedder: Embedder) -> int:
        return self._chunks.count(self._without(embedder))

    def is_primary(self, embedder: Embedder) -> bool:
        return bool(self._chunks.count(where("homes", self._space(embedder))))

    def _without_primary(self, embedders: Sequence[Embedder]) -> Filter:
        return {"must_not": [one_of("homes", map(self._space, embedders))]}

    def _without(self, embedder: Embedder) -> Filter:
        return {"must_not": [{"has_vector": self._space(embedder)}]}

    # --- storing

    def link(self, embedder: Embedder, chunks: Sequence[tuple[Key, bytes]], *, primary: bool) -> Collection[Key]:
        known = self._known_vectors(self._space(embedder), {text_hash.hex() for _, text_hash in chunks})
        linked = {key: known[text_hash.hex()] for key, text_hash in chunks if text_hash.hex() in known}
        self._store(embedder, linked, primary=primary)
        return set(linked)

    def add(self, embedder: Embedder, vectors: Sequence[NewVector], *, primary: bool) -> None:
        new = {chunk: _rounded(vector) for _, vector, chunks in vectors for chunk in chunks}
        self._store(embedder, new, primary=primary)

    def keep(self, embedder: Embedder, vectors: Sequence[tuple[bytes, bytes]]) -> int:
        space = self._space(embedder)
        known = self._known_vectors(space, {text_hash.hex() for text_hash, _ in vectors})
        new = {text_hash.hex(): data for text_hash, data in vectors if text_hash.hex() not in known}
        has_length_1 = {text: abs(hypot(*codec.from_float16(data)) - 1) < _LENGTH_OFF for text, data in new.items()}
        return self._unused.keep(space, {text: data for text, data in new.items() if has_length_1[text]})

    def _known_vectors(self, space: str, hashes: set[str]) -> dict[str, list[float]]:
        """By the hash of their texts."""
        found: dict[str, list[float]] = {}
        for some in batches(sorted(hashes), _BATCH):
            chosen = {"must": [one_of("text_hash", some), {"has_vector": space}]}
            for point in self._chunks.scroll(chosen, payload=["text_hash"], vectors=[space]):
                found[point["payload"]["text_hash"]] = point["vector"][space]
        return found | self._unused.find(space, hashes - found.keys())

    def _store(self, embedder: Embedder, vectors: Mapping[Key, list[float]], *, primary: bool) -> None:
        """The vector comes before the payload that names it."""
        space = self._space(embedder)
        for some in batches(vectors.items(), _BATCH):
            self._chunks.set_vectors({"id": key, "vector": {space: vector}} for key, vector in some)
            points = self._chunks.retrieve([key for key, _ in some], payload=["homes", "spaces"])
            for primaries, spaces, ids in _grouped(points, space, primaries=primary, spaces=True):
                # A hit names the model of its first primary space; if there is none, any model.
                named = {"model": embedder.name} if primary or primaries.isdisjoint(spaces) else {}
                self._chunks.set_payload({"homes": sorted(primaries), "spaces": sorted(spaces), **named}, ids)

    # --- forgetting

    def clear(self, embedders: Sequence[Embedder]) -> None:
        gone = {(embedder.name, embedder.version) for embedder in embedders}
        self._keep_spaces(lambda space: (space.model, space.version) not in gone)
        self.remember_complete(None)

    def settle(self, embedders: Sequence[Embedder], second: Embedder | None = None, *, refused: int = 0) -> None:
        ours = set(map(self._space, embedders))
        self._keep_spaces(lambda space: space.fingerprint in ours)
        if second is None:  # vectors for questions in other scripts are not kept up any more
            for space in ours - {self._space(embedders[0])}:
                self._forget(space, {"must": [{"has_vector": space}], "must_not": [one_of("homes", [space])]})
        if self.count_pending(embedders) <= refused:
            other_scripts = len(embedders) > 1 and self.is_primary(embedders[-1])
            self.remember_complete(models_key(embedders, second, other_scripts=other_scripts))
        self._unused.clear(if_many=True)

    def drop_unused(self) -> None:
        self._unused.clear()

    def remember_complete(self, models: str | None) -> None:
        names = [space.fingerprint for space in self._state.spaces]
        held = None
        if models is not None:
            held = [name for name in names if self._chunks.has_any({"must": [{"has_vector": name}]})]
        remember(self._schema.catalog, self._state, complete_vectors=models, held_spaces=held)

    def _keep_spaces(self, is_kept: Callable[[VectorSpace], bool]) -> None:
        """Deletes the vectors of the other spaces. Their room in the collection stays until the chunks are moved."""
        for name in [space.fingerprint for space in self._state.spaces if not is_kept(space)]:
            # Chunks that only claim to have a vector are included: otherwise nobody would embed them again.
            claims = [{"has_vector": name}, one_of("homes", [name]), one_of("spaces", [name])]
            self._forget(name, {"should": claims})
        self._remember_spaces([space for space in self._state.spaces if is_kept(space)])

    def _forget(self, space: str, chosen: Filter) -> None:
        for some in batches(self._chunks.scroll(chosen, payload=["homes", "spaces"]), _BATCH):
            for primaries, spaces, ids in _grouped(some, space, primaries=False, spaces=False):
                self._chunks.set_payload({"homes": sorted(primaries), "spaces": sorted(spaces)}, ids)
                self._chunks.delete_vectors([space], ids)

    # --- spaces

    def _space(self, embedder: Embedder) -> str:
        """The name of its vectors. A new space is created."""
        self.prepare([VectorSpace(embedder.name, embedder.version, embedder.dimension)])
        return embedder.fingerprint

    def prepare(self, spaces: Sequence[VectorSpace]) -> None:
        known = {space.fingerprint for space in self._state.spaces}
        new = [space for space in spaces if space.fingerprint not in known]
        if not new:
            return
        wanted = [*self._state.spaces, *new]
        self.remember_complete(None)
        if not {space.fingerprint for space in wanted} <= set(self._schema.spaces()):
            self._move_chunks(wanted)
        self._remember_spaces(wanted)

    def _remember_spaces(self, spaces: Sequence[VectorSpace]) -> None:
        remember(self._schema.catalog, self._state, spaces=list(map(list, spaces)))

    def _move_chunks(self, spaces: Sequence[VectorSpace]) -> None:
        kept = {WORDS, *({space.fingerprint for space in spaces} & set(self._schema.spaces()))}
        target = self._schema.create_next_chunks(spaces)
        for some in batches(self._chunks.scroll(vectors=True, batch=_BATCH), _BATCH):
            for point in some:
                point["vector"] = {name: vector for name, vector in point["vector"].items() if name in kept}
            target.upsert({key: point[key] for key in ("id", "vector", "payload")} for point in some)
        self._schema.use_chunks(target.name)
        self._schema.drop_unused_chunks()
        remember(self._schema.catalog, self._state, quantization=self._schema.quantization)


def _grouped(
    points: Sequence[Point], space: str, *, primaries: bool, spaces: bool
) -> list[tuple[set[str], set[str], list[Key]]]:
    """The new primary spaces and spaces of the points, and the ids that get them: with this space, or without it."""
    groups: dict[tuple[frozenset[str], frozenset[str]], list[Key]] = {}
    for point in points:
        old_primaries, old_spaces = (frozenset(point["payload"][key]) for key in ("homes", "spaces"))
        new_primaries = old_primaries | {space} if primaries else old_primaries - {space}
        new_spaces = old_spaces | {space} if spaces else old_spaces - {space}
        groups.setdefault((new_primaries, new_spaces), []).append(point["id"])
    return [(set(new_primaries), set(new_spaces), ids) for (new_primaries, new_spaces), ids in groups.items()]


def _pending_chunk(point: Point) -> PendingChunk:
    path, title, headings, text, chunk = (point["payload"][field] for field in _PENDING_FIELDS)
    return PendingChunk(point["id"], path, title, tuple(headings), text, chunk)


def _rounded(vector: Any) -> list[float]:
    """The numbers of a vector as a file stores them."""
    return [float(f"{value:.{_DIGITS}g}") for value in vector.astype("float16").tolist()]
