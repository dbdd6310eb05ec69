"""The lexical retriever: full-text search with scores in (0, 1]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.core.notices import Says
from kebab.core.ports import LexicalMatches
from kebab.core.query_tree import QueryTree, Raw, parse
from kebab.core.search import SNIPPET_CHARS, Ranked, Ranking, SearchQuery
from kebab.search.fusion import Fused
from kebab.search.listing import Listing
from kebab.search.snippets import SnippetLimits, SnippetMaker

if TYPE_CHECKING:
    from kebab.core.store_ports import ChunkReader, LexicalIndex

_LEAST_SCORE = 1e-12


def normalised(bm25: float) -> float:
    """Converts FTS5's bm25 (negative, unbounded) to a score in (0, 1], keeping the order."""
    return max(_LEAST_SCORE, -bm25 / (1 + abs(bm25)))


class _Found(NamedTuple):
    """The matches of one search in the store."""

    matches: LexicalMatches
    match: str
    """all, any or raw"""
    all_words: frozenset[str] = frozenset()
    """The ids of chunks that contain all words."""
    none_has_all: bool = False

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(match.chunk_id for match in self.matches.matches)


class LexicalRetriever(Listing):
    """Searches by words. Needs only a full-text index, no model and no network."""

    mode = "lexical"
    ordered_by_store = True

    def __init__(
        self, index: LexicalIndex, chunks: ChunkReader, index_version: str, *, snippet_chars: int = SNIPPET_CHARS
    ) -> None:
        self.index = index
        self.reader = chunks
        self._index_version = index_version
        self.snippets = SnippetMaker(index.tokenizer, SnippetLimits(snippet_chars))

    def index_version(self) -> str:
        return self._index_version

    def candidates(self, query: SearchQuery, depth: int) -> Ranking[Fused]:
        ranking = self.rank(query, depth)
        return Ranking(
            [Fused(place.chunk_id, place.score, lexical=place) for place in ranking.chunks],
            ranking.more,
            ranking.match,
            ranking.notices,
            ranking.terms,
            ranking.explanation,
        )

    def rank(self, query: SearchQuery, depth: int) -> Ranking[Ranked]:
        """The best passages by their words, at most `depth`.

        For a hybrid query, passages with all words are marked, and appended if the search for any word missed them.
        """
        tree = parse(query.text)
        found = self._find(tree, query, depth)
        matches = found.matches
        notices = [Says.LONG_QUERY.notice()] if matches.shortened else []
        if query.match == "auto" and found.none_has_all and matches.matches and not query.offset:
            notices.insert(0, Says.SOME_WORDS.notice())
        # Code seldom uses the words of a question, so a code passage with only some of them is a weak hit.
        ranked = [
            Ranked(
                match.chunk_id,
                rank,
                normalised(match.bm25),
                weak=found.none_has_all and match.doc_type == "code",
                all_words=match.chunk_id in found.all_words,
            )
            for rank, match in enumerate(matches.matches, start=1)
        ]
        explanation = self._explanation(tree, query, found) if query.explain else None
        return Ranking(ranked, matches.more, found.match, tuple(notices), matches.terms, explanation)

    def suggestions(self, query: SearchQuery) -> list[str]:
        """Corrected queries for one that finds nothing; empty if all its words are known."""
        from kebab.search.suggestions import suggestions

        probe = query._replace(mode="lexical", k=1, offset=0, without_snippets=True, explain=False)
        return suggestions(
            query.text, self.index, self.contexts, lambda text: bool(self.search(probe._replace(text=text)))
        )

    def _find(self, tree: QueryTree, query: SearchQuery, depth: int) -> _Found:
        all_words_too = query.mode == "hybrid"
        if isinstance(tree, Raw):
            return _Found(self._matches(tree, query, "all", depth), "raw")
        if query.match == "any" and not all_words_too:
            return _Found(self._matches(tree, query, "any", depth), "any")
        every = _Found(self._matches(tree, query, "all", depth), "all" if query.match == "auto" else query.match)
        every = every._replace(all_words=every.ids)
        enough = depth if all_words_too else query.offset + query.k
        if query.match == "all" or (query.match == "auto" and len(every.all_words) >= enough):
            return every
        some = _Found(self._matches(tree, query, "any", depth), "any", every.ids, none_has_all=not every.ids)
        if some.matches.expression == every.matches.expression:
            return every
        if all_words_too:
            further = tuple(match for match in every.matches.matches if match.chunk_id not in some.ids)
            some = some._replace(matches=some.matches._replace(matches=(*some.matches.matches, *further)))
        return some

    def _matches(self, tree: QueryTree, query: SearchQuery, match: str, depth: int) -> LexicalMatches:
        return self.index.search(
            tree,
            match=match,
            drop_stop_words=_drops_stop_words(query),
            filters=query.filters,
            limit=depth,
            sort=query.sort,
            type_ahead=query.type_ahead,
        )

    def _explanation(self, tree: QueryTree, query: SearchQuery, found: _Found) -> dict[str, Any]:
        match = "any" if found.match == "any" else "all"
        drop = _drops_stop_words(query)
        kept = unfiltered = self.index.count(tree, match=match, drop_stop_words=drop, filters=query.filters)
        if query.filters != query.filters.place:
            unfiltered = self.index.count(tree, match=match, drop_stop_words=drop, filters=query.filters.place)
        return {
            "lexical": {
                "expression": found.matches.expression,
                "match": found.match,
                "stop_words_dropped": list(found.matches.dropped),
                "matches": kept,
                "removed_by_filters": unfiltered - kept,
            }
        }


def _drops_stop_words(query: SearchQuery) -> bool:
    return query.match != "all" if query.keep_stop_words is None else not query.keep_stop_words
