"""The numbered migrations of the schema. Each runs in one transaction, which also records it.

A released SQL file is never edited (tests/store/sqlite/test_migrations.py pins the checksums): every change of the
schema, even of the text index, is a new migration.
"""

from __future__ import annotations

from pathlib import Path

TEXT_INDEX = "0006_text_index.sql"
"""The SQL file that creates the text indexes and their triggers. Every rebuild of the text index runs it, too."""

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
"""The digest (`schema.digest`) of the schema after all migrations, to check a file without running them."""


def statements(name: str) -> str:
    file = Path(__file__).parent / name
    return file.read_text(encoding="utf-8")
