"""The store in a Qdrant cluster: opens it for reading and, with the lease, for writing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from kebab.config.cluster_address import ClusterAddress
from kebab.core.errors import KebabError, StoreError
from kebab.core.libraries import VectorSpace
from kebab.core.ports import Embedder
from kebab.core.records import Check
from kebab.store.index_versions import fts_config, lexical_index_version
from kebab.store.qdrant.client import Client, Missing, our_errors
from kebab.store.qdrant.documents import QdrantDocumentStore, QdrantNoteStore
from kebab.store.qdrant.index_writer import IndexWriter, WriterPart, rebuild_fts, recover, renew_words
from kebab.store.qdrant.integrity import health_checks, integrity_checks
from kebab.store.qdrant.libraries import QdrantLibraryWriter
from kebab.store.qdrant.readers import QdrantReading
from kebab.store.qdrant.schema import SCHEMA, Schema
from kebab.store.qdrant.state import State, read_state
from kebab.store.qdrant.vectors import QdrantVectorWriter
from kebab.store.qdrant.writer_lease import WriterLease, writer_lease

if TYPE_CHECKING:
    from kebab.config.settings import StoreSettings


class QdrantWriting(WriterPart):
    """The changes that a writer can make while it holds the lease."""

    def __init__(self, writer: IndexWriter) -> None:
        super().__init__(writer)
        self.documents = partial(QdrantDocumentStore, writer)
        self.libraries = partial(QdrantLibraryWriter, writer)
        self.notes = partial(QdrantNoteStore, writer)
        self.rebuild_fts = partial(rebuild_fts, writer)

    def vectors(self) -> QdrantVectorWriter:
        self._writer.flush()  # making vectors may take hours, and searches need the counts meanwhile
        return QdrantVectorWriter(self._writer)

    def expect_vectors(self, embedders: Sequence[Embedder]) -> None:
        spaces = [VectorSpace(embedder.name, embedder.version, embedder.dimension) for embedder in embedders]
        self.vectors().prepare(spaces)

    def settle_analysis(self, built_with: str | None = None) -> int:
        self._writer.korean_analysis = built_with or self._writer.korean_analysis
        wanted, stored = fts_config(self._writer.korean_analysis), self._state.fts_config
        if stored is None:
            self._writer.remember(fts_config=wanted)
        was_interrupted = self._state.meta.get("analysing")
        return self.rebuild_fts() if was_interrupted or stored not in (None, wanted) else 0

    def optimize(self) -> None:
        """Deletes unused vectors and words. The servers optimize their storage themselves."""
        self._writer.forget_unused()
        renew_words(self._writer)

    def remember_migration(self, origin: str | None) -> None:
        self._writer.remember(migrating_from=origin)


class QdrantStore:
    file: Path | None = None

    def __init__(
        self,
        address: ClusterAddress,
        settings: StoreSettings,
        *,
        korean_analysis: str = "bigrams",
        paths_on_disk: bool = True,
    ) -> None:
        """Prepares the client; sends no request."""
        self.address = str(address)
        self._client = Client(address, api_key=settings.api_key, timeout_s=settings.timeout_s)
        self._settings = settings
        self._schema = Schema(self._client, settings)
        self._searched = Schema(self._client, settings, by_majority=False)
        self._our_errors = partial(our_errors, address, missing=self._schema.missing_error)
        self._lease = partial(writer_lease, self._schema.catalog, self._client, settings.lock_wait_s)
        self._korean_analysis = korean_analysis
        self._paths_on_disk = paths_on_disk

    @property
    def engine(self) -> str:
        with suppress(StoreError), self._our_errors():  # other commands report the error
            return f"Qdrant {self._schema.server_version()}"
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
            analysis, on_disk = self._korean_analysis, self._paths_on_disk
            yield QdrantReading(self._searched, self._state(), korean_analysis=analysis, paths_on_disk=on_disk)

    def _state(self) -> State:
        """Reads the state in one request. Raises if the knowledge base does not exist or has another schema."""
        with suppress(Missing):
            state = read_state(self._searched.catalog)
            if state.meta.get("schema") == SCHEMA:
                return state
        self._searched.require()  # raises the error
        return read_state(self._searched.catalog)

    @contextmanager
    def writing(self, purpose: str, *, existing: bool = False, mending: bool = False) -> Iterator[QdrantWriting]:
        with self._our_errors(), ExitStack() as entered:
            self._client.prefer_most_recent()
            lease = self._take_lease(entered, purpose, existing=existing)
            schema = Schema(self._client, self._settings, check_lease=lease.check)
            schema.open_for_writing(mending=mending)
            writer = IndexWriter(schema, self._korean_analysis)
            recover(writer)
            try:
                yield QdrantWriting(writer)
            except BaseException:
                with suppress(KebabError):  # an unfinished change is left to the next writer
                    if not writer.is_changing:
                        writer.flush()
                raise
            writer.finish()

    def _take_lease(self, entered: ExitStack, purpose: str, *, existing: bool) -> WriterLease:
        """Takes the lease. Creates the catalog for it if needed, and again if another process deletes it just then."""
        for is_last in (False, False, True):
            try:
                if existing or self._schema.exists():
                    self._schema.require()
                else:
                    self._schema.create_catalog()
                return entered.enter_context(self._lease(purpose))
            except Missing:
                if is_last:
                    raise
        raise AssertionError("the last attempt returns or raises")

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
            self._schema.refuse_foreign()
            if not self._schema.catalog.exists():  # of a knowledge base, or of one that is incomplete
                return False
            with suppress(Missing), self._lease("kb reset") as lease:
                existed = self._schema.exists()
                Schema(self._client, self._settings, check_lease=lease.check).drop()
                return existed
            return False  # another process has deleted it meanwhile

    def size(self) -> int:
        return 0

    def health(self) -> list[Check]:
        self._client.prefer_most_recent()
        return health_checks(self._client, self._schema, self._korean_analysis)

    def integrity(self) -> list[Check]:
        self._client.prefer_most_recent()
        return integrity_checks(self._client, self._schema, self._korean_analysis)

    def own_files(self) -> set[Path]:
        return set()
