"""From ranked passages to the hits that are shown: read, fold copies, keep some of each document, cut to the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import inf
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from kebab.analysis.orders import reads_like_orders
from kebab.core import deadline
from kebab.core.citations import Citation
from kebab.core.ports import ChunkContext
from kebab.core.search import Duplicate, QueryTerms, RetrievalDetail, SearchHit, SearchQuery
from kebab.search.duplicates import REACH, Passage, fold
from kebab.search.snippets import SnippetMaker

FIRST_DEPTH = 100
"""How many passages the first look ranks. It does not depend on k, so a longer list begins like a shorter one."""
DEEPER = 4
"""How many times as deep the next look is."""
DEEPEST = 10_000
"""Where looking deeper ends."""

_SOME_COPIES = 5
"""Room for a few passages that are folded, so that most pages are read at once."""

T = TypeVar("T")
Contexts = Callable[[Sequence[str]], Mapping[str, ChunkContext]]


class Placed(Protocol):
    """A place in a ranked list."""

    @property
    def chunk_id(self) -> str: ...
    @property
    def score(self) -> float: ...


class Read(NamedTuple):
    """A place in a ranked list, and the passage that stands there."""

    place: Any
    """What the retriever listed: `Ranked` or `Fused`."""
    chunk: ChunkContext


class Listed(NamedTuple):
    """A passage of the list that is shown, and the copies folded under it."""

    place: Any
    chunk: ChunkContext
    copies: tuple[ChunkContext, ...] = ()


class Page(NamedTuple):
    listed: list[Listed]
    more: bool
    """Whether further hits follow."""


def new_in_each(looks: Iterable[Sequence[Placed]]) -> Iterator[Placed]:
    """What each look has found and none before it: a deeper look never changes what was listed before."""
    seen: set[str] = set()
    for look in looks:
        new = [place for place in look if place.chunk_id not in seen]
        seen.update(place.chunk_id for place in new)
        yield from new


def read_passages(places: Iterable[Placed], contexts: Contexts, query: SearchQuery) -> Iterator[Read]:
    """Each with its passage, some at a time; what is gone by now is left out."""
    at_once = query.offset + query.k + 1 + (REACH + _SOME_COPIES if query.duplicates == "fold" else 0)
    places = iter(places)
    while some := list(islice(places, at_once)):
        chunks = contexts([place.chunk_id for place in some])
        yield from (Read(place, chunks[place.chunk_id]) for place in some if place.chunk_id in chunks)


def newest_first(passages: Iterable[Read], query: SearchQuery) -> list[Read]:
    """The best of each document, by date."""
    best = passages
    if query.per_doc is not None:
        best = _at_most_per_document(passages, query.per_doc, lambda read: read.chunk.doc_id)
    return sorted(best, key=lambda read: read.chunk.date, reverse=True)


def page_of(passages: Iterable[Read], query: SearchQuery) -> Page:
    """The part of the list that is asked for, after copies are folded and documents cut to `per_doc`."""

    def text_of(read: Read) -> Passage | None:
        if query.min_score is not None and read.place.score < query.min_score:
            return None  # sorted by date, it could hide copies that are good enough
        return Passage(read.chunk.text, read.chunk.content_hash)

    standing: Iterable[tuple[Read, list[Read]]] = ((read, []) for read in passages)
    wanted = query.offset + query.k
    if query.duplicates == "fold":
        standing = fold(passages, text_of, most=inf if query.per_doc is not None else wanted + 1)
    if query.per_doc is not None:
        standing = _at_most_per_document(standing, query.per_doc, lambda group: group[0].chunk.doc_id)
    taken = list(islice(standing, wanted + 1))
    page = [
        Listed(read.place, read.chunk, tuple(copy.chunk for copy in copies))
        for read, copies in taken[query.offset : wanted]
    ]
    return Page(page, len(taken) > wanted)


def _at_most_per_document(items: Iterable[T], most: int, document_of: Callable[[T], str]) -> Iterator[T]:
    seen: dict[str, int] = {}
    for item in items:
        document = document_of(item)
        count = seen[document] = seen.get(document, 0) + 1
        if count <= most:
            yield item


class HitMaker(NamedTuple):
    """Makes the hits of a list, whatever found them."""

    snippets: SnippetMaker | None
    """None: the hits that were `found` elsewhere bring theirs."""
    score_kind: str
    index_version: str
    terms: QueryTerms
    query: SearchQuery
    found: Mapping[str, SearchHit] = MappingProxyType({})

    def hit(
        self, listed: Listed, rank: int, detail: RetrievalDetail, explanation: dict[str, Any] | None = None
    ) -> SearchHit:
        """Flagged as suspicious by the whole passage, however little of it is shown."""
        chunk = listed.chunk
        hit = SearchHit(
            chunk=chunk,
            rank=rank,
            score_kind=self.score_kind,
            retrieval=detail,
            index_version=self.index_version,
            citation=citation_of(chunk),
            text=chunk.text,
            explanation=explanation,
            duplicates=tuple(
                Duplicate(copy.chunk_id, copy.doc_id, copy.doc_path, copy.source, citation_of(copy))
                for copy in listed.copies
            ),
        )
        if self.query.without_snippets:
            return hit
        if self.snippets is None:
            shown = self.found[chunk.chunk_id]
            return hit._replace(
                snippet=shown.snippet, highlights=shown.highlights, text=shown.text, suspicious=shown.suspicious
            )
        deadline.check()
        snippet = self.snippets.of(chunk.text, self.terms)
        return hit._replace(
            snippet=snippet.text,
            highlights=snippet.highlights,
            text=chunk.text if self.query.full_text else snippet.text,
            suspicious=reads_like_orders("\n\n".join((chunk.title, *chunk.heading_path, chunk.text))),
        )

    def matched(self, chunk: ChunkContext) -> dict[str, list[str]]:
        """What the query looked for and the parts of this passage have."""
        if self.snippets is None:
            return {}
        parts = {
            "title": chunk.title,
            "heading": " > ".join(chunk.heading_path),
            "text": chunk.text,
            "context": "\n".join(chunk.notes),
        }
        phrases = sorted(" ".join(phrase) for phrase in self.terms.phrases)
        matched = {}
        for name, text in parts.items():
            stems = " ".join(["", *self.snippets.tokenizer.stems(text), ""])
            matched[name] = [phrase for phrase in phrases if f" {phrase} " in stems]
            matched[name] += [term for term in self.terms.cjk if term in text]
        return matched


def citation_of(chunk: ChunkContext) -> Citation:
    """From the first span, which covers the whole chunk."""
    return Citation(chunk.doc_path, chunk.spans[0], chunk.section_label, chunk.content_hash)
