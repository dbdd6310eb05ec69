"""The ports between the rooms. Code above a port works with any implementation of it. The ports of a store are in
`store_ports`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from kebab.core.citations import Citation

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from kebab.core.documents import Chunk, ParsedDocument
    from kebab.core.search import HitList, QueryTerms, SearchQuery
    from kebab.core.spans import Span


Key = int | str
"""A store's own name for a row. Only the store that made it can read it."""


class Tokenizer(Protocol):
    """Text → terms, as the store's index cuts it."""

    def stems(self, text: str) -> list[str]: ...
    def words(self, text: str) -> list[str]: ...
    def occurrences(self, text: str, phrases: Collection[tuple[str, ...]]) -> list[tuple[int, int]]: ...


class Retriever(Protocol):
    """Search in one mode. The list is ordered, best first."""

    def search(self, query: SearchQuery) -> HitList: ...
    def index_version(self) -> str: ...


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
    date: str
    embedding_model: str | None = None
    notes: tuple[str, ...] = ()
    """On the document's source and folders, the outermost first."""

    @property
    def citation(self) -> Citation:
        """Of the first span, which covers the whole chunk."""
        return Citation(self.doc_path, self.spans[0], self.section_label, self.content_hash)


class ColumnWeights(NamedTuple):
    """How much a word counts in each part of a chunk."""

    title: float = 8.0
    heading: float = 2.0
    text: float = 1.0
    cjk: float = 1.0


class LexicalMatch(NamedTuple):
    bm25: float
    """As FTS5 gives it: negative, lower is better."""
    chunk_id: str
    doc_type: str


class LexicalMatches(NamedTuple):
    matches: tuple[LexicalMatch, ...]
    more: bool
    """Whether further matches follow the last one."""
    terms: QueryTerms
    expression: str
    """What the store was asked, in its own language; for explanations only."""
    dropped: tuple[str, ...] = ()
    """Stop words that were left out of it."""
    shortened: bool = False
    """Whether the query was so long that only a part of it was looked for."""


class NearWord(NamedTuple):
    """A word of the corpus that is spelt almost like another one."""

    word: str
    edits: int
    """Letters inserted, left out, replaced or swapped."""


EmbeddingKind = Literal["query", "passage"]
"""Some models want to be told which of the two a text is."""

Vectors = Any
"""A numpy array of float32 with one row per text, each of length 1. The core itself does without numpy."""


class Embedder(Protocol):
    """One model, and so one space of vectors. The vector of a text does not depend on what else is embedded with it."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def fingerprint(self) -> str:
        """model@version:dimension; vectors of two fingerprints are never compared."""

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors: ...


class WordsAlike(Protocol):
    """How alike words are in meaning. The same words are always equally alike."""

    def __call__(self, words: Sequence[str], others: Sequence[str]) -> Sequence[Sequence[float]]:
        """For each word, its cosine with each of the others."""


class VectorMatch(NamedTuple):
    chunk_id: str
    similarity: float
    """Cosine, −1 to 1."""
    primary: bool
    """Whether this is the chunk's primary space; otherwise the chunk is written in another script than the space is
    made for.
    """


class Middle(NamedTuple):
    """Where several chunks stand together: the mean of their vectors, of length 1."""

    space: str
    """The fingerprint of its space, as it is stored: a model need not be asked for it."""
    vector: Any
    embedder: Embedder
    """What made these vectors."""


class VectorCoverage(NamedTuple):
    """What part of a corpus has vectors of the models in use."""

    chunks: int | None
    """None if all of them have one; then they are not counted."""
    embedded: int | None
    index_version: str
    other_models: tuple[str, ...]
    """Models that are not in use and have left vectors."""

    @property
    def any(self) -> bool:
        return self.embedded is None or self.embedded > 0

    @property
    def missing(self) -> int:
        return 0 if self.chunks is None or self.embedded is None else self.chunks - self.embedded


class PendingChunk(NamedTuple):
    """A chunk that needs a vector."""

    key: Key
    path: str
    title: str
    headings: tuple[str, ...]
    text: str
    chunk_id: str


class NewVector(NamedTuple):
    text_hash: bytes
    vector: Any
    chunks: Sequence[Key]
    """All chunks that have this very text."""


class ChunkVector(NamedTuple):
    """The vector of a chunk in one space, as it is stored."""

    text_hash: bytes
    vector: bytes
    """float16"""
    primary: bool
    """Whether this is the chunk's primary space."""


