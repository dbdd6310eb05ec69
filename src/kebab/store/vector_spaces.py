"""What every store has to say of the models whose vectors it holds: whether they are all there, and that others are
other ones.
"""

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
    """Models by name and version; the dimension of an endpoint's vectors would have to be asked for. `second`: the one
    that has read every chunk, whichever model is the chunk's own; `other_scripts`: whether any chunk is written in
    another script than Latin.
    """
    key = ",".join(f"{embedder.name}@{embedder.version}" for embedder in embedders)
    return f"{key}{_MIXED if other_scripts else ''}{f'{_SECOND}{second.name}' if second else ''}"


def is_complete(remembered: str, models: EmbeddingModels) -> bool:
    """Whether what was complete when it was last looked at, as `models_key` has it, is all that the settings ask for
    now; more than that is complete too.
    """
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
