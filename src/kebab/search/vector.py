"""The vector retriever: the passages whose meaning is closest to the query's, by cosine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.analysis.query_syntax import parse
from kebab.core import deadline
from kebab.core.errors import ModelMissing
from kebab.core.notices import Notice, Says
from kebab.core.ports import EmbeddingModels, SpaceQuery, VectorMatch
from kebab.core.query_tree import Bag, QueryTree, words_of
from kebab.core.search import (
    MAX_MEANING_CHARS,
    SNIPPET_CHARS,
    HitList,
    QueryTerms,
    Ranked,
    Ranking,
    RetrievalDetail,
    SearchHit,
    SearchQuery,
)
from kebab.search.listing import (
    DEEPER,
    DEEPEST,
    FIRST_DEPTH,
    HitMaker,
    Listed,
    new_in_each,
    newest_first,
    page_of,
    read_passages,
)
from kebab.search.snippets import SnippetLimits, SnippetMaker

if TYPE_CHECKING:
    from kebab.core.store_ports import ChunkReader, LexicalIndex, VectorStore

_LEAST_OUTSTANDING = 0.2


class _Found(NamedTuple):
    """A chunk, found in one of the spaces that were searched."""

    match: VectorMatch
    space: SpaceQuery
    place: int
    """In its own space, from 1."""
    stands_out: bool = False
    """Whether it is closer than all text in the question's own script, which is closer as a rule."""

    @property
    def weak(self) -> bool:
        """In a weak space only text of its own script: what the words of the query cannot reach counts fully."""
        return self.space.weak and self.match.primary

    @property
    def below_floor(self) -> bool:
        return self.match.similarity < self.space.floor and not self.stands_out

    def ranked(self, rank: int, *, explain: bool) -> Ranked:
        explanation = {
            "cosine": self.match.similarity,
            "model": self.space.embedder.name,
            "rank_in_model": self.place,
        }
        return Ranked(
            self.match.chunk_id,
            rank,
            min(1.0, max(0.0, self.match.similarity)),
            weak=self.weak,
            floor=self.space.floor if self.space.floor > 0 and not self.weak else None,
            below_floor=self.below_floor,
            explanation=explanation if explain else None,
        )


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
        snippet_chars: int = SNIPPET_CHARS,
        notices: Sequence[Notice] = (),
    ) -> None:
        """`index` cuts the query into the words that snippets mark; it is not searched. `notices`: what is wrong with
        the vectors.
        """
        self._store = store
        self._models = models
        self.contexts = chunks.contexts
        self._index_version = index_version
        self._index = index
        self.snippets = SnippetMaker(index.tokenizer, SnippetLimits(snippet_chars))
        self._notices = tuple(notices)
        self._embedded: dict[str, Any] = {}
        """The last query's vectors, by model: a deeper look asks for the same ones."""
        self._text = ""

    def index_version(self) -> str:
        return self._index_version

    def search(self, query: SearchQuery) -> HitList:
        first = self.rank(query, FIRST_DEPTH)
        if query.sort == "date":
            page = page_of(newest_first(read_passages(first.chunks, self.contexts, query), query), query)
        else:
            places = new_in_each(self._looks(query, first))
            page = page_of(read_passages(places, self.contexts, query), query)
        terms = self._index.terms(parse(query.text), drop_stop_words=True)
        make = HitMaker(self.snippets, "cosine", self._index_version, terms, query)
        return HitList(
            [_hit(make, listed, rank) for rank, listed in enumerate(page.listed, start=query.offset + 1)],
            more=page.more,
            explanation=first.explanation,
            notices=first.notices,
            terms=terms,
        )

    def _looks(self, query: SearchQuery, ranking: Ranking) -> Iterator[Sequence[Ranked]]:
        depth = FIRST_DEPTH
        yield ranking.chunks
        while ranking.more and depth < DEEPEST:
            depth *= DEEPER
            ranking = self.rank(query, depth)
            yield ranking.chunks

    def rank(self, query: SearchQuery, depth: int) -> Ranking:
        """The passages closest in meaning, as many as `depth`; those too far away to mean anything come last."""
        text = _meant(parse(query.text), query.text)
        if not text.strip():
            return Ranking(notices=self._notices)
        held = [space for space in self._models.for_query(text) if self._store.holds(space.embedder)]
        spaces = [space for space in held if not space.instead] or held
        if not held:
            raise ModelMissing(
                "No text here has vectors that a question in this script can be compared with.",
                hint="Make them with the setting embedding.cross_language = on and: kb ingest",
            )
        found = self._find(spaces, text[:MAX_MEANING_CHARS], query, depth)
        ranked = [item.ranked(rank, explain=query.explain) for rank, item in enumerate(found[:depth], start=1)]
        notices = [*self._notices, *([Says.LONG_QUERY.notice()] if len(text) > MAX_MEANING_CHARS else [])]
        if len(spaces) < len(held) and all(place.below_floor for place in ranked):
            notices.append(Says.OTHER_SCRIPTS.notice())
        explanation = _explanation(spaces, found[:depth], depth) if query.explain else None
        return Ranking(ranked, len(found) > depth, notices=tuple(notices), explanation=explanation)

    def near(self, chunk_ids: Sequence[str], query: SearchQuery) -> HitList | None:
        """What is closest to these chunks themselves, which are among it; None when none of them has a vector.

        The text of the query is not read: the vectors are there already, so that no model is loaded.
        """
        middle = self._store.middle_of(chunk_ids, self._models.embedders)
        if middle is None:
            return None
        space = SpaceQuery(middle.embedder)
        matches = self._store.search(middle.space, middle.vector, filters=query.filters, limit=query.k + 1)
        places = [_Found(match, space, rank).ranked(rank, explain=False) for rank, match in enumerate(matches, start=1)]
        page = page_of(read_passages(places, self.contexts, query), query)
        make = HitMaker(self.snippets, "cosine", self._index_version, QueryTerms(), query)
        hits = [_hit(make, listed, rank) for rank, listed in enumerate(page.listed, start=1)]
        return HitList(hits, more=page.more, notices=self._notices)

    def _find(self, spaces: Sequence[SpaceQuery], text: str, query: SearchQuery, depth: int) -> list[_Found]:
        """One list, whatever was searched, one longer than `depth` if it goes on."""
        found: list[_Found] = []
        for space in spaces:
            matches = self._store.search(
                space.embedder.fingerprint,
                self._vector(space, text),
                filters=query.filters,
                limit=depth + 1,
                primary_only=space.primary_only,
                secondary_only=space.secondary_only,
            )
            found += [_Found(match, space, place) for place, match in enumerate(matches, start=1)]
        found = _with_outstanding(found)
        if len(spaces) > 1:
            # Cosines of two models cannot be compared, so these are merged by place; those of one model can, with some
            # correction.
            by_place = len({space.embedder.name for space in spaces}) > 1
            found.sort(
                key=lambda item: (
                    item.below_floor,
                    item.place if by_place else -(item.match.similarity + item.space.bonus),
                )
            )
        best: dict[str, _Found] = {}
        for item in found:
            best.setdefault(item.match.chunk_id, item)
        return list(best.values())[: depth + 1]

    def _vector(self, space: SpaceQuery, text: str) -> Any:
        if text != self._text:
            self._text, self._embedded = text, {}
        if space.embedder.name not in self._embedded:
            deadline.check()
            self._embedded[space.embedder.name] = space.embedder.embed([text], "query")[0]
        return self._embedded[space.embedder.name]


