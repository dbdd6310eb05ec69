"""Searches by words. The server ranks chunks by the dot product of sparse vectors, which is BM25."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from kebab.core.errors import QueryError
from kebab.core.ports import ColumnWeights, LexicalMatch, LexicalMatches
from kebab.core.query_tree import QueryTree, Raw, words_of
from kebab.core.search import QueryTerms, SearchFilters
from kebab.store.fts5.match_expression import MatchExpression, MatchExpressionBuilder
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.fts5.wanted_terms import IndexTerm, matching, wanted_terms
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Fields, Filter, Point, one_of
from kebab.store.qdrant.filters import TermFilter, chunk_filter, corpus_of, term_filter
from kebab.store.qdrant.schema import WORDS, Schema
from kebab.store.qdrant.state import State, Stored
from kebab.store.qdrant.terms import OWN, STORED_WEIGHTS, TermLookup, counted, id_of, idf, weight_of, word_id

_EXTRA = 2  # additional candidates, because some may have the same score as the last one
_MOST_FETCHED = 100  # terms of a longer query are not looked up in advance: only a part of it is searched for
_DIGITS = 6  # significant digits of a score
_CHECKED = 128  # candidates to read, at least, if the order of their words has to be checked
_RESCORED = 256  # of the best candidates, if the column weights of the settings are not the stored ones


class _Search(NamedTuple):
    expression: MatchExpression
    corpus: str
    demanded: TermFilter  # the filter that the expression needs
    is_plain: bool  # whether any of the terms makes a match; the ranking finds no others
    filter: Filter  # the user's filters, and `demanded` unless is_plain
    vector: dict[str, Any]  # the rarity of each term; a repeated term counts twice
    needs_check: bool  # whether the positions of words have to be checked


class QdrantLexicalIndex(Stored):
    def __init__(self, schema: Schema, state: State, korean_analysis: str, weights: ColumnWeights) -> None:
        super().__init__(schema, state)
        self.tokenizer = SqliteTokenizer()
        self._korean_analysis = korean_analysis
        self._lookup = TermLookup(schema.terms)
        self.near_words = self._lookup.near
        self._weights = weights if weights != STORED_WEIGHTS else None  # None: as in the stored vectors

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
        expression = self._expression(tree, corpus_of(filters), match, drop_stop_words, type_ahead)
        search = self._search(expression, filters)
        if search is None:
            return LexicalMatches((), False, expression.terms, "")
        ranked = (self._by_date if sort == "date" else self._by_relevance)(search, limit + 1, offset)
        matches = tuple(
            LexicalMatch(-point["score"], codec.chunk_of(point["id"]), point["payload"]["type"])
            for point in ranked[:limit]
        )
        return LexicalMatches(
            matches, len(ranked) > limit, expression.terms, expression.text, expression.dropped, expression.shortened
        )

    def count(self, tree: QueryTree, *, match: str, drop_stop_words: bool, filters: SearchFilters) -> int:
        search = self._search(self._expression(tree, corpus_of(filters), match, drop_stop_words), filters)
        if search is None:
            return 0
        chosen = self._exact_filter(search)
        if search.demanded.is_exact:
            return self._chunks.count(chosen)
        return len(self._passing(search, list(self._chunks.scroll(chosen, payload=codec.HIT_FIELDS))))

    def size(self) -> int:
        return sum(size.chunks for size in self._state.sizes.values())

    def terms(self, tree: QueryTree, *, drop_stop_words: bool) -> QueryTerms:
        return self._expression(tree, OWN, "any", drop_stop_words).terms

    def _expression(
        self, tree: QueryTree, corpus: str, match: str, drop_stop_words: bool, type_ahead: bool = False
    ) -> MatchExpression:
        if isinstance(tree, Raw):
            raise QueryError(
                "FTS5 expressions are understood by the SQLite store only.",
                hint="Remove the single quotes around the query; phrases, AND, OR, NOT and word* work everywhere.",
            )
        text = " ".join(words_of(tree))
        stems = self.tokenizer.stems(text)
        if len(stems) <= _MOST_FETCHED:  # all terms, and the last word, which may be half typed, in one request
            terms = [id_of(corpus, IndexTerm(stem, False, False)) for stem in stems]
            self._lookup.fetch([*map(word_id, self.tokenizer.words(text)[-1:]), *terms])
        builder = MatchExpressionBuilder(self.tokenizer, self._lookup, self._korean_analysis)
        return builder.build(tree, match=match, drop_stop_words=drop_stop_words, type_ahead=type_ahead)

    def _search(self, expression: MatchExpression, filters: SearchFilters) -> _Search | None:
        """Prepares the search for an expression; None if the expression looks for nothing."""
        wanted = wanted_terms(expression, self.tokenizer)
        if not expression.text.strip() or not wanted.phrases:
            return None
        corpus = corpus_of(filters)
        demanded = term_filter(expression.text, self.tokenizer.stems, lambda term: id_of(corpus, term))
        assert demanded is not None  # there are phrases
        # Each corpus has its own dimensions, so a chunk of the other corpus is found only if two terms have the same
        # hash. It is left out later, which is cheaper than a filter on every chunk.
        chosen = chunk_filter(self._schema, filters, has_libraries=self._state.has_libraries and bool(filters))
        if not wanted.is_plain:
            chosen["must"].append(demanded.condition)
        ids = Counter(id_of(corpus, term) for term in wanted.flat())
        chunks_with, chunks = self._lookup.chunks_with(ids), self._state.sizes[corpus].chunks
        values = [ids[number] * idf(chunks, chunks_with[number]) for number in sorted(ids)]
        vector = {"indices": sorted(ids), "values": values}
        needs_check = not wanted.is_plain and not demanded.is_exact
        return _Search(expression, corpus, demanded, wanted.is_plain, chosen, vector, needs_check)

    def _by_relevance(self, search: _Search, limit: int, offset: int) -> list[Point]:
        ids_only = not search.needs_check and self._weights is None
        payload = ["corpus", "type"] if ids_only else codec.HIT_FIELDS
        depth = max(_CHECKED, offset + limit) if search.needs_check else offset + limit + _EXTRA
        depth = depth if self._weights is None else max(depth, _RESCORED)
        while True:
            found = self._ranked(search, search.filter, depth, payload)
            is_all = len(found) < depth
            worst = found[-1]["score"] if found else 0.0
            found = [point for point in found if point["payload"]["corpus"] == search.corpus]
            if search.needs_check:
                found = self._passing(search, found)
            found.sort(key=_order)
            if self._weights is not None:
                found = self._rescored(found, search, self._weights)
            page = found[offset : offset + limit]
            # A full page is final if its last score is above the worst one: further chunks may have the worst score.
            if is_all or (len(page) == limit and (page[-1]["score"] > worst or self._weights is not None)):
                return page
            depth *= 4

    def _by_date(self, search: _Search, limit: int, offset: int) -> list[Point]:
        """Returns the newest matches first, and those of one day by relevance."""
        chosen = self._exact_filter(search)
        depth = offset + limit + _EXTRA
        while True:
            found = self._chunks.first_by("day", "desc", chosen, depth, codec.HIT_FIELDS)
            is_all = len(found) < depth
            last_day = found[-1]["payload"]["day"] if found else 0
            if not search.demanded.is_exact:
                found = self._passing(search, found)
            complete = [point for point in found if is_all or point["payload"]["day"] > last_day]
            if is_all or len(complete) >= offset + limit:
                break
            depth *= 4
        if complete:
            these = {"must": [{"has_id": [point["id"] for point in complete]}]}
            scores = {point["id"]: point["score"] for point in self._ranked(search, these, len(complete), False)}
            complete = [{**point, "score": scores.get(point["id"], 0.0)} for point in complete]
            complete.sort(key=lambda point: (-point["payload"]["day"], *_order(point)))
        return complete[offset : offset + limit]

    def _ranked(self, search: _Search, chosen: Filter, limit: int, payload: Fields) -> list[Point]:
        """Returns the best points. Scores are rounded, so that equal passages keep their order on every replica."""
        query = {"query": search.vector, "using": WORDS, "filter": chosen, "limit": limit, "with_payload": payload}
        [points] = self._chunks.query(query)
        for point in points:
            point["score"] = float(f"{point['score']:.{_DIGITS}g}")
        return points

    def _rescored(self, points: list[Point], search: _Search, weights: ColumnWeights) -> list[Point]:
        """Ranks the best points again, from their texts, with the weights of the settings. The others stay behind."""
        size = self._state.sizes[search.corpus]
        average = size.tokens / size.chunks if size.chunks else 1.0
        rarity = dict(zip(search.vector["indices"], search.vector["values"], strict=True))
        best = []
        for point in points[:_RESCORED]:
            columns = self._state.columns(point["payload"], self._korean_analysis)
            words = counted(columns, search.corpus, self.tokenizer, weights)
            found = words.frequencies.keys() & rarity.keys()
            scores = (rarity[term] * weight_of(words.frequencies[term], words.length, average) for term in found)
            best.append({**point, "score": math.fsum(scores)})
        best.sort(key=_order)
        return [*best, *({**point, "score": min(point["score"], best[-1]["score"])} for point in points[_RESCORED:])]

    def _exact_filter(self, search: _Search) -> Filter:
        """The filter for all matches. It always demands the terms, because there may be no ranking that does."""
        demanded = [search.demanded.condition] if search.is_plain else []
        return {"must": [*search.filter["must"], one_of("corpus", [search.corpus]), *demanded]}

    def _passing(self, search: _Search, points: Sequence[Point]) -> list[Point]:
        """The points whose text matches the expression, the order of words included."""
        columns = {point["id"]: self._state.columns(point["payload"], self._korean_analysis) for point in points}
        found = matching(search.expression.text, columns)
        return [point for point in points if point["id"] in found]


def _order(point: Point) -> tuple[float, str]:
    """The sort key of points: the best score first, equal scores in the order of the chunk ids."""
    return -point["score"], point["id"]
