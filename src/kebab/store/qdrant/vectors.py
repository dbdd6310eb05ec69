"""Searches vectors, counts the chunks that have them, lists the chunks that need one, and stores new vectors.

A vector space is a named vector of the collection of chunks. An existing collection cannot get another one, so a new
model needs a new collection: the chunks are copied into it, and searches use the old one until all are there.
"""

from __future__ import annotations

from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import hypot
from typing import Any

from kebab.core.libraries import VectorSpace
from kebab.core.ports import Embedder, EmbeddingModels, Middle, NewVector, PendingChunk, VectorCoverage, VectorMatch
from kebab.core.search import SearchFilters
from kebab.store.index_versions import expected_end, is_complete, models_key, refuse_other_dimension, seconds_left
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Filter, Point, PointId, batches, none_of, one_of, point_id, where
from kebab.store.qdrant.filters import chunk_filter
from kebab.store.qdrant.index_writer import UNUSED_VECTORS, WriterPart
from kebab.store.qdrant.schema import WORDS, Schema
from kebab.store.qdrant.state import State, Stored

_QUERY_DIGITS = 7  # digits of a number in a query vector: as many as a float32 has
_OVERSAMPLING = {"none": 1.0, "scalar": 2.0, "binary": 16.0}  # times the candidates, to compare by full vectors
_LEAST_EF = 128  # least number of candidates (hnsw_ef) in the graph of vectors
_BATCH = 250
_LENGTH_OFF = 0.02  # how far the length of a float16 vector may be from 1
_DIGITS = 5  # significant digits that identify a float16
_MOST_UNUSED = 20_000  # if there are more vectors of texts that no chunk has, all of them are deleted
_PENDING_FIELDS = ["path", "title", "headings", "text", "chunk"]


class QdrantVectorStore(Stored):
    def holds(self, embedder: Embedder) -> bool:
        model = (embedder.name, embedder.version)
        spaces = [space.fingerprint for space in self._state.spaces if (space.model, space.version) == model]
        return any(_is_held(self._schema, self._state, space) for space in spaces)

    def search(
        self,
        space: str,
        vector: Any,
        *,
        filters: SearchFilters,
        limit: int,
        primary: bool | None = None,
    ) -> list[VectorMatch]:
        known = [stored.fingerprint for stored in self._state.spaces]
        if space not in known:
            refuse_other_dimension(space, known)
            return []
        # Without libraries every chunk passes the corpus filter, which would take servers a third of their time.
        chosen = chunk_filter(self._schema, filters, has_libraries=self._state.has_libraries)
        as_primary = [space, codec.EVERYWHERE]
        if primary is not None:
            chosen["must"].append(one_of("homes", as_primary) if primary else none_of("homes", as_primary))
        search: dict[str, Any] = {
            "query": vector.astype("float64").round(_QUERY_DIGITS).tolist(),
            "using": space,
            "filter": chosen,
            "with_payload": ["chunk", "homes", "corpus", "type"],
        }
        oversampling = _OVERSAMPLING.get(self._state.meta.get("quantization") or "none", 1.0)
        quantization = {"rescore": True, "oversampling": oversampling}
        depth = limit + 1
        while True:
            params = {"hnsw_ef": max(_LEAST_EF, 2 * depth), "quantization": quantization}
            [points] = self._chunks.query({**search, "limit": depth, "params": params})
            matches = [
                VectorMatch(
                    payload["chunk"],
                    point["score"],
                    not set(as_primary).isdisjoint(payload["homes"]),
                    payload["type"],
                )
                for point in points
                if not self._state.is_too_new(payload := point["payload"])
            ]
            matches.sort(key=lambda match: (-match.similarity, match.chunk_id))
            # Matches as similar as the last one are ordered by their ids, so all of them must be fetched.
            is_full = len(matches) > limit and matches[limit - 1].similarity > matches[-1].similarity
            if len(points) < depth or is_full:
                return matches[:limit]
            depth *= 4

    def middle_of(self, chunk_ids: Sequence[str], embedders: Sequence[Embedder]) -> Middle | None:
        import numpy as np

        models = {(embedder.name, embedder.version): embedder for embedder in embedders}
        known = [(space.fingerprint, models.get((space.model, space.version))) for space in self._state.spaces]
        made_by = {name: embedder for name, embedder in known if embedder}
        names, ids = list(made_by), map(codec.chunk_point_id, chunk_ids)
        points = self._chunks.retrieve(ids, payload=["chunk", "homes"], vectors=names) if names else []
        primaries = Counter(name for point in points for name in names if name in point["payload"]["homes"])
        if not primaries:
            return None
        name = max(names, key=lambda name: (primaries[name], names.index(name)))
        members = [point for point in points if name in point["payload"]["homes"]]
        members.sort(key=lambda point: str(point["payload"]["chunk"]))
        mean = np.array([point["vector"][name] for point in members], np.float32).mean(axis=0)
        length = float(np.linalg.norm(mean))
        return Middle(name, mean / length if length else mean, made_by[name])


