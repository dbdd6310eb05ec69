"""The interfaces (ports) of a store.

A `Store` opens a `Reading` or, for one writer at a time, a `Writing`. Their methods return the objects that read and
write documents, vectors and libraries. All of them raise only KebabErrors, never exceptions of a database driver.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict, Unpack

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from kebab.core import ports, records
    from kebab.core.documents import Repository, Source
    from kebab.core.libraries import DoneFile, Library, Making, VectorSpace, VersionDocument
    from kebab.core.query_tree import QueryTree
    from kebab.core.search import Neighbours, QueryTerms, SearchFilters


# --- the store as a whole


class Store(Protocol):
    """A place that keeps a knowledge base. Any number of threads may use it; each closes what it opened."""

    address: str
    """The value of --db for this store, without secrets."""
    file: Path | None
    """The database file on this machine; None if the store is elsewhere."""

    @property
    def engine(self) -> str:
        """The name and version of the storage software on this machine."""

    def index_version(self) -> str:
        """The version that a text index built now would have, with the settings of this store."""

    def exists(self) -> bool: ...
    def reading(self, *, whole: bool = False) -> AbstractContextManager[Reading | None]:
        """One state of the store, for the calling thread. None if nothing is stored yet at the default place, which is
        an empty corpus and not an error. `whole`: waits until everything written is visible on all servers.
        """

    def writing(
        self, purpose: str, *, existing: bool = False, mending: bool = False
    ) -> AbstractContextManager[Writing]:
        """Opens the store for the only writer, over all processes and machines. A second writer waits, and then gets
        Locked with the purpose of the first. `existing`: raises NotFound if nothing is stored yet. `mending`: rebuilds
        lost parts that can be rebuilt, instead of raising Corrupt.
        """

    def close(self) -> None:
        """Closes everything that the calling thread opened."""

    def backup(self, target: Path, *, force: bool) -> int:
        """Copies the store to one file and returns its size in bytes. A store on a server may raise a StoreError that
        says how else to copy it.
        """

    def reset(self) -> bool:
        """Deletes everything in the store, and returns whether there was anything."""

    def size(self) -> int:
        """The size in bytes; 0 if it is unknown."""

    def health(self) -> list[records.Check]:
        """Quick checks of the store. Never raises: for a damaged or unreachable store, a check fails."""

    def integrity(self) -> list[records.Check]:
        """Checks the whole store for damage. Each failed check names a fault and how to repair it. Never raises."""

    def own_files(self) -> set[Path]:
        """The store's own files on this machine, which are never ingested."""


class Reading(Protocol):
    """One thread's view of the store."""

    @property
    def catalog(self) -> Catalog: ...
    @property
    def is_immutable(self) -> bool:
        """Whether the store is read without locks, because it cannot be written to."""

    def index_version(self) -> str:
        """The version with which the text index was built; for an empty index, the version it would be built with."""

    def korean_analysis(self) -> str | None:
        """The Korean analysis that the text index was built with; None before anything is indexed."""

    def lexical_index(self, weights: ports.ColumnWeights) -> LexicalIndex:
        """Word search. Queries are analysed as the index was built, not as the settings say now."""

    def vectors(self) -> VectorStore: ...
    def vector_coverage(self, models: ports.EmbeddingModels) -> ports.VectorCoverage: ...
    def chunks(self) -> ChunkReader: ...
    def files(self, doc_ids: Collection[str] | None = None) -> Sequence[ports.IndexedFile]:
        """The files of these documents, or of all; documents that do not come from files are left out."""

    def libraries(self) -> LibraryCatalog: ...
    def content(self) -> ContentReader: ...
    def migrating_from(self) -> str | None:
        """The origin of an incomplete migration into this store, or None."""

    def stats(self) -> records.StoreStats: ...


