"""What everything above the store expects of one, whichever it is; of libraries: `library_ports`.

A `Store` gives a `Reading` or, to one writer at a time, a `Writing`; those give the parts that do the work. Whatever
goes wrong in any of them is a KebabError: no exception of a driver or a client passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict, Unpack

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from kebab.core.documents import Repository, Source
    from kebab.core.libraries import VectorSpace
    from kebab.core.library_ports import LibraryCatalog, LibraryReader, LibraryWriter
    from kebab.core.ports import (
        ChunkContext,
        ChunkVector,
        ColumnWeights,
        Embedder,
        EmbeddingModels,
        FileState,
        IndexedDocument,
        IndexedFile,
        Key,
        LexicalMatches,
        Middle,
        NearWord,
        NewVector,
        PendingChunk,
        StoredDocument,
        Tokenizer,
        VectorCoverage,
        VectorMatch,
    )
    from kebab.core.query_tree import QueryTree
    from kebab.core.records import (
        Check,
        ChunkRecord,
        ContentCounts,
        ContextNote,
        DocumentRecord,
        SourceRecord,
        StoreStats,
        TagRecord,
    )
    from kebab.core.search import Neighbours, QueryTerms, SearchFilters


# --- the store as a whole


class Store(Protocol):
    """Any number of threads may use it; each closes what it opened."""

    @property
    def address(self) -> str:
        """What leads here when it is given as --db; nothing secret is in it."""

    @property
    def file(self) -> Path | None:
        """Where it is on this machine; None when it is not."""

    @property
    def engine(self) -> str:
        """The software here that stores: its name and version."""

    def index_version(self) -> str:
        """Of a text index that is built now, with the settings of this store."""

    def exists(self) -> bool: ...
    def reading(self, *, whole: bool = False) -> AbstractContextManager[Reading | None]:
        """One state of what is stored, for the calling thread; None where nothing has been stored and nobody has named
        the place: an empty corpus, not an error. `whole`: nothing that was written may be missing, however long it
        takes to ask the servers that know.
        """

    def writing(
        self, purpose: str, *, existing: bool = False, mending: bool = False
    ) -> AbstractContextManager[Writing]:
        """One writer at a time, in whatever process or on whatever machine; a second one waits, and then it is Locked
        with the purpose of the first. `existing`: NotFound where there is nothing yet. `mending`: parts that are lost
        are made anew, where a store has such; for anybody else that is Corrupt.
        """

    def close(self) -> None:
        """What the calling thread opened."""

    def backup(self, target: Path, *, force: bool) -> int:
        """A copy as one file; its size in bytes. A store that is no file may refuse, with a StoreError that says how
        else to copy it.
        """

    def reset(self) -> bool:
        """Deletes all of it; whether there was something."""

    def size(self) -> int:
        """In bytes, as far as it can be told; otherwise 0."""

    def health(self) -> list[Check]:
        """What is so and what is wrong. Never raises for a store that is damaged or out of reach: that is what it
        tells.
        """

    def wholeness(self) -> list[Check]:
        """Whether all that is stored fits together, to the last chunk: each line names what does not, and what puts it
        in order. As `health`, it never raises.
        """

    def own_files(self) -> set[Path]:
        """What of it lies on this machine: never to be ingested."""


class Reading(Protocol):
    """One thread's view of the store."""

    @property
    def catalog(self) -> Catalog: ...
    @property
    def is_immutable(self) -> bool:
        """Whether it is read as it stands, because it cannot be written to."""

    def index_version(self) -> str:
        """Of the text index as it was built, whatever the settings say now; before anything is indexed, as it would be
        built.
        """

    def korean_analysis(self) -> str | None:
        """That the text index was built with; None before anything is indexed."""

    def lexical_index(self, weights: ColumnWeights) -> LexicalIndex:
        """Asks in terms of the analysis it was built with, whatever the settings say now."""

    def vectors(self) -> VectorStore: ...
    def vector_coverage(self, models: EmbeddingModels) -> VectorCoverage: ...
    def chunks(self) -> ChunkReader: ...
    def files(self, doc_ids: Collection[str] | None = None) -> Sequence[IndexedFile]:
        """Of these documents or of all, as far as they come from files."""

    def libraries(self) -> LibraryCatalog: ...
    def library_reader(self, library_id: str) -> LibraryReader: ...
    def content(self) -> ContentReader: ...
    def migrating_from(self) -> str | None:
        """The place that all of this is being carried over from, when that is not finished."""

    def stats(self) -> StoreStats: ...


