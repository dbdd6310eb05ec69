"""Ranked full-text search: one statement, ranking inside, everything a hit needs outside."""

from __future__ import annotations

from typing import Any, NamedTuple

import apsw

from kebab.core.errors import QueryError
from kebab.core.ports import LexicalMatch, LexicalMatches
from kebab.core.query_tree import QueryTree, Raw
from kebab.core.search import SearchFilters
from kebab.store.sqlite.filters import document_filter
from kebab.store.sqlite.match_expression import MatchExpression, MatchExpressionBuilder
from kebab.store.sqlite.rows import CHUNK_CONTEXT, chunk_context, rows_of
from kebab.store.sqlite.tokenizer import SqliteTokenizer
from kebab.store.sqlite.vocabulary import Vocabulary

# bm25() costs 93 % of a query, so it must run only on rows that pass the filter, and everything else only on the final few:
# the ranking stands in a subquery of its own. `chunk_owners` leads from a row to its document without reading its text.
_SEARCH = f"""
WITH ranked AS MATERIALIZED (
    SELECT chunks_fts.rowid AS id, bm25(chunks_fts, 0, 0, :heading, :text, :title, :cjk) AS bm25, owner.chunk_id
    FROM chunks_fts CROSS JOIN chunks owner INDEXED BY chunk_owners ON owner.id = chunks_fts.rowid {{date_join}}
    WHERE chunks_fts MATCH :match {{filter}}
    ORDER BY {{order}} LIMIT :limit OFFSET :offset
)
SELECT ranked.bm25, {CHUNK_CONTEXT}
FROM ranked
CROSS JOIN chunks c ON c.id = ranked.id
JOIN documents d ON d.id = c.document_id
JOIN sources s ON s.id = d.source_id
ORDER BY {{outer_order}}
"""
_COUNT = """
SELECT count(*) FROM chunks_fts CROSS JOIN chunks owner INDEXED BY chunk_owners ON owner.id = chunks_fts.rowid
WHERE chunks_fts MATCH :match {filter}
"""
_ORDERS = {
    "relevance": ("bm25, owner.chunk_id", "ranked.bm25, ranked.chunk_id", ""),
    "date": (
        "dated.date DESC, bm25, owner.chunk_id",
        "d.date DESC, ranked.bm25, ranked.chunk_id",
        "JOIN documents dated ON dated.id = owner.document_id",
    ),
}


class ColumnWeights(NamedTuple):
    title: float = 8.0
    heading: float = 4.0
    text: float = 1.0
    cjk: float = 1.0


class SqliteLexicalIndex:
    """`korean_analysis` is how the index was built, whatever the settings say now."""

    def __init__(self, connection: apsw.Connection, *, korean_analysis: str, weights: ColumnWeights | None = None) -> None:
        self.tokenizer = SqliteTokenizer(connection)
        self._connection = connection
        self._weights = weights or ColumnWeights()
        self._builder = MatchExpressionBuilder(self.tokenizer, Vocabulary(connection, self.tokenizer), korean_analysis)

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
        order, outer_order, date_join = _ORDERS[sort]
        condition, bindings = _filter_condition(filters)
        rows = self._run(
            _SEARCH.format(filter=condition, order=order, outer_order=outer_order, date_join=date_join),
            {
                **self._weights._asdict(),
                **bindings,
                "match": expression.text,
                "limit": limit + 1,
                "offset": offset,
            },
            tree,
        )
        found = tuple(LexicalMatch(row[0], chunk_context(row[1:])) for row in rows[:limit])
        return LexicalMatches(found, len(rows) > limit, expression.terms, expression.text, expression.dropped)

    def count(self, tree: QueryTree, *, match: str, drop_stop_words: bool, filters: SearchFilters) -> int:
        expression: MatchExpression = self._builder.build(tree, match=match, drop_stop_words=drop_stop_words)
        if not expression.text.strip():
            return 0
        condition, bindings = _filter_condition(filters)
        rows = self._run(_COUNT.format(filter=condition), {**bindings, "match": expression.text}, tree)
        return int(rows[0][0])

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


def _filter_condition(filters: SearchFilters) -> tuple[str, dict[str, str]]:
    sql, bindings = document_filter(filters)
    return (f"AND owner.document_id IN ({sql})" if sql else ""), bindings
