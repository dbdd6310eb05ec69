"""Calls SQLite's own FTS5 tokenizers from Python, so that queries and highlights are cut like the indexed text."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import cast

import apsw

_WORDS = ["unicode61", "remove_diacritics", "2"]
TOKENIZE = f"porter {' '.join(_WORDS)}"
"""The tokenizer of the text indexes, as FTS5 is told of it."""

_of_this_thread = threading.local()


def _empty_database() -> apsw.Connection:
    """This thread's connection to an empty database in memory, kept because opening one is slow."""
    if not hasattr(_of_this_thread, "connection"):
        _of_this_thread.connection = apsw.Connection(":memory:")
    return cast("apsw.Connection", _of_this_thread.connection)


class SqliteTokenizer:
    def __init__(self, connection: apsw.Connection | None = None) -> None:
        """`connection`: any SQLite connection; by default, this thread's connection to an empty database in memory."""
        connection = connection or _empty_database()
        self._stems = connection.fts5_tokenizer("porter", _WORDS)
        self._words = connection.fts5_tokenizer(_WORDS[0], _WORDS[1:])

    def stems(self, text: str) -> list[str]:
        return self._call(self._stems, text)

    def words(self, text: str) -> list[str]:
        """The words of a text, unstemmed, in lower case, without diacritics."""
        return self._call(self._words, text)

    def occurrences(self, text: str, phrases: Collection[tuple[str, ...]]) -> list[tuple[int, int]]:
        """Returns where these sequences of stems occur, as half-open ranges of code points in order of their start."""
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
