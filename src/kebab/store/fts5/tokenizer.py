"""SQLite's own tokenizers, called from Python: the very code that cut the indexed text, with offsets."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import apsw

_WORDS = ["unicode61", "remove_diacritics", "2"]


class SqliteTokenizer:
    def __init__(self, connection: apsw.Connection | None = None) -> None:
        """They come with any connection, and without one with that to an empty database in memory."""
        connection = connection or apsw.Connection(":memory:")
        self._stems = connection.fts5_tokenizer("porter", _WORDS)
        self._words = connection.fts5_tokenizer(_WORDS[0], _WORDS[1:])

    def stems(self, text: str) -> list[str]:
        return self._call(self._stems, text)

    def words(self, text: str) -> list[str]:
        """Unstemmed, folded to lower case without diacritics."""
        return self._call(self._words, text)

    def occurrences(self, text: str, phrases: Collection[tuple[str, ...]]) -> list[tuple[int, int]]:
        """Where these sequences of stems stand, in order of their beginning; code points, half-open."""
        beginning_with: dict[str, list[tuple[str, ...]]] = {}
        for phrase in phrases:
            beginning_with.setdefault(phrase[0], []).append(phrase)
        data = text.encode("utf-8", "replace")
        tokens = cast("list[tuple[int, int, str]]", self._stems(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False))
        found = [
            (start, tokens[number + len(phrase) - 1][1])
            for number, (start, _, stem) in enumerate(tokens)
            if stem in beginning_with
            for phrase in beginning_with[stem]
            if len(phrase) == 1 or tuple(token[2] for token in tokens[number : number + len(phrase)]) == phrase
        ]
        return found if len(data) == len(text) else _in_code_points(data, found)

    @staticmethod
    def _call(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
        data = text.encode("utf-8", "replace")
        return cast("list[str]", tokenizer(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False))


def _in_code_points(data: bytes, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    points = {0: 0}
    last = 0
    for byte in sorted({byte for pair in ranges for byte in pair}):
        points[byte] = points[last] + len(data[last:byte].decode("utf-8", "replace"))
        last = byte
    return [(points[start], points[end]) for start, end in ranges]
