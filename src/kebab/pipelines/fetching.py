"""Indexed text, verbatim: of a document, a chunk, or exactly the lines or page that a citation names."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

from kebab.core import citations
from kebab.core.documents import PAGE_BREAK, page_text
from kebab.core.errors import NotFound, UsageError
from kebab.core.records import ChunkRecord, DocumentRecord
from kebab.core.spans import LineSpan, PageSpan
from kebab.core.text import LineTable
from kebab.pipelines import document_lookup


class Catalog(document_lookup.Catalog, Protocol):
    def find_chunk(self, key: str) -> ChunkRecord: ...
    def body(self, doc_id: str) -> str: ...
    def is_paged(self, doc_id: str) -> bool: ...


class Fetched(NamedTuple):
    """Verbatim indexed text, with the citation it answers to."""

    kind: Literal["document", "chunk", "span"]
    document: DocumentRecord
    text: str
    citation: citations.Citation | None = None
    chunk_id: str | None = None


def fetch_document(catalog: Catalog, key: str) -> Fetched:
    record = document_lookup.find_document(catalog, key)
    return Fetched("document", record, catalog.body(record.doc_id))


def fetch_chunk(catalog: Catalog, key: str) -> Fetched:
    chunk = catalog.find_chunk(key)
    return Fetched("chunk", catalog.find_document(chunk.doc_id), chunk.text, chunk.citation, chunk.chunk_id)


def fetch_span(catalog: Catalog, citation: str) -> Fetched:
    """Exactly the cited lines, or the cited page."""
    path, span = citations.parse(citation)
    if span is None:
        raise UsageError(f"{citation} names no lines.", hint="For example: kb fetch span notes/git.md#L10-L20")
    record = document_lookup.find_document(catalog, path)
    if isinstance(span, PageSpan) and catalog.is_paged(record.doc_id):
        return _fetched_page(record, span, catalog.body(record.doc_id))
    lines = f"{record.path} has lines 1 to {record.line_count}"
    if not isinstance(span, LineSpan):
        raise NotFound(f"{lines}, and no pages or regions.", hint=f"For example: {record.path}#L1-L{record.line_count}")
    if not 1 <= span.start <= span.end <= record.line_count:
        raise NotFound(f"{lines}; {span.start} to {span.end} were asked for.", hint="Correct the lines.")
    text = LineTable(catalog.body(record.doc_id)).slice(span.start, span.end)
    return Fetched("span", record, text, citations.Citation(record.path, span))


def _fetched_page(record: DocumentRecord, span: PageSpan, body: str) -> Fetched:
    text = page_text(body, span.page)
    if text is None:
        raise NotFound(f"{record.path} has pages 1 to {body.count(PAGE_BREAK) + 1}; {span.page} was asked for.", hint="Correct the page.")
    return Fetched("span", record, text, citations.Citation(record.path, span))