def coverage(schema: Schema, state: State, models: EmbeddingModels) -> VectorCoverage:
    ours = {(embedder.name, embedder.version) for embedder in models.embedders}
    # The latest space of each model, because an endpoint may change the dimension of its vectors.
    latest = {(space.model, space.version): space for space in state.spaces}
    current = [space.fingerprint for model, space in latest.items() if model in ours]
    others = tuple(space.fingerprint for space in state.spaces if space.fingerprint not in current)
    used = [space for space in current if _is_held(schema, state, space)]
    version = "vec:" + ",".join(used)
    if used and is_complete(state.meta.get("complete_vectors") or "", models):
        return VectorCoverage(None, None, version, others)
    embedded = schema.chunks.count(where("homes", *used)) if used else 0
    return VectorCoverage(schema.chunks.count(), embedded, version, others, seconds_left(state.meta.get("vectors_end")))


def _is_held(schema: Schema, state: State, space: str) -> bool:
    """Whether any chunk has a vector of this space."""
    held = state.meta.get("held_spaces")
    if held is not None and state.meta.get("complete_vectors"):  # nothing was written since `held_spaces` was stored
        return space in held
    return schema.chunks.has_any({"must": [{"has_vector": space}]})


class QdrantVectorWriter(WriterPart):
    def pending(
        self, embedders: Sequence[Embedder], *, primary: bool = True, after: PointId | None, limit: int
    ) -> list[PendingChunk]:
        chosen = self._without(embedders, primary=primary)
        points = self._chunks.scroll(chosen, payload=_PENDING_FIELDS, batch=min(limit, 1000) + 1, after=after)
        return list(map(_pending_chunk, islice(points, limit)))

    def chunks(self, keys: Sequence[PointId]) -> list[PendingChunk]:
        return list(map(_pending_chunk, self._chunks.retrieve(keys, payload=_PENDING_FIELDS)))

    def count_pending(self, embedders: Sequence[Embedder], *, primary: bool = True) -> int:
        return self._chunks.count(self._without(embedders, primary=primary))

    def is_primary(self, embedder: Embedder) -> bool:
        return self._chunks.has_any(where("homes", self._space(embedder)))

    def _without(self, embedders: Sequence[Embedder], *, primary: bool) -> Filter:
        spaces = list(map(self._space, embedders))
        return none_of("homes", spaces) if primary else {"must_not": [{"has_vector": space} for space in spaces]}

    def link(self, embedder: Embedder, chunks: Sequence[tuple[PointId, bytes]], *, primary: bool) -> set[PointId]:
        known = self._known_vectors(self._space(embedder), {text_hash.hex() for _, text_hash in chunks})
        linked = {key: known[text_hash.hex()] for key, text_hash in chunks if text_hash.hex() in known}
        self._store(embedder, linked, primary=primary)
        return set(linked)

    def add(self, embedder: Embedder, vectors: Sequence[NewVector], *, primary: bool) -> None:
        halves = [(vector.astype("float16").tolist(), chunks) for _, vector, chunks in vectors]
        new = {chunk: [float(f"{value:.{_DIGITS}g}") for value in half] for half, chunks in halves for chunk in chunks}
        self._store(embedder, new, primary=primary)

    def keep(self, embedder: Embedder, vectors: Sequence[tuple[bytes, bytes]]) -> int:
        space = self._space(embedder)
        new = {text_hash.hex(): data for text_hash, data in vectors}
        for known in self._known_vectors(space, set(new)):
            del new[known]
        lengths = {text: hypot(*codec.from_float16(data)) for text, data in new.items()}
        right = [(space, text, data) for text, data in new.items() if abs(lengths[text] - 1) < _LENGTH_OFF]
        return self._writer.keep_unused(right)

    def _known_vectors(self, space: str, hashes: set[str]) -> dict[str, list[float]]:
        """The stored vectors of these texts, by the hash of the text."""
        found: dict[str, list[float]] = {}
        for some in batches(sorted(hashes), _BATCH):
            chosen = {"must": [one_of("text_hash", some), {"has_vector": space}]}
            for point in self._chunks.scroll(chosen, payload=["text_hash"], vectors=[space]):
                found[point["payload"]["text_hash"]] = point["vector"][space]
        if hashes > found.keys() and self._catalog.has_any(UNUSED_VECTORS):
            unused = {point_id("kept vector", space, text_hash): text_hash for text_hash in hashes - found.keys()}
            for point in self._catalog.retrieve(unused):
                found[unused[point["id"]]] = codec.from_float16(b64decode(point["payload"]["data"]))
        return found

    def _store(self, embedder: Embedder, vectors: Mapping[PointId, list[float]], *, primary: bool) -> None:
        """Stores a vector for each chunk that still exists. The vector is written before the payload that lists it."""
        space = self._space(embedder)
        for some in batches(vectors, _BATCH):
            points = self._chunks.retrieve(some, payload=["homes", "spaces"])
            new = [{"id": point["id"], "vector": {space: vectors[point["id"]]}} for point in points]
            listed = _listing(points, space, primary=primary, is_held=True)
            self._chunks.change([{"update_vectors": {"points": new}}, *listed] if new else [])

    def clear(self, embedders: Sequence[Embedder]) -> None:
        gone = {(embedder.name, embedder.version) for embedder in embedders}
        self._keep_spaces([space for space in self._state.spaces if (space.model, space.version) not in gone])
        self.remember_complete(None)

    def settle(self, embedders: Sequence[Embedder], second: Embedder | None = None, *, refused: int = 0) -> None:
        ours = set(map(self._space, embedders))
        self._keep_spaces([space for space in self._state.spaces if space.fingerprint in ours])
        if second is None:  # vectors for questions in other scripts are not updated any more
            for space in ours - {self._space(embedders[0])}:
                self._forget(space, {"must": [{"has_vector": space}], "must_not": [one_of("homes", [space])]})
        if self.count_pending(embedders) <= refused:
            other_scripts = len(embedders) > 1 and self.is_primary(embedders[-1])
            self.remember_complete(models_key(embedders, second, other_scripts=other_scripts))
        self._writer.forget_unused(more_than=_MOST_UNUSED)

    def expect_end(self, seconds: float) -> None:
        self._writer.remember(vectors_end=expected_end(seconds))

    def remember_complete(self, models: str | None) -> None:
        names = [space.fingerprint for space in self._state.spaces]
        held = models and [name for name in names if self._chunks.has_any({"must": [{"has_vector": name}]})]
        self._writer.remember(complete_vectors=models, held_spaces=held)

    def _keep_spaces(self, kept: Sequence[VectorSpace]) -> None:
        """Deletes the vectors of all other spaces. The collection has those named vectors until chunks are moved."""
        for name in [space.fingerprint for space in self._state.spaces if space not in kept]:
            # Chunks that list a vector but lack it are included: otherwise they would never be embedded again.
            claims = [{"has_vector": name}, one_of("homes", [name]), one_of("spaces", [name])]
            self._forget(name, {"should": claims})
        self._writer.remember(spaces=list(map(list, kept)))

    def _forget(self, space: str, chosen: Filter) -> None:
        for some in batches(self._chunks.scroll(chosen, payload=["homes", "spaces"]), _BATCH):
            gone = {"vector": [space], "points": [point["id"] for point in some]}
            listed = _listing(some, space, primary=False, is_held=False)
            self._chunks.change([*listed, {"delete_vectors": gone}])

    def _space(self, embedder: Embedder) -> str:
        """The name of the embedder's vector space, which is created if it is new."""
        self.prepare([VectorSpace(embedder.name, embedder.version, embedder.dimension)])
        return embedder.fingerprint

    def prepare(self, spaces: Sequence[VectorSpace]) -> None:
        wanted = list(dict.fromkeys((*self._state.spaces, *spaces)))
        if wanted == self._state.spaces:
            return
        self.remember_complete(None)
        if not {space.fingerprint for space in wanted} <= set(self._schema.spaces()):
            self._move_chunks(wanted)
        self._writer.remember(spaces=list(map(list, wanted)))

    def _move_chunks(self, spaces: Sequence[VectorSpace]) -> None:
        kept = {WORDS, *({space.fingerprint for space in spaces} & set(self._schema.spaces()))}
        target = self._schema.create_next_chunks(spaces)
        target.upsert(
            {**point, "vector": {name: vector for name, vector in point["vector"].items() if name in kept}}
            for point in self._chunks.scroll(vectors=True, batch=_BATCH)
        )
        self._schema.use_chunks(target.name)
        self._schema.drop_unused_chunks()
        self._writer.remember(quantization=self._schema.quantization)


def _listing(points: Iterable[Point], space: str, *, primary: bool, is_held: bool) -> Iterator[dict[str, Any]]:
    """Operations that set whether chunks list this space among their primary spaces, and among their spaces."""
    groups: defaultdict[tuple[tuple[str, ...], tuple[str, ...]], list[PointId]] = defaultdict(list)
    for point in points:
        primaries, spaces = ({*point["payload"][key]} - {space} for key in ("homes", "spaces"))
        primaries |= {space} if primary else set()
        spaces |= {space} if is_held else set()
        groups[tuple(sorted(primaries)), tuple(sorted(spaces))].append(point["id"])
    for (homes, listed), ids in groups.items():
        yield {"set_payload": {"payload": {"homes": homes, "spaces": listed}, "points": ids}}


def _pending_chunk(point: Point) -> PendingChunk:
    path, title, headings, text, chunk = (point["payload"][field] for field in _PENDING_FIELDS)
    return PendingChunk(point["id"], path, title, tuple(headings), text, chunk)
