"""Vectors without a model, for measuring stores: in 256 clusters around a common centre, as those of a text model lie."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np

DIMENSION = 384


_FIXED = np.random.default_rng(1)
_CLUSTERS, _COMMON = _FIXED.standard_normal((256, DIMENSION)), 1.5 * _FIXED.standard_normal(DIMENSION)


def vectors(count: int, seed: int) -> Any:
    random = np.random.default_rng(seed)
    made = 0.7 * _CLUSTERS[random.integers(0, 256, count)] + random.standard_normal((count, DIMENSION)) + _COMMON
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float16)


class SyntheticEmbedder:
    name, version, dimension, fingerprint = "synthetic", "1", DIMENSION, f"synthetic@1:{DIMENSION}"

    def embed(self, texts: Sequence[str], kind: str) -> Any:
        """Those of questions are kept: making one takes as long as a search."""
        make = _kept if kind == "query" else _vector
        return np.concatenate([make(text) for text in texts])


def _vector(text: str) -> Any:
    return vectors(1, crc32(text.encode())).astype(np.float32)


_kept = cache(_vector)
