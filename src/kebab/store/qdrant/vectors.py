"""Searching by vector, and which models have made vectors for how much of the corpus. The servers compare; only a mean
needs numpy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from kebab.core.libraries import VectorSpace
from kebab.core.ports import Embedder, EmbeddingModels, Middle, VectorCoverage, VectorMatch
from kebab.core.search import SearchFilters
from kebab.store.qdrant.collection import Filter, Point
from kebab.store.qdrant.filters import FilterBuilder, none_of, one_of
from kebab.store.qdrant.index_writer import chunk_of, chunk_point_id
from kebab.store.qdrant.lexical import FOR_HITS
from kebab.store.qdrant.payloads import EVERYWHERE, Payload
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.state import State
from kebab.store.vector_spaces import is_complete, refuse_other_dimension

if TYPE_CHECKING:
    from kebab.core.store_ports import VectorOptions

_DIGITS = 7
"""Of a number in the vector of a question: those that a float32 has. As many again would have to be written and read.
"""
_RESCORED = {"none": 1.0, "scalar": 2.0, "binary": 16.0}
"""Where vectors are compared by their shortened forms first: how many times as many as are wanted are compared again as
they are stored.
"""
_LOOKED_AT = 128
"""Of the graph of vectors, at least; more than that is wanted where more are asked for."""


def stored_spaces(state: State) -> list[VectorSpace]:
    """In the order in which they came."""
    return [VectorSpace(*space) for space in state.meta.get("spaces") or ()]


class QdrantVectorStore:
    is_lasting = True

    def __init__(self, schema: Schema, state: State, known: dict[str, Payload]) -> None:
        """`known`: where payloads of what was found are kept, for whoever makes hits of it."""
        self._schema = schema
        self._state = state
        self._known = known
        self._filters = FilterBuilder(schema)
        self._rescored = {"rescore": True, "oversampling": _RESCORED.get(state.meta.get("quantization") or "none", 1.0)}

    def holds(self, embedder: Embedder) -> bool:
        ours = [
            space
            for space in stored_spaces(self._state)
            if (space.model, space.version) == (embedder.name, embedder.version)
        ]
        return any(_is_held(self._schema, self._state, space.fingerprint) for space in ours)

    def search(self, space: str, vector: Any, **options: Unpack[VectorOptions]) -> list[VectorMatch]:
        return self.begin(space, vector, **options)()

    def begin(
        self,
        space: str,
        vector: Any,
        *,
        filters: SearchFilters,
        limit: int,
        homes_only: bool = False,
        others_only: bool = False,
        outline: bool = False,
    ) -> Callable[[], list[VectorMatch]]:
        spaces = {known.fingerprint for known in stored_spaces(self._state)}
        if space not in spaces:
            refuse_other_dimension(space, stored_spaces(self._state))
            return list
        home = [space, EVERYWHERE]
        # A condition that all chunks meet costs the servers a third of their time.
        chosen = self._filters.of_chunks(filters, among_libraries=self._state.has_libraries)
        chosen["must"] += [one_of("homes", home)] if homes_only else []
        chosen["must"] += [none_of("homes", home)] if others_only else []
        numbers = vector.astype("float64").round(_DIGITS).tolist()
        nearest = partial(self._nearest_to, space, numbers, chosen, outline=outline)
        matches = partial(_outlined, home=not others_only) if outline else partial(self._matches, space)
        answer = self._schema.chunks.begin_to_query(nearest(limit + 1))

        def finished() -> list[VectorMatch]:
            depth = limit + 1
            points = answer()[0]
            while True:
                ordered = sorted(matches(points), key=_order)
                # Equal ones at the end are put in order by their ids, so all of them must be known.
                if len(ordered) < depth or ordered[limit - 1].similarity > ordered[-1].similarity:
                    return ordered[:limit]
                depth *= 4
                points = self._schema.chunks.query(nearest(depth))[0]

        return finished

    def _nearest_to(
        self, space: str, numbers: list[float], chosen: Filter, limit: int, *, outline: bool
    ) -> dict[str, Any]:
        return {
            "query": numbers,
            "using": space,
            "filter": chosen,
            "limit": limit,
            "with_payload": False if outline else FOR_HITS,
            "params": {"hnsw_ef": max(_LOOKED_AT, 2 * limit), "quantization": self._rescored},
        }

    def _matches(self, space: str, points: Sequence[Point]) -> Iterator[VectorMatch]:
        for point in points:
            payload = point["payload"]
            if self._state.is_too_new(payload):
                continue
            self._known[payload["chunk"]] = payload
            home = space in payload["homes"] or EVERYWHERE in payload["homes"]
            yield VectorMatch(payload["chunk"], point["score"], home)

    def middle_of(self, chunk_ids: Sequence[str], embedders: Sequence[Embedder]) -> Middle | None:
        import numpy as np

        ours = {(embedder.name, embedder.version): embedder for embedder in embedders}
        spaces = [space for space in stored_spaces(self._state) if (space.model, space.version) in ours]
        names = [space.fingerprint for space in spaces]
        points = (
            self._schema.chunks.retrieve(map(chunk_point_id, chunk_ids), payload=["chunk", "homes"], vectors=names)
            if names
            else []
        )
        homes = Counter(name for point in points for name in names if name in point["payload"]["homes"])
        if not homes:
            return None
        space = max(
            (space for space in spaces), key=lambda space: (homes[space.fingerprint], names.index(space.fingerprint))
        )
        name = space.fingerprint
        ordered = sorted(
            (point for point in points if name in point["payload"]["homes"]),
            key=lambda point: str(point["payload"]["chunk"]),
        )
        mean = np.array([point["vector"][name] for point in ordered], np.float32).mean(axis=0)
        length = float(np.linalg.norm(mean))
        return Middle(name, mean / length if length else mean, ours[space.model, space.version])


# --- coverage


def coverage(schema: Schema, state: State, models: EmbeddingModels) -> VectorCoverage:
    ours = {(embedder.name, embedder.version) for embedder in models.embedders}
    spaces = stored_spaces(state)
    # By model and version the latest: an endpoint may give vectors of another dimension from one day to the next.
    latest = {(space.model, space.version): space for space in spaces}
    current = [space for key, space in latest.items() if key in ours]
    others = tuple(space.fingerprint for space in spaces if space not in current)
    complete = is_complete(state.meta.get("complete_vectors") or "", models)
    used = [space.fingerprint for space in current if _is_held(schema, state, space.fingerprint)]
    version = "vec:" + ",".join(used)
    if used and complete:
        return VectorCoverage(None, None, version, others)
    embedded = schema.chunks.count({"must": [one_of("homes", used)]}) if used else 0
    return VectorCoverage(schema.chunks.count(), embedded, version, others)


def _is_held(schema: Schema, state: State, space: str) -> bool:
    """Whether any chunk has a vector of it."""
    held = state.meta.get("held_spaces")
    if held is not None and state.meta.get("complete_vectors"):  # nothing has been written since it was looked at
        return space in held
    return holds_any(schema, space)


def holds_any(schema: Schema, space: str) -> bool:
    return any(schema.chunks.scroll({"must": [{"has_vector": space}]}, payload=False, at_once=1))


def _outlined(points: Sequence[Point], *, home: bool) -> Iterator[VectorMatch]:
    return (VectorMatch(chunk_of(point["id"]), point["score"], home) for point in points)


def _order(match: VectorMatch) -> tuple[float, str]:
    return -match.similarity, match.chunk_id
