"""Search by vector, and how many chunks have vectors of which models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kebab.core.ports import Embedder, EmbeddingModels, Middle, VectorCoverage, VectorMatch
from kebab.core.search import SearchFilters
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import none_of, one_of, where
from kebab.store.qdrant.filters import chunk_filter
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.state import State
from kebab.store.vector_spaces import is_complete, refuse_other_dimension

if TYPE_CHECKING:
    pass

_DIGITS = 7
"""Of a number in the vector of a question: those that a float32 has."""
_OVERSAMPLING = {"none": 1.0, "scalar": 2.0, "binary": 16.0}
"""How many times as many candidates of a quantized search are compared again by their stored vectors."""
_LEAST_EF = 128
"""Candidates in the graph of vectors; more if more are asked for."""


class QdrantVectorStore:
    def __init__(self, schema: Schema, state: State) -> None:
        self._schema = schema
        self._state = state
        oversampling = _OVERSAMPLING.get(state.meta.get("quantization") or "none", 1.0)
        self._quantization = {"rescore": True, "oversampling": oversampling}

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
        primary_only: bool = False,
        secondary_only: bool = False,
    ) -> list[VectorMatch]:
        if space not in {known.fingerprint for known in self._state.spaces}:
            refuse_other_dimension(space, self._state.spaces)
            return []
        # A condition that all chunks meet costs the servers a third of their time.
        chosen = chunk_filter(self._schema, filters, has_libraries=self._state.has_libraries)
        as_primary = [space, codec.EVERYWHERE]
        chosen["must"] += [one_of("homes", as_primary)] if primary_only else []
        chosen["must"] += [none_of("homes", as_primary)] if secondary_only else []
        search: dict[str, Any] = {
            "query": vector.astype("float64").round(_DIGITS).tolist(),
            "using": space,
            "filter": chosen,
            "with_payload": ["chunk", "homes", "corpus"],
        }
        depth = limit + 1
        while True:
            params = {"hnsw_ef": max(_LEAST_EF, 2 * depth), "quantization": self._quantization}
            [points] = self._schema.chunks.query({**search, "limit": depth, "params": params})
            matches = [
                VectorMatch(payload["chunk"], point["score"], not set(as_primary).isdisjoint(payload["homes"]))
                for point in points
                if not self._state.is_too_new(payload := point["payload"])
            ]
            matches.sort(key=lambda match: (-match.similarity, match.chunk_id))
            # Equal ones at the end are ordered by their ids, so all of them must be known.
            is_full = len(matches) > limit and matches[limit - 1].similarity > matches[-1].similarity
            if len(points) < depth or is_full:
                return matches[:limit]
            depth *= 4

    def middle_of(self, chunk_ids: Sequence[str], embedders: Sequence[Embedder]) -> Middle | None:
        import numpy as np

        ours = {(embedder.name, embedder.version): embedder for embedder in embedders}
        spaces = {space.fingerprint: space for space in self._state.spaces if (space.model, space.version) in ours}
        if not spaces:
            return None
        points = self._schema.chunks.retrieve(
            map(codec.chunk_point_id, chunk_ids), payload=["chunk", "homes"], vectors=list(spaces)
        )
        primaries = Counter(name for point in points for name in spaces if name in point["payload"]["homes"])
        if not primaries:
            return None
        names = list(spaces)
        name = max(names, key=lambda name: (primaries[name], names.index(name)))
        members = [point for point in points if name in point["payload"]["homes"]]
        members.sort(key=lambda point: str(point["payload"]["chunk"]))
        mean = np.array([point["vector"][name] for point in members], np.float32).mean(axis=0)
        length = float(np.linalg.norm(mean))
        return Middle(name, mean / length if length else mean, ours[spaces[name].model, spaces[name].version])


def coverage(schema: Schema, state: State, models: EmbeddingModels) -> VectorCoverage:
    ours = {(embedder.name, embedder.version) for embedder in models.embedders}
    # The latest space of each model: an endpoint may give vectors of another dimension from one day to the next.
    latest = {(space.model, space.version): space for space in state.spaces}
    current = [space.fingerprint for model, space in latest.items() if model in ours]
    others = tuple(space.fingerprint for space in state.spaces if space.fingerprint not in current)
    used = [space for space in current if _is_held(schema, state, space)]
    version = "vec:" + ",".join(used)
    if used and is_complete(state.meta.get("complete_vectors") or "", models):
        return VectorCoverage(None, None, version, others)
    embedded = schema.chunks.count(where("homes", *used)) if used else 0
    return VectorCoverage(schema.chunks.count(), embedded, version, others)


def _is_held(schema: Schema, state: State, space: str) -> bool:
    """Whether any chunk has a vector of this space."""
    held = state.meta.get("held_spaces")
    if held is not None and state.meta.get("complete_vectors"):  # nothing has been written since that was remembered
        return space in held
    return schema.chunks.has_any({"must": [{"has_vector": space}]})
