"""Indexed text, verbatim: of a document, a chunk, or exactly the lines or page that a citation names."""

from __future__ import annotations

from typing import Literal, NamedTuple

from kebab.core import citations
from kebab.core.records import DocumentRecord
from kebab.pipelines import document_lookup
from kebab.pipelines.passage_lookup import PassageCatalog, find_span


class Fetched(NamedTuple):
    """Verbatim indexed text, with the citation it answers to."""

    kind: Literal["document", "chunk", "span"]
    document: DocumentRecord
    text: str
    citation: citations.Citation | None = None
    chunk_id: str | None = None


def fetch_document(catalog: PassageCatalog, key: str) -> Fetched:
    record = document_lookup.find_document(catalog, key)
    return Fetched("document", record, catalog.body(record.doc_id))


def fetch_chunk(catalog: PassageCatalog, key: str) -> Fetched:
    chunk = catalog.find_chunk(key)
    return Fetched("chunk", catalog.find_document(chunk.doc_id), chunk.text, chunk.citation, chunk.chunk_id)


def fetch_span(catalog: PassageCatalog, citation: str) -> Fetched:
    """Exactly the cited lines, or the cited page."""
    cited = find_span(catalog, citation)
    return Fetched("span", cited.document, cited.text, citations.Citation(cited.document.path, cited.span))
