"""The ports of a store.

A `Store` gives a `Reading` or, to one writer at a time, a `Writing`; those give the parts that do the work. They
raise only KebabErrors: no exception of a driver or a client passes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict, Unpack

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from kebab.core.documents import Repository, Source
    from kebab.core.libraries import DoneFile, Library, Making, VectorSpace, VersionDocument
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
        """The value of --db for this store, without secrets."""

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
        """One state of the store, for the calling thread; None if nothing has been stored in a place that was not named
        explicitly: an empty corpus, not an error. `whole`: everything written must be visible, however long it takes
        to ask the servers that have it.
        """

    def writing(
        self, purpose: str, *, existing: bool = False, mending: bool = False
    ) -> AbstractContextManager[Writing]:
        """One writer at a time, over all processes and machines; a second one waits, and then gets Locked with the
        purpose of the first. `existing`: NotFound where nothing is stored yet. `mending`: lost parts that can be
        rebuilt are rebuilt; without it they are Corrupt.
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
        """Facts and faults of the store. Never raises: a damaged or unreachable store is a fault."""

    def integrity(self) -> list[Check]:
        """A full check of the integrity of the store: each line names a fault, and how to repair it. Never raises."""

    def own_files(self) -> set[Path]:
        """Its files on this machine, which are never ingested."""


class Reading(Protocol):
    """One thread's view of the store."""

    @property
    def catalog(self) -> Catalog: ...
    @property
    def is_immutable(self) -> bool:
        """Whether it is read without locks, because it cannot be written to."""

    def index_version(self) -> str:
        """Of the text index as it was built, not as the settings are now; of an empty index as it would be built."""

    def korean_analysis(self) -> str | None:
        """That the text index was built with; None before anything is indexed."""

    def lexical_index(self, weights: ColumnWeights) -> LexicalIndex:
        """Queries use the analysis that the index was built with, not that of the settings."""

    def vectors(self) -> VectorStore: ...
    def vector_coverage(self, models: EmbeddingModels) -> VectorCoverage: ...
    def chunks(self) -> ChunkReader: ...
    def files(self, doc_ids: Collection[str] | None = None) -> Sequence[IndexedFile]:
        """Of these documents or of all, as far as they come from files."""

    def libraries(self) -> LibraryCatalog: ...
    def library_reader(self, library_id: str) -> LibraryReader: ...
    def content(self) -> ContentReader: ...
    def migrating_from(self) -> str | None:
        """The origin of an incomplete migration into this store."""

    def stats(self) -> StoreStats: ...


class Writing(Protocol):
    """The operations of the one writer."""

    def documents(self, *, for_libraries: bool = False) -> DocumentStore:
        """`for_libraries`: where search of one's own documents does not look."""

    def libraries(self) -> LibraryWriter: ...
    def notes(self) -> NoteStore: ...
    def vectors(self) -> VectorWriter: ...
    def expect_vectors(self, embedders: Sequence[Embedder]) -> None:
        """Announces vectors of these models: creating the vector columns is cheaper before any chunk exists."""

    def settle_analysis(self, built_with: str | None = None) -> int:
        """Analyses all chunks again where the text index was built with another Korean analysis than the settings say;
        returns how many. `built_with`: the analysis of the store that this one becomes a copy of, instead of the
        settings'.
        """

    def rebuild_fts(self) -> int:
        """The text index and the known words anew from the stored texts; of how many chunks."""

    def optimize(self) -> None: ...
    def migrating_from(self) -> str | None:
        """As in `Reading`."""

    def remember_migration(self, origin: str | None) -> None:
        """Records an incomplete migration from this origin; None when it is complete."""


# --- documents


class DocumentStore(Protocol):
    """Writing documents. Every call is atomic, and may be repeated after an interruption."""

    def sources(self) -> Sequence[Source]:
        """Without those of libraries, by name."""

    def add_source(self, source: Source) -> None:
        """SourceError where the name is taken."""

    def remove_source(self, name: str) -> None:
        """With its documents and the notes on it."""

    def absorb_source(self, lone: str, folder: str, path: str) -> None:
        """Moves the one file of the source `lone` into the source of its folder, with its notes."""

    def source_ingested(self, name: str, repository: Repository | None, at: str | None = None) -> None:
        """Records that the whole source was scanned, now or `at` a time."""

    def has_chunks(self) -> bool:
        """Of users' documents or of libraries."""

    def known_files(self, source: str) -> Mapping[str, FileState]:
        """By path."""

    def write(self, *documents: IndexedDocument) -> int:
        """Replaces the documents with these ids; how many chunks were written or changed. An unchanged chunk keeps its
        vectors.
        """

    def touch(self, source: str, path: str, state: FileState, date: str) -> None:
        """The file's times changed, its bytes did not."""

    def date_of(self, source: str, path: str) -> str: ...
    def remove(self, source: str, paths: Iterable[str]) -> int:
        """How many of them there were."""