class Writing(Protocol):
    """The operations of the only writer."""

    def documents(self, *, for_libraries: bool = False) -> DocumentStore:
        """Writes documents. `for_libraries`: as library documentation, which ordinary search does not find."""

    def libraries(self) -> LibraryWriter: ...
    def notes(self) -> NoteStore: ...
    def vectors(self) -> VectorWriter: ...
    def expect_vectors(self, embedders: Sequence[ports.Embedder]) -> None:
        """Announces vectors of these models, so that a store can prepare for them before it holds any chunk."""

    def settle_analysis(self, built_with: str | None = None) -> int:
        """Analyses all chunks again if the text index was built with another Korean analysis than the settings say.
        Returns how many. `built_with` replaces the analysis of the settings when another store is copied into this one.
        """

    def rebuild_fts(self) -> int:
        """Rebuilds the text index and the known words from the stored texts. Returns the number of chunks."""

    def optimize(self) -> None: ...
    def migrating_from(self) -> str | None:
        """The origin of an incomplete migration into this store, or None."""

    def remember_migration(self, origin: str | None) -> None:
        """Records that a migration from `origin` is incomplete; None records that it is complete."""


# --- documents


class DocumentStore(Protocol):
    """Writes documents. Every call is atomic, and may be repeated after an interruption."""

    def sources(self) -> Sequence[Source]:
        """All sources except those of libraries, sorted by name."""

    def add_source(self, source: Source) -> None:
        """Adds a source, or raises SourceError if the name is taken."""

    def remove_source(self, name: str) -> None:
        """Removes a source, its documents, and the notes on it."""

    def absorb_source(self, lone: str, folder: str, path: str) -> None:
        """Moves the notes of the one-file source `lone` to `path` in the source `folder`, and removes `lone`."""

    def source_ingested(self, name: str, repository: Repository | None, at: str | None = None) -> None:
        """Records that the whole source was scanned, at the time `at` or now."""

    def has_chunks(self) -> bool:
        """Whether there is any chunk, of the user's documents or of libraries."""

    def known_files(self, source: str) -> Mapping[str, ports.FileState]:
        """The recorded states of a source's files, by path."""

    def write(self, *documents: ports.IndexedDocument) -> int:
        """Adds or replaces documents. Returns how many chunks were written or changed; others keep their vectors."""

    def touch(self, source: str, path: str, state: ports.FileState, date: str) -> None:
        """Updates the recorded state and date of a file whose bytes did not change."""

    def date_of(self, source: str, path: str) -> str: ...
    def remove(self, source: str, paths: Iterable[str]) -> int:
        """Removes the documents with these paths, and returns how many there were."""


class NoteStore(Protocol):
    """Writes notes. A note, and its terms in the index of all passages below it, become visible at the same time."""

    def source_names(self) -> Sequence[str]: ...
    def notes(self, source: str) -> Sequence[records.ContextNote]:
        """The notes on a source and its folders, the outermost first."""

    def put(self, source: str, note: records.ContextNote) -> int:
        """Adds or replaces the note of its folder, and returns how many chunks got other terms."""

    def remove(self, source: str, note: records.ContextNote) -> int: ...


class Catalog(Protocol):
    """Reads documents, chunks and their metadata."""

    paths_on_disk: bool
    """Whether a document may be named by its path on disk. False for remote callers: they must not probe it."""

    def documents(self, filters: SearchFilters, *, limit: int = -1, offset: int = 0) -> list[records.DocumentRecord]:
        """The documents that pass the filters, sorted by source and path."""

    def count_documents(self, filters: SearchFilters) -> int: ...
    def all_documents(self) -> Iterator[records.DocumentRecord]:
        """All documents except those of libraries, read one at a time, so that a slow caller blocks nothing."""

    def sources(self) -> list[records.SourceRecord]: ...
    def tags(self) -> list[records.TagRecord]:
        """All tags, the most frequent first."""

    def languages(self) -> list[str]: ...
    def formats(self) -> list[str]: ...
    def find_document(self, key: str) -> records.DocumentRecord:
        """The document with this id, beginning of an id, path, SOURCE:path, or name as used in links between notes.
        Several matches raise Ambiguous, which names them.
        """

    def in_libraries(self, path: str) -> Mapping[tuple[str, str], records.DocumentRecord]:
        """The library documents with this path, by library and tag; the tag is empty for the default branch."""

    def find_chunk(self, key: str) -> ports.ChunkContext: ...
    def chunks_of(self, doc_id: str) -> list[ports.ChunkContext]:
        """The chunks of a document, in document order."""

    def body(self, doc_id: str) -> str:
        """The document's text as it was when indexed."""

    def paths_beside(self, doc_id: str, paths: Iterable[str]) -> set[str]:
        """Those of the paths that are documents of the same source or library version as this document."""

    def is_paged(self, doc_id: str) -> bool:
        """Whether passages of the document are cited by page."""


