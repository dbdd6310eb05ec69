"""SQLite's own tokenizers, called from Python: the very code that cut the indexed text, with offsets."""

from __future__ import annotations

import apsw

from kebab.core.ports import Token

WORDS = ["unicode61", "remove_diacritics", "2"]


class SqliteTokenizer:
    """Stems with their place in the text (`tokens`), or unstemmed words (`words`)."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._stems = connection.fts5_tokenizer("porter", WORDS)
        self._words = connection.fts5_tokenizer(WORDS[0], WORDS[1:])

    def tokens(self, text: str) -> list[Token]:
        """Offsets are code points, half-open."""
        data = text.encode("utf-8", "replace")
        found = self._stems(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_colocated=False)
        if len(data) == len(text):
            return [Token(start, end, stem) for start, end, stem in found]
        offsets = _CodePoints(data)
        return [Token(offsets.at(start), offsets.at(end), stem) for start, end, stem in found]

    def stems(self, text: str) -> list[str]:
        return self._call(self._stems, text)

    def words(self, text: str) -> list[str]:
        return self._call(self._words, text)

    @staticmethod
    def _call(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
        data = text.encode("utf-8", "replace")
        return tokenizer(data, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)


class _CodePoints:
    """Byte offsets → code point offsets, for offsets that only grow."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._byte = 0
        self._point = 0

    def at(self, byte: int) -> int:
        self._point += len(self._data[self._byte : byte].decode("utf-8", "replace"))
        self._byte = byte
        return self._point
