"""granite from its pack: correct weights, correct vectors, little difference by int8."""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import erf, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from kebab.core.errors import ModelCorrupt
from kebab.embedding.granite import NAME, PACK, PACK_SHA256, PACKAGE, Pack, read_pack
from kebab.embedding.models import OnnxEmbedder
from kebab.embedding.onnx_encoder import FileTokenizer, package_file
from kebab.embedding.onnx_graph import INT32, UINT8, Array, OnnxGraph
from kebab.embedding.packed_weights import Architecture
from kebab.embedding.transformer import TransformerGraph, int8_weights

NOTES = Path(__file__).parents[2] / "samples" / "notes"
VARIED = [
    "a",
    "git",
    "How do I set up version control on a new laptop?",
    "The quick brown fox jumps over the lazy dog. " * 8,
    "def add(a: int, b: int) -> int:\n    return a + b\n",
    "SELECT count(*) FROM chunks WHERE document_id IN (1, 2, 3);",
    "3.14159 2.71828 1.41421 192.168.0.1 0xdeadbeef",
    "Crème brûlée, Straße, señor, Ærø, łódź",
    "!!! ??? --- === ***",
    "β-carotene is a red-orange pigment (α ≤ 0.05).",
    "새 노트북에 깃을 설치한다.",
    "🙂👩‍👩‍👧 emoji",
]


@pytest.fixture(scope="module")
def pack() -> Pack:
    return read_pack(package_file(PACKAGE, PACK, PACK_SHA256))


class Exact:
    """The float32 graph of the same tensors, computed from its bytes."""

    def __init__(self, pack: Pack, folder: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            TransformerGraph(NAME, pack.weights, pooling="cls", exact=True).build(),
            options,
            providers=["CPUExecutionProvider"],
        )
        self._tokenizer = FileTokenizer(folder / "tokenizer.json")

    def embed(self, texts: Iterable[str]) -> Array:
        return np.concatenate([self.embed_ids([ids]) for ids in self._tokenizer.ids(list(texts))])

    def embed_ids(self, batch: list[list[int]]) -> Array:
        length = max(map(len, batch))
        ids = np.array([[*row, *[1] * (length - len(row))] for row in batch])
        mask = np.array([[1] * len(row) + [0] * (length - len(row)) for row in batch])
        return np.asarray(self._session.run(None, {"input_ids": ids, "attention_mask": mask})[0])


@pytest.fixture(scope="module")
def exact(pack: Pack, granite_folder: Path) -> Exact:
    return Exact(pack, granite_folder)


def test_int8_and_float32_agree_to_a_cosine_of_995_on_varied_texts(exact: Exact, granite_model: OnnxEmbedder) -> None:
    texts = VARIED + [path.read_text(encoding="utf-8")[:250] for path in sorted(NOTES.glob("*/*.md"))]
    texts.append(" ".join(text for text in texts if text.isascii())[:1500])
    cosines = (exact.embed(texts) * granite_model.embed(texts, "passage")).sum(axis=1)
    assert cosines.min() >= 0.995, dict(zip(texts, cosines, strict=True))
    assert cosines.mean() >= 0.997


def test_int8_is_least_exact_on_texts_without_meaning(exact: Exact, granite_model: OnnxEmbedder) -> None:
    """An empty text and one repeated word are the worst known cases."""
    texts = ["", "word " * 200, "word " * 480]
    cosines = (exact.embed(texts) * granite_model.embed(texts, "passage")).sum(axis=1)
    assert cosines.min() >= 0.98


# --- the same whole numbers on every processor


MATRICES = [f"l{layer}.{name}.w" for layer in range(6) for name in ("qkv", "ao", "f1", "f2")]


def test_no_activations_make_a_pair_of_weights_overflow_16_bits(pack: Pack) -> None:
    """Regression: without VNNI two products are added up in 16 bits and saturate. With weights in their full range,
    cosines differed by .001 to .006 on such a processor, and so did scores.
    """
    tensors = pack.weights.tensors
    assert {name for name in tensors if name.endswith(".w") and len(tensors[name].shape) == 2} == set(MATRICES)
    for name in MATRICES:
        pairs = int8_weights(pack.weights.tensors[name].array())[0].astype(int).reshape(-1, 2)
        assert 255 * pairs.clip(min=0).sum(axis=1).max() <= 32767, name
        assert 255 * pairs.clip(max=0).sum(axis=1).min() >= -32768, name


def test_this_processor_multiplies_the_weights_without_cutting_anything_off(pack: Pack) -> None:
    """With the worst activations: the maximum where weights are positive and 0 where they are negative, and the
    reverse.
    """
    for name in MATRICES[:4]:
        weights = int8_weights(pack.weights.tensors[name].array())[0]
        activations = np.concatenate([weights > 0, weights < 0]).astype(np.uint8) * np.uint8(255)
        graph = OnnxGraph("product")
        product = graph.add(
            "MatMulInteger",
            graph.input("rows", UINT8, ["rows", weights.shape[1]]),
            graph.constant("weights", weights.T),
        )
        graph.output("product", product, INT32, ["rows", len(weights)])
        session = onnxruntime.InferenceSession(graph.model(), providers=["CPUExecutionProvider"])
        expected = activations.astype(np.float64) @ weights.T.astype(np.float64)  # exact, and a fast product
        np.testing.assert_array_equal(session.run(None, {"rows": activations})[0], expected)


