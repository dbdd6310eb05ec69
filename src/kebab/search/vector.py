"""The vector retriever: the chunks whose meaning is closest to the query's, by cosine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.analysis.query_syntax import parse
from kebab.core import deadline
from kebab.core.errors import ModelMissing
from kebab.core.ports import ChunkContext, EmbeddingModels, SpaceQuery, VectorMatch
from kebab.core.query_tree import Bag, QueryTree, words_of
from kebab.core.search import (
    LONG_QUERY,
    MAX_MEANING_CHARS,
    HitList,
    Notice,
    QueryTerms,
    Ranked,
    Ranking,
    RetrievalDetail,
    SearchHit,
    SearchQuery,
)
from kebab.search.depth import DEEPEST, depth_of, first_look, shortens
from kebab.search.hits import make_hit, shortened, with_snippet
from kebab.search.snippets import SnippetLimits, SnippetMaker

if TYPE_CHECKING:
    from kebab.core.store_ports import ChunkReader, LexicalIndex, VectorStore

_DEEPER = 4
"""How many times as deep the next look is."""
_LEAST_OUTSTANDING = 0.2
_OTHER_SCRIPTS = Notice(
    "other_scripts",
    "Text in Korean and other scripts was not compared with this question by meaning; the setting embedding.cross_language = on does that.",
)


class _Found(NamedTuple):
    """A chunk, found in one of the spaces that were searched."""

    match: VectorMatch
    space: SpaceQuery
    place: int
    """In its own space, from 1."""
    stands_out: bool = False
    """Whether it is closer than all text in the question's own script, which is closer as a rule."""

    @property
    def score(self) -> float:
        return min(1.0, max(0.0, self.match.similarity))

    @property
    def weak(self) -> bool:
        """In a weak space only text of the space's own script: what the words of the query cannot reach counts in full."""
        return self.space.weak and self.match.home

    @property
    def known_floor(self) -> float | None:
        return self.space.floor if self.space.floor > 0 and not self.weak else None

    @property
    def doubtful(self) -> bool:
        return self.match.similarity < self.space.floor and not self.stands_out


_Asked = Sequence[tuple[SpaceQuery, Any]]
"""Spaces, each with the vector of the query in it."""


class _Look(NamedTuple):
    depth: int
    begun: list[tuple[SpaceQuery, Callable[[], Sequence[VectorMatch]]]]


class _Begun(NamedTuple):
    """A search that the store has been asked for."""

    text: str
    """What was embedded, as far as it is not too long."""
    asked: _Asked
    look: _Look
    by_date: int | None
    """How many are put in order, where that is done by date."""
    leaves_out: bool
    """Whether some text was not compared, because the others may do."""


