"""Records that a store returns for listing, inspecting and fetching its content."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.core.documents import Repository

if TYPE_CHECKING:
    from kebab.core.store_ports import Reading


class DocumentRecord(NamedTuple):
    doc_id: str
    source: str
    path: str
    title: str
    doc_type: str
    format: str
    lang: str
    trust_level: str
    tags: tuple[str, ...]
    date: str
    size: int
    encoding: str
    line_count: int
    chunk_count: int
    content_hash: str
    chunker_version: str
    indexed_at: str
    metadata: dict[str, Any]
    context: tuple[str, ...]
    """The user's notes on the document's source and folders, the outermost first."""


class ContextNote(NamedTuple):
    """A user's note on a source, or on a folder or file in it."""

    folder: str
    """The folder or file; empty for the whole source."""
    text: str

    def covers(self, path: str) -> bool:
        return not self.folder or path == self.folder or path.startswith(self.folder + "/")


class SourceRecord(NamedTuple):
    name: str
    kind: str
    root: str | None
    trust_level: str
    documents: int
    chunks: int
    ingested_at: str | None
    repository: Repository | None
    """The git repository of the folder at its last ingest, or None."""
    notes: tuple[ContextNote, ...]


class TagRecord(NamedTuple):
    tag: str
    documents: int


class StoreStats(NamedTuple):
    """Counts and versions of one database."""

    path: str
    bytes: int | None
    """None where it is unknown."""
    schema: int
    sqlite: str
    """The version of SQLite, or of the server."""
    sources: int
    documents: int
    chunks: int
    tags: int
    words: int
    text_bytes: int
    vectors: int
    embedded_chunks: int
    """Chunks that have a vector of at least one model."""
    embedding_models: tuple[str, ...]
    index_version: str


class SpaceCount(NamedTuple):
    """How many chunks have a vector of one model."""

    fingerprint: str
    vectors: int
    primaries: int
    """The number of chunks whose primary space this is."""


class ContentCounts(NamedTuple):
    """Exact counts of the content. Library versions that are still being indexed do not count."""

    documents: int
    chunks: int
    library_documents: int
    snippets: int
    spaces: tuple[SpaceCount, ...]
    """In the order in which the models were first used."""


NOT_CHECKED = "NOT checked"
"""The beginning of the message of a check that could not be made."""


class Check(NamedTuple):
    """The result of one check, which is one line of `kb doctor`."""

    name: str
    ok: bool
    message: str
    hint: str | None = None
    """What to do next."""

    @classmethod
    def judged(cls, name: str, ok: bool, message: str, hint: str) -> Check:
        """A check with this result. The hint is kept only if it failed."""
        return cls(name, ok, message, None if ok else hint)


def incomplete_migration_checks(reading: Reading | None, place: str, *, ok: bool) -> list[Check]:
    """One check while a migration is incomplete, otherwise none. `ok`: whether that counts as healthy."""
    origin = reading.migrating_from() if reading else None
    if origin is None:
        return []
    hint = f"Go on with: kb migrate --from {origin} --to {place}"
    return [Check("migration", ok, f"not everything has come from {origin} yet", hint)]
