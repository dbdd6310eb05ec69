"""Helpers for every store: whether chunks have all vectors that the settings ask for, and changed dimensions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from kebab.core.errors import ModelMismatch
from kebab.core.ports import Embedder, EmbeddingModels

_SECOND = ";all:"
_MIXED = ";mixed"


class Space(Protocol):
    @property
    def fingerprint(self) -> str: ...
    @property
    def dimension(self) -> int: ...


def models_key(embedders: Iterable[Embedder], second: Embedder | None = None, *, other_scripts: bool = False) -> str:
    """The key that a store remembers when all vectors exist: names and versions of the models. The dimension is left
    out, because an endpoint would have to be asked for it. `second`: the model that embedded every chunk in addition to
    the chunk's own model; `other_scripts`: whether any chunk is in another script than Latin.
    """
    key = ",".join(f"{embedder.name}@{embedder.version}" for embedder in embedders)
    return f"{key}{_MIXED if other_scripts else ''}{f'{_SECOND}{second.name}' if second else ''}"


def is_complete(remembered: str, models: EmbeddingModels) -> bool:
    """Whether the remembered key, made by `models_key`, covers all models that the settings ask for now."""
    made, _, second = remembered.partition(_SECOND)
    wanted = models.secondary_for_all(other_scripts=made.endswith(_MIXED))
    return made.removesuffix(_MIXED) == models_key(models.embedders) and (wanted is None or wanted.name == second)


def refuse_other_dimension(space: str, stored: Iterable[Space]) -> None:
    model, _, dimension = space.rpartition(":")
    for other in stored:
        if other.fingerprint.rpartition(":")[0] == model:
            raise ModelMismatch(
                f"{model} gives vectors of {dimension} dimensions now, and those stored have {other.dimension}.",
                hint="Embed everything again with: kb index --rebuild-vectors",
            )
