"""The setting `embedding.model` → the models it names. To add a provider: one function here, one line in the table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kebab.config.settings import EmbeddingSettings
from kebab.core.errors import ConfigError
from kebab.core.ports import EmbeddingModels


def models_for(settings: EmbeddingSettings, cache: Path) -> EmbeddingModels | None:
    """None for `none`. Nothing is loaded and nobody is asked before the first text is embedded."""
    kind, _, name = settings.model.strip().partition(":")
    if kind == "none":
        return None
    if kind not in _PROVIDERS or bool(name) != (kind != "bundled"):
        raise ConfigError(
            f"embedding.model = {settings.model!r} is not known.",
            hint="Valid: bundled, none, onnx:FOLDER, openai:MODEL, ollama:MODEL.",
        )
    return _PROVIDERS[kind](name, settings, cache)


def _bundled(_name: str, settings: EmbeddingSettings, cache: Path) -> EmbeddingModels:
    from kebab.embedding.bundled import BundledModels

    return BundledModels(cache, cross_language=settings.cross_language, threads=settings.threads)


def _onnx(name: str, settings: EmbeddingSettings, _cache: Path) -> EmbeddingModels:
    from kebab.embedding.onnx_embedder import from_folder
    from kebab.embedding.single_model import SingleModel

    return SingleModel(
        from_folder(
            Path(name).expanduser().absolute(),
            pooling=settings.pooling,
            max_tokens=settings.max_tokens,
            query_prefix=settings.query_prefix,
            passage_prefix=settings.passage_prefix,
            threads=settings.threads,
        )
    )


def _openai(name: str, settings: EmbeddingSettings, _cache: Path) -> EmbeddingModels:
    from kebab.embedding.endpoint import OPENAI, EndpointEmbedder
    from kebab.embedding.single_model import SingleModel

    return SingleModel(EndpointEmbedder(OPENAI, name, settings))


def _ollama(name: str, settings: EmbeddingSettings, _cache: Path) -> EmbeddingModels:
    from kebab.embedding.endpoint import OLLAMA, EndpointEmbedder
    from kebab.embedding.single_model import SingleModel

    return SingleModel(EndpointEmbedder(OLLAMA, name, settings))


_PROVIDERS: dict[str, Callable[[str, EmbeddingSettings, Path], EmbeddingModels]] = {
    "bundled": _bundled,
    "onnx": _onnx,
    "openai": _openai,
    "ollama": _ollama,
}
