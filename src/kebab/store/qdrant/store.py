"""The store in a Qdrant cluster as a whole: who may read, who may write, and what they get to do it with.

Above this module nobody sees a request or what a server said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kebab.config.cluster_address import ClusterAddress
from kebab.core.errors import StoreError
from kebab.core.indexed_file import IndexedFile
from kebab.core.libraries import VectorSpace
from kebab.core.ports import ColumnWeights
from kebab.store.fts5.index_config import fts_config, lexical_index_version
from kebab.store.qdrant.client import Answered, Client, our_errors
from kebab.store.qdrant.lexical import QdrantLexicalIndex
from kebab.store.qdrant.schema import SCHEMA, Layout, Schema
from kebab.store.qdrant.state import State, read_state, remember
from kebab.store.qdrant.term_lookup import TermLookup

if TYPE_CHECKING:
    from kebab.config.settings import StoreSettings
    from kebab.core.ports import Embedder, EmbeddingModels, VectorCoverage
    from kebab.core.records import Check, StoreStats
    from kebab.store.qdrant.catalog import QdrantCatalog
    from kebab.store.qdrant.chunk_reader import QdrantChunkReader
    from kebab.store.qdrant.content_reader import QdrantContentReader
    from kebab.store.qdrant.documents import QdrantDocumentStore
    from kebab.store.qdrant.index_writer import IndexWriter
    from kebab.store.qdrant.libraries import QdrantLibraryCatalog
    from kebab.store.qdrant.library_reader import QdrantLibraryReader
    from kebab.store.qdrant.library_writer import QdrantLibraryWriter
    from kebab.store.qdrant.notes import QdrantNoteStore
    from kebab.store.qdrant.payloads import Payload
    from kebab.store.qdrant.vector_writer import QdrantVectorWriter
    from kebab.store.qdrant.vectors import QdrantVectorStore
    from kebab.store.qdrant.writer_lease import WriterLease

_THREADS = 8
"""Each begins when it is first needed, and waits for the answer of a server most of its time."""


class QdrantReading:
    """One thread's view of the store. What is small is read once, at the beginning."""

    def __init__(self, schema: Schema, state: State, lookup: TermLookup, address: str, *, paths_on_disk: bool) -> None:
        self._schema = schema
        self._lookup = lookup
        self._address = address
        self._state = state
        self._paths_on_disk = paths_on_disk
        self._known: dict[str, Payload] = {}
        """Payloads of chunks that came with the answer to a search."""

    @property
    def catalog(self) -> QdrantCatalog:
        from kebab.store.qdrant.catalog import QdrantCatalog

        return QdrantCatalog(self._schema, self._state, paths_on_disk=self._paths_on_disk)

    @property
    def is_immutable(self) -> bool:
        return False

    def index_version(self, korean_analysis: str) -> str:
        return lexical_index_version(self._state.fts_config or fts_config(korean_analysis), SCHEMA)

    def korean_analysis(self) -> str | None:
        return self._state.korean_analysis

    def lexical_index(self, korean_analysis: str, weights: ColumnWeights) -> QdrantLexicalIndex:
        return QdrantLexicalIndex(
            self._schema,
            self._state,
            self._lookup,
            korean_analysis=self._state.korean_analysis or korean_analysis,
            weights=weights,
        )

    def vectors(self) -> QdrantVectorStore:
        from kebab.store.qdrant.vectors import QdrantVectorStore

        return QdrantVectorStore(self._schema, self._state, self._known)

    def vector_coverage(self, models: EmbeddingModels) -> VectorCoverage:
        from kebab.store.qdrant.vectors import coverage

        return coverage(self._schema, self._state, models)

    def chunks(self) -> QdrantChunkReader:
        from kebab.store.qdrant.chunk_reader import QdrantChunkReader

        return QdrantChunkReader(self._schema, self._state, self._known)

    def files(self, doc_ids: Collection[str] | None = None) -> list[IndexedFile]:
        from kebab.store.qdrant.index_writer import document_point_id

        fields = ["doc", "source", "path", "size", "mtime_ns", "indexed_at"]
        documents = self._schema.documents
        points = (
            documents.scroll(payload=fields)
            if doc_ids is None
            else documents.retrieve(map(document_point_id, doc_ids), payload=fields)
        )
        found = []
        for point in points:
            payload = point["payload"]
            source = self._state.sources.get(payload["source"])
            if source is not None and source.root is not None:
                facts = (payload["path"], payload["size"], payload.get("mtime_ns"), payload["indexed_at"])
                found.append(
                    IndexedFile(
                        payload["doc"], source.root, source.kind, *facts, source.ingested_at or payload["indexed_at"]
                    )
                )
        return found

    def libraries(self) -> QdrantLibraryCatalog:
        from kebab.store.qdrant.libraries import QdrantLibraryCatalog

        return QdrantLibraryCatalog(self._schema)

    def library_reader(self, library_id: str) -> QdrantLibraryReader:
        from kebab.store.qdrant.library_reader import QdrantLibraryReader

        return QdrantLibraryReader(self._schema, self.content(), library_id)

    def content(self) -> QdrantContentReader:
        from kebab.store.qdrant.content_reader import QdrantContentReader

        return QdrantContentReader(self._schema, self._state)

    def migrating_from(self) -> str | None:
        return self._state.meta.get("migrating_from")

    def stats(self) -> StoreStats:
        from kebab.store.qdrant.maintenance import stats

        return stats(self._schema, self._state, self._address, self._schema.server_version())


