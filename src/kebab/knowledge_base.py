"""KnowledgeBase: the one door to everything. Every surface talks to it; it wires concrete parts from settings.

with kebab.open("notes.sqlite") as kb:
    kb.ingest("~/notes")
    for hit in kb.search("markdown chunking rules", k=5):
        print(hit.citation.uri, hit.snippet)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kebab.config.loading import LoadedSettings, load_settings
from kebab.core.deadline import time_limit
from kebab.core.errors import KebabError, ModelError, NotFound, UsageError
from kebab.core.search import MAX_QUERY_CHARS, Notice, SearchFilters, SearchHit, SearchResponse
from kebab.search import pipeline as search_pipeline
from kebab.search import vector_state
from kebab.search.request import SearchRequest
from kebab.search.retrievers import add_freshness, checked_filters, prepared
from kebab.stores import open_store

if TYPE_CHECKING:
    from threading import Event

    from kebab.core.answers import Answer
    from kebab.core.ports import EmbeddingModels, Progress, WordsAlike
    from kebab.core.records import Check, ChunkRecord, DocumentRecord, SourceRecord, StoreStats, TagRecord
    from kebab.core.store_ports import Catalog, Reading, Writing
    from kebab.ingest.ingesting import Ingesting
    from kebab.ingest.notes import Description
    from kebab.ingest.report import IngestReport
    from kebab.ingest.run import Ingest
    from kebab.library.libraries import Libraries
    from kebab.search.fetching import Fetched
    from kebab.upkeep.migration import Migration
    from kebab.upkeep.verify import VerifyReport

_EMPTY_CORPUS = Notice("empty_corpus", "Nothing has been ingested yet. Begin with: kb ingest FOLDER")


def open_knowledge_base(
    db: str | os.PathLike[str] | None = None, *, config: str | os.PathLike[str] | None = None, **settings: Any
) -> KnowledgeBase:
    """The knowledge base in `db`, or the default one. Settings may be given as section_name=value, e.g.
    search_default_k=5.
    """
    flags = {key.replace("_", ".", 1): value for key, value in settings.items()}
    if db is not None:
        flags["store.path"] = os.fspath(db)
    return KnowledgeBase(load_settings(Path(config) if config is not None else None, flags=flags))


class KnowledgeBase:
    def __init__(self, loaded: LoadedSettings, *, paths_on_disk: bool = True) -> None:
        """`paths_on_disk`: whether documents may be named by where their files lie. Any number of threads may use it."""
        self.loaded = loaded
        self.settings = loaded.settings
        self._store = open_store(self.settings, paths_on_disk=paths_on_disk)
        self._models: tuple[EmbeddingModels | None] | None = None
        self._ingests: Ingesting | None = None
        """The run under way or the last one, for whoever has to say how far it came."""

    def __enter__(self) -> KnowledgeBase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._store.close()

    @property
    def address(self) -> str:
        """What leads here when it is given as `db` or --db."""
        return self._store.address

    @property
    def path(self) -> Path:
        """The file of the database; UsageError where it is none."""
        if self._store.file is None:
            raise UsageError(f"{self.address} is no file on this machine.", hint="Name a database file with --db.")
        return self._store.file

    def variant(self, *, expecting: Sequence[str] = (), **search: Any) -> KnowledgeBase:
        """The same store and models with other settings of [search]; queries it can expect come sooner. Closing one
        closes both.
        """
        from kebab.embedding.expected_queries import models_expecting

        other = copy(self)
        other.settings = self.settings._replace(search=self.settings.search._replace(**search))
        with suppress(ModelError):  # why there are none, a search says
            other._models = (models_expecting(self.embedding_models(), expecting),)
        return other

    @contextmanager
    def _writing(self, purpose: str, *, existing: bool = False, mending: bool = False) -> Iterator[Writing]:
        from kebab.core.incomplete_migration import refuse_half_copied

        with self._store.writing(purpose, existing=existing, mending=mending) as writing:
            refuse_half_copied(writing)
            yield writing

    # --- search

    def search(self, query: str | SearchRequest, *, bare: bool = False, **options: Any) -> SearchResponse:
        """Hits for a query; the options are those of `kb search`, in snake case. `bare`: whole passages, no snippets."""
        request = query if isinstance(query, SearchRequest) else SearchRequest.from_options({"query": query, **options})
        request = self._resolved(request)
        words = request.query[:MAX_QUERY_CHARS] if request.library is None and request.mode != "vector" else ""
        with time_limit(self.settings.search.timeout_s), self._store.reading(about=words) as reading:
            if reading is None:
                if request.mode == "vector":
                    raise vector_state.no_vectors_yet()
                version = self._store.index_version(self.settings.analysis.korean)
                return search_pipeline.search(
                    request, self.settings.search, None, notices=[_EMPTY_CORPUS], unbuilt_version=version
                )
            request, retrievers, notices = self._prepared(request, reading)
            response = search_pipeline.search(request, self.settings.search, retrievers, notices=notices, bare=bare)
            self._add_freshness(response, reading)
        if request.library is not None and not bare:
            from kebab.library.citations import cite_within

            cite_within(response, request.library)
        return response

    def ask(
        self,
        question: str,
        *,
        on_text: Callable[[str], None] | None = None,
        stop: Callable[[], bool] | None = None,
        explain: bool = False,
        **options: Any,
    ) -> Answer:
        """An answer made of what was ingested, each claim cited and checked, or why there is none; the options are
        those of `search`.

        `on_text` gets what a model writes, piece by piece; it is given up once `stop` says so.
        """
        from kebab.answering.ask import ask

        request = self._resolved(SearchRequest.from_options({"query": question, "explain": explain, **options}))
        return ask(
            request, self.settings, self.search, self._store.reading, self._words_alike, on_text=on_text, stop=stop
        )

    def similar(self, reference: str, *, other_docs: bool = False, **options: Any) -> SearchResponse:
        """Passages like the one with this chunk id, path or citation; the options are those of `kb similar`, in snake
        case.
        """
        from kebab.search.passage_lookup import find_passage
        from kebab.search.similar import similar, similar_request

        request = similar_request(reference, options)
        with time_limit(self.settings.search.timeout_s), self._reading() as reading:
            passage = find_passage(reading.catalog, reference)
            request, retrievers, notices = self._prepared(request, reading)
            response = similar(
                passage, request, self.settings.search, retrievers, other_docs=other_docs, notices=notices
            )
            self._add_freshness(response, reading)
            return response

    def _resolved(self, request: SearchRequest) -> SearchRequest:
        return request if request.library is None else self.libraries.resolved(request)

    def _prepared(
        self, request: SearchRequest, reading: Reading
    ) -> tuple[SearchRequest, search_pipeline.Retrievers, list[Notice]]:
        return prepared(request, reading, self._store, self.settings, self.embedding_models)

    def _add_freshness(self, response: SearchResponse, reading: Reading) -> None:
        add_freshness(response, reading, self.settings, self._store.own_files)

    def embedding_models(self) -> EmbeddingModels | None:
        """What makes vectors; None when the settings say nothing does. A model is loaded once, when it is first needed."""
        if self._models is None:
            from kebab.config.loading import cache_folder
            from kebab.embedding.registry import models_for

            self._models = (models_for(self.settings.embedding, cache_folder()),)
        return self._models[0]

    def _words_alike(self) -> WordsAlike | None:
        from kebab.embedding.word_likeness import likeness_by

        return likeness_by(self.embedding_models())

    # --- ingest

    @property
    def _ingesting(self) -> Ingesting:
        if self._ingests is None:
            from kebab.ingest.ingesting import Ingesting

            self._ingests = Ingesting(self.settings, self._store, self._writing, self.embedding_models)
        return self._ingests

    @property
    def last_ingest(self) -> Ingest | None:
        """What was begun last: whoever interrupts it learns what it has done."""
        return self._ingests.last if self._ingests is not None else None

    def ingest(
        self,
        *paths: str | os.PathLike[str],
        name: str | None = None,
        embed: bool = True,
        password: str | None = None,
        known_only: bool = False,
        progress: Progress | None = None,
    ) -> IngestReport:
        """Index what is new or changed below the paths, drop what is gone; without paths, in every known source.

        With `embed`, chunks without a vector get one afterwards. `password`: for encrypted PDFs; otherwise as the
        settings say. `known_only`: paths that belong to no known source are left alone, because somebody may just have
        removed it.
        """
        return self._ingesting.ingest(
            paths, name=name, embed=embed, password=password, known_only=known_only, progress=progress
        )

    def watch(
        self, *paths: str | os.PathLike[str], name: str | None = None, embed: bool = True, stop: Event | None = None
    ) -> Iterator[IngestReport | KebabError]:
        """Brings the paths, or every known source, up to date, and again after each change, until `stop` is set.

        Yields a report whenever something was done; what stands in the way for now (a missing folder, another writer)
        comes as the error.
        """
        from kebab.ingest.watch import KeepingUp, watched_roots

        yield from KeepingUp(
            roots=lambda: watched_roots(self.sources() if self._store.exists() else [], paths),
            ingest=partial(self.ingest, embed=False),
            embed=partial(self._ingesting.embed, "kb watch") if embed and self.embedding_models() is not None else None,
            own_files=self._store.own_files(),
            stop=stop,
        ).run(paths, name)

    def ingest_text(
        self, text: str, *, title: str, embed: bool = True, progress: Progress | None = None
    ) -> IngestReport:
        """One document without a file."""
        return self._ingesting.ingest_text(text, title=title, embed=embed, progress=progress)

    def remove_source(self, name: str) -> int:
        """Forgets a source and all that came from it; how many documents that were. The files stay."""
        from kebab.ingest.source_names import no_such_source

        with self._writing("kb source remove", existing=True) as writing:
            documents = writing.documents(self.settings.analysis.korean)
            names = [source.name for source in documents.sources()]
            if name not in names:
                raise no_such_source(name, names)
            count = len(documents.known_files(name))
            documents.remove_source(name)
            return count

    def describe_source(self, place: str, text: str) -> Description:
        """Attaches a note to SOURCE or SOURCE/FOLDER, in place of the one it had; an empty text takes it away.

        Hits below carry it as `context`, and its words count as words of every passage there.
        """
        from kebab.ingest.notes import describe

        korean = self.settings.analysis.korean
        with self._writing("kb source describe", existing=True) as writing:
            writing.settle_analysis(korean)
            return describe(writing.notes(korean), place, text)

    @property
    def libraries(self) -> Libraries:
        """Documentation of libraries: adding, refreshing, searching."""
        from kebab.library.libraries import Engine, Libraries

        read, write = self._store.reading, self._writing
        ingesting = self._ingesting
        return Libraries(
            Engine(self.settings, read, write, ingesting.parsers, self.embedding_models, ingesting.embed, self.search)
        )

    # --- looking inside

    def filters_of(self, request: SearchRequest) -> SearchFilters:
        """The filters of a request, checked against what is stored."""
        with self._store.reading() as reading:
            return (checked_filters(request, reading)[0] if reading else request).filters()

    def documents(
        self, filters: SearchFilters | None = None, *, limit: int = -1, offset: int = 0
    ) -> list[DocumentRecord]:
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
        """By id, beginning of an id, path, SOURCE:path, or as notes link to it."""
        with self.catalog() as catalog:
            record = _find_document(catalog, key)
            return record, catalog.chunks_of(record.doc_id)

    def chunk(self, key: str) -> ChunkRecord:
        with self.catalog() as catalog:
            return catalog.find_chunk(key)

    def fetch_document(self, key: str) -> Fetched:
        from kebab.search import fetching

        with self.catalog() as catalog:
            return fetching.fetch_document(catalog, key)

    def fetch_chunk(self, key: str) -> Fetched:
        from kebab.search import fetching

        with self.catalog() as catalog:
            return fetching.fetch_chunk(catalog, key)

    def fetch_span(self, citation: str) -> Fetched:
        """Exactly the cited lines of the indexed text."""
        from kebab.search import fetching

        with self.catalog() as catalog:
            return fetching.fetch_span(catalog, citation)

    def fetch_cited(self, uri: str) -> Fetched:
        """The cited lines or page, or the whole document where none are cited."""
        from kebab.search import fetching

        with self.catalog() as catalog:
            return fetching.fetch_cited(catalog, uri)

    def verify(self) -> VerifyReport:
        from kebab.core.incomplete_migration import half_copied_checks
        from kebab.upkeep.verify import VerifyReport, verify

        with self._store.reading(whole=True) as reading:
            if reading is None:
                return VerifyReport()
            with self._ingesting.parsers() as parsers:
                report = verify(
                    reading.catalog, lambda data, path: parsers.of(path).parse(data, path).text, self.settings.ingest
                )
            half_copied = half_copied_checks(reading, self.address, ok=False)
        report.judge_store([*self._store.wholeness(self.settings.analysis.korean), *half_copied])
        return report

    def file_of(self, source: str, path: str) -> Path:
        """The file behind a document, to open it."""
        from kebab.upkeep.verify import locate

        for record in self.sources():
            if record.name == source and record.root is not None:
                return locate(record, path)
        raise NotFound(f"{path} is not a file on disk.", hint=f"Read it with: kb fetch doc {source}:{path}")

    def place_of(self, hit: SearchHit) -> tuple[Path, int | None]:
        """The file of a hit and the line where its passage begins now, which may not be where it was indexed; None if
        it has no lines.
        """
        from kebab.upkeep.verify import line_in_file

        file = self.file_of(hit.source, hit.doc_path)
        return file, line_in_file(file, hit, lambda: self.fetch_chunk(hit.chunk_id).text)

    def stats(self) -> StoreStats | None:
        with self._store.reading() as reading:
            return reading.stats() if reading else None

    # --- life cycle

    def rebuild_fts(self) -> int:
        """The number of chunks the text index was rebuilt from."""
        with self._writing("kb index --rebuild-fts", existing=True, mending=True) as writing:
            return writing.rebuild_fts(self.settings.analysis.korean)

    def rebuild_vectors(self, progress: Progress | None = None) -> IngestReport:
        """Forgets all vectors and makes them anew with the model of the settings."""
        return self._ingesting.rebuild_vectors(progress)

    def migration_to(self, target: KnowledgeBase, progress: Progress | None = None) -> Migration:
        """Its `run` carries all of this over to a place where nothing is yet, and compares both; stopped anywhere,
        another one goes on.
        """
        from kebab.upkeep.migration import Migration

        return Migration(self._store, target._store, self.settings.analysis.korean, progress)

    def optimize(self) -> None:
        with self._writing("kb index --optimize", existing=True) as writing:
            writing.optimize()

    def backup(self, target: Path, *, force: bool = False) -> int:
        """The size of the copy in bytes."""
        return self._store.backup(target, force=force)

    def reset(self) -> bool:
        """Deletes the database; whether there was one."""
        return self._store.reset()

    def size(self) -> int:
        """Of the database in bytes; 0 where that cannot be told."""
        return self._store.size()

    def health(self) -> list[Check]:
        from kebab.upkeep.doctor import health

        return health(self._store, self.settings, self.embedding_models, _bundled_models, self.sources)

    @contextmanager
    def _reading(self) -> Iterator[Reading]:
        """For what must be there: looking up one thing in an empty corpus is an error."""
        with self._store.reading() as reading:
            if reading is None:
                raise NotFound("Nothing has been ingested yet.", hint="Begin with: kb ingest FOLDER")
            yield reading

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        """One state of what is stored, for several looks at it."""
        with self._reading() as reading:
            yield reading.catalog


def _bundled_models() -> Check:
    from kebab.config.loading import cache_folder
    from kebab.embedding.bundled import weights_fault
    from kebab.embedding.model_files import ModelCache
    from kebab.upkeep.checks import model_check

    return model_check(weights_fault(), ModelCache(cache_folder()).damaged())


def _find_document(catalog: Catalog, key: str) -> DocumentRecord:
    from kebab.search.document_lookup import find_document

    return find_document(catalog, key)
