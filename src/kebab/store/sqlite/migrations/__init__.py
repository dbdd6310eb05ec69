"""Numbered steps of the schema. Each runs in one transaction together with its record; none is ever edited later,
except the text index: a database made before keeps its own until `kb index --rebuild-fts`, and answers the same."""

from __future__ import annotations

TEXT_INDEX = "0006_text_index.sql"
"""The FTS tables and their triggers, as every rebuild makes them."""

MIGRATIONS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (1, ("0001_documents_and_chunks.sql", "0001_text_index.sql")),
    (2, ("0002_vectors.sql",)),
    (3, ("0003_context_notes.sql",)),
    (4, ("0004_repositories.sql",)),
    (5, ("0005_vector_scopes.sql",)),
    (6, ("0006_libraries.sql", TEXT_INDEX)),
)
LATEST = MIGRATIONS[-1][0]


def statements(name: str) -> str:
    from importlib.resources import files  # slow to import, and needed only when a schema is made

    return files(__package__).joinpath(name).read_text(encoding="utf-8")
