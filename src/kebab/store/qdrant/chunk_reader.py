"""Chunks by their ids, with what a hit needs to know of their documents; and those beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kebab.core.ports import ChunkContext
from kebab.core.search import Neighbours
from kebab.store.qdrant.collection import Point
from kebab.store.qdrant.index_writer import chunk_point_id
from kebab.store.qdrant.lexical import FOR_HITS
from kebab.store.qdrant.payloads import FOR_CONTEXTS, Payload, chunk_context, neighbour
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.state import State


class QdrantChunkReader:
    def __init__(self, schema: Schema, state: State, known: dict[str, Payload]) -> None:
        """`known`: payloads of chunks that came with the answer to a search of the same reading."""
        self._schema = schema
        self._state = state
        self._known = known
        self._on_their_way: Callable[[], list[Point] | None] = lambda: None

    def expect(self, chunk_ids: Sequence[str]) -> None:
        unknown = [chunk_point_id(chunk_id) for chunk_id in chunk_ids if chunk_id not in self._known]
        if unknown:
            self._on_their_way = self._schema.chunks.begin_to_retrieve(unknown, payload=FOR_CONTEXTS)

    def contexts(self, chunk_ids: Sequence[str]) -> dict[str, ChunkContext]:
        for point in self._on_their_way() or ():
            self._known[point["payload"]["chunk"]] = point["payload"]
        self._on_their_way = lambda: None
        found = {chunk_id: self._known[chunk_id] for chunk_id in chunk_ids if chunk_id in self._known}
        missing = [chunk_point_id(chunk_id) for chunk_id in dict.fromkeys(chunk_ids) if chunk_id not in found]
        if missing:
            found |= {
                point["payload"]["chunk"]: point["payload"]
                for point in self._schema.chunks.retrieve(missing, payload=FOR_CONTEXTS)
            }
        return {
            chunk_id: chunk_context(
                payload, self._state.notes_above(payload["source"], payload["path"]), payload.get("model")
            )
            for chunk_id, payload in found.items()
            if not self._state.is_too_new(payload)
        }

    def neighbours(self, chunk_ids: Sequence[str], count: int) -> dict[str, Neighbours]:
        """Two round trips for all of them."""
        found = dict.fromkeys(chunk_ids, Neighbours())
        hits = self._schema.chunks.retrieve(map(chunk_point_id, chunk_ids), payload=["chunk", "doc", "ordinal"])
        wanted: dict[tuple[str, int], None] = {}
        for hit in hits:
            doc, ordinal = hit["payload"]["doc"], hit["payload"]["ordinal"]
            wanted |= dict.fromkeys((doc, near) for near in range(max(0, ordinal - count), ordinal + count + 1))
        ordinals: dict[str, list[int]] = {}
        for doc, ordinal in wanted:
            ordinals.setdefault(doc, []).append(ordinal)
        either = [
            {"must": [{"key": "doc", "match": {"value": doc}}, {"key": "ordinal", "match": {"any": near}}]}
            for doc, near in ordinals.items()
        ]
        beside: dict[tuple[str, int], Payload] = {}
        if either:
            for point in self._schema.chunks.scroll({"should": either}, payload=FOR_HITS):
                beside[point["payload"]["doc"], point["payload"]["ordinal"]] = point["payload"]
        for hit in hits:
            chunk_id, doc, ordinal = (hit["payload"][key] for key in ("chunk", "doc", "ordinal"))
            near = [
                (place, beside[doc, place])
                for place in range(ordinal - count, ordinal + count + 1)
                if (doc, place) in beside
            ]
            found[chunk_id] = Neighbours(
                tuple(neighbour(payload) for place, payload in near if place < ordinal),
                tuple(neighbour(payload) for place, payload in near if place > ordinal),
            )
        return found
