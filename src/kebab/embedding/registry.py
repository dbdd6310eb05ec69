"""The models that the setting `embedding.model` names. To add a provider, add a function and its line in the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kebab.config.settings import EmbeddingSettings
from kebab.core.errors import ConfigError
from kebab.core.ports import Embedder, EmbeddingModels, SpaceQuery
from kebab.embedding.bundled import BundledModels
from kebab.embedding.onnx_embedder import from_folder, reads_east_asian


def models_for(settings: EmbeddingSettings, cache: Path) -> EmbeddingModels | None:
    """The models of `embedding.model`; None for `none`. Models are loaded, and endpoints asked, at the first text."""
    kind, _, name = settings.model.strip().partition(":")
    if kind == "none":
        return None
    if kind not in _PROVIDERS or bool(name) != (kind != "bundled"):
        raise ConfigError(
            f"embedding.model = {settings.model!r} is not known.",
            hint="Valid: bundled, none, onnx:FOLDER, openai:MODEL, ollama:MODEL.",
        )
    embedder = _PROVIDERS[kind](name, settings)
    # The tokenizer behind an endpoint cannot be inspected, so `auto` means all scripts there.
    latin_only = settings.scripts == "latin" or (
        settings.scripts == "auto"
        and kind == "onnx"
        and not reads_east_asian(Path(name, "tokenizer.json").expanduser())
    )
    if embedder is None or latin_only:  # the bundled model for all scripts gets the other texts
        return BundledModels(cache, latin=embedder, cross_language=settings.cross_language, threads=settings.threads)
    return SingleModel(embedder)


def _endpoint(name: str, settings: EmbeddingSettings) -> Embedder:
    from kebab.embedding.endpoint import OLLAMA, OPENAI, EndpointEmbedder

    return EndpointEmbedder(OLLAMA if settings.model.strip().startswith("ollama:") else OPENAI, name, settings)


_PROVIDERS: dict[str, Callable[[str, EmbeddingSettings], Embedder | None]] = {
    "bundled": lambda _name, _settings: None,
    "onnx": from_folder,
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
