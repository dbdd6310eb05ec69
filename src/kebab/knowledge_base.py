"""KnowledgeBase: the one door to everything. Every surface talks to it; it wires concrete parts from settings.

with kebab.open("notes.sqlite") as kb:
    kb.ingest("~/notes")
    for hit in kb.search("markdown chunking rules", k=5):
        print(hit.citation.uri, hit.snippet)
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import apsw

from kebab.config.loading import LoadedSettings, load_settings
from kebab.config.places import database_path
from kebab.core import citations
from kebab.core.documents import LineSpan, PageSpan
from kebab.core.errors import NotFound, StoreError, UsageError
from kebab.core.records import Check, ChunkRecord, DocumentRecord, SourceRecord, StoreStats, TagRecord
from kebab.core.search import Notice, SearchFilters, SearchResponse
from kebab.core.text import LineTable
from kebab.pipelines import search as search_pipeline
from kebab.pipelines.search_request import SearchRequest
from kebab.retrieval.lexical import LexicalRetriever
from kebab.store.sqlite import maintenance
from kebab.store.sqlite.catalog import SqliteCatalog
from kebab.store.sqlite.database import Database, our_errors
from kebab.store.sqlite.lexical import ColumnWeights, SqliteLexicalIndex
from kebab.store.sqlite.writer_lock import WriterLock

if TYPE_CHECKING:
    from kebab.core.ports import Progress
    from kebab.pipelines.ingest import Ingest
    from kebab.pipelines.ingest_report import IngestReport
    from kebab.pipelines.verify import VerifyReport

_EMPTY_CORPUS = Notice("empty_corpus", "Nothing has been ingested yet. Begin with: kb ingest FOLDER")


def open_knowledge_base(
    db: str | os.PathLike[str] | None = None, *, config: str | os.PathLike[str] | None = None, **settings: Any
) -> KnowledgeBase:
    """The knowledge base in `db`, or the default one. Settings may be given as section_name=value, e.g. search_default_k=5."""
    flags = {key.replace("_", ".", 1): value for key, value in settings.items()}
    if db is not None:
        flags["store.path"] = os.fspath(db)
    return KnowledgeBase(load_settings(Path(config) if config is not None else None, flags=flags))


class Fetched:
    """Verbatim indexed text, with the citation it answers to."""

    def __init__(self, kind: str, document: DocumentRecord, text: str, citation: citations.Citation | None, chunk_id: str | None) -> None:
        self.kind = kind
        self.document = document
        self.text = text
        self.citation = citation
        self.chunk_id = chunk_id


class KnowledgeBase:
    def __init__(self, loaded: LoadedSettings) -> None:
        self.loaded = loaded
        self.settings = loaded.settings
        path, self._named = database_path(self.settings)
        self.database = Database(path, busy_timeout_ms=self.settings.store.busy_timeout_ms)
        self._local = threading.local()

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes this thread's connection."""
        connection: apsw.Connection | None = getattr(self._local, "reader", None)
        if connection is not None:
            connection.close()
            self._local.reader = None

    @property
    def path(self) -> Path:
        return self.database.path

    # --- search

    def search(self, query: str | SearchRequest, **options: Any) -> SearchResponse:
        """Hits for a query; the options are those of `kb search`, in snake case."""
        request = query if isinstance(query, SearchRequest) else SearchRequest.from_options({"query": query, **options})
        reader = self._reader()
        if reader is None:
            version = maintenance.lexical_index_version(maintenance.fts_config(self.settings.analysis.korean))
            return search_pipeline.search(request, self.settings.search, None, index_version=version, notices=[_EMPTY_CORPUS])
        with our_errors(self.path):
            config = maintenance.stored_fts_config(reader) or maintenance.fts_config(self.settings.analysis.korean)
            version = maintenance.lexical_index_version(config)
            retriever = LexicalRetriever(
                self._lexical_index(reader, str(config["korean"])),
                version,
                snippet_chars=self.settings.search.snippet_chars,
            )
            notices = [*self._index_notices(config), *self._filter_notices(request, reader)]
            return search_pipeline.search(request, self.settings.search, retriever, index_version=version, notices=notices)

    def _lexical_index(self, reader: apsw.Connection, korean_analysis: str) -> SqliteLexicalIndex:
        search = self.settings.search
        weights = ColumnWeights(search.title_weight, search.heading_weight, search.text_weight, search.cjk_weight)
        return SqliteLexicalIndex(reader, korean_analysis=korean_analysis, weights=weights)

    def _index_notices(self, config: dict[str, object]) -> list[Notice]:
        notices = []
        if config != maintenance.fts_config(self.settings.analysis.korean):
            notices.append(
                Notice(
                    "stale_index",
                    "The text index was built with other analysis settings. Bring it up to date with: kb index --rebuild-fts",
                )
            )
        if self.database.immutable:
            notices.append(Notice("read_only", "The folder of the database cannot be written to: it is read as it stands."))
        return notices

    def _filter_notices(self, request: SearchRequest, reader: apsw.Connection) -> list[Notice]:
        """A filter nobody can pass is a mistake to point out, not an empty answer."""
        catalog = SqliteCatalog(reader)
        if request.source:
            names = [source.name for source in catalog.sources()]
            for name in request.source:
                if name not in names:
                    raise NotFound(f"There is no source {name}.", hint=f"Sources: {', '.join(names) or 'none yet'}.")
        for key in request.doc:
            catalog.find_document(key)
        wanted = {*request.tags_any, *request.tags_all}
        known = {tag.tag.casefold() for tag in catalog.tags()} if wanted else set()
        return [
            Notice("unknown_tag", f"No document has the tag {tag}. See: kb list tags")
            for tag in sorted(wanted)
            if tag.casefold() not in known
        ]

    # --- ingest

    def ingest(
        self,
        *paths: str | os.PathLike[str],
        name: str | None = None,
        progress: Progress | None = None,
        embed: bool = True,
    ) -> IngestReport:
        """Index what is new or changed below the paths, drop what is gone; without paths, in every known source."""
        with self._writing("kb ingest") as writer:
            return self._new_ingest(writer, progress).run([Path(path) for path in paths], name)

    def ingest_text(self, text: str, *, title: str) -> IngestReport:
        """One document without a file."""
        if not title.strip():
            raise UsageError("A text without a file needs a title.", hint="For example: kb ingest - --title 'Shopping list'")
        with self._writing("kb ingest -") as writer:
            return self._new_ingest(writer, None).run_text(text, title.strip())

    def _new_ingest(self, writer: apsw.Connection, progress: Progress | None) -> Ingest:
        from kebab.chunking.by_structure import StructureChunker
        from kebab.parsing.registry import parser_for
        from kebab.pipelines.ingest import Ingest
        from kebab.store.sqlite.database import write_transaction
        from kebab.store.sqlite.documents import SqliteDocumentStore

        korean = self.settings.analysis.korean
        reanalysed = 0
        wanted, stored = maintenance.fts_config(korean), maintenance.stored_fts_config(writer)
        if stored is None:
            with our_errors(self.path), write_transaction(writer):
                maintenance.remember_fts_config(writer, wanted)
        elif stored != wanted:
            reanalysed = maintenance.rebuild_fts(writer, self.path, korean)
        extra = {"progress": progress} if progress is not None else {}
        ingest = Ingest(
            SqliteDocumentStore(writer, self.path, korean_analysis=korean),
            self.settings,
            StructureChunker(self.settings.chunking),
            parser_for,
            own_files=self._own_files(),
            **extra,
        )
        ingest.report.reanalysed = reanalysed
        self.last_ingest = ingest
        return ingest

    last_ingest: Ingest | None = None
    """The run under way or the last one, for whoever has to say how far it came."""

    def _own_files(self) -> set[Path]:
        absolute = self.path.absolute()
        resolved = absolute.resolve()
        return {base.with_name(base.name + suffix) for base in (absolute, resolved) for suffix in ("", "-wal", "-shm", "-journal", ".lock")}

    # --- looking inside

    def documents(self, filters: SearchFilters | None = None, *, limit: int = -1, offset: int = 0) -> list[DocumentRecord]:
        catalog = self._catalog()
        return catalog.documents(filters or SearchFilters(), limit=limit, offset=offset) if catalog else []

    def count_documents(self, filters: SearchFilters | None = None) -> int:
        catalog = self._catalog()
        return catalog.count_documents(filters or SearchFilters()) if catalog else 0

    def sources(self) -> list[SourceRecord]:
        catalog = self._catalog()
        return catalog.sources() if catalog else []

    def tags(self) -> list[TagRecord]:
        catalog = self._catalog()
        return catalog.tags() if catalog else []

    def document(self, key: str) -> tuple[DocumentRecord, list[ChunkRecord]]:
        """By id, beginning of an id, path, or SOURCE:path."""
        catalog = self._required_catalog()
        record = catalog.find_document(key)
        return record, catalog.chunks_of(record.doc_id)

    def chunk(self, key: str) -> ChunkRecord:
        return self._required_catalog().find_chunk(key)

    def fetch_document(self, key: str) -> Fetched:
        catalog = self._required_catalog()
        record = catalog.find_document(key)
        return Fetched("document", record, catalog.body(record.doc_id), None, None)

    def fetch_chunk(self, key: str) -> Fetched:
        chunk = self.chunk(key)
        return Fetched("chunk", self._required_catalog().find_document(chunk.doc_id), chunk.text, chunk.citation, chunk.chunk_id)

    def fetch_span(self, citation: str) -> Fetched:
        """Exactly the cited lines of the indexed text."""
        path, span = citations.parse(citation)
        if span is None:
            raise UsageError(f"{citation} names no lines.", hint="For example: kb fetch span notes/git.md#L10-L20")
        catalog = self._required_catalog()
        record = catalog.find_document(path)
        if isinstance(span, PageSpan) or not isinstance(span, LineSpan):
            raise NotFound(f"{path} has lines, not pages or regions.", hint=f"For example: {path}#L1-L{record.line_count}")
        if not 1 <= span.start <= span.end <= record.line_count:
            raise NotFound(
                f"{path} has lines 1 to {record.line_count}; {span.start} to {span.end} were asked for.",
                hint="Correct the lines.",
            )
        text = LineTable(catalog.body(record.doc_id)).slice(span.start, span.end)
        return Fetched("span", record, text, citations.Citation(record.path, span), None)

    def verify(self) -> VerifyReport:
        from kebab.pipelines.verify import VerifyReport, verify

        catalog = self._catalog()
        with our_errors(self.path):
            return verify(catalog) if catalog else VerifyReport()

    def file_of(self, source: str, path: str) -> Path:
        """The file behind a document, to open it."""
        from kebab.pipelines.verify import locate

        for record in self.sources():
            if record.name == source and record.root is not None:
                return locate(record, path)
        raise NotFound(f"{path} is not a file on disk.", hint=f"Read it with: kb fetch doc {source}:{path}")

    def stats(self) -> StoreStats | None:
        reader = self._reader()
        if reader is None:
            return None
        with our_errors(self.path):
            return maintenance.stats(reader, self.database)

    # --- life cycle

    def rebuild_fts(self) -> int:
        self._require_existing()
        with self._writing("kb index --rebuild-fts") as writer:
            return maintenance.rebuild_fts(writer, self.path, self.settings.analysis.korean)

    def optimize(self) -> None:
        self._require_existing()
        with self._writing("kb index --optimize") as writer:
            maintenance.optimize(writer, self.path)

    def backup(self, target: Path, *, force: bool = False) -> int:
        reader = self._reader()
        if reader is None:
            raise NotFound("There is nothing to back up yet.", hint="Ingest something first: kb ingest FOLDER")
        if target.is_dir():
            raise StoreError(f"{target} is a folder.", hint="Name a file.", path=str(target))
        if target.exists() and not force:
            raise StoreError(f"{target} exists already.", hint="Overwrite it with --force, or name another file.", path=str(target))
        if not target.absolute().parent.is_dir():
            raise StoreError(f"The folder of {target} does not exist.", hint="Make it first.", path=str(target))
        maintenance.backup(reader, target)
        return target.stat().st_size

    def reset(self) -> bool:
        """Deletes the database. Whether there was one."""
        if not self.path.exists():
            return False
        self.close()
        self.database.refuse_folder()
        with WriterLock(self.path, wait_s=self.settings.store.lock_wait_s, purpose="kb reset"):
            for suffix in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        self.path.with_name(self.path.name + ".lock").unlink(missing_ok=True)
        return True

    def health(self) -> list[Check]:
        from kebab.pipelines.health import health_checks

        return health_checks(self.database, self.settings, named=self._named)

    # --- connections

    def _reader(self) -> apsw.Connection | None:
        """This thread's connection, or None when the default knowledge base does not exist yet."""
        connection: apsw.Connection | None = getattr(self._local, "reader", None)
        if connection is None:
            if not self._named and not self.path.exists():
                return None
            connection = self._local.reader = self.database.reader()
        return connection

    def _catalog(self) -> SqliteCatalog | None:
        reader = self._reader()
        return SqliteCatalog(reader) if reader is not None else None

    def _required_catalog(self) -> SqliteCatalog:
        catalog = self._catalog()
        if catalog is None:
            raise NotFound("Nothing has been ingested yet.", hint="Begin with: kb ingest FOLDER")
        return catalog

    def _require_existing(self) -> None:
        if not self.database.exists():
            self.database.refuse_folder()
            raise NotFound(f"There is no database at {self.path}.", hint="Begin with: kb ingest FOLDER", path=str(self.path))

    def _writing(self, purpose: str) -> _Writing:
        return _Writing(self.database, WriterLock(self.path, wait_s=self.settings.store.lock_wait_s, purpose=purpose))


class _Writing:
    """The writer's connection while this process holds the writer's lock."""

    def __init__(self, database: Database, lock: WriterLock) -> None:
        self._database = database
        self._lock = lock

    def __enter__(self) -> apsw.Connection:
        self._database.make_folder()
        self._lock.__enter__()
        try:
            self._connection = self._database.writer()
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            with our_errors(self._database.path):
                self._connection.close()
        finally:
            self._lock.__exit__(kind, error, trace)
