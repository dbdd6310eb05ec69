"""Ranked search by words: the server multiplies sparse vectors, which is BM25, among the chunks that pass the filter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from kebab.core.errors import QueryError
from kebab.core.ports import ChunkContext, ColumnWeights, LexicalMatch, LexicalMatches, NearWord
from kebab.core.query_tree import QueryTree, Raw
from kebab.core.search import QueryTerms, SearchFilters
from kebab.store.fts5.match_expression import MatchExpression, MatchExpressionBuilder
from kebab.store.fts5.passage_check import matching
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.fts5.wanted_terms import WantedTerms, wanted_terms
from kebab.store.qdrant.collection import Fields, Filter, Point
from kebab.store.qdrant.filters import FilterBuilder, corpus_of, one_of
from kebab.store.qdrant.index_writer import chunk_of
from kebab.store.qdrant.other_weights import RANKED_AGAIN, ranked_again
from kebab.store.qdrant.payloads import Payload, chunk_context, columns
from kebab.store.qdrant.schema import WORDS, Schema
from kebab.store.qdrant.state import State, stored_weights
from kebab.store.qdrant.term_filter import TermFilter, term_filter
from kebab.store.qdrant.term_lookup import TermLookup
from kebab.store.qdrant.terms import id_of, idf
from kebab.store.qdrant.vocabulary import Vocabulary

if TYPE_CHECKING:
    from kebab.core.store_ports import LexicalOptions

_DEEPER = 2
"""How much deeper than asked the ranking is cut: room for a few equal scores at its end."""
_DIGITS = 6
"""Of a score."""
_CHECKED = 128
"""Candidates that are looked at first, when it has to be checked whether words stand side by side."""
FOR_HITS = {
    "exclude": ["terms", "within", "tagged", "versions", "columns_hash", "text_hash", "average", "length", "spaces"]
}
"""Of the payload: all but what only filters and writers need."""
_FOR_OUTLINES = ["corpus", "type"]


_Key = tuple[str, Filter, Fields]


class _Search(NamedTuple):
    expression: MatchExpression
    wanted: WantedTerms
    corpus: str
    demanded: TermFilter | None
    """What the expression demands of the terms; None where any term makes a match, as the ranking itself does."""
    chosen: Filter
    """What the filters and the expression leave."""
    payload: Fields = FOR_HITS
    """What is read of each chunk that is found."""

    @property
    def needs_check(self) -> bool:
        """Whether somebody has to look how the words stand."""
        return self.demanded is not None and not self.demanded.is_exact

    @property
    def key(self) -> _Key:
        """Equal for searches that find the same."""
        return self.expression.text, self.chosen, self.payload

    def ranking(self, vector: dict[str, Any], depth: int) -> dict[str, Any]:
        return _ranking(vector, self.chosen, depth, self.payload)


class QdrantLexicalIndex:
    def __init__(
        self,
        schema: Schema,
        state: State,
        lookup: TermLookup,
        *,
        korean_analysis: str,
        weights: ColumnWeights | None = None,
    ) -> None:
        self.tokenizer = SqliteTokenizer()
        self._schema = schema
        self._state = state
        self._korean_analysis = korean_analysis
        self._lookup = lookup
        self._filters = FilterBuilder(schema)
        self._expressions: dict[tuple[QueryTree, str, bool, bool], MatchExpression] = {}
        """A search asks for the same ones again and again."""
        self._searches: dict[tuple[str, SearchFilters, bool, bool], _Search | None] = {}
        self._vectors: dict[tuple[str, str], dict[str, Any]] = {}
        self._contexts: dict[str, ChunkContext] = {}
        self._ahead: tuple[_Key, int, list[Point]] | None = None
        self._weights = weights if weights != stored_weights(state) else None
        """None where they are those of the stored vectors."""

    # --- asking

    def search(self, tree: QueryTree, **options: Unpack[LexicalOptions]) -> LexicalMatches:
        return self.begin(tree, **options)()

    def begin(
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
    ) -> Callable[[], LexicalMatches]:
        self._lookup.expect(tree, corpus_of(filters))
        expression = self._expression(tree, match, drop_stop_words, type_ahead)
        search = self._search(expression, filters, outline=outline)
        if search is None:
            return lambda: LexicalMatches((), False, expression.terms, "")
        ranking: Callable[[], list[Point]]
        if sort == "date":
            ranking = partial(self._by_date, search, limit + 1, offset)
        else:
            any_word = self._expression(tree, "any", drop_stop_words, type_ahead) if match == "all" else None
            next_one = self._search(any_word, filters, outline=outline) if any_word else None
            ranking = self._begin_by_relevance(search, limit + 1, offset, next_one)

        def finished() -> LexicalMatches:
            ranked = ranking()
            matches = tuple(
                LexicalMatch(-point["score"], self._context(point, outline=outline)) for point in ranked[:limit]
            )
            return LexicalMatches(
                matches,
                len(ranked) > limit,
                expression.terms,
                expression.text,
                expression.dropped,
                expression.shortened,
            )

        return finished

    def count(self, tree: QueryTree, *, match: str, drop_stop_words: bool, filters: SearchFilters) -> int:
        search = self._search(self._expression(tree, match, drop_stop_words), filters, counting=True)
        if search is None or search.demanded is None:
            return 0
        if search.demanded.is_exact:
            return self._schema.chunks.count(search.chosen)
        candidates = self._schema.chunks.scroll(search.chosen, payload=FOR_HITS)
        return sum(1 for _ in self._passing(search, list(candidates)))

    def near_words(self, word: str, edits: int) -> list[NearWord]:
        return Vocabulary(self._schema.terms, self.tokenizer).near(word, edits)

    def size(self) -> int:
        return sum(size.chunks for size in self._state.sizes.values())

    def terms(self, tree: QueryTree, *, drop_stop_words: bool) -> QueryTerms:
        return self._expression(tree, "any", drop_stop_words).terms

    def _expression(
        self, tree: QueryTree, match: str, drop_stop_words: bool, type_ahead: bool = False
    ) -> MatchExpression:
        if isinstance(tree, Raw):
            raise QueryError(
                "FTS5 expressions are understood by the SQLite store only.",
                hint="Remove the single quotes around the query; phrases, AND, OR, NOT and word* work everywhere.",
            )
        asked = (tree, match, drop_stop_words, type_ahead)
        if asked not in self._expressions:
            # One for each expression: both sides of a hybrid search ask at the same time, and a builder remembers what
            # it does.
            builder = MatchExpressionBuilder(self.tokenizer, self._lookup, self._korean_analysis)
            self._expressions[asked] = builder.build(
                tree, match=match, drop_stop_words=drop_stop_words, type_ahead=type_ahead
            )
        return self._expressions[asked]

    def _search(
        self, expression: MatchExpression, filters: SearchFilters, *, counting: bool = False, outline: bool = False
    ) -> _Search | None:
        """None when nothing is looked for."""
        asked = (expression.text, filters, counting, outline)
        if asked not in self._searches:
            self._searches[asked] = self._new_search(expression, filters, counting=counting, outline=outline)
        return self._searches[asked]

    def _new_search(
        self, expression: MatchExpression, filters: SearchFilters, *, counting: bool, outline: bool
    ) -> _Search | None:
        wanted = wanted_terms(expression, self.tokenizer)
        if not expression.text.strip() or not wanted.phrases:
            return None
        corpus = corpus_of(filters)
        demanded = None
        if counting or not wanted.is_plain:
            demanded = term_filter(expression.text, self.tokenizer.stems, lambda term: id_of(corpus, term))
        # Terms of one corpus are dimensions of their own. Two words may share one; what such a word finds elsewhere is
        # left out later, which is cheaper than a condition that the server looks at for every chunk.
        of_filters = (
            self._filters.of_chunks(filters, among_libraries=self._state.has_libraries) if filters or counting else None
        )
        conditions: list[Filter] = [of_filters] if of_filters else []
        conditions += [demanded.condition] if demanded else []
        search = _Search(expression, wanted, corpus, demanded, {"must": conditions})
        may_read_later = outline and not search.needs_check and self._weights is None
        return search._replace(payload=_FOR_OUTLINES) if may_read_later else search

    # --- ranking

    def _begin_by_relevance(
        self, search: _Search, limit: int, offset: int, next_one: _Search | None
    ) -> Callable[[], list[Point]]:
        """`next_one`: what will be asked for if this finds too little. It is asked for with it, so that nobody waits
        twice.
        """
        vector = self._query_vector(search)
        needs_check = search.needs_check
        depth = max(_CHECKED, offset + limit) if needs_check else offset + limit + _DEEPER
        depth = depth if self._weights is None else max(depth, RANKED_AGAIN)
        begun = self._begin_to_find(search, vector, depth, next_one, offset + limit + _DEEPER)

        def finished(depth: int = depth) -> list[Point]:
            found = begun()
            while True:
                is_all = len(found) < depth
                last = found[-1]["score"] if found else 0.0
                found = [point for point in found if point["payload"]["corpus"] == search.corpus]
                if needs_check:
                    found = self._passing(search, found)
                ranked = self._weighed(sorted(found, key=_order), vector, search.corpus)
                page = ranked[offset : offset + limit]
                # A full page that ends before the worst score looked at is final: beyond it, there may be more of the
                # same score.
                if is_all or (len(page) == limit and (page[-1]["score"] > last or self._weights is not None)):
                    return page
                depth *= 4
                found = self._begin_to_find(search, vector, depth, None, 0)()

        return finished

    def _begin_to_find(
        self, search: _Search, vector: dict[str, Any], depth: int, next_one: _Search | None, its_depth: int
    ) -> Callable[[], list[Point]]:
        ahead = self._found_ahead(search, depth)
        if ahead is not None:
            return lambda: ahead
        asked = [search.ranking(vector, depth)]
        if next_one is not None and next_one.demanded is None and next_one.expression.text != search.expression.text:
            asked.append(next_one.ranking(self._query_vector(next_one), its_depth))
        answer = self._schema.chunks.begin_to_query(*asked)

        def read() -> list[Point]:
            found, *others = map(_rounded, answer())
            if next_one is not None and others:
                self._ahead = (next_one.key, its_depth, others[0])
            return found

        return read

    def _found_ahead(self, search: _Search, depth: int) -> list[Point] | None:
        if self._ahead is None or self._ahead[:2] != (search.key, depth):
            return None
        return self._ahead[2]

    def _weighed(self, points: list[Point], vector: dict[str, Any], corpus: str) -> list[Point]:
        """As the settings want columns to count."""
        if self._weights is None:
            return points
        rarity = dict(zip(vector["indices"], vector["values"], strict=True))
        average = self._state.sizes[corpus].current_average
        return ranked_again(points, self._columns, self.tokenizer, self._weights, rarity, average)

    def _by_date(self, search: _Search, limit: int, offset: int) -> list[Point]:
        """The youngest first; of one day those that match best."""
        demanded = search.demanded or term_filter(
            search.expression.text, self.tokenizer.stems, lambda term: id_of(search.corpus, term)
        )
        assert demanded is not None  # something is looked for
        own = one_of("corpus", [search.corpus])
        chosen = {"must": [*search.chosen["must"], own, *([] if search.demanded else [demanded.condition])]}
        vector = self._query_vector(search)
        depth = offset + limit + _DEEPER
        while True:
            found = self._schema.chunks.in_order("day", chosen, descending=True, limit=depth, payload=FOR_HITS)
            is_all = len(found) < depth
            last = found[-1]["payload"]["day"] if found else 0
            if not demanded.is_exact:
                found = self._passing(search, found)
            enough = [point for point in found if point["payload"]["day"] > last] if not is_all else found
            if is_all or len(enough) >= offset + limit:
                return self._with_scores(vector, enough)[offset : offset + limit]
            depth *= 4

    def _with_scores(self, vector: dict[str, Any], points: list[Point]) -> list[Point]:
        if not points:
            return []
        these: Filter = {"must": [{"has_id": [point["id"] for point in points]}]}
        (found,) = self._schema.chunks.query(_ranking(vector, these, len(points), False))
        scores = {point["id"]: point["score"] for point in found}
        scored = [{**point, "score": scores.get(point["id"], 0.0)} for point in points]
        return sorted(scored, key=lambda point: (-point["payload"]["day"], *_order(point)))

    def _query_vector(self, search: _Search) -> dict[str, Any]:
        """How rare each term is; one that is named twice counts twice."""
        asked = search.corpus, search.expression.text
        if asked not in self._vectors:
            self._vectors[asked] = self._new_query_vector(search)
        return self._vectors[asked]

    def _new_query_vector(self, search: _Search) -> dict[str, Any]:
        ids = Counter(id_of(search.corpus, term) for term in search.wanted.flat())
        chunks_with = self._lookup.chunks_with(ids)
        chunks = self._state.sizes[search.corpus].chunks
        indices = sorted(ids)
        return {"indices": indices, "values": [ids[number] * idf(chunks, chunks_with[number]) for number in indices]}

    def _passing(self, search: _Search, points: Sequence[Point]) -> list[Point]:
        """Those whose words stand as the expression wants them."""
        passages = {point["id"]: self._columns(point["payload"]) for point in points}
        found = matching(search.expression.text, passages)
        return [point for point in points if point["id"] in found]

    def _columns(self, payload: Payload) -> Any:
        notes = self._state.note_terms(payload["source"], payload["path"], self._korean_analysis)
        return columns(payload, self._korean_analysis, notes)

    def _context(self, point: Point, *, outline: bool) -> ChunkContext:
        """Made once: what has all the words has some of them too."""
        chunk_id, payload = chunk_of(point["id"]), point["payload"]
        if outline:
            return ChunkContext.outline(chunk_id, payload["type"])
        known = self._contexts.get(chunk_id)
        if known is None:
            known = self._contexts[chunk_id] = chunk_context(
                payload, self._state.notes_above(payload["source"], payload["path"])
            )
        return known


def _ranking(vector: dict[str, Any], chosen: Filter, limit: int, payload: Fields) -> dict[str, Any]:
    return {"query": vector, "using": WORDS, "filter": chosen, "limit": limit, "with_payload": payload}


def _rounded(points: list[Point]) -> list[Point]:
    """Copies of a shard may differ in the last digits of a score, and equal passages must not change places from page
    to page.
    """
    for point in points:
        point["score"] = float(f"{point['score']:.{_DIGITS}g}")
    return points


def _order(point: Point) -> tuple[float, str]:
    return -point["score"], chunk_of(point["id"])
