"""The words inside identifiers: `parseHTTPHeader` is also found by "parse http header".

The tokenizer cuts at underscores, dots and dashes by itself; what it leaves whole are humps, and letters that touch digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_HUMPED = re.compile(r"[^\W_]*[a-z\d][A-Z][^\W_]*|[A-Z]{2,}[a-z][^\W_]*|[A-Za-z]{2,}\d+[A-Za-z][^\W_]*")
_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_LONGEST = 80  # longer runs are encoded data


def inner_words(text: str) -> Iterator[str]:
    """The pieces of every identifier that has several, in order; an identifier that comes again is taken again, as its text is."""
    for match in _HUMPED.finditer(text):
        if len(match[0]) > _LONGEST:
            continue
        pieces = _PIECE.findall(match[0])
        if len(pieces) > 1:
            yield from pieces
