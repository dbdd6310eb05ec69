"""Which models have made vectors, and for how much of the corpus. Without numpy: every search asks this first."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from kebab.core.ports import EmbeddingModels, VectorCoverage
from kebab.store.sqlite.index_version import complete_vectors
from kebab.store.sqlite.rows import rows_of
from kebab.store.vector_spaces import is_complete


class Space(NamedTuple):
    """A row of embedding_spaces."""

    id: int
    model: str
    version: str
    dimension: int
    has_codes: bool

    @property
    def fingerprint(self) -> str:
        return f"{self.model}@{self.version}:{self.dimension}"


def coverage(connection: apsw.Connection, models: EmbeddingModels) -> VectorCoverage:
    """How many chunks have a vector of these models, and which other models have left vectors here."""
    ours = {(embedder.name, embedder.version) for embedder in models.embedders}
    spaces = stored_spaces(connection)
    # By model and version the latest: an endpoint may give vectors of another dimension from one day to the next.
    latest = {(space.model, space.version): space for space in spaces}
    current = [space for key, space in latest.items() if key in ours]
    others = tuple(space.fingerprint for space in spaces if space not in current)
    used = [space for space in current if _has_rows(connection, space)]
    version = "vec:" + ",".join(space.fingerprint for space in used)
    if used and is_complete(complete_vectors(connection), models):
        return VectorCoverage(None, None, version, others)
    total = int(rows_of(connection, "SELECT count(*) FROM chunks")[0][0])
    marks = ",".join(str(space.id) for space in used)
    embedded = rows_of(connection, f"SELECT count(*) FROM chunks_vec WHERE home = 1 AND space_id IN ({marks})")[0][0]
    return VectorCoverage(total, int(embedded), version, others)


def _has_rows(connection: apsw.Connection, space: Space) -> bool:
    return bool(rows_of(connection, "SELECT EXISTS (SELECT 1 FROM vectors WHERE space_id = ?)", (space.id,))[0][0])


def stored_spaces(connection: apsw.Connection) -> list[Space]:
    rows = rows_of(
        connection, "SELECT id, model, version, dimension, centre IS NOT NULL FROM embedding_spaces ORDER BY id"
    )
    return [Space(space, model, version, dimension, bool(coded)) for space, model, version, dimension, coded in rows]
