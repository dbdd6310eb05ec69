"""Ranked full-text search, and the words that occur."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import pairwise
from typing import Any

import apsw

from kebab.core.errors import QueryError
from kebab.core.ports import ColumnWeights, LexicalMatch, LexicalMatches, NearWord
from kebab.core.query_tree import QueryTree, Raw
from kebab.core.search import QueryTerms, SearchFilters
from kebab.store.fts5.known_words import MAX_EXPANSIONS, nearest, worth_keeping
from kebab.store.fts5.match_expression import MatchExpressionBuilder
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.sqlite.database import Connection
from kebab.store.sqlite.filters import LIBRARIES, OWN, document_filter, is_library_alone, library_condition

_Row = tuple[Any, ...]


class Vocabulary:
    """The words that occur, unstemmed: half a word or a misspelt one is found here, and not in a stemmed index."""

    def __init__(self, connection: Connection, tokenizer: SqliteTokenizer) -> None:
        self._connection = connection
        self._tokenizer = tokenizer
        self._seen: set[str] = set()

    def add(self, texts: Iterable[str]) -> None:
        """Inside the caller's transaction. Words are only ever added; `kb index --rebuild-fts` starts afresh."""
        words = set(self._tokenizer.words("\n".join(texts))) - self._seen
        kept = sorted(filter(worth_keeping, words))
        stems = self._tokenizer.stems("\n".join(kept))  # one call, one stem per word
        self._connection.executemany(
            "INSERT INTO words VALUES (?, ?) ON CONFLICT DO NOTHING", zip(kept, stems, strict=True)
        )
        self._seen |= words

    def forget_seen(self) -> None:
        """After a rollback, added words may be missing."""
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
        """Known words at most `edits` slips away, one for each stem, the nearest and those with the same first letter
        first.

        The word is cut into one piece more than there may be slips. One piece is left whole, at most `edits` places
        away from where it was. SQLite looks for it in one scan of the table (0.1 s for 500,000 words), and only the
        words that pass are compared letter by letter. A swap of the letters on both sides of a cut breaks two pieces,
        so those swaps are looked up as whole words.
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


# bm25() costs 93 % of a query, so it must run only on rows that pass the filter, and everything else only on the final
# few: the ranking is a subquery. It is cut a little deeper than asked, because equal scores are sorted by chunk id
# afterwards.
_BY_RELEVANCE = """
SELECT ranked.bm25, c.chunk_id, d.doc_type FROM (
    SELECT rowid AS id, bm25({index}, 0, 0, :heading, :text, :title, :cjk) AS bm25
    FROM {index} WHERE {index} MATCH :match {filter}
    ORDER BY bm25 LIMIT :depth
) ranked CROSS JOIN chunks c ON c.id = ranked.id CROSS JOIN documents d ON d.id = c.document_id
"""
_BY_DATE = """
SELECT bm25({index}, 0, 0, :heading, :text, :title, :cjk) AS bm25, owner.chunk_id, dated.doc_type
FROM {index}
CROSS JOIN chunks owner ON owner.id = {index}.rowid
JOIN documents dated ON dated.id = owner.document_id
WHERE {index} MATCH :match {filter}
ORDER BY dated.date DESC, bm25, owner.chunk_id LIMIT :limit OFFSET :offset
"""
_COUNT = "SELECT count(*) FROM {index} WHERE {index} MATCH :match {filter}"
_DEEPER = 16
"""How much deeper than asked the ranking is cut: room for a few equal scores at its end."""


class SqliteLexicalIndex:
    """`korean_analysis` is how the index was built, which may differ from the settings."""

    def __init__(self, connection: Connection, *, korean_analysis: str, weights: ColumnWeights | None = None) -> None:
        self.tokenizer = SqliteTokenizer(connection)
        self._connection = connection
        self._weights = weights or ColumnWeights()
        self._vocabulary = Vocabulary(connection, self.tokenizer)
        self._builder = MatchExpressionBuilder(self.tokenizer, self._vocabulary, korean_analysis)

    def search(
        self,
        tree: QueryTree,
        *,
        match: str,
        drop_stop_words: bool,
        filters: SearchFilters,
        limit: int,
        offset: int = 0,
        sort: str = "relevance",
        type_ahead: bool = False,
    ) -> LexicalMatches:
        expression = self._builder.build(tree, match=match, drop_stop_words=drop_stop_words, type_ahead=type_ahead)
        if not expression.text.strip():
            return LexicalMatches((), False, expression.terms, "")
        index, condition, bindings = _filtered_index(filters)
        bindings = {**self._weights._asdict(), **bindings, "match": expression.text}
        statement = _BY_DATE if sort == "date" else _BY_RELEVANCE
        query = partial(self._run, statement.format(index=index, filter=condition), tree)
        with self._connection.snapshot():
            if sort == "date":
                ranked = query({**bindings, "limit": limit + 1, "offset": offset})
            else:
                ranked = _by_relevance(query, bindings, limit + 1, offset)
        found = tuple(LexicalMatch(*row) for row in ranked[:limit])
        return LexicalMatches(
            found, len(ranked) > limit, expression.terms, expression.text, expression.dropped, expression.shortened
        )

    def count(self, tree: QueryTree, *, match: str, drop_stop_words: bool, filters: SearchFilters) -> int:
        expression = self._builder.build(tree, match=match, drop_stop_words=drop_stop_words)
        if not expression.text.strip():
            return 0
        index, condition, bindings = _filtered_index(filters)
        sql = _COUNT.format(index=index, filter=condition)
        return int(self._run(sql, tree, {**bindings, "match": expression.text})[0][0])

    def near_words(self, word: str, edits: int) -> list[NearWord]:
        return self._vocabulary.near(word, edits)

    def size(self) -> int:
        return int(self._connection.value("SELECT count(*) FROM chunks"))

    def terms(self, tree: QueryTree, *, drop_stop_words: bool) -> QueryTerms:
        return self._builder.build(tree, match="any", drop_stop_words=drop_stop_words).terms

    def _run(self, sql: str, tree: QueryTree, bindings: dict[str, Any]) -> list[_Row]:
        try:
            return self._connection.rows(sql, bindings)
        except apsw.SQLError as error:
            if not isinstance(tree, Raw):
                raise
            raise QueryError(
                f"This is not a valid FTS5 expression: {str(error).removeprefix('fts5: ')}.",
                hint="Remove the single quotes around the query to search for its words.",
            ) from error


def _by_relevance(
    query: Callable[[dict[str, Any]], list[_Row]], bindings: dict[str, Any], limit: int, offset: int
) -> list[_Row]:
    depth = offset + limit + _DEEPER
    while True:
        ranked = sorted(query({**bindings, "depth": depth}))
        page = ranked[offset : offset + limit]
        if not page or page[-1][0] != ranked[-1][0] or len(ranked) < depth:
            return page
        depth *= 8  # the last score equals the worst one ranked: there may be more of the same


def _filtered_index(filters: SearchFilters) -> tuple[str, str, dict[str, Any]]:
    """The text index to ask, the condition for its rows, and the bindings of that.

    The documents that may answer are selected once. The `+` keeps SQLite from looking each of them up in the text
    index instead, which would run the whole query once per chunk.
    """
    if is_library_alone(filters):
        return LIBRARIES, *library_condition(filters)
    index = OWN if filters.library is None else LIBRARIES
    sql, bindings = document_filter(filters)
    if not sql:
        return index, "", {}
    named = {f"kind{number}": kind for number, kind in enumerate(filters.kinds)}
    kinds = f" AND allowed.kind IN ({', '.join(f':{name}' for name in named)})" if named else ""
    chunks = f"SELECT allowed.id FROM chunks allowed WHERE allowed.document_id IN ({sql}){kinds}"
    return index, f"AND +{index}.rowid IN ({chunks})", {**bindings, **named}
