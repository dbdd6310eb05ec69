"""SQLite's own tokenizers, called from Python: the very code that cut the indexed text, with offsets."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import cast

import apsw

_WORDS = ["unicode61", "remove_diacritics", "2"]


_of_this_thread = threading.local()


def _empty_database() -> apsw.Connection:
    """Opening one takes longer than cutting a question into its words."""
    if not hasattr(_of_this_thread, "connection"):
        _of_this_thread.connection = apsw.Connection(":memory:")
    return cast("apsw.Connection", _of_this_thread.connection)


class SqliteTokenizer:
    def __init__(self, connection: apsw.Connection | None = None) -> None:
        """They come with any connection; without one, with that of this thread to an empty database in memory."""
        connection = connection or _empty_database()
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
        tokens = cast(
            "list[tuple[int, int, str]]", self._stems(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False)
        )
        if all(len(phrase) == 1 for phrase in phrases):  # as in most questions
            found = [(start, end) for start, end, stem in tokens if stem in beginning_with]
        else:
            found = [
                (tokens[number][0], tokens[number + len(phrase) - 1][1])
                for number in [number for number, token in enumerate(tokens) if token[2] in beginning_with]
                for phrase in beginning_with[tokens[number][2]]
                if len(phrase) == 1 or tuple(token[2] for token in tokens[number : number + len(phrase)]) == phrase
            ]
        return found if len(data) == len(text) else _in_code_points(data, found)

    @staticmethod
    def _call(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
        data = text.encode("utf-8", "replace")
        return cast(
            "list[str]",
            tokenizer(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False),
        )


def _in_code_points(data: bytes, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    points = {0: 0}
    last = 0
    for byte in sorted({byte for pair in ranges for byte in pair}):
        points[byte] = points[last] + len(data[last:byte].decode("utf-8", "replace"))
        last = byte
    return [(points[start], points[end]) for start, end in ranges]