class NoteStore(Protocol):
    """Writing notes. A note and its terms on all passages below it become visible together."""

    def source_names(self) -> Sequence[str]: ...
    def notes(self, source: str) -> Sequence[ContextNote]:
        """The outermost first."""

    def document_paths(self, source: str) -> Sequence[str]: ...
    def put(self, source: str, note: ContextNote) -> int:
        """Replaces the note of this folder; how many chunks have other terms because of it."""

    def remove(self, source: str, note: ContextNote) -> int: ...


class Catalog(Protocol):
    """Documents, chunks and their metadata."""

    @property
    def paths_on_disk(self) -> bool:
        """Whether a path on disk names a document; not for callers from elsewhere, who must not learn what is on it."""

    def documents(self, filters: SearchFilters, *, limit: int = -1, offset: int = 0) -> list[DocumentRecord]:
        """By source and path."""

    def count_documents(self, filters: SearchFilters) -> int: ...
    def all_documents(self) -> Iterator[DocumentRecord]:
        """Without those of libraries, one at a time; the caller may take its time."""

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
    """The whole content, to be copied to another store."""

    def stored(self, source: str) -> Mapping[str, StoredDocument]:
        """The documents of one's own source, by path."""

    def documents(self, keys: Sequence[Key]) -> Sequence[IndexedDocument]:
        """In this order, without their sources: one of a library belongs to several."""

    def spaces(self) -> Sequence[VectorSpace]:
        """Of all models that have made vectors, in the order in which they came."""

    def vectors_of(self, space: VectorSpace, chunk_ids: Sequence[str]) -> Mapping[str, ChunkVector]:
        """Of these chunks, as far as they have one."""

    def complete_vectors(self) -> str | None:
        """The models for which `settle` found nothing missing, to be copied unchanged."""

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
        """Known words within this many edits, the nearest first and one for each stem; some may be in no chunk any
        more.
        """

    def size(self) -> int:
        """How many chunks there are."""

    def terms(self, tree: QueryTree, *, drop_stop_words: bool) -> QueryTerms:
        """The terms of a query, without a search."""


class KnownWords(Protocol):
    """The words of the corpus, unstemmed and folded, which a query is rendered with."""

    def known(self, words: Collection[str]) -> set[str]:
        """Which of these occur."""

    def expand(self, prefix: str) -> Sequence[str]:
        """Words with this prefix, one for each stem, the shortest first."""


class ChunkReader(Protocol):
    def contexts(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkContext]:
        """Those of these chunks that exist."""

    def neighbours(self, chunk_ids: Sequence[str], count: int) -> Mapping[str, Neighbours]:
        """Up to `count` chunks before and after each of these in its document."""


# --- vectors


class VectorOptions(TypedDict):
    filters: SearchFilters
    limit: int
    primary_only: NotRequired[bool]
    secondary_only: NotRequired[bool]


class VectorStore(Protocol):
    """Compares a vector with all stored vectors of its space."""

    def holds(self, embedder: Embedder) -> bool:
        """Whether there are vectors of this model; the model itself is not needed for the answer."""

    def search(self, space: str, vector: Any, **options: Unpack[VectorOptions]) -> Sequence[VectorMatch]: ...
    def middle_of(self, chunk_ids: Sequence[str], embedders: Sequence[Embedder]) -> Middle | None:
        """Of these chunks, in the primary space of most of them; None when none has a vector of these models."""


