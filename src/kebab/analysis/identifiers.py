"""The words inside identifiers: `parseHTTPHeader` is also found by "parse http header".

The tokenizer cuts at underscores, dots and dashes by itself; what it leaves whole are humps, and letters that touch digits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

_LONGEST = 80  # longer runs are encoded data
_CASED_SCRIPTS = range(0xC0, 0x590)
"""Latin with accents, Greek, Cyrillic, Armenian: the letters beyond ASCII that have humps."""


class _Patterns(NamedTuple):
    several: re.Pattern[str]
    """A word that has several pieces, or at least looks like it."""
    piece: re.Pattern[str]


def inner_words(text: str) -> Iterator[str]:
    """The pieces of every identifier that has several, in order; an identifier that comes again is taken again, as its text is."""
    several, piece = _patterns(text.isascii())
    for match in several.finditer(text):
        if len(match[0]) > _LONGEST:
            continue
        pieces = piece.findall(match[0])
        if len(pieces) > 1:
            yield from pieces


@cache
def _patterns(ascii_only: bool) -> _Patterns:
    letters = [] if ascii_only else [chr(code) for code in _CASED_SCRIPTS]
    upper = "A-Z" + "".join(filter(str.isupper, letters))
    lower = "a-z" + "".join(filter(str.islower, letters))
    letter = upper + lower
    return _Patterns(
        # From the beginning of a word only: tried at each of its letters, a long word would take time without end.
        re.compile(rf"(?<![^\W_])(?=[^\W_]*?(?:[{lower}\d][{upper}]|[{upper}]{{2}}[{lower}]|[{letter}]{{2}}\d+[{letter}]))[^\W_]+"),
        # "URLs" and "IDs" are one piece: a plural is no hump.
        re.compile(rf"[{upper}]{{2,}}s(?![{lower}])|[{upper}]+(?![{lower}])|[{upper}]?[{lower}]+|\d+|[^\W\d_{letter}]+"),
    )
