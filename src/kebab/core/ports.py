"""What the parts expect of each other. Everything above a port works with any implementation of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from kebab.core.documents import Chunk, ParsedDocument
    from kebab.core.query_tree import QueryTree
    from kebab.core.search import HitList, SearchFilters, SearchQuery
    from kebab.core.spans import Span


class Tokenizer(Protocol):
    """Text → terms, as the store's index cuts it."""

    def stems(self, text: str) -> list[str]: ...
    def words(self, text: str) -> list[str]: ...
    def occurrences(self, text: str, phrases: Collection[tuple[str, ...]]) -> list[tuple[int, int]]: ...


class Retriever(Protocol):
    """Search in one mode. The list is ordered, best first."""

    def search(self, query: SearchQuery) -> HitList: ...
    def index_version(self) -> str: ...


class QueryTerms(NamedTuple):
    """What a hit may show as found: words and phrases as sequences of stems, and CJK strings as they were typed."""

    phrases: frozenset[tuple[str, ...]]
    cjk: tuple[str, ...]


class ChunkContext(NamedTuple):
    """A stored chunk with what a hit needs to know of its document."""

    chunk_id: str
    doc_id: str
    doc_path: str
    title: str
    heading_path: tuple[str, ...]
    section_label: str | None
    text: str
    spans: tuple[Span, ...]
    content_hash: str
    chunker_version: str
    doc_type: str
    lang: str
    tags: tuple[str, ...]
    trust_level: str
    source: str
    indexed_at: str


class LexicalMatch(NamedTuple):
    bm25: float
    """As FTS5 gives it: negative, lower is better."""
    chunk: ChunkContext


class LexicalMatches(NamedTuple):
    matches: tuple[LexicalMatch, ...]
    more: bool
    """Whether further matches follow the last one."""
    terms: QueryTerms
    expression: str
    """What the store was asked, in its own language; for explanations only."""
    dropped: tuple[str, ...] = ()
    """Stop words that were left out of it."""


class LexicalIndex(Protocol):
    @property
    def tokenizer(self) -> Tokenizer: ...

    def search(
        self,
        tree: QueryTree,
        *,
        match: str,
        drop_stop_words: bool,
        filters: SearchFilters,
        limit: int,
        offset: int = 0,
        sort: str = "relevance",
        type_ahead: bool = False,
    ) -> LexicalMatches: ...

    def count(self, tree: QueryTree, *, match: str, drop_stop_words: bool, filters: SearchFilters) -> int: ...


class Parser(Protocol):
    """Bytes of one file → a document, or ParseError and nothing else."""

    version: str

    def parse(self, data: bytes, path: str) -> ParsedDocument: ...


class Chunker(Protocol):
    version: str

    def chunk(self, document: ParsedDocument) -> list[Chunk]: ...


class FileState(NamedTuple):
    """What the store remembers of a file, to tell whether it changed."""

    size: int
    mtime_ns: int | None
    content_hash: str
    fingerprint: str


class IndexedDocument(NamedTuple):
    """A parsed and chunked document, ready to be stored."""

    source: str
    path: str
    state: FileState
    parsed: ParsedDocument
    chunks: Sequence[Chunk]
    chunker_version: str
    date: str
    trust_level: str


class DocumentStore(Protocol):
    """Writing side. Every call is one transaction: seen whole or not at all."""

    def known_files(self, source: str) -> dict[str, FileState]: ...
    def write(self, document: IndexedDocument) -> int: ...
    def touch(self, source: str, path: str, state: FileState) -> None: ...
    def remove(self, source: str, paths: Iterable[str]) -> int: ...


class Progress(Protocol):
    """Told what an ingest is doing; must be quick."""

    def __call__(self, event: str, **details: Any) -> None: ...