class QdrantWriting:
    """What the one writer may do, while it holds the lease."""

    def __init__(self, writer: IndexWriter) -> None:
        self._writer = writer

    def documents(self, korean_analysis: str, *, for_libraries: bool = False) -> QdrantDocumentStore:
        from kebab.store.fts5.tokenizer import SqliteTokenizer
        from kebab.store.qdrant.documents import QdrantDocumentStore
        from kebab.store.qdrant.vocabulary import Vocabulary

        vocabulary = Vocabulary(self._writer.schema.terms, SqliteTokenizer())
        return QdrantDocumentStore(
            self._writer, vocabulary, korean_analysis=korean_analysis, for_libraries=for_libraries
        )

    def libraries(self) -> QdrantLibraryWriter:
        from kebab.store.qdrant.library_writer import QdrantLibraryWriter

        return QdrantLibraryWriter(self._writer, self.documents("", for_libraries=True))

    def notes(self, korean_analysis: str) -> QdrantNoteStore:
        from kebab.store.qdrant.notes import QdrantNoteStore

        return QdrantNoteStore(self._writer, korean_analysis=korean_analysis)

    def vectors(self) -> QdrantVectorWriter:
        from kebab.store.qdrant.vector_writer import QdrantVectorWriter

        # Making vectors may take hours, and whoever searches meanwhile wants to know how rare words are.
        self._writer.settle()
        self._writer.flush()
        return QdrantVectorWriter(self._writer)

    def expect_vectors(self, embedders: Sequence[Embedder]) -> None:
        self.vectors().prepare(
            [VectorSpace(embedder.name, embedder.version, embedder.dimension) for embedder in embedders]
        )

    def settle_analysis(self, korean_analysis: str) -> int:
        wanted, stored = fts_config(korean_analysis), self._writer.state.fts_config
        if stored is None:
            remember(self._writer.schema.catalog, fts_config=wanted)
            self._writer.state.meta["fts_config"] = wanted
        was_interrupted = self._writer.state.meta.get("analysing")
        return self.rebuild_fts(korean_analysis) if was_interrupted or stored not in (None, wanted) else 0

    def rebuild_fts(self, korean_analysis: str) -> int:
        from kebab.store.qdrant.maintenance import rebuild_fts

        return rebuild_fts(self._writer, korean_analysis)

    def optimize(self) -> None:
        """The servers do that by themselves; what nobody needs any more goes."""
        from kebab.store.qdrant.maintenance import forget_unused_words

        self.vectors().drop_unused()
        forget_unused_words(self._writer)

    def migrating_from(self) -> str | None:
        return self._writer.state.meta.get("migrating_from")

    def remember_migration(self, origin: str | None) -> None:
        remember(self._writer.schema.catalog, migrating_from=origin)