class SpaceQuery(NamedTuple):
    """A space that a query enters, and which of its chunks it may find there."""

    embedder: Embedder
    primary_only: bool = False
    """Only chunks whose primary space this is: the others are found in theirs."""
    secondary_only: bool = False
    """Only chunks that have another primary space: what the question's own words cannot reach."""
    bonus: float = 0.0
    """Added to its cosines where they are put in order with those of another scope of the same query."""
    floor: float = -1.0
    """Cosines below this are as likely between texts that have nothing to do with each other."""
    weak: bool = False
    """Whether words know better than this space about chunks in its own script; such hits weigh less."""
    instead: bool = False
    """Entered only when none of the query's other spaces holds anything."""


class EmbeddingModels(Protocol):
    """All spaces of a knowledge base: the primary and secondary ones of a chunk, and those that a query enters."""

    @property
    def embedders(self) -> Sequence[Embedder]: ...
    def primary_of(self, text: str, /) -> Embedder:
        """The space that suits this text best."""

    def secondary_of(self, text: str, /) -> Embedder | None:
        """Another space that this text enters, because a good part of it suits that one."""

    def secondary_for_all(self, *, other_scripts: bool) -> Embedder | None:
        """The space that all chunks enter too; `other_scripts`: whether the corpus has text that is not in Latin
        script.
        """

    def for_query(self, text: str, /) -> Sequence[SpaceQuery]: ...


class Message(NamedTuple):
    """A message to a chat model."""

    role: str
    """system or user"""
    content: str


class Written(NamedTuple):
    """What a chat model wrote."""

    text: str
    stopped: bool = False
    """Whether it was given up before it was done."""
    cut_off: bool = False
    """Whether it would have gone on, had it been allowed to."""


class ChatModel(Protocol):
    """Writes answers. The same messages ask for the same words."""

    name: str

    def write(
        self,
        messages: Sequence[Message],
        *,
        on_text: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Written:
        """All of it, each piece given to `on_text` as it comes, until `stop` says so."""


class Parser(Protocol):
    """Bytes of one file → a document, or ParseError and nothing else."""

    version: str
    keeps_lines: bool
    """Whether a line of the document's text is the line of the file with the same number."""
    isolated: bool
    """Whether it must run in a process of its own: what it is made of may crash, or a file may be made to take all it
    can. Markdown and plain text are read by code of ours that takes time and memory in proportion to the file.
    """

    def parse(self, data: bytes, path: str) -> ParsedDocument: ...


@runtime_checkable
class BackgroundParser(Parser, Protocol):
    """One that works while its caller does something else."""

    def begin(self, data: bytes, path: str) -> Callable[[], ParsedDocument]:
        """Starts; what it returns waits for the end, and raises what `parse` would."""


class Chunker(Protocol):
    version: str

    def chunk(self, document: ParsedDocument) -> list[Chunk]: ...


class FileState(NamedTuple):
    """What the store remembers of a file, to tell whether it changed."""

    size: int
    mtime_ns: int | None
    content_hash: str
    fingerprint: str


class IndexedFile(NamedTuple):
    """A file as it was when it was indexed, to tell whether it has changed since."""

    doc_id: str
    root: str
    """Of its source: a folder, or the file itself."""
    kind: str
    path: str
    size: int
    mtime_ns: int | None
    """None when the file was so young that its time proved nothing."""
    indexed_at: str
    ingested_at: str
    """When its source was last looked through."""

    @property
    def place(self) -> str:
        return self.root if self.kind == "file" else f"{self.root}/{self.path}"


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
    doc_id: str | None = None
    """Where it does not follow from source and path."""
    indexed_at: str | None = None
    """Where it was indexed before; otherwise that is now."""


class StoredDocument(NamedTuple):
    """A document as a store remembers it, without its text."""

    key: Key
    doc_id: str
    state: FileState


class TreeFile(NamedTuple):
    path: str
    key: str
    """The same for the same bytes, so a file with a known key need not be read."""
    size: int


class FileReader(Protocol):
    def read(self, file: TreeFile, /) -> bytes: ...


class FileTree(Protocol):
    """Files as they were at one moment: of a commit, a folder, an archive."""

    @property
    def commit(self) -> str | None: ...
    def files(self) -> Sequence[TreeFile]: ...
    def reading(self) -> AbstractContextManager[FileReader]: ...


class Progress(Protocol):
    """Called with each step of an ingest; must be quick."""

    def __call__(self, event: str, **details: Any) -> None: ...
