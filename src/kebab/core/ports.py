"""The interfaces (ports) between packages, except those of a store, which are in `store_ports`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from kebab.core.citations import Citation

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from kebab.core.citations import Span
    from kebab.core.documents import Chunk, ParsedDocument
    from kebab.core.search import HitList, QueryTerms, SearchQuery


Key = int | str
"""A store's own identifier of a row. It is valid only in that store."""


class Tokenizer(Protocol):
    """Cuts text into terms in the same way as the store's index."""

    def stems(self, text: str) -> list[str]: ...
    def words(self, text: str) -> list[str]: ...
    def occurrences(self, text: str, phrases: Collection[tuple[str, ...]]) -> list[tuple[int, int]]: ...


class Retriever(Protocol):
    """Searches in one mode."""

    def search(self, query: SearchQuery) -> HitList:
        """The hits number `query.offset + 1` to `query.offset + query.k`, best first."""

    def index_version(self) -> str:
        """A text that changes whenever the same query may get other hits. Cursors of an older version are refused."""


class ChunkContext(NamedTuple):
    """A stored chunk, with the fields of its document that are shown with it."""

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
    ordinal: int
    kind: str
    start_offset: int
    end_offset: int
    embedding_model: str | None = None
    notes: tuple[str, ...] = ()
    """The user's notes on the document's source and folders, the outermost first."""

    @property
    def citation(self) -> Citation:
        """A citation of the first span, which covers the whole chunk."""
        return Citation(self.doc_path, self.spans[0], self.section_label, self.content_hash)

    @property
    def context(self) -> tuple[str, ...]:
        """The notes, under the name that users see."""
        return self.notes


class ChunkText(NamedTuple):
    """The part of a ChunkContext that decides which passages are listed."""

    doc_id: str
    text: str
    content_hash: str = ""


class ColumnWeights(NamedTuple):
    """How much a word counts in each part of a chunk."""

    title: float = 8.0
    heading: float = 2.0
    text: float = 1.0
    cjk: float = 1.0


class LexicalMatch(NamedTuple):
    bm25: float
    """The value that FTS5 returns: negative, and lower is better."""
    chunk_id: str
    doc_type: str


class LexicalMatches(NamedTuple):
    matches: tuple[LexicalMatch, ...]
    more: bool
    """Whether further matches follow the last one."""
    terms: QueryTerms
    expression: str
    """The query in the store's own syntax; used only in explanations."""
    dropped: tuple[str, ...] = ()
    """Stop words that were left out of the query."""
    shortened: bool = False
    """Whether the query was too long, so that only a part of it was searched for."""


class NearWord(NamedTuple):
    """A word of the corpus whose spelling is close to a given word."""

    word: str
    edits: int
    """The number of letters inserted, left out, replaced or swapped."""


EmbeddingKind = Literal["query", "passage"]
"""Whether a text is a query or a passage; some models embed the two differently."""

Vectors = Any
"""A numpy array of float32 with one unit vector per row. Typed as Any because the core does not import numpy."""


class Embedder(Protocol):
    """One model, which defines one vector space. A text's vector does not depend on the other texts of the call."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def dimension(self) -> int: ...
    @property
    def fingerprint(self) -> str:
        """model@version:dimension. Vectors with different fingerprints are never compared."""

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors: ...


class Reranker(Protocol):
    """A cross-encoder: reads a query and a passage together. Better than comparing their vectors, and far slower."""

    @property
    def name(self) -> str: ...
    def reads(self, text: str, kind: EmbeddingKind) -> bool:
        """Whether the model knows the script of a text."""

    def scores(self, query: str, passages: Sequence[str]) -> list[float]:
        """How well each passage answers the query. A time limit may end the list early. A score does not depend on the
        other passages.
        """


class WordsAlike(Protocol):
    """Compares words by meaning. The result is the same at every call."""

    def __call__(self, words: Sequence[str], others: Sequence[str]) -> Sequence[Sequence[float]]:
        """For each of `words`, its cosine with each of `others`."""


class VectorMatch(NamedTuple):
    chunk_id: str
    similarity: float
    """Cosine, −1 to 1."""
    primary: bool
    """Whether the searched space is the chunk's primary one. If not, another space suits the chunk's script better."""
    doc_type: str


class Middle(NamedTuple):
    """The mean of several chunks' vectors, scaled to length 1."""

    space: str
    """The stored fingerprint of the space, so that no model must be loaded to know it."""
    vector: Any
    embedder: Embedder
    """The model that made these vectors."""


class VectorCoverage(NamedTuple):
    """How much of a corpus has vectors of the models in use."""

    chunks: int | None
    """None if every chunk has a vector; chunks are then not counted."""
    embedded: int | None
    index_version: str
    other_models: tuple[str, ...]
    """Models that are no longer in use, but whose vectors are still stored."""
    seconds_left: float | None = None
    """How long the run that makes the missing vectors still takes; None if none is known to run."""

    @property
    def any(self) -> bool:
        return self.embedded is None or self.embedded > 0

    def is_behind(self, earlier: VectorCoverage) -> bool:
        """Whether the vectors of other models cover more, so that a search should still use those."""
        if self.chunks is None:
            return False
        return earlier.chunks is None or (earlier.embedded or 0) > (self.embedded or 0)

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
    """All chunks with exactly this text."""


