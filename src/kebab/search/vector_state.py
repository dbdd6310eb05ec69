"""What is to be said when vectors are missing, of another model, or not complete."""

from __future__ import annotations

from kebab.core.errors import ModelError, ModelMismatch, ModelMissing, VectorsOff
from kebab.core.ports import EmbeddingModels, VectorCoverage
from kebab.core.search import Notice

_UNFINISHED_VECTORS = Notice(
    "partial_vectors",
    "Not everything has been embedded that the settings ask for: some questions may find less. Go on with: kb ingest",
)


def vectors_off() -> ModelError:
    return VectorsOff(
        "Vectors are turned off (embedding.model is none).", hint="Set embedding.model to bundled, then: kb ingest"
    )


def no_vectors_yet() -> ModelError:
    return ModelMissing("There are no vectors yet.", hint="Make them with: kb ingest")


def no_vectors_copied() -> ModelError:
    return ModelMissing(
        "The vectors have not come here yet.", hint="They come with the rest, when the migration goes on."
    )


def no_vectors(coverage: VectorCoverage, models: EmbeddingModels) -> ModelError:
    if coverage.other_models:
        names = [embedder.name for embedder in models.embedders]
        made = [model.partition("@")[0] for model in coverage.other_models]
        happened = (
            f"The vectors here were made by {', '.join(made)} in another version or with other settings"
            if set(made) <= set(names)
            else f"The vectors here were made by {', '.join(made)}, and embedding.model stands for {', '.join(names)}"
        )
        return ModelMismatch(f"{happened}.", hint="Make them anew with: kb index --rebuild-vectors")
    return no_vectors_yet()


def partial_vectors(coverage: VectorCoverage) -> list[Notice]:
    if coverage.chunks is None:
        return []
    if not coverage.missing:
        return [_UNFINISHED_VECTORS]
    have = f"{coverage.embedded:,} of {coverage.chunks:,} passages have vectors"
    return [Notice("partial_vectors", f"{have}; the rest is found by words only. Make them with: kb ingest")]
