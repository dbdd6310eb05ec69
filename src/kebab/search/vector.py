"""The vector retriever: finds the passages whose meaning is closest to the query, by cosine."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from kebab.core import deadline
from kebab.core.errors import ModelMissing
from kebab.core.notices import Notice, Says
from kebab.core.ports import EmbeddingModels, SpaceQuery, VectorMatch
from kebab.core.query_tree import meaning_of, parse
from kebab.core.search import MAX_MEANING_CHARS, SNIPPET_CHARS, HitList, QueryTerms, Ranked, Ranking, SearchQuery
from kebab.search.fusion import Fused
from kebab.search.listing import Listing
from kebab.search.snippets import SnippetLimits, SnippetMaker

if TYPE_CHECKING:
    from kebab.core.store_ports import ChunkReader, LexicalIndex, VectorStore

_LEAST_OUTSTANDING = 0.2


class VectorRetriever(Listing):
    """Searches a vector store with the given models, which made its vectors."""

    mode = "vector"

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
        trust: float = 1.0,
    ) -> None:
        """`index` only provides the terms that snippets highlight; it is not searched. `notices`: about the vectors.
        `trust`: how reliable a list of them is, from 0 to 1.
        """
        self._store = store
        self._models = models
        self.reader = chunks
        self._index_version = index_version
        self._index = index
        self.snippets = SnippetMaker(index.tokenizer, SnippetLimits(snippet_chars))
        self._notices = tuple(notices)
        self._trust = trust
        self._embedded: dict[str, Any] = {}
        """The vectors of the last query, by model, for use in deeper rankings."""
        self._text = ""

    def index_version(self) -> str:
        return self._index_version

    def candidates(self, query: SearchQuery, depth: int) -> Ranking[Fused]:
        ranking = self.rank(query, depth)
        return Ranking(
            _places(ranking.chunks),
            ranking.more,
            notices=ranking.notices,
            terms=self._index.terms(parse(query.text), drop_stop_words=True),
            explanation=ranking.explanation,
        )

    def rank(self, query: SearchQuery, depth: int) -> Ranking[Ranked]:
        """The passages closest in meaning, at most `depth`; those below the floor, probably unrelated, come last."""
        text = meaning_of(parse(query.text), query.text)
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
        ranked = [place._replace(rank=rank) for rank, (_, place) in enumerate(found[:depth], start=1)]
        notices = [*self._notices, *([Says.LONG_QUERY.notice()] if len(text) > MAX_MEANING_CHARS else [])]
        if len(spaces) < len(held) and all(place.below_floor for place in ranked):
            notices.append(Says.OTHER_SCRIPTS.notice())
        explanation = _explanation(spaces, [space for space, _ in found[:depth]], depth) if query.explain else None
        return Ranking(ranked, len(found) > depth, notices=tuple(notices), explanation=explanation)

    def near(self, chunk_ids: Sequence[str], query: SearchQuery) -> HitList | None:
        """The passages closest to these chunks, including these chunks; None if none of them has a vector.

        Uses stored vectors instead of the query's text, so no model is loaded.
        """
        middle = self._store.middle_of(chunk_ids, self._models.embedders)
        if middle is None:
            return None
        space = SpaceQuery(middle.embedder)
        matches = self._store.search(middle.space, middle.vector, filters=query.filters, limit=query.k + 1)
        places = [_ranked(match, space, rank, self._trust) for rank, match in enumerate(matches, start=1)]
        hits, more = self.page(self._read(_places(places), query), query, QueryTerms())
        return HitList(hits, more=more, notices=self._notices)

    def _find(
        self, spaces: Sequence[SpaceQuery], text: str, query: SearchQuery, depth: int
    ) -> list[tuple[SpaceQuery, Ranked]]:
        """One ranked list from all spaces. It has `depth` + 1 entries if further ones may follow."""
        found = [
            (
                space,
                self._store.search(
                    space.embedder.fingerprint,
                    self._vector(space, text),
                    filters=query.filters,
                    limit=depth + 1,
                    primary=space.primary,
                ),
            )
            for space in spaces
        ]
        own = [match.similarity for space, matches in found for match in matches if _is_weak(match, space)]
        outstanding = max(_LEAST_OUTSTANDING, *own) if own else inf
        # Cosines of different models cannot be compared, so their lists are merged by place. Cosines of one model can
        # be, with the bonus of each space.
        by_place = len({space.embedder.name for space in spaces}) > 1
        places = []
        for space, matches in found:
            for place, match in enumerate(matches, start=1):
                ranked = _ranked(match, space, place, self._trust, outstanding, explain=query.explain)
                order = ranked.below_floor, place if by_place else -(match.similarity + space.bonus)
                places.append((order, space, ranked))
        if len(spaces) > 1:
            places.sort(key=lambda item: item[0])
        best: dict[str, tuple[SpaceQuery, Ranked]] = {}
        for _, space, ranked in places:
            best.setdefault(ranked.chunk_id, (space, ranked))
        return list(best.values())[: depth + 1]

    def _vector(self, space: SpaceQuery, text: str) -> Any:
        if text != self._text:
            self._text, self._embedded = text, {}
        if space.embedder.name not in self._embedded:
            deadline.check()
            self._embedded[space.embedder.name] = space.embedder.embed([text], "query")[0]
        return self._embedded[space.embedder.name]


def _is_weak(match: VectorMatch, space: SpaceQuery) -> bool:
    """Whether a match counts less, because words find text in its script more reliably."""
    return space.trust < 1 and match.primary


def _ranked(
    match: VectorMatch, space: SpaceQuery, place: int, trust: float, outstanding: float = inf, *, explain: bool = False
) -> Ranked:
    """The ranked form of a match. Text in another script than the query's is not below the floor if its similarity is
    above `outstanding`, and so above that of all text in the query's script.
    """
    weak = _is_weak(match, space)
    stands_out = space.primary is False and match.similarity > outstanding
    explanation = None
    if explain:
        explanation = {"cosine": match.similarity, "model": space.embedder.name, "rank_in_model": place}
    return Ranked(
        match.chunk_id,
        place,
        min(1.0, max(0.0, match.similarity)),
        trust=min(trust, space.trust) if weak else trust,
        floor=space.floor if space.floor > 0 and not weak else None,
        below_floor=match.similarity < space.floor and not stands_out,
        doc_type=match.doc_type,
        explanation=explanation,
    )


def _places(ranked: Sequence[Ranked]) -> list[Fused]:
    return [Fused(place.chunk_id, place.score, vector=place) for place in ranked]


def _explanation(spaces: Sequence[SpaceQuery], found_in: Sequence[SpaceQuery], depth: int) -> dict[str, Any]:
    searched = [
        {
            "model": space.embedder.fingerprint,
            "scope": {True: "own_scripts", False: "other_scripts", None: "all"}[space.primary],
            "found": sum(found is space for found in found_in),
        }
        for space in spaces
    ]
    return {"vector": {"spaces": searched, "asked_for": depth, "found": len(found_in)}}
