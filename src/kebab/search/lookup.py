"""Finds documents and passages by id, path, SOURCE:path, path on disk, or citation, and fetches their text verbatim."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from kebab.analysis.orders import reads_like_orders
from kebab.core import citations
from kebab.core.citations import LineSpan, PageSpan, Span
from kebab.core.documents import PAGE_BREAK
from kebab.core.errors import Ambiguous, NotFound, StoreError, UsageError
from kebab.core.ports import ChunkContext
from kebab.core.records import DocumentRecord
from kebab.core.text import LineTable, estimate_tokens, storable
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


# --- fetching


class Fetched(NamedTuple):
    """Verbatim indexed text, with its document and citation."""

    kind: Literal["document", "chunk", "span"]
    document: DocumentRecord
    text: str
    citation: citations.Citation | None = None
    chunk_id: str | None = None

    @property
    def suspicious(self) -> bool:
        """Whether the text reads like orders to a machine."""
        return reads_like_orders(self.text)


def fetch_document(catalog: Catalog, key: str) -> Fetched:
    record = find_cited_document(catalog, key)
    return Fetched("document", record, catalog.body(record.doc_id))


def fetch_chunk(catalog: Catalog, key: str) -> Fetched:
    chunk = catalog.find_chunk(key)
    return Fetched("chunk", catalog.find_document(chunk.doc_id), chunk.text, chunk.citation, chunk.chunk_id)


def fetch_span(catalog: Catalog, citation: str) -> Fetched:
    """The text of the cited lines or the cited page."""
    cited = find_span(catalog, citation)
    return Fetched("span", cited.document, cited.text, citations.Citation(cited.document.path, cited.span))


def fetch_cited(catalog: Catalog, uri: str) -> Fetched:
    """The cited lines or page, or the whole document if the citation is only a path."""
    return fetch_span(catalog, uri) if citations.parse(uri)[1] is not None else fetch_document(catalog, uri)


class Opened(NamedTuple):
    """A whole document, and the position of the cited passage in it."""

    document: DocumentRecord
    place: str
    """The prefix of the document's path: its source, or the id and version of a library."""
    text: str
    paged: bool
    """Whether passages of the document are cited by page."""
    span: Span | None
    """The cited span, which is known to exist in the text; None if nothing is cited."""
    start: int
    end: int
    """`text[start:end]` is the cited text; empty if nothing is cited."""

    @property
    def suspicious(self) -> bool:
        return reads_like_orders(self.text)

    @property
    def front_matter(self) -> str:
        """The block of metadata at the beginning of a note; may be empty."""
        from kebab.parsing.markdown import read_front_matter

        return self.text[: read_front_matter(self.text).end]


def open_cited(catalog: Catalog, uri: str, chunk_id: str | None = None) -> Opened:
    """Returns the cited document. `chunk_id` narrows a cited page to one chunk, if that chunk still exists."""
    path, span = citations.parse(uri)
    if span is None:
        record = find_cited_document(catalog, uri)
        start = end = 0
    else:
        cited = find_span(catalog, uri)
        record, start, end = cited.document, cited.start, cited.start + len(cited.text)
    if isinstance(span, PageSpan) and chunk_id:
        start, end = _narrowed(catalog, record, chunk_id, start, end)
    place = path.partition(":")[0] if path.startswith("/") and ":" in path else record.source
    return Opened(record, place, catalog.body(record.doc_id), catalog.is_paged(record.doc_id), span, start, end)


def _narrowed(catalog: Catalog, record: DocumentRecord, chunk_id: str, start: int, end: int) -> tuple[int, int]:
    try:
        chunk = catalog.find_chunk(chunk_id)
    except StoreError:  # the document was indexed again, so the chunk is gone
        return start, end
    first, last = max(start, chunk.start_offset), min(end, chunk.end_offset)
    return (first, last) if chunk.doc_id == record.doc_id and first < last else (start, end)


def page_of_text(text: str, offset: int = 0, max_tokens: int | None = None) -> tuple[str, int | None]:
    """The part of a text from `offset` that fits `max_tokens`, and the offset of the rest, or None at the end. The part
    ends with a whole line if one fits.
    """
    if not 0 <= offset <= len(text):
        raise NotFound(
            f"offset = {offset} is beyond the text, which has {len(text)} characters.",
            hint="Take next_offset as it was given.",
        )
    rest = text[offset:]
    if max_tokens is None or estimate_tokens(rest) <= max_tokens:
        return rest, None
    low, high = 1, len(rest)  # at least one character, or a caller that reads on would never reach the end
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(rest[:middle]) <= max_tokens else (low, middle - 1)
    end = rest.rfind("\n", 0, low) + 1 or low
    return rest[:end], offset + end
