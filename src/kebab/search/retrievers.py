"""What answers a search of one reading of the store, put together as the settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kebab.core.errors import ModelError, ModelMismatch, ModelMissing, VectorsOff
from kebab.core.notices import Notice, Says
from kebab.core.ports import ColumnWeights, EmbeddingModels, Retriever, VectorCoverage
from kebab.core.search import Mode
from kebab.search.lexical import LexicalRetriever

if TYPE_CHECKING:
    from kebab.config.settings import Settings
    from kebab.core.store_ports import LexicalIndex, Reading
    from kebab.search.hybrid import HybridRetriever
    from kebab.search.vector import VectorRetriever
    from kebab.session import Session


class Retrievers(NamedTuple):
    """What can answer: words always, vectors if they are wanted and there are some."""

    lexical: LexicalRetriever
    vector: VectorRetriever | None = None
    hybrid: HybridRetriever | None = None
    """Composes both and answers in every mode."""
    why_not: ModelError | None = None
    """Why there are no vectors."""

    def of(self, mode: Mode) -> Retriever:
        return self.lexical if self.hybrid is None or mode == "lexical" else self.hybrid

    def index_version(self, mode: Mode) -> str:
        """Of what answers in this mode."""
        return self.lexical.index_version() if self.hybrid is None else self.hybrid.index_version(mode)


def open_retrievers(session: Session, reading: Reading, *, with_vectors: bool = True) -> Retrievers:
    settings = session.settings
    chars = settings.search.snippet_chars
    index, chunks = lexical_index(reading, settings), reading.chunks()
    version = reading.index_version()
    lexical = LexicalRetriever(index, chunks, version, snippet_chars=chars)
    if not with_vectors:
        return Retrievers(lexical)
    from kebab.search.hybrid import HybridRetriever
    from kebab.search.vector import VectorRetriever

    try:
        models = session.models
    except ModelError as error:  # words can still answer
        return Retrievers(lexical, why_not=error)
    if models is None:
        return Retrievers(lexical, why_not=vectors_off())
    coverage = reading.vector_coverage(models)
    is_incomplete = reading.migrating_from() is not None  # then vectors come with the rest, and a notice says how
    if not coverage.any:
        return Retrievers(lexical, why_not=_no_vectors_copied() if is_incomplete else _no_vectors(coverage, models))
    notices = [] if is_incomplete else _partial_vectors(coverage)
    vector = VectorRetriever(
        reading.vectors(), models, chunks, coverage.index_version, index=index, snippet_chars=chars, notices=notices
    )
    return Retrievers(lexical, vector, HybridRetriever(settings.search, lexical, vector))


def lexical_index(reading: Reading, settings: Settings) -> LexicalIndex:
    chosen = settings.search
    weights = ColumnWeights(chosen.title_weight, chosen.heading_weight, chosen.text_weight, chosen.cjk_weight)
    return reading.lexical_index(weights)


def vectors_off() -> ModelError:
    return VectorsOff(
        "Vectors are turned off (embedding.model is none).", hint="Set embedding.model to bundled, then: kb ingest"
    )


def no_vectors_yet() -> ModelError:
    return ModelMissing("There are no vectors yet.", hint="Make them with: kb ingest")


def _no_vectors_copied() -> ModelError:
    return ModelMissing(
        "The vectors have not come here yet.", hint="They come with the rest, when the migration goes on."
    )


def _no_vectors(coverage: VectorCoverage, models: EmbeddingModels) -> ModelError:
    if not coverage.other_models:
        return no_vectors_yet()
    names = [embedder.name for embedder in models.embedders]
    made = [model.partition("@")[0] for model in coverage.other_models]
    by = f"The vectors here were made by {', '.join(made)}"
    happened = (
        f"{by} in another version or with other settings"
        if set(made) <= set(names)
        else f"{by}, and embedding.model stands for {', '.join(names)}"
    )
    return ModelMismatch(f"{happened}.", hint="Make them anew with: kb index --rebuild-vectors")


def _partial_vectors(coverage: VectorCoverage) -> list[Notice]:
    if coverage.chunks is None:
        return []
    if not coverage.missing:
        return [Says.UNFINISHED_VECTORS.notice()]
    return [Says.PARTIAL_VECTORS.notice(coverage.embedded, coverage.chunks)]
