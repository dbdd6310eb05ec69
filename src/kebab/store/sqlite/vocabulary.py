"""The words that occur, unstemmed: a stemmed index cannot be searched by half a word or a misspelt one, this table can."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from itertools import pairwise

import apsw

from kebab.core.ports import NearWord
from kebab.store.fts5.known_words import MAX_EXPANSIONS, nearest, worth_keeping
from kebab.store.fts5.tokenizer import SqliteTokenizer


class Vocabulary:
    def __init__(self, connection: apsw.Connection, tokenizer: SqliteTokenizer) -> None:
        self._connection = connection
        self._tokenizer = tokenizer
        self._seen: set[str] = set()

    def add(self, texts: Iterable[str]) -> None:
        """Inside the caller's transaction. Words are only ever added; `kb index --rebuild-fts` starts afresh."""
        words = set(self._tokenizer.words("\n".join(texts))) - self._seen
        kept = sorted(word for word in words if worth_keeping(word))
        stems = self._tokenizer.stems("\n".join(kept))  # one call, one stem per word
        self._connection.executemany(
            "INSERT INTO words VALUES (?, ?) ON CONFLICT DO NOTHING", zip(kept, stems, strict=True)
        )
        self._seen |= words

    def forget_seen(self) -> None:
        """After a rollback, what was added may not be there."""
        self._seen.clear()

    def known(self, words: Collection[str]) -> set[str]:
        """Which of these occur."""
        sql = "SELECT w.word FROM json_each(?) AS wanted CROSS JOIN words w ON w.word = wanted.value"
        return {word for (word,) in self._connection.execute(sql, (json.dumps(list(words)),))}

    def expand(self, prefix: str) -> list[str]:
        """Known words that begin so, one for each stem, shortest first."""
        rows = self._connection.execute(
            """SELECT word FROM (SELECT min(word) AS word, min(length(word)) AS length FROM words
                                 WHERE word >= ?1 AND word < ?2 GROUP BY stem)
               ORDER BY length, word LIMIT ?3""",
            (prefix, prefix + "\U0010ffff", MAX_EXPANSIONS),
        )
        return [word for (word,) in rows]

    def near(self, word: str, edits: int) -> list[NearWord]:
        """Known words that so many slips lead to, one for each stem, the nearest and those with the same first letter
        first.

        Of as many pieces as there may be slips and one more, one is left whole, at most `edits` places away from where
        it was. SQLite looks for that in one walk through the table (0.1 s for 500,000 words), and only what passes is
        compared letter by letter. A swap may break two pieces at once: the swaps of letters that two pieces part are
        looked up by themselves.
        """
        starts = [len(word) * number // (edits + 1) for number in range(edits + 2)]
        pieces = [(max(0, start - edits), word[start:end], end + edits) for start, end in pairwise(starts)]
        swapped = [word[: cut - 1] + word[cut] + word[cut - 1] + word[cut + 1 :] for cut in starts[1:-1]]
        has_piece = " OR ".join(["instr(substr(word, ?, ?), ?)"] * len(pieces))
        rows = self._connection.execute(
            f"""SELECT word, stem FROM words
                WHERE length(word) BETWEEN ? AND ? AND ({has_piece} OR word IN ({",".join("?" * len(swapped))}))""",
            [
                *(len(word) - edits, len(word) + edits),
                *(value for first, piece, last in pieces for value in (first + 1, last - first, piece)),
                *swapped,
            ],
        )
        return nearest(word, rows, edits)
