"""The store in a Qdrant cluster: who may read, who may write, and the parts that do the work.

Nothing above this module sees a request or the answer of a server.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kebab.config.cluster_address import ClusterAddress
from kebab.core.errors import StoreError
from kebab.core.libraries import VectorSpace
from kebab.core.ports import ColumnWeights, Embedder, IndexedFile
from kebab.core.records import Check, StoreStats
from kebab.store.fts5.index_config import fts_config, lexical_index_version
from kebab.store.qdrant.client import Client, StatusError, our_errors
from kebab.store.qdrant.collection import where
from kebab.store.qdrant.documents import QdrantDocumentStore
from kebab.store.qdrant.health import health_checks
from kebab.store.qdrant.index_writer import IndexWriter
from kebab.store.qdrant.integrity import integrity_checks
from kebab.store.qdrant.lexical import QdrantLexicalIndex
from kebab.store.qdrant.libraries import QdrantLibraryCatalog
from kebab.store.qdrant.library_writer import QdrantLibraryWriter
from kebab.store.qdrant.readers import QdrantCatalog, QdrantChunkReader, QdrantContentReader, QdrantLibraryReader
from kebab.store.qdrant.reanalysis import QdrantNoteStore, forget_unused_words, rebuild_fts, recover
from kebab.store.qdrant.schema import SCHEMA, Layout, Schema
from kebab.store.qdrant.state import State, read_state, remember
from kebab.store.qdrant.vector_writer import QdrantVectorWriter
from kebab.store.qdrant.vectors import QdrantVectorStore, coverage
from kebab.store.qdrant.writer_lease import WriterLease, writer_lease
from kebab.store.tags import folded

if TYPE_CHECKING:
    from kebab.config.settings import StoreSettings


class QdrantReading:
    """One thread's view of the store. What is small is read once, at the beginning."""

    is_immutable = False

    def __init__(self, schema: Schema, state: State, *, korean_analysis: str, paths_on_disk: bool) -> None:
        self._schema = schema
        self._state = state
        self._korean_analysis = state.korean_analysis or korean_analysis
        self.catalog = QdrantCatalog(schema, state, paths_on_disk=paths_on_disk)
        self.vectors = partial(QdrantVectorStore, schema, state)
        self.vector_coverage = partial(coverage, schema, state)
        self.chunks = partial(QdrantChunkReader, schema, state)
        self.content = partial(QdrantContentReader, schema, state)
        self.libraries = partial(QdrantLibraryCatalog, schema)
        self.library_reader = partial(QdrantLibraryReader, schema, state)

    def index_version(self) -> str:
        return lexical_index_version(self._state.fts_config or fts_config(self._korean_analysis), SCHEMA)

    def korean_analysis(self) -> str | None:
        return self._state.korean_analysis

    def lexical_index(self, weights: ColumnWeights) -> QdrantLexicalIndex:
        return QdrantLexicalIndex(self._schema, self._state, korean_analysis=self._korean_analysis, weights=weights)

    def files(self, doc_ids: Collection[str] | None = None) -> list[IndexedFile]:
        fields = ["doc", "source", "path", "size", "mtime_ns", "indexed_at"]
        chosen = None if doc_ids is None else where("doc", *doc_ids)
        found = []
        for payload in self._schema.documents.payloads(chosen, fields):
            source = self._state.sources.get(payload["source"])
            if source is not None and source.root is not None:
                facts = (payload["path"], payload["size"], payload.get("mtime_ns"), payload["indexed_at"])
                ingested_at = source.ingested_at or payload["indexed_at"]
                found.append(IndexedFile(payload["doc"], source.root, source.kind, *facts, ingested_at))
        return found

    def migrating_from(self) -> str | None:
        return self._state.meta.get("migrating_from")

    def stats(self) -> StoreStats:
        schema = self._schema
        spaces = [space.fingerprint for space in self._state.spaces]
        has_vector = [{"has_vector": space} for space in spaces]
        return StoreStats(
            path=schema.address,
            bytes=None,
            schema=SCHEMA,
            sqlite=schema.server_version(),
            sources=len(self._state.sources),
            documents=schema.documents.count(),
            chunks=schema.chunks.count(),
            tags=len({folded(tag) for tag in schema.documents.values("tags")}),
            words=schema.terms.count({"must_not": [{"is_empty": {"key": "begins"}}]}),
            text_bytes=sum(payload["size"] for payload in schema.documents.payloads(None, ["size"])),
            vectors=sum(schema.chunks.count({"must": [has]}) for has in has_vector),
            embedded_chunks=schema.chunks.count({"should": has_vector}) if spaces else 0,
            embedding_models=tuple(spaces),
            index_version=self.index_version(),
        )


