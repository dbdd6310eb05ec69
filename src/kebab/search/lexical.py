"""The lexical retriever: full-text search, scored into (0, 1], with a citation on every hit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.analysis.query_syntax import parse
from kebab.core.ports import ChunkContext, LexicalMatch, LexicalMatches
from kebab.core.query_tree import QueryTree, Raw
from kebab.core.search import (
    LONG_QUERY,
    HitList,
    Notice,
    QueryTerms,
    Ranked,
    Ranking,
    RetrievalDetail,
    SearchHit,
    SearchQuery,
)
from kebab.search.depth import first_look, shortens
from kebab.search.duplicates import Passage, folded
from kebab.search.hits import make_hit, with_snippet
from kebab.search.snippets import SnippetLimits, SnippetMaker

if TYPE_CHECKING:
    from kebab.core.store_ports import LexicalIndex

_Begun = Callable[[], LexicalMatches]
_LEAST_SCORE = 1e-12
_DEEPER = 4
"""How many times as deep the next look is."""
_SOME_WORDS = Notice("some_words", "No passage has all the words; these have some of them.")


def normalised(bm25: float) -> float:
    """FTS5's bm25 (negative, unbounded) as a score in (0, 1]; it keeps the order and promises nothing more."""
    return max(_LEAST_SCORE, -bm25 / (1 + abs(bm25)))


class _Listed(NamedTuple):
    """A match, and those that are folded under it."""

    match: LexicalMatch
    copies: list[ChunkContext]


class _Answer(NamedTuple):
    matches: list[_Listed]
    more: bool
    terms: QueryTerms
    expression: str
    dropped: tuple[str, ...]
    match: str
    some_words: bool = False
    """Whether to say that no passage has all of them."""
    shortened: bool = False
    all_words: frozenset[str] = frozenset()
    """The chunks that are known to have all the words."""
    none_has_all: bool = False

    @property
    def notices(self) -> tuple[Notice, ...]:
        return (
            *((_SOME_WORDS,) if self.some_words and self.matches else ()),
            *((LONG_QUERY,) if self.shortened else ()),
        )

    @property
    def weak(self) -> frozenset[str]:
        """Code seldom says what it does in the words of a question: a few of them that it happens to have tell little."""
        chunks = (listed.match.chunk for listed in self.matches) if self.none_has_all else ()
        return frozenset(chunk.chunk_id for chunk in chunks if chunk.doc_type == "code")


def _ids(answer: _Answer) -> frozenset[str]:
    return frozenset(listed.match.chunk.chunk_id for listed in answer.matches)


def _knowing(some: _Answer, every: _Answer, *, complete: bool) -> _Answer:
    """The list of any, told which of its passages have all the words; `complete`: with those of them that stand further
    down.
    """
    known = _ids(some)
    further = [listed for listed in every.matches if listed.match.chunk.chunk_id not in known] if complete else []
    return some._replace(matches=[*some.matches, *further], all_words=_ids(every), none_has_all=not every.matches)


