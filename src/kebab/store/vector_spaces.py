"""What every store needs to know about models: whether all their vectors are there, and whether a dimension changed."""

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
    """Models by name and version, without the dimension, which an endpoint would have to be asked for. `second`: the
    model that has embedded every chunk beside the chunk's own model; `other_scripts`: whether any chunk is written in
    another script than Latin.
    """
    key = ",".join(f"{embedder.name}@{embedder.version}" for embedder in embedders)
    return f"{key}{_MIXED if other_scripts else ''}{f'{_SECOND}{second.name}' if second else ''}"


def is_complete(remembered: str, models: EmbeddingModels) -> bool:
    """Whether the remembered key, made by `models_key`, covers all that the settings ask for now; it may cover more."""
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
