"""Builds the graph of an encoder like BERT's from packed weights.

Weights are int8 with a scale per output channel, activations int8 with a scale per token. A scale per tensor would be a
third faster, but then a text's vector would depend on the other texts in its batch (cosine .983 between two such
vectors), and vectors could not be cached.

Every processor calculates the same integers. Processors without VNNI instructions (`vpmaddubsw`) add up two products of
an activation and a weight in 16 bits and saturate; the two weights of a pair are small enough that this never happens.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kebab.embedding.onnx_graph import FLOAT, INT32, INT64, ONNXRUNTIME, Array, OnnxGraph
from kebab.embedding.packed_weights import INT4_BLOCKS, Weights

_ZERO_POINT = 128
_PAIR_LIMIT = 127
"""Limit of the sum of two weights of one sign, before each is rounded by up to a half: 255 times 128 is below 2¹⁵."""


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


class TransformerGraph:
    """Builds an ONNX model from token ids to unit vectors. `exact`: float32 throughout, to compare the int8 model with.

    The state is one row per token of the whole batch; only attention needs to know where a text begins and ends.
    """

    def __init__(
        self, name: str, weights: Weights, *, pooling: str, beside: str | None = None, exact: bool = False
    ) -> None:
        """`pooling`: cls or mean; `beside`: see `OnnxGraph`."""
        self.graph = OnnxGraph(name, beside=beside)
        self._tensors = weights.tensors
        self._architecture = weights.architecture
        self._hidden = weights.architecture.hidden
        self._pooling = pooling
        self._exact = exact

    def build(self) -> bytes:
        graph = self.graph
        graph.input("input_ids", INT64, ["batch", "tokens"])
        graph.input("attention_mask", INT64, ["batch", "tokens"])
        mask = graph.add("Cast", "attention_mask", to=INT32)
        by_text = graph.add("Concat", graph.add("Shape", "input_ids"), graph.integers(self._hidden), axis=0)
        state = self._embeddings()
        for layer in range(self._architecture.layers):
            state = self._layer(state, by_text, mask, f"l{layer}.")
        pooled = self._pooled(graph.add("Reshape", state, by_text))
        graph.output("embedding", graph.add("LpNormalization", pooled, axis=1, p=2), FLOAT, ["batch", self._hidden])
        return graph.model()

    def _pooled(self, state: str) -> str:
        graph = self.graph
        if self._pooling == "cls":
            return graph.add("Gather", state, graph.constant("first token", np.int64(0)), axis=1)
        weights = graph.add("Unsqueeze", graph.add("Cast", "attention_mask", to=FLOAT), graph.integers(2))
        # The sum has the direction of the mean.
        return graph.add("ReduceSum", graph.add("Mul", state, weights), graph.integers(1), keepdims=0)

    def _array(self, name: str) -> Array:
        return self._tensors[name].array()

    def _constant(self, name: str) -> str:
        return self.graph.constant(name, self._array(name))

    def _by_token(self, state: str) -> str:
        return self.graph.add("Reshape", state, self.graph.integers(-1, self._hidden))

    def _embeddings(self) -> str:
        graph = self.graph
        first = self._architecture.first_position
        length = graph.add("Gather", graph.add("Shape", "input_ids"), graph.integers(1))
        # A slice, because onnxruntime is slow at Range + Gather here.
        end = graph.add("Add", length, graph.integers(first))
        positions = graph.add("Slice", self._constant("pos_emb"), graph.integers(first), end, graph.integers(0))
        kind = graph.constant("type_emb", self._array("type_emb")[0])
        return self._normalised(
            self._by_token(graph.add("Add", graph.add("Add", self._words(), positions), kind)), "emb_ln"
        )

    def _words(self) -> str:
        graph, table = self.graph, self._tensors["word_emb"]
        if table.encoding == INT4_BLOCKS:
            return self._words_of_int4()
        if self._exact:
            return graph.add("Gather", self._constant("word_emb"), "input_ids")
        rows = table.array()
        scales = np.abs(rows).max(axis=1, keepdims=True) / 127
        scales[scales == 0] = 1
        values = graph.add("Gather", graph.constant("word_emb", np.round(rows / scales).astype(np.int8)), "input_ids")
        scale = graph.add("Gather", graph.constant("word_emb scale", scales.astype(np.float32)), "input_ids")
        return graph.add("Mul", graph.add("Cast", values, to=FLOAT), scale)

    def _words_of_int4(self) -> str:
        """Unpacks the rows that a text needs. The whole table would be eight times as large."""
        graph = self.graph
        halves, scales = self._tensors["word_emb"].int4_blocks()
        packed = graph.add("Cast", graph.add("Gather", graph.constant("word_emb", halves), "input_ids"), to=FLOAT)
        high = graph.add("Floor", graph.add("Mul", packed, graph.number(1 / 16)))
        low = graph.add("Sub", packed, graph.add("Mul", high, graph.number(16.0)))
        values = graph.add("Sub", graph.add("Concat", low, high, axis=-1), graph.number(8.0))
        scale = graph.add("Gather", graph.constant("word_emb scale", scales), "input_ids")
        words = graph.add("Mul", values, graph.add("Cast", scale, to=FLOAT))
        return graph.add("Reshape", words, graph.integers(0, 0, self._hidden))

    def _normalised(self, state: str, name: str) -> str:
        weight, bias = self._constant(f"{name}.w"), self._constant(f"{name}.b")
        return self.graph.add(
            "LayerNormalization", state, weight, bias, epsilon=self._architecture.layer_norm_eps, axis=-1
        )

    def _layer(self, state: str, by_text: str, mask: str, name: str) -> str:
        graph = self.graph
        attended = self._linear(self._attention(state, by_text, mask, name), f"{name}ao")
        state = self._normalised(graph.add("Add", attended, state), f"{name}aln")
        widened = self._gelu(self._linear(state, f"{name}f1"))
        return self._normalised(graph.add("Add", self._linear(widened, f"{name}f2"), state), f"{name}fln")

    def _attention(self, state: str, by_text: str, mask: str, name: str) -> str:
        graph, hidden = self.graph, self._hidden
        projected = self._linear(state, f"{name}qkv")
        parts = []
        for start in range(0, 3 * hidden, hidden):
            part = graph.add(
                "Slice", projected, graph.integers(start), graph.integers(start + hidden), graph.integers(1)
            )
            parts.append(graph.add("Reshape", part, by_text))
        heads = self._architecture.heads
        return self._by_token(graph.add("MultiHeadAttention", *parts, "", mask, domain=ONNXRUNTIME, num_heads=heads))

    def _together(self, name: str) -> Array:
        """A tensor; that of `qkv` is joined if the file has it in three."""
        layer, matrix, kind = name.split(".")
        if matrix == "qkv" and name not in self._tensors:
            return np.concatenate([self._array(f"{layer}.{part}.{kind}") for part in matrix])
        return self._array(name)

    def _linear(self, state: str, name: str) -> str:
        graph = self.graph
        weight, bias = self._together(f"{name}.w"), self._together(f"{name}.b")
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
        graph = self.graph
        largest = graph.add("ReduceMax", graph.add("Abs", state), axes=[-1], keepdims=0)
        scale = graph.add("Mul", graph.add("Max", largest, graph.number(1e-12)), graph.number(1 / 127))
        zeros = graph.add(
            "Expand", graph.constant("zero points", np.array([_ZERO_POINT], np.uint8)), graph.add("Shape", scale)
        )
        return _Quantised(graph.add("QuantizeLinear", state, scale, zeros, axis=0), scale)

    def _gelu(self, state: str) -> str:
        graph = self.graph
        error = graph.add("Erf", graph.add("Div", state, graph.number(float(np.sqrt(2)))))
        return graph.add("Mul", graph.add("Mul", state, graph.add("Add", error, graph.number(1.0))), graph.number(0.5))
