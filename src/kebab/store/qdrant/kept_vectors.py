"""Vectors that no chunk has: of chunks that are gone, and of texts that may come. What is moved away and back is not
embedded twice.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Any

from kebab.store.qdrant.collection import Collection, Point, point_id
from kebab.store.qdrant.schema import WORDS
from kebab.store.qdrant.state import what

_MOST = 20_000
"""So many are kept; when they are more, somebody has tidied up for good."""


class KeptVectors:
    def __init__(self, catalog: Collection) -> None:
        self._catalog = catalog

    def keep(self, space: str, vectors: Mapping[str, Any]) -> int:
        """By the hash of the text, float16; how many were not there yet."""
        points = {_id(space, text_hash): stored for text_hash, stored in vectors.items()}
        known = {point["id"] for point in self._catalog.retrieve(points, payload=False)} if points else set()
        new = {identifier: stored for identifier, stored in points.items() if identifier not in known}
        self._catalog.upsert(
            {"id": identifier, "vector": {}, "payload": {"what": "kept_vector", "data": b64encode(stored).decode()}}
            for identifier, stored in new.items()
        )
        return len(new)

    def keep_those_of(self, chunks: Iterable[Point]) -> None:
        """Points with `text_hash` and vectors, which are about to go."""
        import numpy as np

        by_space: dict[str, dict[str, bytes]] = {}
        for point in chunks:
            for space, vector in point["vector"].items():
                if space != WORDS:
                    by_space.setdefault(space, {})[point["payload"]["text_hash"]] = np.array(
                        vector, np.float16
                    ).tobytes()
        for space, vectors in by_space.items():
            self.keep(space, vectors)

    def find(self, space: str, hashes: Iterable[str]) -> dict[str, list[float]]:
        """By the hash of the text."""
        wanted = {_id(space, text_hash): text_hash for text_hash in hashes}
        found = (
            self._catalog.retrieve(wanted)
            if wanted and any(self._catalog.scroll(what("kept_vector"), payload=False, at_once=1))
            else []
        )
        if not found:
            return {}
        import numpy as np

        return {
            wanted[point["id"]]: np.frombuffer(b64decode(point["payload"]["data"]), np.float16).tolist()
            for point in found
        }

    def clear(self, *, if_many: bool = False) -> None:
        if not if_many or self._catalog.count(what("kept_vector")) > _MOST:
            self._catalog.delete(what("kept_vector"))


def _id(space: str, text_hash: str) -> str:
    return point_id("kept vector", space, text_hash)