class VectorRetriever:
    """A vector store and the models that made its vectors, as a Retriever. The models are given, never chosen here."""

    def __init__(
        self,
        store: VectorStore,
        models: EmbeddingModels,
        chunks: ChunkReader,
        index_version: str,
        *,
        index: LexicalIndex,
        snippet_chars: int = 220,
        notices: Sequence[Notice] = (),
    ) -> None:
        """`index` cuts the query into the words that snippets mark; it is not searched. `notices`: what is wrong with
        the vectors.
        """
        self._store = store
        self._models = models
        self._chunks = chunks
        self._index_version = index_version
        self._index = index
        self._snippets = SnippetMaker(index.tokenizer, SnippetLimits(snippet_chars))
        self.notices = tuple(notices)

    def index_version(self) -> str:
        return self._index_version

    def search(self, query: SearchQuery) -> HitList:
        return self.begin(query)()

    def begin(self, query: SearchQuery) -> Callable[[], HitList]:
        """Embeds the query and asks the store, which may be at work elsewhere until the answer is called for."""
        tree = parse(query.text)
        begun = self._begun(tree, query)
        return (lambda: self._finished(query, tree, begun)) if begun else (lambda: HitList(notices=self.notices))

    def begin_ranking(self, query: SearchQuery) -> Callable[[], Ranking]:
        begun = self._begun(parse(query.text), query._replace(outline=True))
        if begun is None:
            return lambda: Ranking(notices=self.notices)

        def finished() -> Ranking:
            found, more = _found(begun.look)
            found = found[: begun.look.depth]
            chunks = [
                Ranked(item.match.chunk_id, rank, item.score, item.weak, vector_floor=item.known_floor)
                for rank, item in enumerate(found, start=1)
            ]
            return Ranking(chunks, more=more, notices=self._said(begun, found), doubtful=_doubtful(found))

        return finished

    def _begun(self, tree: QueryTree, query: SearchQuery) -> _Begun | None:
        """None where there is nothing to embed."""
        text = _meant(tree, query.text)
        if not text.strip():
            return None
        held = [space for space in self._models.for_query(text) if self._store.holds(space.embedder)]
        spaces = [space for space in held if not space.instead] or held
        if not held:
            raise ModelMissing(
                "No text here has vectors that a question in this script can be compared with.",
                hint="Make them with the setting embedding.cross_language = on and: kb ingest",
            )
        deadline.check()
        asked = list(zip(spaces, _embedded(spaces, text[:MAX_MEANING_CHARS]), strict=True))
        by_date = (query.depth or depth_of(query)) if query.sort == "date" else None
        first = self._look(asked, query, by_date or first_look(query))
        return _Begun(text, asked, first, by_date, leaves_out=len(spaces) < len(held))

    def _finished(self, query: SearchQuery, tree: QueryTree, begun: _Begun) -> HitList:
        wanted = query.offset + query.k
        look, by_date = begun.look, begun.by_date
        while True:  # how deep one must look depends on how often documents, or passages, repeat themselves
            found, more = _found(look)
            last = not more or not shortens(query) or by_date is not None or look.depth >= DEEPEST
            hits = self._hits(found[: look.depth] if by_date else found, query, complete=last)
            if len(hits) > wanted or last:
                break
            look = self._look(begun.asked, query, look.depth * _DEEPER)
        found = found[: look.depth]
        ranked = [_ranked(hit, rank) for rank, hit in enumerate(hits, start=1)]
        page = ranked[query.offset : wanted]
        terms = self._index.terms(tree, drop_stop_words=True)
        if not query.bare:
            page = [with_snippet(hit, self._snippets, terms, full_text=query.full_text) for hit in page]
        return HitList(
            page,
            more=len(ranked) > wanted,
            explanation=self._explanation([space for space, _ in begun.asked], found, query) if query.explain else None,
            notices=self._said(begun, found),
            terms=terms,
            weak=frozenset(item.match.chunk_id for item in found if item.weak),
            doubtful=_doubtful(found),
            depth=by_date,
        )

    def _said(self, begun: _Begun, found: Sequence[_Found]) -> tuple[Notice, ...]:
        long = [LONG_QUERY] if len(begun.text) > MAX_MEANING_CHARS else []
        left_out = [_OTHER_SCRIPTS] if begun.leaves_out and all(item.doubtful for item in found) else []
        return (*self.notices, *long, *left_out)

    def near(self, chunk_ids: Sequence[str], query: SearchQuery) -> HitList | None:
        """What is closest to these chunks themselves, which are among it; None when none of them has a vector.

        The text of the query is not read: the vectors are there already, so that no model is loaded.
        """
        middle = self._store.middle_of(chunk_ids, self._models.embedders)
        if middle is None:
            return None
        space = SpaceQuery(middle.embedder)
        matches = self._store.search(middle.space, middle.vector, filters=query.filters, limit=query.k + 1)
        hits = self._hits(
            [_Found(match, space, place) for place, match in enumerate(matches[: query.k], start=1)],
            query,
            complete=True,
        )
        shown = [with_snippet(hit, self._snippets, QueryTerms(), full_text=query.full_text) for hit in hits]
        ranked = [_ranked(hit, rank) for rank, hit in enumerate(shown, start=1)]
        return HitList(ranked, more=len(matches) > query.k, notices=self.notices)

    def _hits(self, found: Sequence[_Found], query: SearchQuery, *, complete: bool) -> list[SearchHit]:
        """`complete`: nobody will look deeper."""
        contexts = self._chunks.contexts([item.match.chunk_id for item in found])
        there = [item for item in found if item.match.chunk_id in contexts]
        hits = [self._hit(item, contexts[item.match.chunk_id], query, rank) for rank, item in enumerate(there, start=1)]
        return shortened(hits, query, complete=complete)

    def _look(self, asked: _Asked, query: SearchQuery, depth: int) -> _Look:
        """All spaces are asked before the first answer is waited for."""
        begun = [
            self._store.begin(
                space.embedder.fingerprint,
                vector,
                filters=query.filters,
                limit=depth + 1
                if self._store.is_lasting
                else 2 * depth,  # some of it may be gone by the time it is read
                homes_only=space.homes_only,
                others_only=space.others_only,
                outline=query.outline and (not space.weak or space.homes_only or space.others_only),
            )
            for space, vector in asked
        ]
        return _Look(depth, [(space, matches) for (space, _), matches in zip(asked, begun, strict=True)])

    def _hit(self, item: _Found, chunk: ChunkContext, query: SearchQuery, rank: int) -> SearchHit:
        """`rank`: as long as nothing is folded or left out."""
        score = item.score
        detail = RetrievalDetail(
            method="vector", fusion_score=score, vector_score=score, vector_rank=rank, vector_floor=item.known_floor
        )
        explanation = {
            "lexical": None,
            "vector": {
                "score": score,
                "cosine": item.match.similarity,
                "model": item.space.embedder.name,
                "rank_in_model": item.place,
                "weak": item.weak,
                "rank": rank,
            },
            "fusion": {"method": "none", "score": score},
        }
        return make_hit(
            chunk,
            rank=rank,
            detail=detail,
            score_kind="cosine",
            index_version=self._index_version,
            explanation=explanation if query.explain else None,
        )

    def _explanation(self, spaces: Sequence[SpaceQuery], found: list[_Found], query: SearchQuery) -> dict[str, Any]:
        searched = [
            {
                "model": space.embedder.fingerprint,
                "scope": "own_scripts" if space.homes_only else "other_scripts" if space.others_only else "all",
                "found": sum(item.space is space for item in found),
            }
            for space in spaces
        ]
        return {"vector": {"spaces": searched, "asked_for": query.k, "found": len(found)}}


