"""Writes an ONNX model as bytes, because the `onnx` package weighs 27 MB and the format is a small part of protobuf.

It writes what our graphs need: nodes with integer, float and integer-list attributes, and constants. Large constants
may go to a file beside the model, which onnxruntime maps into memory: a model of 90 MB opens at once.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_IR_VERSION = 9
_OPSET = 17
_ELEMENT_TYPES = {
    np.dtype(np.float32): 1,
    np.dtype(np.uint8): 2,
    np.dtype(np.int8): 3,
    np.dtype(np.int32): 6,
    np.dtype(np.int64): 7,
    np.dtype(np.float16): 10,
}
FLOAT, UINT8, INT32, INT64 = 1, 2, 6, 7
ONNXRUNTIME = "com.microsoft"
"""The domain of the operators that onnxruntime adds to the standard ones."""
_ATTRIBUTE_FLOAT, _ATTRIBUTE_INT, _ATTRIBUTE_INTS = 1, 2, 7
_BESIDE_FROM = 4096
"""Constants of at least this many bytes go into the file beside the model, if there is one."""
_ALIGNMENT = 64


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _field(number: int, value: int | float | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    if isinstance(value, float):
        return _varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _fields(number: int, values: Any) -> bytes:
    return b"".join(_field(number, value) for value in values)


def _attribute(name: str, value: int | float | list[int]) -> bytes:
    if isinstance(value, list):
        return _field(1, name) + _fields(8, value) + _field(20, _ATTRIBUTE_INTS)
    if isinstance(value, float):
        return _field(1, name) + _field(2, value) + _field(20, _ATTRIBUTE_FLOAT)
    return _field(1, name) + _field(3, value) + _field(20, _ATTRIBUTE_INT)


def _declaration(name: str, element_type: int, shape: list[str | int]) -> bytes:
    """Encodes a model's input or output. A dimension with a name may have any size."""
    dimensions = b"".join(_field(1, _field(2, size) if isinstance(size, str) else _field(1, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, element_type) + _field(2, dimensions)))


class OnnxGraph:
    """Builds a graph. Every operation returns the name of its output, which is an input of the next."""

    def __init__(self, name: str, *, beside: str | None = None) -> None:
        """`beside`: the name of the file that will hold the large constants."""
        self._name = name
        self._beside = beside
        self._nodes: list[bytes] = []
        self._constants: dict[str, bytes] = {}
        self._values: dict[str, Array] = {}
        self._inputs: list[bytes] = []
        self._outputs: list[bytes] = []
        self.data = bytearray()
        """The content of the file beside the model."""

    def input(self, name: str, element_type: int, shape: list[str | int]) -> str:
        self._inputs.append(_declaration(name, element_type, shape))
        return name

    def output(self, name: str, value: str, element_type: int, shape: list[str | int]) -> None:
        self._nodes.append(_field(1, value) + _field(2, name) + _field(4, "Identity"))
        self._outputs.append(_declaration(name, element_type, shape))

    def constant(self, name: str, value: Array | np.generic) -> str:
        """Adds a constant and returns its name. Another value under a known name raises ValueError."""
        array = np.asarray(value, order="C")  # np.ascontiguousarray would make a scalar one-dimensional
        known = self._values.setdefault(name, array)
        if known is not array:
            if not np.array_equal(known, array):
                raise ValueError(f"two constants are named {name}")
            return name
        head = _fields(1, array.shape) + _field(2, _ELEMENT_TYPES[array.dtype]) + _field(8, name)
        if self._beside is None or array.nbytes < _BESIDE_FROM:
            self._constants[name] = head + _field(9, array.tobytes())
        else:
            self.data += bytes(-len(self.data) % _ALIGNMENT)
            place = {"location": self._beside, "offset": str(len(self.data)), "length": str(array.nbytes)}
            self._constants[name] = (
                head + _fields(13, (_field(1, key) + _field(2, text) for key, text in place.items())) + _field(14, 1)
            )
            self.data += array.tobytes()
        return name

    def number(self, value: float) -> str:
        return self.constant(f"number {value!r}", np.float32(value))

    def integers(self, *values: int) -> str:
        return self.constant(f"integers {values}", np.array(values, np.int64))

    def add(self, operator: str, *inputs: str, domain: str = "", **attributes: int | float | list[int]) -> str:
        output = f"{operator} {len(self._nodes)}"
        encoded = (_attribute(name, value) for name, value in attributes.items())
        self._nodes.append(
            _fields(1, inputs) + _field(2, output) + _field(4, operator) + _fields(5, encoded) + _field(7, domain)
        )
        return output

    def model(self) -> bytes:
        graph = b"".join(
            (
                _fields(1, self._nodes),
                _field(2, self._name),
                _fields(5, self._constants.values()),
                _fields(11, self._inputs),
                _fields(12, self._outputs),
            )
        )
        opsets = (_field(1, domain) + _field(2, version) for domain, version in (("", _OPSET), (ONNXRUNTIME, 1)))
        return _field(1, _IR_VERSION) + _field(7, graph) + _fields(8, opsets)