class ContentReader(Protocol):
    """Reads the whole content, for copying it to another store or exporting a library."""

    def stored(self, source: str) -> Mapping[str, ports.StoredDocument]:
        """The documents of a source that is not a library's, by path."""

    def documents(self, keys: Sequence[ports.Key]) -> Sequence[ports.IndexedDocument]:
        """The documents with these keys, in this order, without sources: a library document may have several."""

    def spaces(self) -> Sequence[VectorSpace]:
        """The spaces of all models with stored vectors, in the order in which the models were first used."""

    def vectors_of(self, space: VectorSpace, chunk_ids: Sequence[str]) -> Mapping[str, ports.ChunkVector]:
        """The vectors of these chunks in this space, by chunk id; chunks without one are left out."""

    def complete_vectors(self) -> str | None:
        """The stored names of the models for which `settle` found no vector missing; None if there are none."""

    def counts(self) -> records.ContentCounts: ...
    def library_documents(self, library_id: str) -> Sequence[VersionDocument]:
        """The documents of all versions of a library that can be searched, the default version first."""

    def library_vectors(self, library_id: str, space: VectorSpace) -> Iterable[tuple[bytes, bytes]]:
        """The library's vectors in this space, each with the hash of its text; as float16."""


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
    def tokenizer(self) -> ports.Tokenizer: ...

    def search(self, tree: QueryTree, **options: Unpack[LexicalOptions]) -> ports.LexicalMatches: ...
    def count(self, tree: QueryTree, *, match: str, drop_stop_words: bool, filters: SearchFilters) -> int: ...
    def near_words(self, word: str, edits: int) -> Sequence[ports.NearWord]:
        """Known words within `edits` of `word`, nearest first, one per stem. Some may be in no chunk any more."""

    def size(self) -> int:
        """The number of chunks."""

    def terms(self, tree: QueryTree, *, drop_stop_words: bool) -> QueryTerms:
        """The terms of a query, computed without searching."""


class KnownWords(Protocol):
    """The words of the corpus, unstemmed and case-folded; used to build the store's query."""

    def known(self, words: Collection[str]) -> set[str]:
        """Those of the words that occur in the corpus."""

    def expand(self, prefix: str) -> Sequence[str]:
        """Known words that begin with `prefix`, one per stem, the shortest first."""


class ChunkReader(Protocol):
    def contexts(self, chunk_ids: Sequence[str]) -> Mapping[str, ports.ChunkContext]:
        """The chunks with these ids, by id; missing ones are left out."""

    def texts(self, chunk_ids: Sequence[str]) -> Mapping[str, ports.ChunkText]:
        """Less of the same chunks, for less time and memory."""

    def neighbours(self, chunk_ids: Sequence[str], count: int) -> Mapping[str, Neighbours]:
        """Up to `count` chunks before and after each of these chunks in its document, by chunk id."""


# --- vectors


class VectorOptions(TypedDict):
    filters: SearchFilters
    limit: int
    primary: NotRequired[bool | None]
    """The same as `SpaceQuery.primary`."""


class VectorStore(Protocol):
    """Searches the stored vectors of a space for those closest to a given vector."""

    def holds(self, embedder: ports.Embedder) -> bool:
        """Whether there are vectors of this model. Does not load the model."""

    def search(self, space: str, vector: Any, **options: Unpack[VectorOptions]) -> Sequence[ports.VectorMatch]: ...
    def middle_of(self, chunk_ids: Sequence[str], embedders: Sequence[ports.Embedder]) -> ports.Middle | None:
        """The mean vector of these chunks in the primary space of most of them; None if they have no vectors."""


