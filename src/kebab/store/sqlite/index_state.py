"""Stored facts about the indexes: how the text index was built, which models made vectors, and for which models
every chunk has a vector. Every search reads them first, so this module does not import numpy.
"""

from __future__ import annotations

import json
from typing import Literal, NamedTuple

from kebab.core.errors import Corrupt
from kebab.store.sqlite.database import Connection

MetaKey = Literal["fts_config", "complete_vectors", "migrating_from"]
"""complete_vectors: the models for which every chunk has a vector, because counting at every search is too slow.
migrating_from: the address of the store that an unfinished migration copies into this one.
"""


def remembered(connection: Connection, key: MetaKey) -> str | None:
    rows = connection.rows("SELECT value FROM meta WHERE key = ?", (key,))
    return str(rows[0][0]) if rows else None


def remember(connection: Connection, key: MetaKey, value: str) -> None:
    connection.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, value)
    )


def forget(connection: Connection, key: MetaKey) -> None:
    connection.execute("DELETE FROM meta WHERE key = ?", (key,))


def stored_fts_config(connection: Connection) -> dict[str, object] | None:
    """Returns the configuration that the text index was built with, or None if nothing has been indexed yet."""
    stored = remembered(connection, "fts_config")
    if stored is None:
        return None
    try:
        config: dict[str, object] = json.loads(stored)
        config["korean"]  # raises KeyError if it is missing
    except (KeyError, TypeError, ValueError) as error:
        hint = "Rebuild the text index with: kb index --rebuild-fts"
        raise Corrupt("What is stored of the text index cannot be read.", hint=hint) from error
    return config


def remember_fts_config(connection: Connection, config: dict[str, object]) -> None:
    remember(connection, "fts_config", json.dumps(config))


class StoreView:
    """The methods that SqliteReading and SqliteWriting share."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def migrating_from(self) -> str | None:
        return remembered(self._connection, "migrating_from")


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


def stored_spaces(connection: Connection) -> list[Space]:
    rows = connection.rows("SELECT id, model, version, dimension, centre IS NOT NULL FROM embedding_spaces ORDER BY id")
    return [Space._make((*row[:4], bool(row[4]))) for row in rows]
