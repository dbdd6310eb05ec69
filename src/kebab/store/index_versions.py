"""What a store remembers of its indexes: the version of the text index, and which models made the vectors."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from hashlib import sha256

from kebab.core.errors import ModelMismatch
from kebab.core.ports import Embedder, EmbeddingModels
from kebab.store.fts5.tokenizer import TOKENIZE

# --- the text index

ANALYSIS_VERSION = 2
"""Increased whenever the same text gives other terms, so that Kebab notices an index built before."""


def fts_config(korean_analysis: str) -> dict[str, object]:
    return {
        "tokenize": TOKENIZE,
        "columns": ["chunk_id", "doc_id", "heading_path", "text", "title", "cjk"],
        "korean": korean_analysis,
        "analysis": ANALYSIS_VERSION,
    }


def lexical_index_version(config: dict[str, object], schema: int) -> str:
    """Returns the version of a text index. `schema`: the schema number of the store that has the index."""
    digest = sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:8]
    return f"lex:{schema}:{digest}"


# --- the models of its vectors

_SECOND = ";all:"
_MIXED = ";mixed"


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
    other_scripts = made.endswith(_MIXED)
    wanted = models.secondary_for_all(other_scripts=other_scripts)
    keys = [models_key(models.embedders)]
    if models.earlier is not None and not other_scripts:  # they differ in the model for other scripts only
        keys.append(models_key(models.earlier.embedders))
    return made.removesuffix(_MIXED) in keys and (wanted is None or wanted.name == second)


_RUNNING_S = 60
"""A run that makes vectors and has said nothing for longer has been interrupted."""


def expected_end(seconds: float) -> str | None:
    """What a store remembers of a run that makes vectors: when it said how long it still takes, and how long; None of a
    run that has ended.
    """
    return f"{time.time():.0f} {seconds:.0f}" if seconds else None


def seconds_left(remembered: str | None) -> float | None:
    """How long a run still takes, from what `expected_end` made; None if no run has said so lately."""
    said_at, seconds = map(float, (remembered or "0 0").split())
    return seconds if seconds and time.time() - said_at < _RUNNING_S else None


def refuse_other_dimension(space: str, stored: Iterable[str]) -> None:
    """Raises ModelMismatch if a stored space is of the same model, but of another dimension."""
    model, _, dimension = space.rpartition(":")
    for other in stored:
        same, _, stored_dimension = other.rpartition(":")
        if same == model:
            raise ModelMismatch(
                f"{model} gives vectors of {dimension} dimensions now, and those stored have {stored_dimension}.",
                hint="Embed everything again with: kb index --rebuild-vectors",
            )