def _found(look: _Look) -> tuple[list[_Found], bool]:
    """One list, whatever was searched, a little longer than the look is deep, and whether it goes on beyond that; what
    is too far away to mean anything comes last.
    """
    found = [
        _Found(match, space, place) for space, matches in look.begun for place, match in enumerate(matches(), start=1)
    ]
    found = _with_what_stands_out(found)
    if len(look.begun) > 1:
        # Cosines of two spaces cannot be compared, so these are merged by place; those of one space can, with some
        # correction.
        by_place = len({space.embedder.name for space, _ in look.begun}) > 1
        found.sort(
            key=lambda item: (item.doubtful, item.place if by_place else -(item.match.similarity + item.space.bonus))
        )
    merged: dict[str, _Found] = {}
    for item in found:
        merged.setdefault(item.match.chunk_id, item)
    return list(merged.values())[: look.depth + 1], len(merged) > look.depth


def _doubtful(found: Sequence[_Found]) -> frozenset[str]:
    return frozenset(item.match.chunk_id for item in found if item.doubtful)


def _with_what_stands_out(found: list[_Found]) -> list[_Found]:
    own = [item.match.similarity for item in found if item.weak]
    if not own:
        return found
    least = max(_LEAST_OUTSTANDING, *own)
    return [item._replace(stands_out=item.space.others_only and item.match.similarity > least) for item in found]


def _embedded(spaces: Sequence[SpaceQuery], text: str) -> list[Any]:
    """The query in each space; a model is asked once."""
    vectors: dict[str, Any] = {}
    for space in spaces:
        if space.embedder.name not in vectors:
            vectors[space.embedder.name] = space.embedder.embed([text], "query")[0]
    return [vectors[space.embedder.name] for space in spaces]


def _ranked(hit: SearchHit, rank: int) -> SearchHit:
    if hit.rank == rank:
        return hit
    explanation = hit.explanation
    if explanation is not None:
        explanation = {**explanation, "vector": {**explanation["vector"], "rank": rank}}
    return hit._replace(rank=rank, retrieval=hit.retrieval._replace(vector_rank=rank), explanation=explanation)


def _meant(tree: QueryTree, text: str) -> str:
    """What a query is about, for a model: as it was typed, or its words when it was typed with syntax."""
    return text if isinstance(tree, Bag) and '"' not in text and "*" not in text else " ".join(words_of(tree))