class VectorWriter(Protocol):
    def pending(
        self, embedders: Sequence[ports.Embedder], *, primary: bool = True, after: ports.Key | None, limit: int
    ) -> Sequence[ports.PendingChunk]:
        """Chunks without a vector of these models in their primary space or, if not `primary`, in any space. In a fixed
        order, following the chunk `after`.
        """

    def chunks(self, keys: Sequence[ports.Key]) -> Sequence[ports.PendingChunk]:
        """The current state of these chunks; removed ones are left out."""

    def count_pending(self, embedders: Sequence[ports.Embedder], *, primary: bool = True) -> int: ...
    def is_primary(self, embedder: ports.Embedder) -> bool:
        """Whether this model's space is the primary space of any chunk."""

    def link(
        self, embedder: ports.Embedder, chunks: Sequence[tuple[ports.Key, bytes]], *, primary: bool
    ) -> Collection[ports.Key]:
        """Assigns already stored vectors to chunks, by the hash of their text. Returns the chunks that got a vector."""

    def add(self, embedder: ports.Embedder, vectors: Sequence[ports.NewVector], *, primary: bool) -> None:
        """Stores vectors. Ignores chunks that were removed meanwhile, and texts that already have a vector."""

    def prepare(self, spaces: Sequence[VectorSpace]) -> None:
        """Creates empty spaces for vectors of these models."""

    def remember_complete(self, models: str | None) -> None:
        """Stores the value of `ContentReader.complete_vectors`, after all vectors were copied from another store."""

    def keep(self, embedder: ports.Embedder, vectors: Sequence[tuple[bytes, bytes]]) -> int:
        """Stores vectors made elsewhere (text hash, float16) for texts that may come later. Returns how many are new.
        Vectors whose length is not 1 are left out.
        """

    def expect_end(self, seconds: float) -> None:
        """Records how long the run that makes vectors still takes, for `Reading.vector_coverage`; 0 at its end."""

    def clear(self, embedders: Sequence[ports.Embedder]) -> None:
        """Deletes the vectors of these models. Vectors of other models stay."""

    def settle(
        self, embedders: Sequence[ports.Embedder], second: ports.Embedder | None = None, *, refused: int = 0
    ) -> None:
        """Called when embedding is done, including by the second model `second`, except for `refused` texts: deletes
        vectors of other models, and unused vectors once there are many of them.
        """


# --- libraries


class LibraryCatalog(Protocol):
    def libraries(self) -> list[Library]: ...
    def find(self, library_id: str) -> Library:
        """The library with this id; raises NotFound if there is none."""


class LibraryWriter(Protocol):
    """Writes library versions. A new state of a version is built separately, and replaces the searchable one when it is
    complete. A document with the same path and bytes in several versions is stored once.
    """

    def describe(self, library: Library) -> None:
        """Adds a library, or changes its metadata without changing its versions."""

    def begin(self, library_id: str, tag: str | None, commit: str | None) -> Making:
        """Starts to build a version, or continues an interrupted attempt."""

    def drop(self, making: Making, files: Iterable[DoneFile]) -> None:
        """Removes these files of an earlier attempt from the version, and documents that a killed run wrote but did not
        link to the version.
        """

    def known(self, library_id: str, fingerprints: Iterable[str]) -> Mapping[tuple[str, str], ports.Key]:
        """Documents of all versions with these fingerprints, which need not be parsed again, by path and file key."""

    def share(self, making: Making, documents: Sequence[tuple[ports.Key, str]]) -> None:
        """Adds documents that other versions already have, each with its file key, to the version."""

    def link(self, making: Making, documents: Sequence[tuple[str, str]]) -> None:
        """Adds documents (id, file key) that were just written to the version."""

    def finish(self, making: Making, indexed_at: str | None = None) -> int:
        """Replaces the searchable version with the new one. Returns its snippet count. `indexed_at`: now if None."""

    def fail(self, library_id: str, tag: str | None, reason: str) -> None:
        """Records why an attempt failed. Keeps the unfinished version, to continue later, and the searchable one."""

    def forget_attempt(self, library_id: str, tag: str | None) -> None:
        """Removes an unfinished version, and keeps the searchable one."""

    def remove(self, library_id: str, tag: str | None = None, *, whole: bool = True) -> None:
        """Removes the whole library or, if not `whole`, the version `tag`."""
