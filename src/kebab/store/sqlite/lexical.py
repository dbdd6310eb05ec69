"""Ranked full-text search: one statement that ranks, and one that reads what a hit needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import apsw

from kebab.core.errors import QueryError
from kebab.core.ports import ChunkContext, ColumnWeights, LexicalMatch, LexicalMatches, NearWord
from kebab.core.query_tree import QueryTree, Raw
from kebab.core.search import QueryTerms, SearchFilters
from kebab.store.fts5.match_expression import MatchExpression, MatchExpressionBuilder
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.sqlite.database import read_transaction
from kebab.store.sqlite.filters import document_filter
from kebab.store.sqlite.library_chunks import LIBRARIES, OWN, is_library_alone, library_condition
from kebab.store.sqlite.rows import CHUNK_CONTEXT, chunk_context, rows_of
from kebab.store.sqlite.vocabulary import Vocabulary

if TYPE_CHECKING:
    from kebab.core.store_ports import LexicalOptions

# bm25() costs 93 % of a query, so it must run only on rows that pass the filter, and everything else only on the final
# few: the ranking stands in a subquery of its own, and the texts are read by a second statement. (A materialised CTE
# that does all in one costs 10 %.) It is cut a little deeper than asked, because equal scores are put in order by chunk
# id afterwards.
_BY_RELEVANCE = """
SELECT ranked.bm25, c.chunk_id, ranked.id FROM (
    SELECT rowid AS id, bm25({index}, 0, 0, :heading, :text, :title, :cjk) AS bm25
    FROM {index} WHERE {index} MATCH :match {filter}
    ORDER BY bm25 LIMIT :depth
) ranked CROSS JOIN chunks c ON c.id = ranked.id
"""
_BY_DATE = """
SELECT bm25({index}, 0, 0, :heading, :text, :title, :cjk) AS bm25, owner.chunk_id, owner.id
FROM {index}
CROSS JOIN chunks owner ON owner.id = {index}.rowid
JOIN documents dated ON dated.id = owner.document_id
WHERE {index} MATCH :match {filter}
ORDER BY dated.date DESC, bm25, owner.chunk_id LIMIT :limit OFFSET :offset
"""
_CONTEXTS = f"""
SELECT c.id, {CHUNK_CONTEXT}
FROM json_each(?) AS wanted
CROSS JOIN chunks c ON c.id = wanted.value
JOIN documents d ON d.id = c.document_id
JOIN sources s ON s.id = d.source_id
"""
_TYPES = """
SELECT c.id, d.doc_type FROM json_each(?) AS wanted CROSS JOIN chunks c ON c.id = wanted.value JOIN documents d ON d.id = c.document_id
"""
_COUNT = "SELECT count(*) FROM {index} WHERE {index} MATCH :match {filter}"
_DEEPER = 16
"""How much deeper than asked the ranking is cut: room for a few equal scores at its end."""

_Ranked = tuple[Any, ...]
"""bm25, chunk id, row of `chunks`."""


class SqliteLexicalIndex:
    """`korean_analysis` is how the index was built, whatever the settings say now."""

    def __init__(
        self, connection: apsw.Connection, *, korean_analysis: str, weights: ColumnWeights | None = None
    ) -> None:
        self.tokenizer = SqliteTokenizer(connection)
        self._connection = connection
        self._weights = weights or ColumnWeights()
        self._vocabulary = Vocabulary(connection, self.tokenizer)
        self._builder = MatchExpressionBuilder(self.tokenizer, self._vocabulary, korean_analysis)

    def begin(self, tree: QueryTree, **options: Unpack[LexicalOptions]) -> Callable[[], LexicalMatches]:
        """It is here, so that nothing goes faster by beginning early."""
        return partial(self.search, tree, **options)

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
        outline: bool = False,
    ) -> LexicalMatches:
        expression = self._builder.build(tree, match=match, drop_stop_words=drop_stop_words, type_ahead=type_ahead)
        if not expression.text.strip():
            return LexicalMatches((), False, expression.terms, "")
        index, condition, bindings = _filtered_index(filters)
        bindings = {**self._weights._asdict(), **bindings, "match": expression.text}
        with read_transaction(self._connection):
            if sort == "date":
                ranked = self._run(
                    _BY_DATE.format(index=index, filter=condition),
                    {**bindings, "limit": limit + 1, "offset": offset},
                    tree,
                )
            else:
                ranked = self._by_relevance(
                    _BY_RELEVANCE.format(index=index, filter=condition), bindings, tree, limit + 1, offset
                )
            found = (self._with_outlines if outline else self._with_contexts)(ranked[:limit])
        return LexicalMatches(
            found, len(ranked) > limit, expression.terms, expression.text, expression.dropped, expression.shortened
        )

    def _by_relevance(
        self, sql: str, bindings: dict[str, Any], tree: QueryTree, limit: int, offset: int
    ) -> list[_Ranked]:
        depth = offset + limit + _DEEPER
        while True:
            ranked = sorted(self._run(sql, {**bindings, "depth": depth}, tree))
            page = ranked[offset : offset + limit]
            if not page or page[-1][0] != ranked[-1][0] or len(ranked) < depth:
                return page
            depth *= 8  # the last score equals the worst one ranked: there may be more of the same

    def _with_contexts(self, ranked: list[_Ranked]) -> tuple[LexicalMatch, ...]:
        rows = rows_of(self._connection, _CONTEXTS, (json.dumps([row[2] for row in ranked]),))
        contexts = {row[0]: chunk_context(row[1:]) for row in rows}
        return tuple(LexicalMatch(bm25, contexts[number]) for bm25, _, number in ranked)

    def _with_outlines(self, ranked: list[_Ranked]) -> tuple[LexicalMatch, ...]:
        types = dict(rows_of(self._connection, _TYPES, (json.dumps([row[2] for row in ranked]),)))
        return tuple(
            LexicalMatch(bm25, ChunkContext.outline(chunk_id, types[number])) for bm25, chunk_id, number in ranked
        )

    def count(self, tree: QueryTree, *, match: str, drop_stop_words: bool, filters: SearchFilters) -> int:
        expression: MatchExpression = self._builder.build(tree, match=match, drop_stop_words=drop_stop_words)
        if not expression.text.strip():
            return 0
        index, condition, bindings = _filtered_index(filters)
        rows = self._run(_COUNT.format(index=index, filter=condition), {**bindings, "match": expression.text}, tree)
        return int(rows[0][0])

    def near_words(self, word: str, edits: int) -> list[NearWord]:
        return self._vocabulary.near(word, edits)

    def size(self) -> int:
        return int(rows_of(self._connection, "SELECT count(*) FROM chunks")[0][0])

    def terms(self, tree: QueryTree, *, drop_stop_words: bool) -> QueryTerms:
        return self._builder.build(tree, match="any", drop_stop_words=drop_stop_words).terms

    def _run(self, sql: str, bindings: dict[str, Any], tree: QueryTree) -> list[tuple[Any, ...]]:
        try:
            return rows_of(self._connection, sql, bindings)
        except apsw.SQLError as error:
            if not isinstance(tree, Raw):
                raise
            raise QueryError(
                f"This is not a valid FTS5 expression: {str(error).removeprefix('fts5: ')}.",
                hint="Remove the single quotes around the query to search for its words.",
            ) from error


def _filtered_index(filters: SearchFilters) -> tuple[str, str, dict[str, Any]]:
    """Which of the two indexes is asked, and which of its chunks: those of the documents that may answer, found once
    and kept. The `+` forbids SQLite to look each of them up in the text index instead, which would run the whole query
    once per chunk.
    """
    if is_library_alone(filters):
        return LIBRARIES, *library_condition(filters)
    index = OWN if filters.library is None else LIBRARIES
    sql, bindings = document_filter(filters)
    if not sql:
        return index, "", {}
    kinds = (
        f" AND allowed.kind IN ({', '.join(f':kind{number}' for number in range(len(filters.kinds)))})"
        if filters.kinds
        else ""
    )
    chunks = f"SELECT allowed.id FROM chunks allowed WHERE allowed.document_id IN ({sql}){kinds}"
    named = {f"kind{number}": kind for number, kind in enumerate(filters.kinds)}
    return index, f"AND +{index}.rowid IN ({chunks})", {**bindings, **named}
