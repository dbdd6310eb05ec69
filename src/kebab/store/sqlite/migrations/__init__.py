"""Numbered steps of the schema. Each runs in one transaction together with its record. A file is never edited once a
database was made with it (tests/store/sqlite/test_migrations.py pins the checksums): every change is a new step, also a
change of the text index.
"""

from __future__ import annotations

from pathlib import Path

TEXT_INDEX = "0006_text_index.sql"
"""The FTS tables and their triggers, as every rebuild makes them."""

MIGRATIONS: tuple[tuple[int, tuple[str, ...]], ...] = (
    (1, ("0001_documents_and_chunks.sql", "0001_text_index.sql")),
    (2, ("0002_vectors.sql",)),
    (3, ("0003_context_notes.sql",)),
    (4, ("0004_repositories.sql",)),
    (5, ("0005_vector_scopes.sql",)),
    (6, ("0006_libraries.sql", TEXT_INDEX)),
    (7, ("0007_one_schema_6.sql", TEXT_INDEX)),
)
LATEST = MIGRATIONS[-1][0]
DIGEST = "133ed991ca49f596d73ac89e480976ebd62132ae343a095671b94c0f74888b76"
"""Of the schema that all steps make (`schema.digest`), so that opening a file need not run them."""


def statements(name: str) -> str:
    file = Path(__file__).parent / name
    return file.read_text(encoding="utf-8")
