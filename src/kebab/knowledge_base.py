"""KnowledgeBase: the facade with one method for every operation. All interfaces use it.

with kebab.open("notes.sqlite") as kb:
    kb.ingest("~/notes")
    for hit in kb.search("markdown chunking rules", k=5):
        print(hit.citation.uri, hit.snippet)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kebab.config.loading import LoadedSettings, load_settings
from kebab.core.checking import checked, checked_argument, repeated
from kebab.core.errors import KebabError, NotFound, UsageError
from kebab.core.search import SearchFilters, SearchQuery
from kebab.search.options import LIST_LIMIT, OFFSET, OPTIONS, SearchRequest, join_library
from kebab.search.pipeline import Retrievers, open_retrievers, search
from kebab.session import Session

if TYPE_CHECKING:
    from threading import Event

    from kebab.config.settings import Settings
    from kebab.core.answers import Answer
    from kebab.core.ports import ChunkContext, Progress
    from kebab.core.records import Check, DocumentRecord, SourceRecord, StoreStats, TagRecord
    from kebab.core.search import Duplicates, Fusion, Match, Mode, SearchHit, SearchResponse, Sort
    from kebab.core.store_ports import Catalog
    from kebab.ingest.report import IngestReport
    from kebab.ingest.sources import Description
    from kebab.library.libraries import Libraries
    from kebab.search.lookup import Fetched
    from kebab.upkeep.checks import VerifyReport
    from kebab.upkeep.migration import Migration

Texts = str | Sequence[str]
"""One text, or several."""


def open_knowledge_base(
    db: str | os.PathLike[str] | None = None, *, config: str | os.PathLike[str] | None = None, **settings: Any
) -> KnowledgeBase:
    """Opens the knowledge base `db`, or the default. Settings are given as section_name=value (search_default_k=5)."""
    flags = {key.replace("_", ".", 1): value for key, value in settings.items()}
    if db is not None:
        flags["store.path"] = os.fspath(db)
    return KnowledgeBase(load_settings(Path(config) if config is not None else None, flags=flags))


class KnowledgeBase:
    def __init__(self, loaded: LoadedSettings, *, paths_on_disk: bool = True) -> None:
        """Any number of threads may use it. `paths_on_disk`: whether documents may be named by their paths on disk."""
        self.loaded = loaded
        self.session = Session(loaded.settings, paths_on_disk=paths_on_disk)
        self.last_ingest: IngestReport | None = None
        """The report of the current or last ingest. It is correct at every moment, also after an interruption."""

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.session.store.close()

    @property
    def settings(self) -> Settings:
        return self.session.settings

    @property
    def address(self) -> str:
        """What to pass as `db` or --db to open this knowledge base."""
        return self.session.store.address

    @property
    def path(self) -> Path:
        """The database file; UsageError if the knowledge base is not a file."""
        if self.session.store.file is None:
            raise UsageError(f"{self.address} is no file on this machine.", hint="Name a database file with --db.")
        return self.session.store.file

    def variant(self, *, expecting: Sequence[str] = (), **search: Any) -> KnowledgeBase:
        """A knowledge base with the same store and models, but other [search] settings. Closing one closes both.

        The queries in `expecting` are embedded in batches.
        """
        other = copy(self)
        other.session = self.session.variant(expecting=expecting, **search)
        return other

    # --- search

    def search(
        self,
        query: str | SearchQuery | SearchRequest,
        *,
        filters: SearchFilters | None = None,
        mode: Mode | str | None = None,
        k: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        tags_any: Texts | None = None,
        tags_all: Texts | None = None,
        type: Texts | None = None,
        format: Texts | None = None,
        lang: str | None = None,
        path: str | None = None,
        trust_min: str | None = None,
        source: Texts | None = None,
        doc: Texts | None = None,
        after: str | None = None,
        before: str | None = None,
        exclude_path: Texts | None = None,
        exclude_tag: Texts | None = None,
        library: str | None = None,
        snippet_type: str | None = None,
        match: Match | str | None = None,
        fusion: Fusion | str | None = None,
        rerank: int | None = None,
        sort: Sort | str | None = None,
        per_doc: int | None = None,
        duplicates: Duplicates | str | None = None,
        threshold: float | None = None,
        min_score: float | None = None,
        max_tokens: int | None = None,
        full_text: bool | None = None,
        highlight: bool | None = None,
        explain: bool | None = None,
        type_ahead: bool | None = None,
        group: bool | None = None,
        neighbours: int | None = None,
        without_snippets: bool = False,
        **others: Any,
    ) -> SearchResponse:
        """Returns hits for a query. The options are those of `kb search`; `filters` combines all filters in one object.

        `without_snippets`: hits have their whole text and no snippet.
        """
        without_snippets = without_snippets or (isinstance(query, SearchQuery) and query.without_snippets)
        return search(self.session, self._request(query, locals()), without_snippets=without_snippets)

    def ask(
        self,
        question: str,
        *,
        on_text: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
        filters: SearchFilters | None = None,
        mode: Mode | str | None = None,
        k: int | None = None,
        tags_any: Texts | None = None,
        tags_all: Texts | None = None,
        type: Texts | None = None,
        format: Texts | None = None,
        lang: str | None = None,
        path: str | None = None,
        trust_min: str | None = None,
        source: Texts | None = None,
        doc: Texts | None = None,
        after: str | None = None,
        before: str | None = None,
        exclude_path: Texts | None = None,
        exclude_tag: Texts | None = None,
        library: str | None = None,
        snippet_type: str | None = None,
        match: Match | str | None = None,
        fusion: Fusion | str | None = None,
        rerank: int | None = None,
        min_score: float | None = None,
        max_tokens: int | None = None,
        full_text: bool | None = None,
        explain: bool | None = None,
        **others: Any,
    ) -> Answer:
        """Returns an answer from the ingested documents, each claim cited and checked, or the reason why there is none.

        Options are those of `search`. A model's text is passed to `on_text` piece by piece, until `stop` returns true.
        """
        from kebab.answering.ask import ask

        return ask(self.session, self._request(question, locals()), on_text=on_text, stop=stop)

    def similar(
        self,
        reference: str,
        *,
        other_docs: bool = False,
        filters: SearchFilters | None = None,
        mode: Mode | str | None = None,
        k: int | None = None,
        offset: int | None = None,
        tags_any: Texts | None = None,
        tags_all: Texts | None = None,
        type: Texts | None = None,
        format: Texts | None = None,
        lang: str | None = None,
        path: str | None = None,
        trust_min: str | None = None,
        source: Texts | None = None,
        doc: Texts | None = None,
        after: str | None = None,
        before: str | None = None,
        exclude_path: Texts | None = None,
        exclude_tag: Texts | None = None,
        library: str | None = None,
        snippet_type: str | None = None,
        per_doc: int | None = None,
        min_score: float | None = None,
        max_tokens: int | None = None,
        full_text: bool | None = None,
        highlight: bool | None = None,
        group: bool | None = None,
        neighbours: int | None = None,
        **others: Any,
    ) -> SearchResponse:
        """Returns passages similar to the one with this chunk id, path or citation. Options: as of `kb similar`."""
        from kebab.search.similar import similar

        return similar(self.session, self._request(reference, locals()), other_docs=other_docs)

    def _request(self, query: str | SearchQuery | SearchRequest, arguments: Mapping[str, Any]) -> SearchRequest:
        """The checked request for a method's arguments. A library that it names is resolved to an existing one."""
        if "query" in arguments["others"]:
            raise repeated("query")
        named = {name: value for name, value in arguments.items() if name in OPTIONS and name != "query"}
        request = SearchRequest.from_options(_options_of(query))
        request = SearchRequest.from_options(_filter_options(arguments["filters"] or SearchFilters()), request)
        request = SearchRequest.from_options({**named, **arguments["others"]}, request)
        return request if request.library is None else self.libraries.resolved(request)

    @contextmanager
    def retrievers(self) -> Iterator[Retrievers]:
        """The lexical, vector and hybrid retrievers of the current content, for use in other retrievers."""
        with self.session.existing() as reading:
            yield open_retrievers(self.session, reading)

    # --- ingest

    def ingest(
        self,
        *paths: str | os.PathLike[str],
        name: str | None = None,
        embed: bool = True,
        password: str | None = None,
        known_only: bool = False,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Indexes new and changed files below the paths, or of all known sources, and removes deleted ones.

        `embed`: chunks without a vector then get one. `password`: replaces the PDF password of the settings.
        `known_only`: skips paths that belong to no known source.
        """
        from kebab.ingest import report, run

        if name is not None:
            checked("name", name, str)
        checked("embed", embed, bool)
        done = self.last_ingest = report.IngestReport()
        if not paths and self.session.store.exists() and self.libraries.all():
            from kebab.library.adding import upgrade

            upgrade(self.session, "kb ingest", done, progress)
        return run.ingest(
            self.session,
            paths,
            done,
            name=name,
            embed=embed,
            password=password,
            known_only=known_only,
            progress=progress,
        )

    def watch(
        self, *paths: str | os.PathLike[str], name: str | None = None, embed: bool = True, stop: Event | None = None
    ) -> Iterator[IngestReport | KebabError]:
        """Ingests the paths, or all known sources, now and after each change, until `stop` is set.

        Yields a report after each ingest that did something, or the error that prevents one (a missing folder, another
        writer).
        """
        from kebab.ingest.watch import Watching

        yield from Watching(self.session, paths, name=name, embed=embed, stop=stop).run()

    def ingest_text(
        self, text: str, *, title: str, embed: bool = True, progress: Progress | None = None
    ) -> IngestReport:
        """Indexes a text as a document that has no file."""
        from kebab.ingest.run import ingest_text

        return ingest_text(self.session, text, title=title, embed=embed, progress=progress)

    def remove_source(self, name: str) -> int:
        """Removes a source and its documents from the index, and returns their number. The files stay."""
        from kebab.ingest.sources import remove_source

        return remove_source(self.session, name)

    def describe_source(self, place: str, text: str) -> Description:
        """Adds or replaces the note on SOURCE or SOURCE/FOLDER; an empty text removes it.

        Hits from there show the note as `context`, and its words count as words of every passage there.
        """
        from kebab.ingest.sources import describe_source

        return describe_source(self.session, place, text)

    @property
    def libraries(self) -> Libraries:
        """The operations on libraries: adding, refreshing and searching their documentation."""
        from kebab.library.libraries import Libraries

        return Libraries(self.session)

    # --- looking inside

    def filters_of(self, request: SearchRequest) -> SearchFilters:
        """The filters of a request, checked against what is stored."""
        from kebab.search.filters import checked_filters

        with self.session.reading() as reading:
            return (checked_filters(request, reading.catalog)[0] if reading else request).filters()

    def documents(
        self, filters: SearchFilters | None = None, *, limit: int | None = None, offset: int = 0
    ) -> list[DocumentRecord]:
        """The documents that pass the filters: all, or at most `limit` from number `offset` on."""
        most = -1 if limit is None else checked_argument("limit", limit, LIST_LIMIT)
        checked_argument("offset", offset, OFFSET)
        with self.session.reading() as reading:
            return reading.catalog.documents(filters or SearchFilters(), limit=most, offset=offset) if reading else []

    def count_documents(self, filters: SearchFilters | None = None) -> int:
        with self.session.reading() as reading:
            return reading.catalog.count_documents(filters or SearchFilters()) if reading else 0

    def sources(self) -> list[SourceRecord]:
        with self.session.reading() as reading:
            return reading.catalog.sources() if reading else []

    def tags(self) -> list[TagRecord]:
        with self.session.reading() as reading:
            return reading.catalog.tags() if reading else []

    def document(self, key: str) -> tuple[DocumentRecord, list[ChunkContext]]:
        """A document and its chunks, by id, start of an id, path, SOURCE:path, or name as in links between notes."""
        from kebab.search.lookup import find_document

        with self.catalog() as catalog:
            record = find_document(catalog, key)
            return record, catalog.chunks_of(record.doc_id)

    def chunk(self, key: str) -> ChunkContext:
        with self.catalog() as catalog:
            return catalog.find_chunk(key)

    def fetch_document(self, key: str) -> Fetched:
        from kebab.search.lookup import fetch_document

        with self.catalog() as catalog:
            return fetch_document(catalog, key)

    def fetch_chunk(self, key: str) -> Fetched:
        from kebab.search.lookup import fetch_chunk

        with self.catalog() as catalog:
            return fetch_chunk(catalog, key)

    def fetch_span(self, citation: str) -> Fetched:
        """The cited lines or the cited page of the indexed text."""
        from kebab.search.lookup import fetch_span

        with self.catalog() as catalog:
            return fetch_span(catalog, citation)

    def fetch_cited(self, uri: str) -> Fetched:
        """The cited lines or page, or the whole document if the citation is only a path."""
        from kebab.search.lookup import fetch_cited

        with self.catalog() as catalog:
            return fetch_cited(catalog, uri)

    def verify(self) -> VerifyReport:
        from kebab.upkeep.checks import verify

        return verify(self.session)

    def file_of(self, source: str, path: str) -> Path:
        """The file of a document on disk; NotFound if it has none."""
        from kebab.upkeep.checks import locate

        for record in self.sources():
            if record.name == source and record.root is not None:
                return locate(record, path)
        raise NotFound(f"{path} is not a file on disk.", hint=f"Read it with: kb fetch doc {source}:{path}")

    def place_of(self, hit: SearchHit) -> tuple[Path, int | None]:
        """The file of a hit, and the line where its passage begins now, or None if it has no lines."""
        from kebab.upkeep.checks import line_in_file

        file = self.file_of(hit.source, hit.doc_path)
        return file, line_in_file(file, hit, lambda: self.fetch_chunk(hit.chunk_id).text)

    def stats(self) -> StoreStats | None:
        with self.session.reading() as reading:
            return reading.stats() if reading else None

    # --- life cycle

    def rebuild_fts(self) -> int:
        """Rebuilds the text index from the stored texts, and returns the number of chunks."""
        with self.session.writing("kb index --rebuild-fts", existing=True, mending=True) as writing:
            return writing.rebuild_fts()

    def upgrade(self, progress: Progress | None = None) -> IngestReport:
        """Parses everything again that an older version has parsed, from the stored text where it is the whole file,
        else from the file, and makes missing vectors. `scanned` is the number of such documents.
        """
        from kebab.ingest import report, run
        from kebab.library import adding

        done = self.last_ingest = report.IngestReport()
        adding.upgrade(self.session, "kb index --upgrade", done, progress)
        return run.upgrade(self.session, done, progress)

    def rebuild_vectors(self, progress: Progress | None = None) -> IngestReport:
        """Deletes all vectors and makes them again with the model of the settings."""
        from kebab.ingest.embedding import rebuild_vectors

        return rebuild_vectors(self.session, progress)

    def migration_to(self, target: KnowledgeBase, progress: Progress | None = None) -> Migration:
        """A migration, whose `run` copies everything to the empty `target` and compares both. A new migration continues
        an interrupted one.
        """
        from kebab.upkeep.migration import Migration

        return Migration(self.session, target.session.store, progress)

    def optimize(self) -> None:
        with self.session.writing("kb index --optimize", existing=True) as writing:
            writing.optimize()

    def backup(self, target: Path, *, force: bool = False) -> int:
        """Copies the database to `target`, and returns the size of the copy in bytes."""
        return self.session.store.backup(target, force=force)

    def reset(self) -> bool:
        """Deletes the database, and returns whether there was one."""
        return self.session.store.reset()

    def size(self) -> int:
        """The size of the database in bytes; 0 if it is unknown."""
        return self.session.store.size()

    def health(self) -> list[Check]:
        from kebab.upkeep.checks import health

        return health(self.session)

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        """The catalog of one state of the store, for several consistent reads."""
        with self.session.existing() as reading:
            yield reading.catalog


def _options_of(query: str | SearchQuery | SearchRequest) -> dict[str, Any]:
    """The search options that are equivalent to a query, which may be an object."""
    if not isinstance(query, SearchQuery):
        return query._asdict() if isinstance(query, SearchRequest) else {"query": query}
    if query.insists and query.match != "all":
        raise UsageError("insists is no option of search.", hint='Hits have all words with match="all".')
    same = ("mode", "k", "offset", "match", "sort", "per_doc", "duplicates", "type_ahead", "full_text", "explain")
    options = {name: getattr(query, name) for name in (*same, "fusion", "rerank", "min_score", "threshold")}
    return {"query": query.text, **options, **_filter_options(query.filters)}


def _filter_options(filters: SearchFilters) -> dict[str, Any]:
    if filters.exclude_docs:
        raise UsageError("exclude_docs is no option of search.", hint="Exclude paths with exclude_paths.")
    if filters.library == "" or (filters.library and filters.library_version is None):
        raise UsageError(
            "A search goes through one library in one version.",
            hint="Set library, and library_version; an empty version is the default branch.",
        )
    given = {name: value for name, value in filters._asdict().items() if value}
    version = given.pop("library_version", None)
    if "library" in given:
        given["library"] = join_library(given["library"], version)
    kinds = given.pop("kinds", ())
    if len(kinds) == 1:
        [given["snippet_type"]] = kinds
    return given
