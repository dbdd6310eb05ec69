"""The lexical retriever: full-text search, scored into (0, 1], with a citation on every hit."""

from __future__ import annotations

from typing import Any, NamedTuple

from kebab.analysis.query_syntax import parse
from kebab.core.ports import LexicalIndex, LexicalMatch, LexicalMatches
from kebab.core.query_tree import QueryTree, Raw
from kebab.core.search import HitList, Notice, QueryTerms, RetrievalDetail, SearchHit, SearchQuery
from kebab.retrieval.hydration import make_hit, with_snippet
from kebab.retrieval.snippets import SnippetLimits, SnippetMaker

_LEAST_SCORE = 1e-12
_LONG_QUERY = Notice("long_query", "The query is very long: only a part of its words was looked for.")
# Code seldom says what it does in the words of a question: a few of them that it happens to have tell little (`weak`).
_SOME_WORDS = Notice("some_words", "No passage has all the words; these have some of them.")


def normalised(bm25: float) -> float:
    """FTS5's bm25 (negative, unbounded) as a score in (0, 1]; it keeps the order and promises nothing more."""
    return max(_LEAST_SCORE, -bm25 / (1 + abs(bm25)))


class _Answer(NamedTuple):
    matches: list[LexicalMatch]
    more: bool
    terms: QueryTerms
    expression: str
    dropped: tuple[str, ...]
    match: str
    notices: tuple[Notice, ...] = ()
    shortened: bool = False
    complete: frozenset[str] = frozenset()


def _with_all_words(answer: _Answer) -> _Answer:
    return answer._replace(complete=frozenset(match.chunk.chunk_id for match in answer.matches))


class LexicalRetriever:
    """Needs nothing but a full-text index: no model, no network."""

    def __init__(self, store: LexicalIndex, index_version: str, *, snippet_chars: int = 220) -> None:
        self._store = store
        self._index_version = index_version
        self._snippets = SnippetMaker(store.tokenizer, SnippetLimits(snippet_chars))

    def index_version(self) -> str:
        return self._index_version

    def search(self, query: SearchQuery) -> HitList:
        tree = parse(query.text)
        answer = self._answer(tree, query)
        hits = [self._hit(match, query.offset + number, answer, query) for number, match in enumerate(answer.matches, start=1)]
        explanation = self._explanation(tree, query, answer) if query.explain else None
        notices = (*(answer.notices if hits else ()), *((_LONG_QUERY,) if answer.shortened else ()))
        return HitList(
            hits,
            match=answer.match,
            more=answer.more,
            explanation=explanation,
            notices=notices,
            terms=answer.terms,
            weak=frozenset(hit.chunk_id for hit in hits if hit.doc_type == "code") if _SOME_WORDS in notices else frozenset(),
            complete=answer.complete,
        )

    def suggestions(self, query: SearchQuery) -> list[str]:
        """What to ask instead of a query that finds nothing; nothing when no word of it is unknown."""
        from kebab.retrieval.did_you_mean import suggestions

        probe = query._replace(mode="lexical", k=1, offset=0, bare=True, explain=False)
        return suggestions(query.text, self._store, lambda text: bool(self.search(probe._replace(text=text))))

    def telling_words(self, text: str) -> list[str]:
        """The words of a text by which passages like it are found."""
        from kebab.retrieval.telling_words import telling_words

        return telling_words(text, self._store)

    def _answer(self, tree: QueryTree, query: SearchQuery) -> _Answer:
        if isinstance(tree, Raw):
            return self._matches(tree, query, "all", "raw")
        if query.match != "auto":
            return self._matches(tree, query, query.match, query.match)
        every = _with_all_words(self._matches(tree, query, "all", "all"))
        if len(every.matches) >= query.k:
            return every
        some = self._matches(tree, query, "any", "any")
        if some.expression == every.expression:
            return every
        return some._replace(notices=() if every.matches or query.offset else (_SOME_WORDS,), complete=every.complete)

    def _matches(self, tree: QueryTree, query: SearchQuery, match: str, reported: str) -> _Answer:
        def ask(limit: int, offset: int) -> LexicalMatches:
            return self._store.search(
                tree,
                match=match,
                drop_stop_words=_drops_stop_words(query),
                filters=query.filters,
                limit=limit,
                offset=offset,
                sort=query.sort,
                type_ahead=query.type_ahead,
            )

        if query.per_doc is None:
            found = ask(query.k, query.offset)
            return _Answer(
                list(found.matches), found.more, found.terms, found.expression, found.dropped, reported, shortened=found.shortened
            )
        wanted = query.offset + query.k
        depth = wanted * 4
        while True:  # how deep one must look depends on how often one document repeats itself
            found = ask(depth, 0)
            capped = _at_most_per_document(found.matches, query.per_doc)
            if len(capped) > wanted or not found.more:
                page = capped[query.offset : wanted]
                return _Answer(
                    page, len(capped) > wanted, found.terms, found.expression, found.dropped, reported, shortened=found.shortened
                )
            depth *= 4

    def _hit(self, match: LexicalMatch, rank: int, answer: _Answer, query: SearchQuery) -> SearchHit:
        score = normalised(match.bm25)
        detail = RetrievalDetail(method="lexical", fusion_score=score, lexical_score=score, lexical_rank=rank)
        hit = make_hit(
            match.chunk,
            rank=rank,
            detail=detail,
            score_kind="bm25",
            index_version=self._index_version,
            explanation=self._hit_explanation(match, detail, answer.terms) if query.explain else None,
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
        unfiltered = self._store.count(tree, match=match, drop_stop_words=drop, filters=type(query.filters)()) if query.filters else kept
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


def _at_most_per_document(matches: tuple[LexicalMatch, ...], most: int) -> list[LexicalMatch]:
    seen: dict[str, int] = {}
    kept = []
    for match in matches:
        seen[match.chunk.doc_id] = seen.get(match.chunk.doc_id, 0) + 1
        if seen[match.chunk.doc_id] <= most:
            kept.append(match)
    return kept
