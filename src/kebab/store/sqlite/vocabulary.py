"""The words that occur, unstemmed: a stemmed index cannot be searched by half a word or a misspelt one, this table can."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import apsw

from kebab.analysis.cjk import has_cjk
from kebab.core.ports import NearWord
from kebab.store.sqlite.tokenizer import SqliteTokenizer

MAX_EXPANSIONS = 50
MAX_NEAR = 40
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

    def near(self, word: str, edits: int) -> list[NearWord]:
        """Known words that so many slips lead to, one for each stem, the nearest and those with the same first letter first.

        Of as many pieces as there may be slips and one more, one is left whole, at most `edits` places away from where it was. SQLite
        looks for that in one walk through the table (0.1 s for 500,000 words), and only what passes is compared letter by letter. A
        swap may break two pieces at once: the swaps of letters that two pieces part are looked up by themselves.
        """
        from kebab.analysis.edit_distance import edit_distance  # searches that find something do without it

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
        found = [(distance, known, stem) for known, stem in rows if (distance := edit_distance(word, known, edits))]
        nearest: dict[str, NearWord] = {}
        # Letters are left out more often than added, so of renew and renewal for renewl the longer one.
        for distance, known, stem in sorted(found, key=lambda item: (item[0], item[1][0] != word[0], -len(item[1]), item[1])):
            nearest.setdefault(stem, NearWord(known, distance))
        return list(nearest.values())[:MAX_NEAR]


def _worth_keeping(word: str) -> bool:
    return 1 < len(word) <= _LONGEST_WORD and not has_cjk(word)
