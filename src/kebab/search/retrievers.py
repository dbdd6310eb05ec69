"""What answers a search of one reading of the store, put together as the settings say: retrievers, filters that were
checked, notices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kebab.core.errors import ModelError
from kebab.core.incomplete_migration import half_copied_notice
from kebab.core.ports import ColumnWeights
from kebab.core.search import Notice
from kebab.search import vector_state
from kebab.search.lexical import LexicalRetriever
from kebab.search.pipeline import Retrievers

if TYPE_CHECKING:
    from pathlib import Path

    from kebab.config.settings import Settings
    from kebab.core.ports import EmbeddingModels
    from kebab.core.search import SearchResponse
    from kebab.core.store_ports import LexicalIndex, Reading, Store
    from kebab.search.request import SearchRequest

_STALE_INDEX = Notice(
    "stale_index",
    "The text index was built with other analysis settings. Bring it up to date with: kb index --rebuild-fts",
)
_READ_ONLY = Notice("read_only", "The folder of the database cannot be written to: it is read as it stands.")


def prepared(
    request: SearchRequest,
    reading: Reading,
    store: Store,
    settings: Settings,
    models_of: Callable[[], EmbeddingModels | None],
) -> tuple[SearchRequest, Retrievers, list[Notice]]:
    """The request with its filters checked, what can answer it, and what must be said of the database."""
    korean = settings.analysis.korean
    notices = [_STALE_INDEX] if reading.index_version(korean) != store.index_version(korean) else []
    notices += [_READ_ONLY] if reading.is_immutable else []
    origin = reading.migrating_from()
    notices += [half_copied_notice(origin, store.address)] if origin is not None else []
    request, about_filters = checked_filters(request, reading)
    retrievers = retrievers_of(reading, settings, models_of, with_vectors=request.mode != "lexical")
    # The catalog is loaded when somebody counts: most searches do without it.
    retrievers = retrievers._replace(
        chunks=reading.chunks, passing=lambda filters: reading.catalog.count_documents(filters)
    )
    return request, retrievers, [*notices, *about_filters]


def checked_filters(request: SearchRequest, reading: Reading) -> tuple[SearchRequest, list[Notice]]:
    if not (request.source or request.doc or request.tags_any or request.tags_all or request.lang or request.format):
        return request, []
    from kebab.search import document_lookup

    return document_lookup.checked_filters(request, reading.catalog)


def add_freshness(
    response: SearchResponse, reading: Reading, settings: Settings, own_files: Callable[[], set[Path]]
) -> None:
    """Marks hits whose files have changed since, and says how many files wait, as the settings want it."""
    if settings.search.freshness == "off":
        return
    from kebab.search.freshness import pending_notice, stale_documents

    if response.hits:
        stale = stale_documents(reading.files({hit.doc_id for hit in response.hits}))
        response.hits = tuple(hit._replace(stale=True) if hit.doc_id in stale else hit for hit in response.hits)
    if settings.search.freshness == "check":
        response.notices += pending_notice(reading.files(), reading.catalog.sources(), settings, own_files())


def lexical_index(reading: Reading, settings: Settings) -> LexicalIndex:
    chosen = settings.search
    weights = ColumnWeights(chosen.title_weight, chosen.heading_weight, chosen.text_weight, chosen.cjk_weight)
    return reading.lexical_index(settings.analysis.korean, weights)


def retrievers_of(
    reading: Reading, settings: Settings, models_of: Callable[[], EmbeddingModels | None], *, with_vectors: bool
) -> Retrievers:
    """What can answer: words always, vectors when they are wanted and there are some."""
    index = lexical_index(reading, settings)
    version = reading.index_version(settings.analysis.korean)
    lexical = LexicalRetriever(index, version, snippet_chars=settings.search.snippet_chars)
    if not with_vectors:
        return Retrievers(lexical, None)
    try:
        models = models_of()
    except ModelError as error:  # words can still answer
        return Retrievers(lexical, None, error)
    if models is None:
        return Retrievers(lexical, None, vector_state.vectors_off())
    coverage = reading.vector_coverage(models)
    is_copied = reading.migrating_from() is not None  # then vectors come with the rest, and it is said how
    if not coverage.any:
        return Retrievers(
            lexical, None, vector_state.no_vectors_copied() if is_copied else vector_state.no_vectors(coverage, models)
        )
    from kebab.search.hybrid import HybridRetriever
    from kebab.search.snippets import SnippetLimits, SnippetMaker
    from kebab.search.vector import VectorRetriever

    chunks = reading.chunks()
    vector = VectorRetriever(
        reading.vectors(),
        models,
        chunks,
        coverage.index_version,
        index=index,
        snippet_chars=settings.search.snippet_chars,
        notices=[] if is_copied else vector_state.partial_vectors(coverage),
    )
    snippets = SnippetMaker(index.tokenizer, SnippetLimits(settings.search.snippet_chars))
    hybrid = HybridRetriever(settings.search, lexical, vector, snippets=snippets, chunks=chunks)
    return Retrievers(lexical, hybrid, vector=vector)
