"""Reads packed weights: a table of tensors, each in an encoding of its own, as arrays.

The files of all bundled models are read as data. A module for each model knows the layout of its file, and gives the
tensors as `PackedTensor`; `transformer.py` makes a graph of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from kebab.embedding.onnx_graph import Array

FLOAT32 = "f32"
INT8_GROUPS = "i8"
"""All values as int8, then a float32 scale for each group."""
INT4_BLOCKS = "q4"
"""Blocks of a float16 scale and 32 values of four bits, 8 for zero: the first 16 in the low halves of 16 bytes, the
others in the high halves."""
_BLOCK = 32
_INT4_BLOCK = np.dtype([("scale", "<f2"), ("halves", "u1", (_BLOCK // 2,))])
_INT4_ZERO = 8


class PackedTensor(NamedTuple):
    encoding: str
    shape: tuple[int, ...]
    data: bytes | memoryview
    group: int = _BLOCK
    """How many values have a scale in common."""

    def checked(self) -> PackedTensor:
        """The tensor itself; ValueError if the encoding is not known or the data has another size than it needs."""
        count = math.prod(self.shape)
        sizes = {
            FLOAT32: 4 * count,
            INT8_GROUPS: count + count // max(1, self.group) * 4,
            INT4_BLOCKS: count // _BLOCK * _INT4_BLOCK.itemsize,
        }
        if len(self.data) != sizes.get(self.encoding):
            raise ValueError(f"{len(self.data)} bytes for {count} values of encoding {self.encoding!r}")
        return self

    def array(self) -> Array:
        """The tensor in float32."""
        if self.encoding == FLOAT32:
            return np.frombuffer(self.data, "<f4").reshape(self.shape)
        if self.encoding == INT8_GROUPS:
            count = math.prod(self.shape)
            values = np.frombuffer(self.data[:count], np.int8).reshape(-1, self.group).astype(np.float32)
            return np.asarray(values * np.frombuffer(self.data[count:], "<f4")[:, None]).reshape(self.shape)
        halves, scales = self.int4_blocks()
        values = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32) - _INT4_ZERO
        return np.asarray(values * scales.astype(np.float32)).reshape(self.shape)

    def int4_blocks(self) -> tuple[Array, Array]:
        """Of INT4_BLOCKS the bytes with two values each, and the scales: rows, blocks of a row, 16 or 1."""
        rows, columns = self.shape
        blocks = np.frombuffer(self.data, _INT4_BLOCK).reshape(rows, columns // _BLOCK)
        return blocks["halves"], blocks["scale"][:, :, None]


class Architecture(NamedTuple):
    """What a file of weights says about its network, an encoder like BERT's."""

    layers: int
    heads: int
    hidden: int
    layer_norm_eps: float
    first_position: int
    """The position of a text's first token in the table of positions."""


class Weights(NamedTuple):
    architecture: Architecture
    tensors: Mapping[str, PackedTensor]
    """By these names: word_emb, pos_emb, type_emb, emb_ln.w and .b, and for the layer 0 l0.qkv (or l0.q, l0.k and
    l0.v), l0.ao, l0.aln, l0.f1, l0.f2, l0.fln, each with .w and .b."""
