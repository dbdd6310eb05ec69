"""The lexical retriever: full-text search with scores in (0, 1]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.core import deadline
from kebab.core.notices import Says
from kebab.core.ports import ChunkContext, LexicalMatch, LexicalMatches
from kebab.core.query_tree import And, Bag, Phrase, QueryTree, Raw, demands_all, parse, plain_words
from kebab.core.search import SNIPPET_CHARS, Exactness, Ranked, Ranking, SearchQuery
from kebab.search.exactness import Wording
from kebab.search.fusion import Fused
from kebab.search.listing import Listing
from kebab.search.snippets import SnippetLimits, SnippetMaker

if TYPE_CHECKING:
    from kebab.core.store_ports import ChunkReader, LexicalIndex

_LEAST_SCORE = 1e-12
_VERIFIED = 100
"""Of how many passages the texts are read to see how literally they contain the words. It does not depend on k."""


def normalised(bm25: float) -> float:
    """Converts FTS5's bm25 (negative, unbounded) to a score in (0, 1], keeping the order."""
    return max(_LEAST_SCORE, -bm25 / (1 + abs(bm25)))


class _Found(NamedTuple):
    """The passages that were found, best first."""

    passages: Sequence[tuple[Exactness, LexicalMatch]]
    match: str
    """all, any or raw"""
    search: LexicalMatches
    """The search in the store that describes the query: its terms and its expression."""
    more: bool
    none_has_all: bool = False


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
        self._read_already: Mapping[str, ChunkContext] = {}
        """The passages that the last ranking read."""

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
        """The best passages by their words, at most `depth`: the most literal first, equally literal ones by bm25."""
        tree = parse(query.text)
        self._read_already = {}
        found = self._find(tree, query, depth)
        notices = [Says.LONG_QUERY.notice()] if found.search.shortened else []
        if found.none_has_all and found.passages and not query.offset:
            notices.insert(0, Says.SOME_WORDS.notice())
        ranked = [
            Ranked(match.chunk_id, rank, normalised(match.bm25), exactness)
            for rank, (exactness, match) in enumerate(found.passages[:depth], start=1)
        ]
        return Ranking(
            ranked,
            found.more or len(found.passages) > depth,
            found.match,
            tuple(notices),
            found.search.terms,
            self._explanation(tree, query, found) if query.explain else None,
        )

    def contexts(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkContext]:
        missing = [chunk_id for chunk_id in chunk_ids if chunk_id not in self._read_already]
        return {**self._read_already, **super().contexts(missing)}

    def suggestions(self, query: SearchQuery) -> list[str]:
        """Corrected queries for one that finds nothing; empty if all its words are known."""
        from kebab.search.suggestions import suggestions

        probe = query._replace(mode="lexical", k=1, offset=0, without_snippets=True, explain=False)
        return suggestions(
            query.text, self.index, self.contexts, lambda text: bool(self.search(probe._replace(text=text)))
        )

    def _find(self, tree: QueryTree, query: SearchQuery, depth: int) -> _Found:
        if isinstance(tree, Raw):
            return _one_list(self._matches(tree, query, "all", depth), "raw", Exactness.SOME)
        if query.match == "any":
            return _one_list(self._matches(tree, query, "any", depth), "any", Exactness.SOME)
        if query.match == "all":
            return _one_list(self._matches(tree, query, "all", depth), "all", _least(tree))
        every = self._matches(tree, query, "all", max(depth, _VERIFIED))
        if query.sort == "date" and every.matches:
            return _one_list(every, "all", _least(tree))
        passages = self._most_literal_first(tree, query, every)
        found = _Found(passages, "all", every, every.more)
        if every.more or len(passages) >= depth:
            return found._replace(more=True)
        some = self._matches(tree, query, "any", depth)
        if some.expression == every.expression:
            return found
        known = {match.chunk_id for _, match in passages}
        further = [(Exactness.SOME, match) for match in some.matches if match.chunk_id not in known]
        match = "all" if len(passages) >= query.offset + query.k else "any"
        return _Found([*passages, *further], match, some, some.more, none_has_all=not passages)

    def _most_literal_first(
        self, tree: QueryTree, query: SearchQuery, every: LexicalMatches
    ) -> list[tuple[Exactness, LexicalMatch]]:
        """Passages with all words: the best ones, whose texts are read, by how literal they are, then the others."""
        matches = list(every.matches)
        words = plain_words(tree)
        if not matches or not words:
            return [(_least(tree), match) for match in matches]
        wording = Wording(words, every.dropped, self.index.tokenizer)
        best, others = matches[:_VERIFIED], matches[_VERIFIED:]
        if wording.is_checked and (others or every.more):  # a passage with the phrase may be among the others
            known, least = {match.chunk_id for match in best}, best[-1].bm25
            for phrase in wording.phrases:
                with_phrase = self._matches(And(tree, Bag((Phrase(phrase),))), query, "all", _VERIFIED).matches
                new = [match for match in with_phrase if match.chunk_id not in known]
                best += [match._replace(bm25=max(match.bm25, least)) for match in new]
                if with_phrase:
                    break
        self._read_already = super().contexts([match.chunk_id for match in best])
        checked = []
        for match in best:
            deadline.check()
            exactness = Exactness.ALL
            if match.chunk_id in self._read_already:
                passage = self._read_already[match.chunk_id]
                exactness = wording.exactness_of(passage.title, passage.heading_path, passage.text)
            checked.append((exactness, match))
        checked.sort(key=lambda item: (-item[0], item[1]))
        known = {match.chunk_id for match in best}
        return [*checked, *((Exactness.ALL, match) for match in others if match.chunk_id not in known)]

    def _matches(self, tree: QueryTree, query: SearchQuery, match: str, depth: int) -> LexicalMatches:
        return self.index.search(
            tree,
            match=match,
            drop_stop_words=query.match != "all",
            filters=query.filters,
            limit=depth,
            sort=query.sort,
            type_ahead=query.type_ahead,
        )

    def _explanation(self, tree: QueryTree, query: SearchQuery, found: _Found) -> dict[str, Any]:
        match = "any" if found.match == "any" else "all"
        drop = query.match != "all"
        kept = unfiltered = self.index.count(tree, match=match, drop_stop_words=drop, filters=query.filters)
        if query.filters != query.filters.place:
            unfiltered = self.index.count(tree, match=match, drop_stop_words=drop, filters=query.filters.place)
        return {
            "lexical": {
                "expression": found.search.expression,
                "match": found.match,
                "stop_words_dropped": list(found.search.dropped),
                "matches": kept,
                "removed_by_filters": unfiltered - kept,
            }
        }


def _least(tree: QueryTree) -> Exactness:
    """How literally each passage contains the words that matches a query with `all`."""
    return Exactness.ALL if demands_all(tree) else Exactness.SOME


def _one_list(matches: LexicalMatches, match: str, exactness: Exactness) -> _Found:
    return _Found([(exactness, one) for one in matches.matches], match, matches, matches.more)
