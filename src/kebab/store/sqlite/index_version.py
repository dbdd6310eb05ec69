"""How the indexes were built, and the versions that follow from it."""

from __future__ import annotations

import json

import apsw

from kebab.core.errors import Corrupt
from kebab.store.fts5 import index_config
from kebab.store.sqlite import migrations
from kebab.store.sqlite.rows import rows_of


def lexical_index_version(config: dict[str, object], schema: int = migrations.LATEST) -> str:
    return index_config.lexical_index_version(config, schema)


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
