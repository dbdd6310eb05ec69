"""onnxruntime reads the graphs that OnnxGraph writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kebab.embedding.onnx_graph import FLOAT, INT32, INT64, ONNXRUNTIME, UINT8, Array, OnnxGraph


def run(model: bytes | Path, **inputs: Array) -> Array:
    session = onnxruntime.InferenceSession(
        str(model) if isinstance(model, Path) else model, providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, inputs)[0])


def constant_of(value: Array, element_type: int) -> Array:
    graph = OnnxGraph("constant")
    graph.output("out", graph.constant("value", value), element_type, list(value.shape))
    return run(graph.model())


@given(
    arrays.arrays(
        st.sampled_from([np.float32, np.uint8, np.int32, np.int64]),
        arrays.array_shapes(min_dims=0, max_dims=3, max_side=4),
    )
)
def test_a_constant_of_any_shape_comes_back_as_it_was(value: Array) -> None:
    """Scalars too: a scalar that becomes a list of one would change what operators do with it."""
    value = np.asarray(value)
    types = {"float32": FLOAT, "uint8": UINT8, "int32": INT32, "int64": INT64}
    found = constant_of(value, types[value.dtype.name])
    assert found.shape == value.shape
    assert found.dtype == value.dtype
    np.testing.assert_array_equal(found, value)


def test_a_transposed_constant_is_written_as_it_looks() -> None:
    value = np.arange(6, dtype=np.float32).reshape(2, 3).T
    np.testing.assert_array_equal(constant_of(value, FLOAT), value)


def test_large_constants_go_to_the_file_beside_and_small_ones_do_not(tmp_path: Path) -> None:
    values = {
        name: np.random.default_rng(size).normal(size=size).astype(np.float32)
        for name, size in (("a", 1025), ("b", 3), ("c", 5000))
    }

    def sums(beside: str | None) -> OnnxGraph:
        graph = OnnxGraph("sums", beside=beside)
        sums = [graph.add("ReduceSum", graph.constant(name, value), keepdims=1) for name, value in values.items()]
        graph.output("out", graph.add("Concat", *sums, axis=0), FLOAT, [3])
        return graph

    graph, whole = sums("weights.bin"), sums(None)
    (tmp_path / "model.onnx").write_bytes(graph.model())
    (tmp_path / "weights.bin").write_bytes(graph.data)
    assert len(graph.model()) < 1000
    assert bytes(graph.data).find(values["c"].tobytes()) % 64 == 0
    assert values["b"].tobytes() in graph.model()
    assert not whole.data
    expected = [value.sum() for value in values.values()]
    np.testing.assert_allclose(run(tmp_path / "model.onnx"), expected, rtol=1e-4)
    np.testing.assert_allclose(run(whole.model()), expected, rtol=1e-4)


def test_attributes_may_be_integers_floats_and_lists_also_negative_ones() -> None:
    graph = OnnxGraph("attributes")
    graph.input("x", FLOAT, ["rows", 3])
    largest = graph.add("ReduceMax", "x", axes=[-1], keepdims=0)
    graph.output(
        "out", graph.add("LeakyRelu", graph.add("Concat", largest, largest, axis=-1), alpha=0.25), FLOAT, ["both"]
    )
    found = run(graph.model(), x=np.array([[-4, -8, -12], [1, 2, 3]], np.float32))
    np.testing.assert_allclose(found, [-1, 3, -1, 3])


def test_a_named_dimension_takes_any_size_and_a_fixed_one_only_its_own() -> None:
    graph = OnnxGraph("shapes")
    graph.input("x", FLOAT, ["rows", 2])
    graph.output("out", graph.add("Neg", "x"), FLOAT, ["rows", 2])
    for rows in (1, 7):
        assert run(graph.model(), x=np.ones((rows, 2), np.float32)).shape == (rows, 2)
    with pytest.raises(Exception, match="invalid dimensions"):
        run(graph.model(), x=np.ones((1, 3), np.float32))


def test_operators_of_onnxruntime_itself_can_be_used() -> None:
    graph = OnnxGraph("own operators")
    graph.input("x", FLOAT, ["rows"])
    graph.output("out", graph.add("Gelu", "x", domain=ONNXRUNTIME), FLOAT, ["rows"])
    np.testing.assert_allclose(run(graph.model(), x=np.array([0, 100], np.float32)), [0, 100])


def test_the_same_constant_twice_is_stored_once() -> None:
    graph = OnnxGraph("twice")
    value = np.full(500, 7, np.float32)
    assert graph.constant("value", value) == graph.constant("value", value.copy())
    assert graph.model().count(value.tobytes()) == 1


def test_two_values_under_one_name_are_refused() -> None:
    graph = OnnxGraph("clash")
    graph.constant("value", np.float32(1))
    with pytest.raises(ValueError, match="two constants are named value"):
        graph.constant("value", np.float32(2))


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**31, 2**63 - 1, -1, -(2**63)])
def test_every_integer_is_written_whole(number: int) -> None:
    graph = OnnxGraph("numbers")
    graph.output("out", graph.integers(number, 0), INT64, [2])
    values: list[Any] = run(graph.model()).tolist()
    assert values == [number, 0]