def _with_outstanding(found: list[_Found]) -> list[_Found]:
    own = [item.match.similarity for item in found if item.weak]
    if not own:
        return found
    least = max(_LEAST_OUTSTANDING, *own)
    return [item._replace(stands_out=item.space.secondary_only and item.match.similarity > least) for item in found]


def _hit(make: HitMaker, listed: Listed, rank: int) -> SearchHit:
    place: Ranked = listed.place
    score = place.score
    detail = RetrievalDetail("vector", score, vector_score=score, vector_rank=rank, vector_floor=place.floor)
    if place.explanation is None:
        return make.hit(listed, rank, detail)
    explanation = {
        "lexical": None,
        "vector": {"score": score, **place.explanation, "weak": place.weak, "rank": rank},
        "fusion": {"method": "none", "score": score},
    }
    return make.hit(listed, rank, detail, explanation)


def _explanation(spaces: Sequence[SpaceQuery], found: Sequence[_Found], depth: int) -> dict[str, Any]:
    searched = [
        {
            "model": space.embedder.fingerprint,
            "scope": "own_scripts" if space.primary_only else "other_scripts" if space.secondary_only else "all",
            "found": sum(item.space is space for item in found),
        }
        for space in spaces
    ]
    return {"vector": {"spaces": searched, "asked_for": depth, "found": len(found)}}


def _meant(tree: QueryTree, text: str) -> str:
    """What a query is about, for a model: as it was typed, or its words when it was typed with syntax."""
    return text if isinstance(tree, Bag) and '"' not in text and "*" not in text else " ".join(words_of(tree))