class ChunkVector(NamedTuple):
    """The stored vector of a chunk in one space."""

    text_hash: bytes
    vector: bytes
    """float16"""
    primary: bool
    """Whether this is the chunk's primary space."""


class SpaceQuery(NamedTuple):
    """One vector space that a query searches, and which chunks the query may find there."""

    embedder: Embedder
    primary: bool | None = None
    """Whether to find only chunks whose primary space this is, because other chunks are found in their own (True); or
    only chunks with another primary space, which the words of the query cannot find (False); or both (None).
    """
    bonus: float = 0.0
    """Added to the cosines of this space when they are sorted together with those of another one of the same query."""
    floor: float = -1.0
    """Cosines below this are as likely between unrelated texts."""
    trust: float = 1.0
    """How reliable this space is for chunks in its own script, beside word search: their weight, from 0 to 1."""
    instead: bool = False
    """Whether to search this space only when the query's other spaces hold no vectors."""


class EmbeddingModels(Protocol):
    """All models of a knowledge base. Decides which spaces a chunk is embedded in, and which ones a query searches."""

    @property
    def embedders(self) -> Sequence[Embedder]: ...
    @property
    def earlier(self) -> EmbeddingModels | None:
        """The models that may have made the stored vectors before the settings named these, or None."""

    def primary_of(self, text: str, /) -> Embedder:
        """The model that suits this text best; its space is the primary space of the text."""

    def secondary_of(self, text: str, /) -> Embedder | None:
        """A second model to embed this text with, because it suits a good part of the text; otherwise None."""

    def secondary_for_all(self, *, other_scripts: bool) -> Embedder | None:
        """A second model to embed all chunks with, or None. `other_scripts`: whether the corpus has non-Latin text."""

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
    """Whether the caller stopped the model before it was done."""
    cut_off: bool = False
    """Whether the text ends because it reached the maximum length."""


class ChatModel(Protocol):
    """Writes answers. Requests are set up so that equal messages give equal answers."""

    name: str

    def write(
        self,
        messages: Sequence[Message],
        *,
        on_text: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Written:
        """Returns the whole text. Passes each piece to `on_text` on arrival. Ends early once `stop` returns true."""


class Parser(Protocol):
    """Turns the bytes of one file into a document. Raises only ParseError."""

    version: str
    keeps_lines: bool
    """Whether line n of the document's text is line n of the file."""
    isolated: bool
    """Whether the parser must run in its own process, because a crafted file may crash it or exhaust time and memory.
    The parsers of Markdown and plain text need not: their cost is proportional to the file.
    """

    def parse(self, data: bytes, path: str) -> ParsedDocument: ...


@runtime_checkable
class BackgroundParser(Parser, Protocol):
    """A parser that can work in the background."""

    def begin(self, data: bytes, path: str) -> Callable[[], ParsedDocument]:
        """Starts parsing and returns a function that waits for the result, or raises the error that `parse` would."""


class Chunker(Protocol):
    version: str

    def chunk(self, document: ParsedDocument) -> list[Chunk]: ...


class FileState(NamedTuple):
    """What the store keeps of a file to detect changes."""

    size: int
    mtime_ns: int | None
    content_hash: str
    fingerprint: str


class IndexedFile(NamedTuple):
    """An indexed file, with the values that show whether it changed since then."""

    doc_id: str
    root: str
    """The root of its source: a folder, or the file itself."""
    kind: str
    path: str
    size: int
    mtime_ns: int | None
    """None if the file was changed so shortly before indexing that its time cannot reveal another change."""
    indexed_at: str
    ingested_at: str
    """When its whole source was last scanned."""

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
    """The id, if it cannot be computed from source and path; otherwise None."""
    indexed_at: str | None = None
    """When the document was indexed, if it is copied from another store; None means now."""


class StoredDocument(NamedTuple):
    """A stored document, without its text."""

    key: Key
    doc_id: str
    state: FileState


class TreeFile(NamedTuple):
    path: str
    key: str
    """Identical for identical bytes, so a file with a known key need not be read again."""
    size: int


class FileReader(Protocol):
    def read(self, file: TreeFile, /) -> bytes: ...


class FileTree(Protocol):
    """The files of a commit, a folder or an archive at one moment."""

    @property
    def commit(self) -> str | None: ...
    def files(self) -> Sequence[TreeFile]: ...
    def reading(self) -> AbstractContextManager[FileReader]: ...


class Progress(Protocol):
    """Called with each step of an ingest; must be quick."""

    def __call__(self, event: str, **details: Any) -> None: ...