class QdrantStore:
    def __init__(self, address: ClusterAddress, settings: StoreSettings, *, paths_on_disk: bool = True) -> None:
        """Nothing is asked before somebody reads or writes."""
        self._address = address
        self._client = Client(address, api_key=settings.api_key, timeout_s=settings.timeout_s)
        layout = Layout(*(getattr(settings, field) for field in Layout._fields))
        self._schema = Schema(self._client, layout)
        self._searched = Schema(self._client, layout, careful=False)
        self._threads = ThreadPoolExecutor(_THREADS, "qdrant")
        self._lock_wait_s = settings.lock_wait_s
        self._paths_on_disk = paths_on_disk

    def _our_errors(self) -> AbstractContextManager[None]:
        return our_errors(self._address, missing=self._schema.lacks_parts)

    @property
    def address(self) -> str:
        return str(self._address)

    @property
    def file(self) -> Path | None:
        return None

    @property
    def engine(self) -> str:
        try:
            with self._our_errors():
                return f"Qdrant {self._schema.server_version()}"
        except StoreError:  # what is wrong, others say
            return "Qdrant"

    def index_version(self, korean_analysis: str) -> str:
        return lexical_index_version(fts_config(korean_analysis), SCHEMA)

    def exists(self) -> bool:
        with self._our_errors():
            return self._schema.exists()

    @contextmanager
    def reading(self, *, about: str = "", whole: bool = False) -> Iterator[QdrantReading | None]:
        with self._our_errors():
            if whole:
                self._client.turn_to_the_foremost()
            lookup = TermLookup(self._searched.terms)
            read_answer = lookup.begin(about) if about else lambda: None
            state = self._state()
            read_answer()
            yield QdrantReading(self._searched, state, lookup, self.address, paths_on_disk=self._paths_on_disk)

    def _state(self) -> State:
        """In one round trip, where there is something."""
        try:
            state = read_state(self._searched.catalog)
        except Answered as error:
            if error.status != 404:
                raise
        else:
            if state.meta.get("schema") == SCHEMA:
                return state
        self._searched.require()  # which says what is wrong
        return read_state(self._searched.catalog)

    @contextmanager
    def writing(self, purpose: str, *, existing: bool = False, mending: bool = False) -> Iterator[QdrantWriting]:
        from kebab.store.qdrant.index_writer import IndexWriter
        from kebab.store.qdrant.recovery import recover

        with self._our_errors():
            self._client.turn_to_the_foremost()
            with self._lease_on_it(purpose, existing=existing) as lease:
                schema = self._schema.for_writer(lease.check)
                schema.take_into_use(mending=mending)
                writer = IndexWriter(schema, self._threads)
                recover(writer)
                try:
                    yield QdrantWriting(writer)
                except BaseException:
                    writer.flush_if_possible()
                    raise
                writer.finish()

    def close(self) -> None:
        self._client.close()

    def backup(self, target: Path, *, force: bool) -> int:  # noqa: ARG002  # nothing is written
        raise StoreError(
            "A Qdrant cluster is not copied into a file.",
            hint=f"Carry it over with: kb migrate --to {target}; or make snapshots on the servers.",
        )

    def reset(self) -> bool:
        with self._our_errors():
            self._client.turn_to_the_foremost()
            if not self._schema.has_begun():
                return False
            try:
                with self._lease("kb reset") as lease:
                    was_whole = self._schema.exists()
                    self._schema.for_writer(lease.check).drop()
            except Answered as error:
                if error.status != 404:
                    raise
                return False  # somebody else has deleted it meanwhile
            return was_whole

    @contextmanager
    def _lease_on_it(self, purpose: str, *, existing: bool) -> Iterator[WriterLease]:
        """Where there is nothing yet, that is begun first which the lease is put into; and once more when somebody
        deletes it just then.
        """
        with ExitStack() as entered:
            for is_last in (False, False, True):
                try:
                    if existing or self._schema.exists():
                        self._schema.require()
                    else:
                        self._schema.begin()
                    lease = entered.enter_context(self._lease(purpose))
                except Answered as error:
                    if error.status != 404 or is_last:
                        raise
                else:
                    break
            yield lease

    def _lease(self, purpose: str) -> WriterLease:
        from kebab.store.qdrant.writer_lease import WriterLease

        return WriterLease(self._schema.catalog, self._client, wait_s=self._lock_wait_s, purpose=purpose)

    def size(self) -> int:
        """Servers do not tell what their collections take."""
        return 0

    def health(self, korean_analysis: str) -> list[Check]:
        from kebab.store.qdrant.health import health_checks

        self._client.turn_to_the_foremost()
        return health_checks(self._client, self._schema, korean_analysis)

    def wholeness(self, korean_analysis: str) -> list[Check]:
        from kebab.store.qdrant.wholeness import wholeness_checks

        self._client.turn_to_the_foremost()
        return wholeness_checks(self._client, self._schema, korean_analysis)

    def own_files(self) -> set[Path]:
        return set()
