"""Indexed text, verbatim: of a document, a chunk, or exactly the lines or page that a citation names."""

from __future__ import annotations

from typing import Literal, NamedTuple

from kebab.core import citations
from kebab.core.errors import NotFound
from kebab.core.records import DocumentRecord
from kebab.core.text import estimate_tokens
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


def fetch_cited(catalog: PassageCatalog, uri: str) -> Fetched:
    """What a citation names; a path alone is the whole document."""
    return fetch_span(catalog, uri) if citations.parse(uri)[1] is not None else fetch_document(catalog, uri)


def page_of_text(text: str, offset: int = 0, max_tokens: int | None = None) -> tuple[str, int | None]:
    """What of a text fits into a budget of tokens, from `offset` on, and where the rest begins; whole lines where one fits."""
    if not 0 <= offset <= len(text):
        raise NotFound(f"offset = {offset} is beyond the text, which has {len(text)} characters.", hint="Take next_offset as it was given.")
    rest = text[offset:]
    if max_tokens is None or estimate_tokens(rest) <= max_tokens:
        return rest, None
    low, high = 1, len(rest)  # at least one character, or reading on would never end
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if estimate_tokens(rest[:middle]) <= max_tokens else (low, middle - 1)
    end = rest.rfind("\n", 0, low) + 1 or low
    return rest[:end], offset + end