class Writing(Protocol):
    """What the one writer may do, while nobody else can."""

    def documents(self, *, for_libraries: bool = False) -> DocumentStore:
        """`for_libraries`: where search of one's own documents does not look."""

    def libraries(self) -> LibraryWriter: ...
    def notes(self) -> NoteStore: ...
    def vectors(self) -> VectorWriter: ...
    def expect_vectors(self, embedders: Sequence[Embedder]) -> None:
        """Vectors of these models will be made: what it takes to hold them is had for less before there are chunks."""

    def settle_analysis(self, built_with: str | None = None) -> int:
        """Analyses all chunks again where the text index was built with another Korean analysis than the settings say;
        returns how many. `built_with`: the analysis of the store that this one becomes a copy of, instead of the
        settings'.
        """

    def rebuild_fts(self) -> int:
        """The text index and the known words anew from the stored texts; of how many chunks."""

    def optimize(self) -> None: ...
    def migrating_from(self) -> str | None:
        """As `Reading` tells it."""

    def remember_migration(self, origin: str | None) -> None:
        """That all of this is being carried over from there; None when it is done."""


# --- documents


class DocumentStore(Protocol):
    """Writing documents. Every call is seen whole or not at all; one that was interrupted may be made again."""

    def sources(self) -> Sequence[Source]:
        """Without those of libraries, by name."""

    def add_source(self, source: Source) -> None:
        """SourceError where the name is taken."""

    def remove_source(self, name: str) -> None:
        """With its documents and the notes on it."""

    def absorb_source(self, lone: str, folder: str, path: str) -> None:
        """The one file of a source now comes with its folder, under this path; what was said about it moves along."""

    def source_ingested(self, name: str, repository: Repository | None, at: str | None = None) -> None:
        """All of it has been looked at: just now, or then."""

    def has_chunks(self) -> bool:
        """Whose ever they are."""

    def known_files(self, source: str) -> Mapping[str, FileState]:
        """By path."""

    def write(self, *documents: IndexedDocument) -> int:
        """In place of what was there under their ids; how many chunks were written or changed. A chunk that stays the
        same keeps its vectors.
        """

    def touch(self, source: str, path: str, state: FileState, date: str) -> None:
        """The file's times changed, its bytes did not."""

    def date_of(self, source: str, path: str) -> str: ...
    def remove(self, source: str, paths: Iterable[str]) -> int:
        """How many of them there were."""


class NoteStore(Protocol):
    """Writing notes. A note and the terms it gives to all passages below it are seen together."""

    def source_names(self) -> Sequence[str]: ...
    def notes(self, source: str) -> Sequence[ContextNote]:
        """The outermost first."""

    def document_paths(self, source: str) -> Sequence[str]: ...
    def put(self, source: str, note: ContextNote) -> int:
        """In place of the one that was there; how many chunks have other terms because of it."""

    def remove(self, source: str, note: ContextNote) -> int: ...


class Catalog(Protocol):
    """Reading what is stored, by id, by the beginning of an id, by path."""

    @property
    def paths_on_disk(self) -> bool:
        """Whether a path on disk names a document; not for callers from elsewhere, who must not learn what is on it."""

    def documents(self, filters: SearchFilters, *, limit: int = -1, offset: int = 0) -> list[DocumentRecord]:
        """By source and path."""

    def count_documents(self, filters: SearchFilters) -> int: ...
    def all_documents(self) -> Iterator[DocumentRecord]:
        """Without those of libraries, one at a time: the caller may take as long as it likes."""

    def sources(self) -> list[SourceRecord]: ...
    def tags(self) -> list[TagRecord]:
        """The most frequent first."""

    def languages(self) -> list[str]: ...
    def formats(self) -> list[str]: ...
    def find_document(self, key: str) -> DocumentRecord:
        """By id, the beginning of an id, path, SOURCE:path, or as notes link to it. Several matches are an error that
        names them.
        """

    def in_libraries(self, path: str) -> Mapping[tuple[str, str], DocumentRecord]:
        """The documents of libraries that have this path, by library and tag, which is empty for the default branch."""

    def find_chunk(self, key: str) -> ChunkRecord: ...
    def chunks_of(self, doc_id: str) -> list[ChunkRecord]:
        """In their order."""

    def body(self, doc_id: str) -> str:
        """The document's text as it was when indexed."""

    def paths_beside(self, doc_id: str, paths: Iterable[str]) -> set[str]:
        """Which of these are documents of the same source, or of a version of a library that has this one."""

    def is_paged(self, doc_id: str) -> bool:
        """Whether its passages are cited by page."""


class ContentReader(Protocol):
    """All that was written, as it was written: to be carried to another store."""

    def stored(self, source: str) -> Mapping[str, StoredDocument]:
        """The documents of one's own source, by path."""

    def documents(self, keys: Sequence[Key]) -> Sequence[IndexedDocument]:
        """In this order, without their sources: one of a library belongs to several."""

    def spaces(self) -> Sequence[VectorSpace]:
        """Of all models that have made vectors, in the order in which they came."""

    def vectors_of(self, space: VectorSpace, chunk_ids: Sequence[str]) -> Mapping[str, ChunkVector]:
        """Of those of these chunks that have one."""

    def complete_vectors(self) -> str | None:
        """What `settle` remembered: the models for which nothing is missing. To be handed on as it is."""

    def counts(self) -> ContentCounts: ...


