"""The setting `embedding.model` → the models it names. To add a provider: one function here, one line in the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kebab.config.settings import EmbeddingSettings
from kebab.core.errors import ConfigError
from kebab.core.ports import Embedder, EmbeddingModels, SpaceQuery
from kebab.embedding.bundled import BundledModels
from kebab.embedding.onnx_embedder import from_folder, reads_east_asian


def models_for(settings: EmbeddingSettings, cache: Path) -> EmbeddingModels | None:
    """None for `none`. Models are loaded, and endpoints asked, when the first text is embedded."""
    kind, _, name = settings.model.strip().partition(":")
    if kind == "none":
        return None
    if kind not in ("bundled", *_PROVIDERS) or bool(name) != (kind != "bundled"):
        raise ConfigError(
            f"embedding.model = {settings.model!r} is not known.",
            hint="Valid: bundled, none, onnx:FOLDER, openai:MODEL, ollama:MODEL.",
        )
    if kind == "bundled":
        return BundledModels(cache, cross_language=settings.cross_language, threads=settings.threads)
    return _PROVIDERS[kind](name, settings, cache)


def _onnx(name: str, settings: EmbeddingSettings, cache: Path) -> EmbeddingModels:
    folder = Path(name).expanduser().absolute()
    embedder = from_folder(
        folder,
        pooling=settings.pooling,
        max_tokens=settings.max_tokens,
        query_prefix=settings.query_prefix,
        passage_prefix=settings.passage_prefix,
        threads=settings.threads,
    )
    latin_only = settings.scripts == "latin" or (
        settings.scripts == "auto" and not reads_east_asian(folder / "tokenizer.json")
    )
    return _alone_or_with_bundled(embedder, settings, cache, latin_only=latin_only)


def _endpoint(name: str, settings: EmbeddingSettings, cache: Path) -> EmbeddingModels:
    from kebab.embedding.endpoint import OLLAMA, OPENAI, EndpointEmbedder

    protocol = OLLAMA if settings.model.strip().startswith("ollama:") else OPENAI
    # What is behind an endpoint cannot be looked at.
    return _alone_or_with_bundled(
        EndpointEmbedder(protocol, name, settings), settings, cache, latin_only=settings.scripts == "latin"
    )


def _alone_or_with_bundled(
    embedder: Embedder, settings: EmbeddingSettings, cache: Path, *, latin_only: bool
) -> EmbeddingModels:
    """Text in other scripts than Latin goes to the bundled model if the user's own reads only Latin script."""
    if latin_only:
        return BundledModels(cache, latin=embedder, cross_language=settings.cross_language, threads=settings.threads)
    return SingleModel(embedder)


_PROVIDERS: dict[str, Callable[[str, EmbeddingSettings, Path], EmbeddingModels]] = {
    "onnx": _onnx,
    "openai": _endpoint,
    "ollama": _endpoint,
}


class SingleModel:
    """One model for every text and every query."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.embedders = (embedder,)

    def primary_of(self, _text: str) -> Embedder:
        return self._embedder

    def secondary_of(self, _text: str) -> Embedder | None:
        return None

    def secondary_for_all(self, *, other_scripts: bool) -> Embedder | None:  # noqa: ARG002 - there is only one space
        return None

    def for_query(self, _text: str) -> list[SpaceQuery]:
        return [SpaceQuery(self._embedder)]
