"""KnowledgeBase: the one door to everything. Every surface talks to it; it wires concrete parts from settings.

with kebab.open("notes.sqlite") as kb:
    kb.ingest("~/notes")
    for hit in kb.search("markdown chunking rules", k=5):
        print(hit.citation.uri, hit.snippet)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from kebab.config.loading import LoadedSettings, load_settings
from kebab.config.places import database_path
from kebab.core import citations
from kebab.core.errors import NotFound, UsageError
from kebab.core.search import Notice, SearchFilters, SearchHit, SearchResponse
from kebab.core.spans import LineSpan
from kebab.core.text import LineTable, storable
from kebab.pipelines import search as search_pipeline
from kebab.pipelines.search_request import SearchRequest
from kebab.retrieval.lexical import LexicalRetriever
from kebab.store.sqlite.index_version import fts_config, lexical_index_version
from kebab.store.sqlite.lexical import ColumnWeights
from kebab.store.sqlite.store import SqliteReading, SqliteStore, SqliteWriting

if TYPE_CHECKING:
    from kebab.core.ports import Progress
    from kebab.core.records import Check, ChunkRecord, DocumentRecord, SourceRecord, StoreStats, TagRecord
    from kebab.pipelines.ingest import Ingest
    from kebab.pipelines.ingest_report import IngestReport
    from kebab.pipelines.verify import VerifyReport
    from kebab.store.sqlite.catalog import SqliteCatalog

_EMPTY_CORPUS = Notice("empty_corpus", "Nothing has been ingested yet. Begin with: kb ingest FOLDER")
_STALE_INDEX = Notice(
    "stale_index", "The text index was built with other analysis settings. Bring it up to date with: kb index --rebuild-fts"
)
_READ_ONLY = Notice("read_only", "The folder of the database cannot be written to: it is read as it stands.")


def open_knowledge_base(
    db: str | os.PathLike[str] | None = None, *, config: str | os.PathLike[str] | None = None, **settings: Any
) -> KnowledgeBase:
    """The knowledge base in `db`, or the default one. Settings may be given as section_name=value, e.g. search_default_k=5."""
    flags = {key.replace("_", ".", 1): value for key, value in settings.items()}
    if db is not None:
        flags["store.path"] = os.fspath(db)
    return KnowledgeBase(load_settings(Path(config) if config is not None else None, flags=flags))


class Fetched(NamedTuple):
    """Verbatim indexed text, with the citation it answers to."""

    kind: Literal["document", "chunk", "span"]
    document: DocumentRecord
    text: str
    citation: citations.Citation | None = None
    chunk_id: str | None = None


class KnowledgeBase:
    def __init__(self, loaded: LoadedSettings) -> None:
        self.loaded = loaded
        self.settings = loaded.settings
        path, named = database_path(self.settings)
        store = self.settings.store
        self._store = SqliteStore(path, named=named, busy_timeout_ms=store.busy_timeout_ms, lock_wait_s=store.lock_wait_s)
        self.last_ingest: Ingest | None = None
        """The run under way or the last one, for whoever has to say how far it came."""

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._store.close()

    @property
    def path(self) -> Path:
        return self._store.path

    # --- search

    def search(self, query: str | SearchRequest, **options: Any) -> SearchResponse:
        """Hits for a query; the options are those of `kb search`, in snake case."""
        request = query if isinstance(query, SearchRequest) else SearchRequest.from_options({"query": query, **options})
        settings, current = self.settings.search, fts_config(self.settings.analysis.korean)
        with self._store.reading() as reading:
            if reading is None:
                version = lexical_index_version(current)
                return search_pipeline.search(request, settings, None, index_version=version, notices=[_EMPTY_CORPUS])
            config = reading.fts_config() or current
            version = lexical_index_version(config)
            index = reading.lexical_index(
                str(config["korean"]),
                ColumnWeights(settings.title_weight, settings.heading_weight, settings.text_weight, settings.cjk_weight),
            )
            retriever = LexicalRetriever(index, version, snippet_chars=settings.snippet_chars)
            notices = [_STALE_INDEX] if config != current else []
            notices += [_READ_ONLY] if reading.is_immutable else []
            request, about_filters = _checked_filters(request, reading)
            return search_pipeline.search(request, settings, retriever, index_version=version, notices=[*notices, *about_filters])

    # --- ingest

    def ingest(self, *paths: str | os.PathLike[str], name: str | None = None, progress: Progress | None = None) -> IngestReport:
        """Index what is new or changed below the paths, drop what is gone; without paths, in every known source."""
        if not all(map(os.fspath, paths)):
            raise UsageError("A path is empty.", hint="Name a folder, or . for this one.")
        with self._store.writing("kb ingest") as writing:
            return self._new_ingest(writing, progress).run([Path(path) for path in paths], name)

    def ingest_text(self, text: str, *, title: str) -> IngestReport:
        """One document without a file."""
        if not title.strip():
            raise UsageError("A text without a file needs a title.", hint="For example: kb ingest - --title 'Shopping list'")
        with self._store.writing("kb ingest -") as writing:
            return self._new_ingest(writing, None).run_text(text, storable(title.strip()))

    def _new_ingest(self, writing: SqliteWriting, progress: Progress | None) -> Ingest:
        from kebab.chunking.by_structure import StructureChunker
        from kebab.parsing.registry import parser_for
        from kebab.pipelines.ingest import Ingest

        korean = self.settings.analysis.korean
        reanalysed = writing.settle_analysis(korean)
        ingest = Ingest(
            writing.documents(korean),
            self.settings,
            StructureChunker(self.settings.chunking),
            parser_for,
            own_files=self._store.own_files(),
            progress=progress,
        )
        ingest.report.reanalysed = reanalysed
        self.last_ingest = ingest
        return ingest

    def remove_source(self, name: str) -> int:
        """Forgets a source and all that came from it; how many documents that were. The files stay."""
        with self._store.writing("kb source remove", existing=True) as writing:
            documents = writing.documents(self.settings.analysis.korean)
            names = [source.name for source in documents.sources()]
            if name not in names:
                raise NotFound(f"There is no source {name}.", hint=f"Sources: {', '.join(names) or 'none yet'}.")
            count = len(documents.known_files(name))
            documents.remove_source(name)
            return count

    # --- looking inside

    def filters_of(self, request: SearchRequest) -> SearchFilters:
        """The filters of a request, checked against what is stored."""
        with self._store.reading() as reading:
            return (_checked_filters(request, reading)[0] if reading else request).filters()

    def documents(self, filters: SearchFilters | None = None, *, limit: int = -1, offset: int = 0) -> list[DocumentRecord]:
        with self._store.reading() as reading:
            return reading.catalog.documents(filters or SearchFilters(), limit=limit, offset=offset) if reading else []

    def count_documents(self, filters: SearchFilters | None = None) -> int:
        with self._store.reading() as reading:
            return reading.catalog.count_documents(filters or SearchFilters()) if reading else 0

    def sources(self) -> list[SourceRecord]:
        with self._store.reading() as reading:
            return reading.catalog.sources() if reading else []

    def tags(self) -> list[TagRecord]:
        with self._store.reading() as reading:
            return reading.catalog.tags() if reading else []

    def document(self, key: str) -> tuple[DocumentRecord, list[ChunkRecord]]:
        """By id, beginning of an id, path, or SOURCE:path."""
        with self._catalog() as catalog:
            record = _find_document(catalog, key)
            return record, catalog.chunks_of(record.doc_id)

    def chunk(self, key: str) -> ChunkRecord:
        with self._catalog() as catalog:
            return catalog.find_chunk(key)

    def fetch_document(self, key: str) -> Fetched:
        with self._catalog() as catalog:
            record = _find_document(catalog, key)
            return Fetched("document", record, catalog.body(record.doc_id))

    def fetch_chunk(self, key: str) -> Fetched:
        with self._catalog() as catalog:
            chunk = catalog.find_chunk(key)
            return Fetched("chunk", catalog.find_document(chunk.doc_id), chunk.text, chunk.citation, chunk.chunk_id)

    def fetch_span(self, citation: str) -> Fetched:
        """Exactly the cited lines of the indexed text."""
        path, span = citations.parse(citation)
        if span is None:
            raise UsageError(f"{citation} names no lines.", hint="For example: kb fetch span notes/git.md#L10-L20")
        with self._catalog() as catalog:
            record = _find_document(catalog, path)
            lines = f"{record.path} has lines 1 to {record.line_count}"
            if not isinstance(span, LineSpan):
                raise NotFound(f"{lines}, and no pages or regions.", hint=f"For example: {record.path}#L1-L{record.line_count}")
            if not 1 <= span.start <= span.end <= record.line_count:
                raise NotFound(f"{lines}; {span.start} to {span.end} were asked for.", hint="Correct the lines.")
            text = LineTable(catalog.body(record.doc_id)).slice(span.start, span.end)
            return Fetched("span", record, text, citations.Citation(record.path, span))

    def verify(self) -> VerifyReport:
        from kebab.pipelines.verify import VerifyReport, verify

        with self._store.reading() as reading:
            return verify(reading.catalog) if reading else VerifyReport()

    def file_of(self, source: str, path: str) -> Path:
        """The file behind a document, to open it."""
        from kebab.pipelines.verify import locate

        for record in self.sources():
            if record.name == source and record.root is not None:
                return locate(record, path)
        raise NotFound(f"{path} is not a file on disk.", hint=f"Read it with: kb fetch doc {source}:{path}")

    def place_of(self, hit: SearchHit) -> tuple[Path, int]:
        """The file of a hit and the line where its passage begins now, which may not be where it was indexed."""
        from kebab.core.text import decode

        file = self.file_of(hit.source, hit.doc_path)
        if not file.is_file():
            raise NotFound(f"{file} is gone since it was indexed.", hint="Bring the index up to date with: kb ingest", path=str(file))
        first = (hit.citation.lines or (1, 1))[0]
        passage = self.fetch_chunk(hit.chunk_id).text
        text = decode(file.read_bytes())[0]
        lines = LineTable(text)
        if first <= len(lines) and text.startswith(passage, lines.start_of(first)):
            return file, first
        found = text.find(passage)
        return file, lines.line_of(found) if found >= 0 else min(first, len(lines))

    def stats(self) -> StoreStats | None:
        with self._store.reading() as reading:
            return reading.stats() if reading else None

    # --- life cycle

    def rebuild_fts(self) -> int:
        """The number of chunks the text index was rebuilt from."""
        with self._store.writing("kb index --rebuild-fts", existing=True) as writing:
            return writing.rebuild_fts(self.settings.analysis.korean)

    def optimize(self) -> None:
        with self._store.writing("kb index --optimize", existing=True) as writing:
            writing.optimize()

    def backup(self, target: Path, *, force: bool = False) -> int:
        """The size of the copy in bytes."""
        return self._store.backup(target, force=force)

    def reset(self) -> bool:
        """Deletes the database; whether there was one."""
        return self._store.reset()

    def health(self) -> list[Check]:
        from kebab.pipelines.health import disk_check, program_check, source_checks
        from kebab.store.sqlite.maintenance import sqlite_version

        checks = [program_check(sqlite_version()), disk_check(self.path)]
        checks += self._store.health(self.settings.analysis.korean)
        return checks + source_checks(self.sources()) if all(check.ok for check in checks) else checks

    @contextmanager
    def _catalog(self) -> Iterator[SqliteCatalog]:
        """For what must be there: looking up one thing in an empty corpus is an error."""
        with self._store.reading() as reading:
            if reading is None:
                raise NotFound("Nothing has been ingested yet.", hint="Begin with: kb ingest FOLDER")
            yield reading.catalog


def _checked_filters(request: SearchRequest, reading: SqliteReading) -> tuple[SearchRequest, list[Notice]]:
    """Documents by their ids, and a word on every filter that no document can pass: that is a mistake, not an empty answer."""
    wanted_tags = {*request.tags_any, *request.tags_all}
    if not (request.source or request.doc or wanted_tags):
        return request, []
    catalog = reading.catalog
    names = [source.name for source in catalog.sources()]
    for name in request.source:
        if name not in names:
            raise NotFound(f"There is no source {name}.", hint=f"Sources: {', '.join(names) or 'none yet'}.")
    request = request._replace(doc=tuple(_find_document(catalog, key).doc_id for key in request.doc))
    known = {tag.tag.casefold() for tag in catalog.tags()} if wanted_tags else set()
    missing = sorted(tag for tag in wanted_tags if tag.casefold() not in known)
    return request, [Notice("unknown_tag", f"No document has the tag {tag}. See: kb list tags") for tag in missing]


def _find_document(catalog: SqliteCatalog, key: str) -> DocumentRecord:
    """By what the catalog knows, else as a path on disk that lies in a known source."""
    try:
        return catalog.find_document(key)
    except NotFound:
        try:
            absolute = Path(key).expanduser().resolve()
        except (OSError, ValueError, RuntimeError):
            raise NotFound(f"No document {storable(key)} is indexed.", hint="See what is there with: kb list docs") from None
        for source in catalog.sources():
            root = Path(source.root or "")
            if source.kind == "folder" and root in absolute.parents:
                return catalog.find_document(f"{source.name}:{absolute.relative_to(root).as_posix()}")
            if source.kind == "file" and root == absolute:
                return catalog.find_document(f"{source.name}:{root.name}")
        raise