class QdrantWriting:
    """What the writer may do while it holds the lease."""

    def __init__(self, writer: IndexWriter, korean_analysis: str) -> None:
        self._writer = writer
        self._state = writer.state
        self._catalog = writer.schema.catalog
        self._korean_analysis = korean_analysis

    def documents(self, *, for_libraries: bool = False) -> QdrantDocumentStore:
        return QdrantDocumentStore(self._writer, self._korean_analysis, for_libraries=for_libraries)

    def notes(self) -> QdrantNoteStore:
        return QdrantNoteStore(self._writer, self._korean_analysis)

    def rebuild_fts(self) -> int:
        return rebuild_fts(self._writer, self._korean_analysis)

    def libraries(self) -> QdrantLibraryWriter:
        return QdrantLibraryWriter(self._writer, self.documents(for_libraries=True))

    def vectors(self) -> QdrantVectorWriter:
        self._writer.flush()  # making vectors may take hours, and searches need the counts meanwhile
        return QdrantVectorWriter(self._writer)

    def expect_vectors(self, embedders: Sequence[Embedder]) -> None:
        spaces = [VectorSpace(embedder.name, embedder.version, embedder.dimension) for embedder in embedders]
        self.vectors().prepare(spaces)

    def settle_analysis(self, built_with: str | None = None) -> int:
        self._korean_analysis = built_with or self._korean_analysis
        wanted, stored = fts_config(self._korean_analysis), self._state.fts_config
        if stored is None:
            remember(self._catalog, self._state, fts_config=wanted)
        was_interrupted = self._state.meta.get("analysing")
        return self.rebuild_fts() if was_interrupted or stored not in (None, wanted) else 0

    def optimize(self) -> None:
        """The servers optimize by themselves; only what is not used any more is deleted."""
        self.vectors().drop_unused()
        forget_unused_words(self._writer)

    def migrating_from(self) -> str | None:
        return self._state.meta.get("migrating_from")

    def remember_migration(self, origin: str | None) -> None:
        remember(self._catalog, self._state, migrating_from=origin)


class QdrantStore:
    file = None

    def __init__(
        self,
        address: ClusterAddress,
        settings: StoreSettings,
        *,
        korean_analysis: str = "bigrams",
        paths_on_disk: bool = True,
    ) -> None:
        """Sends no request."""
        self.address = str(address)
        self._client = Client(address, api_key=settings.api_key, timeout_s=settings.timeout_s)
        layout = Layout(*(getattr(settings, field) for field in Layout._fields))
        self._schema = Schema(self._client, layout)
        self._searched = Schema(self._client, layout, by_majority=False)
        self._our_errors = partial(our_errors, address, missing=self._schema.missing_error)
        self._lock_wait_s = settings.lock_wait_s
        self._korean_analysis = korean_analysis
        self._paths_on_disk = paths_on_disk

    @property
    def engine(self) -> str:
        try:
            with self._our_errors():
                return f"Qdrant {self._schema.server_version()}"
        except StoreError:  # other commands say what is wrong
            return "Qdrant"

    def index_version(self) -> str:
        return lexical_index_version(fts_config(self._korean_analysis), SCHEMA)

    def exists(self) -> bool:
        with self._our_errors():
            return self._schema.exists()

    @contextmanager
    def reading(self, *, whole: bool = False) -> Iterator[QdrantReading | None]:
        with self._our_errors():
            if whole:
                self._client.prefer_most_recent()
            yield QdrantReading(
                self._searched,
                self._state(),
                korean_analysis=self._korean_analysis,
                paths_on_disk=self._paths_on_disk,
            )

    def _state(self) -> State:
        """In one round trip if the knowledge base exists."""
        try:
            state = read_state(self._searched.catalog)
        except StatusError as error:
            if error.status != 404:
                raise
        else:
            if state.meta.get("schema") == SCHEMA:
                return state
        self._searched.require()  # raises what is wrong
        return read_state(self._searched.catalog)

    @contextmanager
    def writing(self, purpose: str, *, existing: bool = False, mending: bool = False) -> Iterator[QdrantWriting]:
        with self._our_errors(), ExitStack() as entered:
            self._client.prefer_most_recent()
            lease = self._take_lease(entered, purpose, existing=existing)
            schema = self._schema.for_writer(lease.check)
            schema.open_for_writing(mending=mending)
            writer = IndexWriter(schema)
            recover(writer)
            try:
                yield QdrantWriting(writer, self._korean_analysis)
            except BaseException:
                writer.flush_if_possible()
                raise
            writer.finish()

    def _take_lease(self, entered: ExitStack, purpose: str, *, existing: bool) -> WriterLease:
        """Creates the catalog for the lease if there is none, once more if another process deletes it just then."""
        for is_last in (False, False, True):
            try:
                if existing or self._schema.exists():
                    self._schema.require()
                else:
                    self._schema.create_catalog()
                return entered.enter_context(self._lease(purpose))
            except StatusError as error:
                if error.status != 404 or is_last:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _lease(self, purpose: str) -> AbstractContextManager[WriterLease]:
        return writer_lease(self._schema.catalog, self._client, wait_s=self._lock_wait_s, purpose=purpose)

    def close(self) -> None:
        self._client.close()

    def backup(self, target: Path, *, force: bool) -> int:  # noqa: ARG002  # nothing is written
        raise StoreError(
            "A Qdrant cluster is not copied into a file.",
            hint=f"Carry it over with: kb migrate --to {target}; or make snapshots on the servers.",
        )

    def reset(self) -> bool:
        with self._our_errors():
            self._client.prefer_most_recent()
            if not self._schema.has_catalog():
                return False
            try:
                with self._lease("kb reset") as lease:
                    existed = self._schema.exists()
                    self._schema.for_writer(lease.check).drop()
            except StatusError as error:
                if error.status != 404:
                    raise
                return False  # another process has deleted it meanwhile
            return existed

    def size(self) -> int:
        return 0

    def health(self) -> list[Check]:
        self._client.prefer_most_recent()
        return health_checks(self._client, self._schema, self._korean_analysis)

    def wholeness(self) -> list[Check]:
        self._client.prefer_most_recent()
        return integrity_checks(self._client, self._schema, self._korean_analysis)

    def own_files(self) -> set[Path]:
        return set()
