"""What is stored of the indexes: how the text index was built, which models made vectors, and whether all are there.

Without numpy: every search asks this first.
"""

from __future__ import annotations

import json
from typing import NamedTuple

import apsw

from kebab.core.errors import Corrupt
from kebab.core.ports import EmbeddingModels, VectorCoverage
from kebab.store.sqlite.rows import rows_of
from kebab.store.vector_spaces import is_complete


def stored_fts_config(connection: apsw.Connection) -> dict[str, object] | None:
    """How the text index was built; None when nothing has been indexed yet."""
    rows = rows_of(connection, "SELECT value FROM meta WHERE key = 'fts_config'")
    if not rows:
        return None
    try:
        config: dict[str, object] = json.loads(rows[0][0])
        config["korean"]  # raises where it is missing
    except (KeyError, TypeError, ValueError) as error:
        hint = "Rebuild the text index with: kb index --rebuild-fts"
        raise Corrupt("What is stored of the text index cannot be read.", hint=hint) from error
    return config


def remember_fts_config(connection: apsw.Connection, config: dict[str, object]) -> None:
    connection.execute(
        "INSERT INTO meta VALUES ('fts_config', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (json.dumps(config),),
    )


# --- vectors: whether every chunk has its own, which is too slow to count at every search


def complete_vectors(connection: apsw.Connection) -> str:
    """The models for which every chunk has a vector, or nothing when some may be missing."""
    rows = rows_of(connection, "SELECT value FROM meta WHERE key = 'complete_vectors'")
    return str(rows[0][0]) if rows else ""


def remember_complete_vectors(connection: apsw.Connection, models: str) -> None:
    connection.execute(
        "INSERT INTO meta VALUES ('complete_vectors', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (models,),
    )


def forget_complete_vectors(connection: apsw.Connection) -> None:
    """Whoever writes chunks has to say so."""
    connection.execute("DELETE FROM meta WHERE key = 'complete_vectors'")


# --- all of it carried over from another store


def migrating_from(connection: apsw.Connection) -> str | None:
    """Where it comes from, until all is here."""
    rows = rows_of(connection, "SELECT value FROM meta WHERE key = 'migrating_from'")
    return str(rows[0][0]) if rows else None


def remember_migration(connection: apsw.Connection, origin: str | None) -> None:
    connection.execute("DELETE FROM meta WHERE key = 'migrating_from'")
    if origin is not None:
        connection.execute("INSERT INTO meta VALUES ('migrating_from', ?)", (origin,))


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
