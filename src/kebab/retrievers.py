"""The retrievers of one reading of the store, put together as the settings say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kebab.core.errors import ModelError
from kebab.pipelines import vector_state
from kebab.pipelines.search import Retrievers
from kebab.retrieval.lexical import LexicalRetriever
from kebab.store.sqlite.index_version import fts_config, lexical_index_version
from kebab.store.sqlite.lexical import ColumnWeights, SqliteLexicalIndex

if TYPE_CHECKING:
    from kebab.config.settings import Settings
    from kebab.core.ports import EmbeddingModels
    from kebab.store.sqlite.store import SqliteReading


def analysis_of(reading: SqliteReading, settings: Settings) -> dict[str, object]:
    """How the text index was built, whatever the settings say now."""
    return reading.fts_config() or fts_config(settings.analysis.korean)


def lexical_index(reading: SqliteReading, settings: Settings) -> SqliteLexicalIndex:
    chosen = settings.search
    weights = ColumnWeights(chosen.title_weight, chosen.heading_weight, chosen.text_weight, chosen.cjk_weight)
    return reading.lexical_index(str(analysis_of(reading, settings)["korean"]), weights)


def retrievers_of(
    reading: SqliteReading, settings: Settings, models_of: Callable[[], EmbeddingModels | None], *, with_vectors: bool
) -> Retrievers:
    """What can answer: words always, vectors when they are wanted and there are some."""
    index = lexical_index(reading, settings)
    version = lexical_index_version(analysis_of(reading, settings))
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
    if not coverage.any:
        return Retrievers(lexical, None, vector_state.no_vectors(coverage, models))
    from kebab.retrieval.hybrid import HybridRetriever
    from kebab.retrieval.snippets import SnippetLimits, SnippetMaker
    from kebab.retrieval.vector import VectorRetriever

    vector = VectorRetriever(
        reading.vectors(),
        models,
        reading.chunks(),
        coverage.index_version,
        index=index,
        snippet_chars=settings.search.snippet_chars,
        notices=vector_state.partial_vectors(coverage),
    )
    snippets = SnippetMaker(index.tokenizer, SnippetLimits(settings.search.snippet_chars))
    return Retrievers(lexical, HybridRetriever(settings.search, lexical, vector, snippets=snippets), vector=vector)
