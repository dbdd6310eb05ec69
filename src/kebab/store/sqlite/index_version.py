"""How the indexes were built, and the versions that follow from it."""

from __future__ import annotations

import json
from hashlib import sha256

import apsw

from kebab.store.sqlite import migrations
from kebab.store.sqlite.rows import rows_of

ANALYSIS_VERSION = 2
"""Raised whenever the terms of the same text change, so that an index built before is noticed."""


def fts_config(korean_analysis: str) -> dict[str, object]:
    return {
        "tokenize": "porter unicode61 remove_diacritics 2",
        "columns": ["chunk_id", "doc_id", "heading_path", "text", "title", "cjk"],
        "korean": korean_analysis,
        "analysis": ANALYSIS_VERSION,
    }


def lexical_index_version(config: dict[str, object], schema: int = migrations.LATEST) -> str:
    digest = sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]
    return f"lex:{schema}:{digest}"


def stored_fts_config(connection: apsw.Connection) -> dict[str, object] | None:
    """How the text index was built; None when nothing has been indexed yet."""
    rows = rows_of(connection, "SELECT value FROM meta WHERE key = 'fts_config'")
    config: dict[str, object] | None = json.loads(rows[0][0]) if rows else None
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
    connection.execute("INSERT INTO meta VALUES ('complete_vectors', ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (models,))


def forget_complete_vectors(connection: apsw.Connection) -> None:
    """Whoever writes chunks has to say so."""
    connection.execute("DELETE FROM meta WHERE key = 'complete_vectors'")
