"""Finds documents and passages by id, path, SOURCE:path, path on disk, or citation."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kebab.core import citations
from kebab.core.documents import PAGE_BREAK
from kebab.core.errors import Ambiguous, NotFound, UsageError
from kebab.core.ports import ChunkContext
from kebab.core.records import DocumentRecord
from kebab.core.spans import LineSpan, PageSpan, Span
from kebab.core.text import LineTable, storable
from kebab.search.options import join_library

if TYPE_CHECKING:
    from kebab.core.store_ports import Catalog

_SHOWN = 5
_BARE_LINES = re.compile(r"(.+)[:#](\d+)(?:-(\d+))?")


class CitedText(NamedTuple):
    """The cited part of a document's indexed text."""

    document: DocumentRecord
    span: Span
    text: str
    start: int
    """The offset in the document where the text begins."""

    def touches(self, chunk: ChunkContext) -> bool:
        return chunk.start_offset < self.start + len(self.text) and chunk.end_offset > self.start


class Passage(NamedTuple):
    """A piece of one document, and all chunks that overlap it."""

    document: DocumentRecord
    text: str
    chunks: tuple[ChunkContext, ...]


def find_passage(catalog: Catalog, reference: str) -> Passage:
    """The passage with this id, path or citation. A prefix of both a document id and chunk ids means the document."""
    if citations.parse(reference)[1] is not None:
        cited = find_span(catalog, reference)
        chunks = catalog.chunks_of(cited.document.doc_id)
        return Passage(cited.document, cited.text, tuple(chunk for chunk in chunks if cited.touches(chunk)))
    try:
        document = find_cited_document(catalog, reference)
    except NotFound as no_document:
        try:
            chunk = catalog.find_chunk(reference)
        except NotFound as no_chunk:
            raise (no_chunk if _looks_like_an_id(reference) else no_document) from None
        return Passage(catalog.find_document(chunk.doc_id), chunk.text, (chunk,))
    return Passage(document, catalog.body(document.doc_id), tuple(catalog.chunks_of(document.doc_id)))


def find_span(catalog: Catalog, citation: str) -> CitedText:
    """The cited lines, or the cited page."""
    path, span = citations.parse(citation)
    if span is None:
        bare = _BARE_LINES.fullmatch(citation)
        meant = (
            f"Write them with an L: {bare[1]}#L{bare[2]}-L{bare[3] or bare[2]}"
            if bare
            else "For example: notes/git.md#L10-L20"
        )
        raise UsageError(f"{citation} names no lines.", hint=meant)
    record = find_cited_document(catalog, path)
    if isinstance(span, PageSpan) and catalog.is_paged(record.doc_id):
        return _cited_page(record, span, catalog.body(record.doc_id))
    lines = f"{record.path} has lines 1 to {record.line_count}"
    if not isinstance(span, LineSpan):
        raise NotFound(f"{lines}, and no pages or regions.", hint=f"For example: {record.path}#L1-L{record.line_count}")
    if not 1 <= span.start <= span.end <= record.line_count:
        raise NotFound(f"{lines}; {span.start} to {span.end} were asked for.", hint="Correct the lines.")
    table = LineTable(catalog.body(record.doc_id))
    return CitedText(record, span, table.slice(span.start, span.end), table.start_of(span.start))


def _cited_page(record: DocumentRecord, span: PageSpan, body: str) -> CitedText:
    pages = body.split(PAGE_BREAK)
    if not 1 <= span.page <= len(pages):
        raise NotFound(
            f"{record.path} has pages 1 to {len(pages)}; {span.page} was asked for.", hint="Correct the page."
        )
    before = sum(len(page) + len(PAGE_BREAK) for page in pages[: span.page - 1])
    return CitedText(record, span, pages[span.page - 1], before)


def _looks_like_an_id(reference: str) -> bool:
    return set(reference) <= set("0123456789abcdef")


def find_document(catalog: Catalog, key: str) -> DocumentRecord:
    """The document with this name in the catalog, or with this path on disk in a known source."""
    try:
        return catalog.find_document(key)
    except NotFound:
        found = _on_disk(catalog, key) if catalog.paths_on_disk else None
        if found is None:
            raise
        return found


def find_cited_document(catalog: Catalog, path: str) -> DocumentRecord:
    """The document as `find_document` finds it, or the library document with this path."""
    try:
        return find_document(catalog, path)
    except NotFound:
        found = _in_a_library(catalog, path)
        if found is None:
            raise
        return found


def _on_disk(catalog: Catalog, key: str) -> DocumentRecord | None:
    try:
        absolute = Path(key).expanduser().resolve()
    except (OSError, ValueError, RuntimeError):
        return None
    for source in catalog.sources():
        root = Path(source.root or "")
        if source.kind == "folder" and root in absolute.parents:
            return catalog.find_document(f"{source.name}:{absolute.relative_to(root).as_posix()}")
        if source.kind == "file" and root == absolute:
            return catalog.find_document(f"{source.name}:{root.name}")
    return None


def _in_a_library(catalog: Catalog, path: str) -> DocumentRecord | None:
    """The library document with this path, or None. Ambiguous if libraries or versions have different ones."""
    found = catalog.in_libraries(path)
    if len({record.doc_id for record in found.values()}) > 1:
        places = [f"{join_library(library_id, tag or None)}:{storable(path)}" for library_id, tag in found]
        some = ", ".join(places[:_SHOWN]) + (" …" if len(places) > _SHOWN else "")
        raise Ambiguous(
            f"{storable(path)} is in {len(places)} versions of libraries: {some}.", hint="Name one of them so."
        )
    return next(iter(found.values()), None)
