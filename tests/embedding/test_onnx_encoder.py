"""A graph and its tokenizer → unit vectors, on a model small enough to calculate by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.errors import ModelCorrupt, ModelMismatch
from kebab.embedding.onnx_encoder import _TOKENS_PER_BATCH, _batches, output_dimension, unit
from kebab.embedding.onnx_graph import INT32, Array

if TYPE_CHECKING:
    from tests.embedding.conftest import TinyModel


def direction(vector: Array) -> Array:
    return np.asarray(vector / np.linalg.norm(vector))


def test_mean_pooling_is_the_mean_of_the_tokens_without_the_padding(tiny: TinyModel) -> None:
    tiny.write()
    found = tiny.encoder(pooling="mean").embed(["apple banana apple", "banana"])
    np.testing.assert_allclose(
        found[0], direction(tiny.rows("[CLS]", "apple", "banana", "apple", "[SEP]").mean(axis=0)), rtol=1e-5
    )
    np.testing.assert_allclose(found[1], direction(tiny.rows("[CLS]", "banana", "[SEP]").mean(axis=0)), rtol=1e-5)


def test_cls_pooling_is_the_first_token(tiny: TinyModel) -> None:
    tiny.write(marked=False)
    found = tiny.encoder(pooling="cls").embed(["apple banana", "banana"])
    np.testing.assert_allclose(found, [direction(tiny.rows("apple")[0]), direction(tiny.rows("banana")[0])], rtol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_graph_that_gives_one_vector_per_text_is_not_pooled(tiny: TinyModel, pooling: str) -> None:
    tiny.write(per_token=False)
    found = tiny.encoder(pooling=pooling).embed(["apple banana"])
    np.testing.assert_allclose(
        found[0], direction(tiny.rows("[CLS]", "apple", "banana", "[SEP]").max(axis=0)), rtol=1e-5
    )


def test_a_long_text_is_the_mean_of_its_parts_by_their_length(tiny: TinyModel) -> None:
    tiny.write()
    words = ["apple"] * 14 + ["banana"] * 5
    parts = [["[CLS]", *words[:14], "[SEP]"], ["[CLS]", *words[14:], "[SEP]"]]
    summed = sum(direction(tiny.rows(*part).mean(axis=0)) * len(part) for part in parts)
    found = tiny.encoder(max_tokens=16).embed([" ".join(words)])
    np.testing.assert_allclose(found[0], direction(np.asarray(summed)), rtol=1e-5)


@given(words=st.lists(st.sampled_from(["apple", "banana"]), max_size=70), max_tokens=st.integers(3, 20))
def test_no_token_is_dropped_or_doubled_with_any_limit(words: list[str], max_tokens: int) -> None:
    from kebab.embedding.onnx_encoder import OnnxEncoder

    encoder = object.__new__(OnnxEncoder)  # only the cutting is looked at here
    encoder._max_tokens, encoder._pad_id = max_tokens, 1
    ids = [2, *[len(word) for word in words], 3]
    parts = encoder._parts(ids)
    assert all(len(part) <= max_tokens for part in parts)
    assert all((part[0], part[-1]) == (2, 3) for part in parts)
    assert [token for part in parts for token in part[1:-1]] == ids[1:-1]


def test_long_and_short_texts_have_the_same_vectors_together_and_alone(tiny: TinyModel) -> None:
    tiny.write()
    encoder = tiny.encoder(max_tokens=16)
    texts = ["apple", "", "banana " * 100, "apple banana " * 9, "banana"]
    together = encoder.embed(texts)
    np.testing.assert_allclose(together, np.concatenate([encoder.embed([text]) for text in texts]), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


@given(st.lists(st.integers(1, 600), max_size=60))
def test_batches_hold_every_part_once_and_no_more_tokens_than_allowed(lengths: list[int]) -> None:
    parts = [[0] * length for length in lengths]
    order = sorted(range(len(parts)), key=lambda number: len(parts[number]))
    batches = list(_batches(order, parts))
    assert [number for batch in batches for number in batch] == order
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[number] for number in batch) <= _TOKENS_PER_BATCH


def test_no_texts_give_no_vectors(tiny: TinyModel) -> None:
    tiny.write()
    assert len(tiny.encoder().embed([])) == 0


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("marked", [True, False])
def test_a_text_without_tokens_has_a_vector(tiny: TinyModel, pooling: str, marked: bool) -> None:
    """A tokenizer that adds nothing gives none for an empty text, and nothing cannot be pooled."""
    tiny.write(marked=marked)
    found = tiny.encoder(pooling=pooling).embed(["", "apple"])
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [{"inputs": ("input_ids",)}, {"inputs": ("input_ids", "token_type_ids", "attention_mask")}, {"input_type": INT32}],
)
def test_a_graph_gets_the_inputs_it_asks_for(tiny: TinyModel, options: dict[str, Any]) -> None:
    tiny.write()
    expected = tiny.encoder().embed(["apple banana"])
    tiny.write(**options)
    np.testing.assert_array_equal(tiny.encoder().embed(["apple banana"]), expected)


def test_a_graph_that_asks_for_something_else_is_refused(tiny: TinyModel) -> None:
    tiny.write(inputs=("input_ids", "offsets", "task_id"))
    with pytest.raises(ModelMismatch, match="asks for offsets, task_id"):
        tiny.encoder()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_zero_or_non_finite_vector_is_refused(tiny: TinyModel, bad: float) -> None:
    tiny.table[5] = bad
    tiny.write()
    encoder = tiny.encoder()
    assert np.isfinite(encoder.embed(["apple"])).all()
    with np.errstate(invalid="ignore"), pytest.raises(ModelMismatch, match="no direction"):
        encoder.embed(["apple", "banana"])


def test_a_text_the_graph_cannot_take_is_a_clear_error(tiny: TinyModel, capfd: pytest.CaptureFixture[str]) -> None:
    """As of a model with fewer positions than embedding.max_tokens says. The runtime itself stays silent."""
    tiny.table = tiny.table[:5]
    tiny.write()
    with pytest.raises(ModelMismatch, match="cannot take a text of 3 tokens") as caught:
        tiny.encoder().embed(["banana"])
    assert caught.value.hint == "Set embedding.max_tokens to what the model takes."
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("content", [b"", b"no graph", None])
def test_a_graph_that_cannot_be_loaded_is_corrupt(
    tiny: TinyModel, content: bytes | None, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tiny.write() / "model.onnx"
    model.unlink()
    if content is not None:
        model.write_bytes(content)
    with pytest.raises(ModelCorrupt) as caught:
        tiny.encoder()
    assert caught.value.path == str(model)
    assert capfd.readouterr().err == ""


def test_missing_weights_beside_the_graph_are_corrupt(tiny: TinyModel) -> None:
    tiny.table = np.zeros((2000, 4), np.float32)
    tiny.write(beside="model.onnx_data")
    tiny.encoder()
    (tiny.folder / "model.onnx_data").unlink()
    with pytest.raises(ModelCorrupt):
        tiny.encoder()


def test_dimension_is_read_from_the_graph(tiny: TinyModel) -> None:
    assert output_dimension(tiny.write() / "model.onnx") == 4


def test_a_graph_without_a_dimension_needs_a_config(tmp_path: Path) -> None:
    from kebab.embedding.onnx_graph import FLOAT, OnnxGraph

    graph = OnnxGraph("open")
    graph.input("x", FLOAT, ["rows", "any"])
    graph.output("out", graph.add("Neg", "x"), FLOAT, ["rows", "any"])
    (tmp_path / "model.onnx").write_bytes(graph.model())
    with pytest.raises(ModelCorrupt) as caught:
        output_dimension(tmp_path / "model.onnx")
    assert caught.value.hint == 'Add a config.json with "hidden_size".'


def test_unit_leaves_a_zero_vector_alone() -> None:
    np.testing.assert_array_equal(
        unit(np.array([[3, 4], [0, 0]], np.float32)), np.array([[0.6, 0.8], [0, 0]], np.float32)
    )


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_the_number_of_processors_does_not_change_the_vector(tiny: TinyModel, threads: int) -> None:
    tiny.write()
    np.testing.assert_allclose(
        tiny.encoder(threads=threads).embed(["apple banana"]), tiny.encoder().embed(["apple banana"]), atol=1e-6
    )