def test_int8_steps_are_hardly_larger_than_those_of_the_full_range(pack: Pack) -> None:
    for name in MATRICES:
        weight = pack.weights.tensors[name].array()
        values, scales = int8_weights(weight)
        assert (np.abs(values * scales[:, None] - weight) <= 0.501 * scales[:, None]).all(), name
        assert (scales * 127 / np.abs(weight).max(axis=1)).mean() < 1.4, name


def test_the_float32_graph_calculates_what_the_architecture_says(exact: Exact, pack: Pack) -> None:
    """Compares it with the same network in numpy, so that the reference of int8 is itself checked."""
    batch = [[0, 33565, 36, 8, 55, 2], [0, 9178, 2], [0, *range(1000, 1008), 2]]
    expected = np.stack([_roberta(pack, ids) for ids in batch])
    np.testing.assert_allclose(exact.embed_ids(batch), expected, atol=2e-5)


def _roberta(pack: Pack, ids: list[int]) -> Array:
    tensors = {name: tensor.array() for name, tensor in pack.weights.tensors.items()}
    layers, heads, hidden, epsilon, first = pack.weights.architecture

    def normalised(state: Array, name: str) -> Array:
        centred = state - state.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + epsilon)
        return np.asarray(centred / deviation * tensors[f"{name}.w"] + tensors[f"{name}.b"])

    def linear(state: Array, name: str) -> Array:
        return np.asarray(state @ tensors[f"{name}.w"].T + tensors[f"{name}.b"])

    def attention(state: Array, name: str) -> Array:
        query, key, value = (
            part.reshape(len(ids), heads, -1).transpose(1, 0, 2)
            for part in np.split(linear(state, f"{name}.qkv"), 3, axis=1)
        )
        scores = np.exp(query @ key.transpose(0, 2, 1) / np.sqrt(hidden // heads))
        attended = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        return np.asarray(attended.transpose(1, 0, 2).reshape(len(ids), hidden))

    state = tensors["word_emb"][ids] + tensors["pos_emb"][first : first + len(ids)] + tensors["type_emb"][0]
    state = normalised(state, "emb_ln")
    gelu = np.vectorize(lambda x: x * 0.5 * (1 + erf(x / sqrt(2))))
    for layer in range(layers):
        name = f"l{layer}"
        state = normalised(linear(attention(state, name), f"{name}.ao") + state, f"{name}.aln")
        state = normalised(linear(gelu(linear(state, f"{name}.f1")), f"{name}.f2") + state, f"{name}.fln")
    return np.asarray(state[0] / np.linalg.norm(state[0]))


def test_a_page_on_git_is_closest_to_a_question_that_never_says_git(granite_model: OnnxEmbedder) -> None:
    passages = [
        "Bake the bread for forty minutes, then let it cool on a rack.",
        "Install git, run git init in the project folder and make the first commit.",
        "The train from Lisbon to Porto takes three hours.",
    ]
    question = granite_model.embed(["how to set up version control"], "query")[0]
    assert (granite_model.embed(passages, "passage") @ question).argmax() == 1


def _written(header: dict[str, Any], *parts: bytes) -> bytes:
    return b"HMSEMB01" + bytes(8) + json.dumps(header).encode() + b"".join(parts)


def test_int8_tensors_are_values_times_the_scale_of_their_group() -> None:
    values, scales = np.arange(-128, 128, dtype=np.int8), np.array([1, 0.5, 2, 0.25], np.float32)
    plain = np.array([1.5, -2.5], np.float32)
    header = {
        "arch": {"layers": 1, "heads": 1, "hidden": 2, "layer_norm_eps": 1e-5, "position_offset": 2},
        "tokenizer_len": 3,
        "tensors": [
            {"name": "a", "shape": [2, 128], "dtype": "i8", "group": 64, "len": 256 + 16},
            {"name": "b", "shape": [2], "dtype": "f32", "len": 8},
        ],
    }
    pack = read_pack(_written(header, b"{ }", values.tobytes(), scales.tobytes(), plain.tobytes()))
    assert pack.weights.architecture == Architecture(1, 1, 2, 1e-5, 2)
    assert pack.tokenizer == b"{ }"
    np.testing.assert_array_equal(
        pack.weights.tensors["a"].array(), (values.astype(np.float32) * np.repeat(scales, 64)).reshape(2, 128)
    )
    np.testing.assert_array_equal(pack.weights.tensors["b"].array(), plain)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(16) + b"{not json",
        bytes(16) + b"[]",
        bytes(16) + b"{}",
        _written(
            {"arch": {}, "tokenizer_len": 0, "tensors": [{"name": "a", "shape": [2], "dtype": "f32", "len": 8}]},
            b"short",
        ),
        _written(
            {
                "arch": {},
                "tokenizer_len": 0,
                "tensors": [{"name": "a", "shape": [64], "dtype": "i8", "group": 64, "len": 68}],
            },
            bytes(40),
        ),
    ],
)
def test_an_unreadable_pack_is_corrupt(data: bytes) -> None:
    with pytest.raises(ModelCorrupt) as caught:
        read_pack(data)
    assert caught.value.hint == f"pip install --force-reinstall {PACKAGE}"
