"""How alike two words are, by the bundled encoder for all scripts: the one model whose distances between single words
were measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

from kebab.core.ports import Embedder, EmbeddingModels
from kebab.embedding.onnx_embedder import MULTILINGUAL_NAME

_MOST_WORDS = 1 << 14
"""That are remembered, with 2 KB each."""


class WordLikeness:
    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Any] = {}
        self._lock = Lock()

    def __call__(self, words: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        """For each word, its cosine with each of the others."""
        if not words or not others:
            return [[] for _ in words]
        import numpy as np

        with self._lock:
            new = [word for word in dict.fromkeys((*words, *others)) if word not in self._known]
            if len(self._known) + len(new) > _MOST_WORDS:
                self._known.clear()
                new = list(dict.fromkeys((*words, *others)))
            if new:
                self._known.update(zip(new, self._embedder.embed(new, "passage"), strict=True))
            left, right = (np.stack([self._known[word] for word in side]) for side in (words, others))
        cosines: list[list[float]] = (left @ right.T).tolist()
        return cosines


def likeness_by(models: EmbeddingModels | None) -> WordLikeness | None:
    """None where nothing makes vectors, or that encoder is not among what does."""
    return (
        next((WordLikeness(one) for one in models.embedders if one.name == MULTILINGUAL_NAME), None) if models else None
    )
