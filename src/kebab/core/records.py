"""What the store tells about what it holds, for listing, inspecting and fetching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kebab.core.citations import Citation
from kebab.core.documents import Span


@dataclass(frozen=True)
class DocumentRecord:
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


@dataclass(frozen=True)
class ChunkRecord:
    chunk_id: str
    doc_id: str
    source: str
    doc_path: str
    title: str
    ordinal: int
    kind: str
    heading_path: tuple[str, ...]
    section_label: str | None
    start_offset: int
    end_offset: int
    spans: tuple[Span, ...]
    text: str
    content_hash: str
    chunker_version: str

    @property
    def citation(self) -> Citation:
        return Citation(self.doc_path, self.spans[0], self.section_label, self.content_hash)


@dataclass(frozen=True)
class SourceRecord:
    name: str
    kind: str
    root: str | None
    trust_level: str
    documents: int
    chunks: int
    ingested_at: str | None


@dataclass(frozen=True)
class TagRecord:
    tag: str
    documents: int


@dataclass(frozen=True)
class StoreStats:
    """Counts and versions of one database."""

    path: str
    bytes: int
    schema: int
    sqlite: str
    sources: int
    documents: int
    chunks: int
    tags: int
    words: int
    text_bytes: int
    index_version: str


@dataclass(frozen=True)
class Check:
    """One line of `kb doctor`."""

    name: str
    ok: bool
    message: str
    hint: str | None = None
