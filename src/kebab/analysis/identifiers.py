"""The words inside identifiers: `parseHTTPHeader` is also found by "parse http header".

The tokenizer cuts at underscores, dots and dashes by itself; what it leaves whole are humps, and letters that touch
digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

_LONGEST = 80  # longer runs are encoded data
_CASED_SCRIPTS = range(0xC0, 0x590)
"""Latin with accents, Greek, Cyrillic, Armenian: the letters beyond ASCII that have humps."""


_WORD = re.compile(r"[^\W_]+")


class _Patterns(NamedTuple):
    hump: re.Pattern[str]
    """Where a word has several pieces, or at least looks like it."""
    piece: re.Pattern[str]


def inner_words(text: str) -> Iterator[str]:
    """The pieces of every identifier that has several, in order; an identifier that comes again is taken again, as its
    text is.
    """
    for word in _WORD.findall(text):
        yield from _pieces(word)


@lru_cache(maxsize=1 << 15)
def _pieces(word: str) -> tuple[str, ...]:
    """None of a word that is only one. Kept, because code is written with few words."""
    if len(word) > _LONGEST:
        return ()
    hump, piece = _patterns(word.isascii())
    pieces = tuple(piece.findall(word)) if hump.search(word) else ()
    return pieces if len(pieces) > 1 else ()


@cache
def _patterns(ascii_only: bool) -> _Patterns:
    letters = [] if ascii_only else [chr(code) for code in _CASED_SCRIPTS]
    upper = "A-Z" + "".join(filter(str.isupper, letters))
    lower = "a-z" + "".join(filter(str.islower, letters))
    letter = upper + lower
    return _Patterns(
        re.compile(rf"[{lower}\d][{upper}]|[{upper}]{{2}}[{lower}]|[{letter}]{{2}}\d+[{letter}]"),
        # "URLs" and "IDs" are one piece: a plural is no hump.
        re.compile(
            rf"[{upper}]{{2,}}s(?![{lower}])|[{upper}]+(?![{lower}])|[{upper}]?[{lower}]+|\d+|[^\W\d_{letter}]+"
        ),
    )