class VectorWriter(Protocol):
    def pending(self, embedders: Sequence[Embedder], *, after: Key | None, limit: int) -> Sequence[PendingChunk]:
        """Chunks without a vector in their primary space, in a fixed order; `after` is the last one seen, or None."""

    def pending_in(self, embedder: Embedder, *, after: Key | None, limit: int) -> Sequence[PendingChunk]:
        """Chunks without a vector in this space."""

    def chunks(self, keys: Sequence[Key]) -> Sequence[PendingChunk]:
        """Those of these chunks that still exist, as they are now."""

    def count_pending(self, embedders: Sequence[Embedder]) -> int: ...
    def count_pending_in(self, embedder: Embedder) -> int: ...
    def is_primary(self, embedder: Embedder) -> bool:
        """Whether any chunk belongs to this space first."""

    def link(self, embedder: Embedder, chunks: Sequence[tuple[Key, bytes]], *, primary: bool) -> Collection[Key]:
        """Gives chunks (with the hash of their text) the vectors that are stored already; returns the chunks that got
        one.
        """

    def add(self, embedder: Embedder, vectors: Sequence[NewVector], *, primary: bool) -> None:
        """Ignores chunks that were removed meanwhile, and texts that have a vector already."""

    def prepare(self, spaces: Sequence[VectorSpace]) -> None:
        """Creates empty spaces for vectors of these models."""

    def remember_complete(self, models: str | None) -> None:
        """Records `ContentReader.complete_vectors` of the store that all vectors were copied from."""

    def keep(self, embedder: Embedder, vectors: Sequence[tuple[bytes, bytes]]) -> int:
        """Stores vectors (hash of the text, float16) from elsewhere for texts to come; how many of them are new.
        Vectors of another length than 1 are left out.
        """

    def clear(self, embedders: Sequence[Embedder]) -> None:
        """Forgets the vectors of these models. Those of others stay until theirs are made."""

    def settle(self, embedders: Sequence[Embedder], second: Embedder | None = None, *, refused: int = 0) -> None:
        """After all is embedded but for what was refused, and all of it once more by `second`: forgets other models'
        vectors, and unused ones when they have become many.
        """


# --- libraries


class LibraryCatalog(Protocol):
    def libraries(self) -> list[Library]: ...
    def find(self, library_id: str) -> Library:
        """NotFound when it is not there."""

    def named(self, name: str) -> list[Library]:
        """Those with this in their title, id or description, in any case of any alphabet."""

    def kinds_of(self, chunk_ids: Iterable[str]) -> Mapping[str, str]:
        """code or info."""


class LibraryReader(Protocol):
    """All of one library, to be packed."""

    def version_documents(self) -> Sequence[VersionDocument]:
        """Of the versions that are searched, the default one first."""

    def document(self, key: Key, /) -> IndexedDocument:
        """Without a source: it belongs to several."""

    def spaces(self) -> Sequence[VectorSpace]: ...
    def vectors(self, space: VectorSpace, /) -> Iterable[tuple[bytes, bytes]]:
        """Hash of the embedded text, and float16."""


class LibraryWriter(Protocol):
    """A version is made beside the one that is searched, and takes its place when it is complete. Documents that two
    versions have in common, the same bytes under the same path, are stored once.
    """

    def describe(self, library: Library) -> None:
        """Adds a library or changes its metadata; its versions stay."""

    def begin(self, library_id: str, tag: str | None, commit: str | None) -> Making:
        """Goes on with what was begun."""

    def drop(self, making: Making, files: Iterable[DoneFile]) -> None:
        """Removes files of an earlier attempt that are no longer part of the version or must be read again, and
        documents that a killed run wrote without linking them.
        """

    def known(self, library_id: str, fingerprints: Iterable[str]) -> Mapping[tuple[str, str], Key]:
        """Documents of all versions that need not be read again, by path and key of their file."""

    def share(self, making: Making, documents: Sequence[tuple[Key, str]]) -> None:
        """Documents (with the key of their file) that other versions have too."""

    def link(self, making: Making, documents: Sequence[tuple[str, str]]) -> None:
        """Documents (id, key of their file) that were just written."""

    def finish(self, making: Making, indexed_at: str | None = None) -> int:
        """Puts it in the place of the version that is searched; how many snippets it has. `indexed_at`: if not now."""

    def fail(self, library_id: str, tag: str | None, reason: str) -> None:
        """The unfinished version stays, to go on from; the searched version stays too."""

    def forget_attempt(self, library_id: str, tag: str | None) -> None:
        """Removes an unfinished version; the searched version stays."""

    def remove(self, library_id: str, tag: str | None = None, *, whole: bool = True) -> None:
        """A version, or the whole library."""
