"""Fetches indexed text verbatim: a document, a chunk, or the cited lines or page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from kebab.analysis.orders import reads_like_orders
from kebab.core import citations
from kebab.core.errors import NotFound, StoreError
from kebab.core.records import DocumentRecord
from kebab.core.spans import PageSpan, Span
from kebab.core.text import estimate_tokens
from kebab.search.lookup import find_cited_document, find_span

if TYPE_CHECKING:
    from kebab.core.store_ports import Catalog


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