class LexicalRetriever:
    """Needs nothing but a full-text index: no model, no network."""

    def __init__(self, store: LexicalIndex, index_version: str, *, snippet_chars: int = 220) -> None:
        self._store = store
        self._index_version = index_version
        self._snippets = SnippetMaker(store.tokenizer, SnippetLimits(snippet_chars))

    def index_version(self) -> str:
        return self._index_version

    def search(self, query: SearchQuery) -> HitList:
        return self.begin(query)()

    def begin(self, query: SearchQuery) -> Callable[[], HitList]:
        """Asks the store, which may be at work elsewhere until the answer is called for."""
        tree = parse(query.text)
        answer = self._begun(tree, query)

        def finished() -> HitList:
            found = answer()
            return HitList(
                [
                    self._hit(match, query.offset + number, found, query)
                    for number, match in enumerate(found.matches, start=1)
                ],
                match=found.match,
                more=found.more,
                explanation=self._explanation(tree, query, found) if query.explain else None,
                notices=found.notices,
                terms=found.terms,
                weak=found.weak,
                all_words=found.all_words,
            )

        return finished

    def begin_ranking(self, query: SearchQuery) -> Callable[[], Ranking]:
        answer = self._begun(parse(query.text), query._replace(outline=True))

        def finished() -> Ranking:
            found = answer()
            weak, all_words = found.weak, found.all_words
            chunks = []
            for rank, listed in enumerate(found.matches, start=query.offset + 1):
                chunk = listed.match.chunk.chunk_id
                chunks.append(Ranked(chunk, rank, normalised(listed.match.bm25), chunk in weak, chunk in all_words))
            return Ranking(chunks, found.match, found.more, notices=found.notices, terms=found.terms)

        return finished

    def _begun(self, tree: QueryTree, query: SearchQuery) -> Callable[[], _Answer]:
        is_any = query.match == "any" and not query.tell_all_words and not isinstance(tree, Raw)
        first = None if shortens(query) else self._begin(tree, query, "any" if is_any else "all")(query.k, query.offset)
        return lambda: self._answer(tree, query, first)

    def suggestions(self, query: SearchQuery) -> list[str]:
        """What to ask instead of a query that finds nothing; nothing when no word of it is unknown."""
        from kebab.search.suggestions import suggestions

        probe = query._replace(mode="lexical", k=1, offset=0, bare=True, explain=False)
        return suggestions(query.text, self._store, lambda text: bool(self.search(probe._replace(text=text))))

    def telling_words(self, text: str) -> list[str]:
        """The words of a text by which passages like it are found."""
        from kebab.search.key_terms import telling_words

        return telling_words(text, self._store)

    def _answer(self, tree: QueryTree, query: SearchQuery, first: _Begun | None) -> _Answer:
        if isinstance(tree, Raw):
            return self._matches(tree, query, "all", "raw", first)
        if query.match == "any" and not query.tell_all_words:
            return self._matches(tree, query, "any", "any", first)
        every = self._matches(tree, query, "all", query.match if query.match != "auto" else "all", first)
        every = every._replace(all_words=_ids(every))
        if query.match == "all" or (query.match == "auto" and len(every.matches) >= query.k):
            return every
        some = self._matches(tree, query, "any", "any")
        if some.expression == every.expression:
            return every
        some_words = query.match == "auto" and not every.matches and not query.offset
        return _knowing(some, every, complete=query.tell_all_words)._replace(some_words=some_words)

    def _matches(
        self, tree: QueryTree, query: SearchQuery, match: str, reported: str, begun: _Begun | None = None
    ) -> _Answer:
        """`begun`: where it was asked for already."""
        ask = self._begin(tree, query, match)
        if shortens(query):
            found, page, more = _page(lambda limit, offset: ask(limit, offset)(), query)
        else:
            found = (begun or ask(query.k, query.offset))()
            page, more = [_Listed(match, []) for match in found.matches], found.more
        return _Answer(page, more, found.terms, found.expression, found.dropped, reported, shortened=found.shortened)

    def _begin(self, tree: QueryTree, query: SearchQuery, match: str) -> Callable[[int, int], _Begun]:
        """What asks for so many from there on."""
        return lambda limit, offset: self._store.begin(
            tree,
            match=match,
            drop_stop_words=_drops_stop_words(query),
            filters=query.filters,
            limit=limit,
            offset=offset,
            sort=query.sort,
            type_ahead=query.type_ahead,
            outline=query.outline,
        )

    def _hit(self, listed: _Listed, rank: int, answer: _Answer, query: SearchQuery) -> SearchHit:
        match = listed.match
        score = normalised(match.bm25)
        detail = RetrievalDetail(method="lexical", fusion_score=score, lexical_score=score, lexical_rank=rank)
        hit = make_hit(
            match.chunk,
            rank=rank,
            detail=detail,
            score_kind="bm25",
            index_version=self._index_version,
            explanation=self._hit_explanation(match, detail, answer.terms) if query.explain else None,
            copies=listed.copies,
        )
        return hit if query.bare else with_snippet(hit, self._snippets, answer.terms, full_text=query.full_text)

    def _hit_explanation(self, match: LexicalMatch, detail: RetrievalDetail, terms: QueryTerms) -> dict[str, Any]:
        columns = {
            "title": match.chunk.title,
            "heading": " > ".join(match.chunk.heading_path),
            "text": match.chunk.text,
            "context": "\n".join(match.chunk.notes),
        }
        return {
            "lexical": {"rank": detail.lexical_rank, "score": detail.lexical_score},
            "vector": None,
            "fusion": {"method": "none", "score": detail.fusion_score},
            "matched": {name: self._matched(text, terms) for name, text in columns.items()},
        }

    def _matched(self, text: str, terms: QueryTerms) -> list[str]:
        present = " ".join(["", *self._store.tokenizer.stems(text), ""])
        phrases = sorted(" ".join(phrase) for phrase in terms.phrases)
        return [phrase for phrase in phrases if f" {phrase} " in present] + [term for term in terms.cjk if term in text]

    def _explanation(self, tree: QueryTree, query: SearchQuery, answer: _Answer) -> dict[str, Any]:
        drop = _drops_stop_words(query)
        match = "any" if answer.match == "any" else "all"
        kept = self._store.count(tree, match=match, drop_stop_words=drop, filters=query.filters)
        place = query.filters.place
        unfiltered = (
            self._store.count(tree, match=match, drop_stop_words=drop, filters=place)
            if query.filters != place
            else kept
        )
        return {
            "lexical": {
                "expression": answer.expression,
                "match": answer.match,
                "stop_words_dropped": list(answer.dropped),
                "matches": kept,
                "removed_by_filters": unfiltered - kept,
            }
        }


def _drops_stop_words(query: SearchQuery) -> bool:
    return query.match != "all" if query.keep_stop_words is None else not query.keep_stop_words


def _page(ask: Callable[[int, int], LexicalMatches], query: SearchQuery) -> tuple[LexicalMatches, list[_Listed], bool]:
    """Of a list that is shorter than what matched; and whether more follows. How deep one must look for it depends on
    how often documents, or passages, repeat themselves.
    """
    wanted = query.offset + query.k
    depth = first_look(query)
    while True:
        found = ask(depth, 0)
        listed = (
            _folded(found, query) if query.duplicates == "fold" else [_Listed(match, []) for match in found.matches]
        )
        if query.per_doc is not None:
            listed = _at_most_per_document(listed, query.per_doc)
        if len(listed) > wanted or not found.more:
            return found, listed[query.offset : wanted], len(listed) > wanted
        depth *= _DEEPER


def _folded(found: LexicalMatches, query: SearchQuery) -> list[_Listed]:
    def passage(match: LexicalMatch) -> Passage | None:
        if query.min_score is not None and normalised(match.bm25) < query.min_score:
            return None  # by date, it could take copies with it that are good enough
        return Passage(match.chunk.text, match.chunk.content_hash)

    enough = query.offset + query.k + 1 if query.per_doc is None else None
    groups = folded(found.matches, passage, complete=not found.more, enough=enough)
    return [_Listed(match, [copy.chunk for copy in copies]) for match, copies in groups]


def _at_most_per_document(listed: list[_Listed], most: int) -> list[_Listed]:
    seen: dict[str, int] = {}
    kept = []
    for item in listed:
        document = item.match.chunk.doc_id
        seen[document] = seen.get(document, 0) + 1
        if seen[document] <= most:
            kept.append(item)
    return kept
