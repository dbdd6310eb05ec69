"""Whether a model of the user's reads more than Latin script, told by the pieces its tokenizer cuts text into.

A model that was made for English has hardly a piece of Korean, Chinese or Japanese, and what it makes of such text is
noise.
"""

from __future__ import annotations

import re
from pathlib import Path

_CHARACTERS = 2000
"""Different characters of East Asian scripts. Vocabularies for English have some hundred of them, those for one of
these languages and for many have several thousand."""
_AS_ITSELF = re.compile(rb"(?:[\xe3-\xec][\x80-\xbf]|\xed[\x80-\x9e])[\x80-\xbf]")
_ESCAPED = re.compile(rb"\\u(?:3[0-9a-fA-F]|[4-9a-cA-C][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2}")


def reads_east_asian(tokenizer: Path) -> bool:
    data = tokenizer.read_bytes()
    return any(
        len(found) >= _CHARACTERS
        for found in (_characters(data), set(_ESCAPED.findall(data)), _characters(_byte_pieces(data)))
    )


def _characters(data: bytes) -> set[bytes]:
    return set(_AS_ITSELF.findall(data))


def _byte_pieces(data: bytes) -> bytes:
    """Tokenizers that go by bytes write each as a visible character; what they stand for."""
    return data.decode("utf-8", "replace").translate(_BYTES).encode("latin-1", "ignore")


def _byte_table() -> dict[int, int]:
    """The convention of GPT-2: visible bytes stand for themselves, the others follow from 256 on."""
    visible = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return {256 + place: byte for place, byte in enumerate(hidden)}


_BYTES = _byte_table()
