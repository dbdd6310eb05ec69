"""The words that occur, unstemmed: a stemmed index cannot be searched by half a word, this table can."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from kebab.analysis.cjk import has_cjk
from kebab.store.sqlite.tokenizer import SqliteTokenizer

MAX_EXPANSIONS = 50
_LONGEST_WORD = 48  # longer tokens are hashes and encoded data, which nobody half-types


class Vocabulary:
    def __init__(self, connection: apsw.Connection, tokenizer: SqliteTokenizer) -> None:
        self._connection = connection
        self._tokenizer = tokenizer
        self._seen: set[str] = set()

    def add(self, texts: Iterable[str]) -> None:
        """Inside the caller's transaction. Words are only ever added; `kb index --rebuild-fts` starts afresh."""
        words = set(self._tokenizer.words("\n".join(texts))) - self._seen
        kept = sorted(word for word in words if _worth_keeping(word))
        stems = self._tokenizer.stems("\n".join(kept))  # one call, one stem per word
        self._connection.executemany("INSERT INTO words VALUES (?, ?) ON CONFLICT DO NOTHING", zip(kept, stems, strict=True))
        self._seen |= words

    def forget_seen(self) -> None:
        """After a rollback, what was added may not be there."""
        self._seen.clear()

    def knows(self, word: str) -> bool:
        return bool(self._connection.execute("SELECT 1 FROM words WHERE word = ?", (word,)).fetchall())

    def expand(self, prefix: str) -> list[str]:
        """Known words that begin so, one for each stem, shortest first."""
        rows = self._connection.execute(
            """SELECT word FROM (SELECT min(word) AS word, min(length(word)) AS length FROM words
                                 WHERE word >= ?1 AND word < ?2 GROUP BY stem)
               ORDER BY length, word LIMIT ?3""",
            (prefix, prefix + "\U0010ffff", MAX_EXPANSIONS),
        )
        return [word for (word,) in rows]


def _worth_keeping(word: str) -> bool:
    return 1 < len(word) <= _LONGEST_WORD and not has_cjk(word)