# --- search by words


class LexicalOptions(TypedDict):
    match: str
    drop_stop_words: bool
    filters: SearchFilters
    limit: int
    offset: NotRequired[int]
    sort: NotRequired[str]
    type_ahead: NotRequired[bool]


class LexicalIndex(Protocol):
    @property
    def tokenizer(self) -> Tokenizer: ...

    def search(self, tree: QueryTree, **options: Unpack[LexicalOptions]) -> LexicalMatches: ...
    def count(self, tree: QueryTree, *, match: str, drop_stop_words: bool, filters: SearchFilters) -> int: ...
    def near_words(self, word: str, edits: int) -> Sequence[NearWord]:
        """Known words that so many slips lead to, the nearest first and one for each stem; some may be in no chunk any
        more.
        """

    def size(self) -> int:
        """How many chunks there are."""

    def terms(self, tree: QueryTree, *, drop_stop_words: bool) -> QueryTerms:
        """What a query looks for, without looking for it."""


class KnownWords(Protocol):
    """The words that occur, unstemmed and folded: what a query needs to know before it can be asked."""

    def known(self, words: Collection[str]) -> set[str]:
        """Which of these occur."""

    def expand(self, prefix: str) -> Sequence[str]:
        """Those that begin so, one for each stem, the shortest first."""


class ChunkReader(Protocol):
    def contexts(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkContext]:
        """What is there of these chunks."""

    def neighbours(self, chunk_ids: Sequence[str], count: int) -> Mapping[str, Neighbours]:
        """Up to `count` chunks before and after each of these in its document."""


# --- vectors


class VectorOptions(TypedDict):
    filters: SearchFilters
    limit: int
    homes_only: NotRequired[bool]
    others_only: NotRequired[bool]


class VectorStore(Protocol):
    """Compares a vector with all that are stored of its space."""

    def holds(self, embedder: Embedder) -> bool:
        """Whether there are vectors of this model; the model itself is not needed for the answer."""

    def search(self, space: str, vector: Any, **options: Unpack[VectorOptions]) -> Sequence[VectorMatch]: ...
    def middle_of(self, chunk_ids: Sequence[str], embedders: Sequence[Embedder]) -> Middle | None:
        """Of these chunks, in the space where most of them are at home; None when none has a vector of these models."""


class VectorWriter(Protocol):
    def pending(self, embedders: Sequence[Embedder], *, after: Key | None, limit: int) -> Sequence[PendingChunk]:
        """Chunks without a vector in their first space, in an order that lasts; `after` is the last one seen, None for
        the beginning.
        """

    def pending_in(self, embedder: Embedder, *, after: Key | None, limit: int) -> Sequence[PendingChunk]:
        """Chunks that have none in this space."""

    def chunks(self, keys: Sequence[Key]) -> Sequence[PendingChunk]:
        """Those of these chunks that still exist, as they are now."""

    def count_pending(self, embedders: Sequence[Embedder]) -> int: ...
    def count_pending_in(self, embedder: Embedder) -> int: ...
    def is_home(self, embedder: Embedder) -> bool:
        """Whether any chunk belongs to this space first."""

    def link(self, embedder: Embedder, chunks: Sequence[tuple[Key, bytes]], *, home: bool) -> Collection[Key]:
        """Gives chunks (with the hash of their text) the vectors that are there already; which chunks that were."""

    def add(self, embedder: Embedder, vectors: Sequence[NewVector], *, home: bool) -> None:
        """A chunk that has vanished meanwhile needs none, and a text that has one already keeps it."""

    def prepare(self, spaces: Sequence[VectorSpace]) -> None:
        """Makes room for vectors of these models, before there are any."""

    def remember_complete(self, models: str | None) -> None:
        """What `ContentReader.complete_vectors` said in the store that all vectors were carried over from."""

    def keep(self, embedder: Embedder, vectors: Sequence[tuple[bytes, bytes]]) -> int:
        """Vectors (hash of the text, float16) made elsewhere, for texts that may come; how many were not there yet.
        What is no vector of length 1 is left out.
        """

    def clear(self, embedders: Sequence[Embedder]) -> None:
        """Forgets the vectors of these models. Those of others stay until theirs are made."""

    def settle(self, embedders: Sequence[Embedder], second: Embedder | None = None, *, refused: int = 0) -> None:
        """After all is embedded but for what was refused, and all of it once more by `second`: forgets other models'
        vectors, and unused ones when they have become many.
        """
