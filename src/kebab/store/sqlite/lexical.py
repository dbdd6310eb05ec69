"""Ranked full-text search, and the table of known words."""

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
    """The table of known words, unstemmed. It finds half-typed and misspelt words, which the stemmed index cannot."""

    def __init__(self, connection: Connection, tokenizer: SqliteTokenizer) -> None:
        self._connection = connection
        self._tokenizer = tokenizer
        self._seen: set[str] = set()

    def add(self, texts: Iterable[str]) -> None:
        """Adds the words of the texts, inside the caller's transaction. Only a rebuild of the table removes words."""
        words = set(self._tokenizer.words("\n".join(texts))) - self._seen
        kept = sorted(filter(worth_keeping, words))
        stems = self._tokenizer.stems("\n".join(kept))  # one call, one stem per word
        self._connection.executemany(
            "INSERT INTO words VALUES (?, ?) ON CONFLICT DO NOTHING", zip(kept, stems, strict=True)
        )
        self._seen |= words

    def forget_seen(self) -> None:
        """Empties the cache of added words, which may be missing from the table after a rollback."""
        self._seen.clear()

    def known(self, words: Collection[str]) -> set[str]:
        """Returns which of these words are known."""
        sql = "SELECT w.word FROM json_each(?) AS wanted CROSS JOIN words w ON w.word = wanted.value"
        return {word for (word,) in self._connection.execute(sql, (json.dumps(list(words)),))}

    def expand(self, prefix: str) -> list[str]:
        """Returns known words that begin with `prefix`, one for each stem, the shortest first."""
        rows = self._connection.execute(
            """SELECT word FROM (SELECT min(word) AS word, min(length(word)) AS length FROM words
                                 WHERE word >= ?1 AND word < ?2 GROUP BY stem)
               ORDER BY length, word LIMIT ?3""",
            (prefix, prefix + "\U0010ffff", MAX_EXPANSIONS),
        )
        return [word for (word,) in rows]

    def near(self, word: str, edits: int) -> list[NearWord]:
        """Returns known words within `edits` edits, one per stem, the nearest and those with the same initial first.

        `word` is cut into `edits` + 1 pieces, so a word within `edits` edits contains at least one whole piece, at most
        `edits` places from its place in `word`. SQLite finds words with such a piece in one scan (0.1 s for 500,000
        words), and only these are compared letter by letter. Swapping the letters on both sides of a cut is one edit
        that breaks two pieces, so words with these swaps are looked up as a whole.
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


# The ranking is a subquery, so that bm25(), which takes 93 % of the time, runs only on rows that pass the filter, and
# the joins only on the best rows. It returns a few rows more than asked, because equal scores are sorted by chunk id
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
"""How many rows more than asked the ranking returns, for equal scores at its end."""


class SqliteLexicalIndex:
    """Full-text search. `korean_analysis` is the one the index was built with, which may differ from the settings."""

    def __init__(self, connection: Connection, *, korean_analysis: str, weights: ColumnWeights | None = None) -> None:
        self.tokenizer = SqliteTokenizer(connection)
        self._connection = connection
        self._weights = weights or ColumnWeights()
        vocabulary = Vocabulary(connection, self.tokenizer)
        self.near_words = vocabulary.near
        self._builder = MatchExpressionBuilder(self.tokenizer, vocabulary, korean_analysis)

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
        depth *= 8  # the last score of the page equals the worst one ranked, so further rows may have it too


def _filtered_index(filters: SearchFilters) -> tuple[str, str, dict[str, Any]]:
    """Returns the text index to search, the condition for its rows, and the bindings of the condition.

    The permitted chunks are selected once. Without the `+`, SQLite would look up each of them in the text index, which
    runs the whole query once per chunk.
    """
    if not filters:
        return OWN, "", {}
    if is_library_alone(filters):
        return LIBRARIES, *library_condition(filters)
    index = OWN if filters.library is None else LIBRARIES
    sql, bindings = document_filter(filters)
    named = {f"kind{number}": kind for number, kind in enumerate(filters.kinds)}
    kinds = f" AND allowed.kind IN ({', '.join(f':{name}' for name in named)})" if named else ""
    chunks = f"SELECT allowed.id FROM chunks allowed WHERE allowed.document_id IN ({sql}){kinds}"
    return index, f"AND +{index}.rowid IN ({chunks})", {**bindings, **named}
