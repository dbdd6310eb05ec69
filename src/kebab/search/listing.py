"""Turns ranked passages into a page of hits: reads texts, folds duplicates, applies `per_doc`, makes snippets.

Passages of a backup, a vendored README or several versions of a folder have nearly the same score, and so are close
together in a ranked list. Each passage is therefore compared only with the few before it. Whether it is folded does not
depend on later passages, so a longer list begins like a shorter one, and pages of results fit together.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from math import inf
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar, cast

from kebab.analysis.language import is_stop_word
from kebab.analysis.orders import reads_like_orders
from kebab.core import deadline
from kebab.core.citations import CodeSpan
from kebab.core.ports import ChunkContext, ChunkText
from kebab.core.search import (
    Duplicate,
    Exactness,
    HitList,
    Mode,
    QueryTerms,
    Ranking,
    RetrievalDetail,
    SearchHit,
    SearchQuery,
    Weights,
)
from kebab.search.fusion import Fused, FusionPolicy
from kebab.search.reranking import Reranking, reranked
from kebab.search.snippets import SnippetMaker

FIRST_DEPTH = 100
"""How many passages are ranked at first. It does not depend on k, so a longer list begins like a shorter one."""
DEEPER = 4
"""The factor by which the depth grows when more passages must be ranked."""
DEEPEST = 10_000
"""The greatest depth: no more passages are ranked."""

_SCORE_KINDS = {"lexical": "bm25", "vector": "cosine"}
_SOME_COPIES = 5
"""How many additional passages are read for folding, so that most pages need only one read."""
_READ_AT_ONCE = 1000
"""How many of the passages before the requested page are read at once, because all of them would fill the memory."""

_WINDOW = 50
"""Among how many of the best passages source code may change its place."""
_DEFINITION = "definition first"
_CONSTANT = "constant first"
_SET_ASIDE = "test or example last"
_NAME = r"(?:[A-Za-z_][0-9A-Za-z_]*|[^\W\dA-Za-z_]\w*)"
"""A name in ASCII ends before a Korean particle, as in `compile_path는`."""
_IDENTIFIER = rf"{_NAME}(?:(?:\.|::){_NAME})*"
_LOOKS_LIKE_CODE = r"[^\W_]_+\w|\w\.\w|::|[a-z0-9][A-Z]|[A-Z]{2}[a-z]|\A_|\A[A-Z]{2,}\Z"
_ASSIGNED = r"^[ \t]*(?:\w+[ \t]+){{0,4}}(?:{0})\b[ \t]*(?::[^=\n]*)?=(?!=)|^[ \t]*#define[ \t]+(?:{0})\b"
_ASIDE = (
    r"(?:\A|/)(?:tests?|testing|specs?|__tests__|examples?|samples?|demos?|benchmarks?|fixtures?|generated)/"
    r"|(?:\A|/)(?:test_[^/]*|conftest\.py)\Z|[._-](?:test|spec)s?\.\w+\Z|_pb2\.py\Z|\.pyi\Z|\.d\.ts\Z"
)
_ASKS_FOR_DEFINITION = r"\b(?:defined|definition|declared|declaration)\b|정의|선언"
_ASKS_FOR_ASIDE = (
    r"(?:\b|_)(?:tests?|testing|specs?|examples?|samples?|demos?|benchmarks?|fixtures?)(?:\b|_)|테스트|예제"
)
"""These patterns are compiled on first use, because most searches need none."""

T = TypeVar("T")
Contexts = Callable[[Sequence[str]], Mapping[str, ChunkContext]]
Read = tuple[Fused, ChunkContext]
"""A place in a ranked list, and the passage that was read for it: before the requested page, only its ChunkText."""


class Reader(Protocol):
    def contexts(self, chunk_ids: Sequence[str], /) -> Mapping[str, ChunkContext]: ...
    def texts(self, chunk_ids: Sequence[str], /) -> Mapping[str, ChunkText]: ...


class Listing(ABC):
    """Base class of the three retrievers: makes a page of hits. Subclasses only rank passages."""

    mode: Mode
    policy: FusionPolicy | None = None
    """How two lists are merged; None for a retriever with one list."""
    reader: Reader | None
    snippets: SnippetMaker | None
    """None if hits come from retrievers outside this package, with their own snippets."""
    reranking: Reranking | None = None
    """How passages are reranked if the query asks for it; None: they are not."""
    ordered_by_store = False
    """Whether `candidates` are already in the requested order. If not, sorting by date uses only the first ranking."""

    @abstractmethod
    def index_version(self) -> str: ...
    @abstractmethod
    def candidates(self, query: SearchQuery, depth: int) -> Ranking[Fused]:
        """Ranks once: the best passages, at most `depth` of each list."""

    def contexts(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkContext]:
        return self.reader.contexts(chunk_ids) if self.reader and chunk_ids else {}

    def texts(self, chunk_ids: Sequence[str]) -> Mapping[str, ChunkText]:
        return self.reader.texts(chunk_ids) if self.reader and chunk_ids else {}

    def search(self, query: SearchQuery) -> HitList:
        # Twice as deep as the page needs, because copies are folded. A deeper ranking begins like this one.
        depth = max(FIRST_DEPTH, 2 * (query.offset + query.k) + REACH) if self.ordered_by_store else FIRST_DEPTH
        first = self.candidates(query, depth)
        notices = first.notices
        if query.sort == "date" and not self.ordered_by_store:
            passages: Iterable[Read] = _newest_first(self._read(first.chunks, query), query)
        else:
            places = self._deeper_and_deeper(query, first, depth)
            best: Sequence[Fused] = list(islice(places, _WINDOW))
            known: Mapping[str, ChunkContext] = {}
            if query.rerank and query.sort != "date" and self.reranking is not None:
                known = {place.chunk_id: passage for place, passage in self._read(best[: query.rerank], query)}
                best, about_order = reranked(best, known, query, self.reranking)
                notices += about_order
            code = self._code_among(best, query)
            # At these places there can be no hit of the page, and no copy of one.
            before = islice(places, max(0, query.offset - _WINDOW))
            passages = chain(
                self._read(code_in_order(best, code, query), query, {**known, **code}),
                self._read_with(self.texts, before, _READ_AT_ONCE),
                self._read(places, query),
            )
        hits, more = self.page(passages, query, first.terms or QueryTerms())
        return HitList(
            hits,
            match=first.match,
            more=more,
            explanation=first.explanation,
            notices=notices,
            terms=first.terms,
            below_scores=first.below_scores,
        )

    def page(self, passages: Iterable[Read], query: SearchQuery, terms: QueryTerms) -> tuple[list[SearchHit], bool]:
        """The hits of the requested page, and whether further hits follow."""
        groups = islice(_standing(passages, query), query.offset, None)
        page = enumerate(islice(groups, query.k), start=query.offset + 1)
        hits = [self._hit(*group, rank, query, terms) for rank, group in page]
        if query.min_score is None or query.sort == "date":
            return hits, next(groups, None) is not None
        # A hit with a higher score may follow those below the minimum, because code and literal matches are put first.
        later = islice(groups, FIRST_DEPTH)
        return hits, any(place.score >= query.min_score for (place, _), _ in later)

    def _deeper_and_deeper(self, query: SearchQuery, ranking: Ranking[Fused], depth: int) -> Iterator[Fused]:
        """Yields new passages of ever deeper rankings. A deeper ranking never changes the passages already listed."""
        seen: set[str] = set()
        while True:
            new = [place for place in ranking.chunks if place.chunk_id not in seen]
            seen.update(place.chunk_id for place in new)
            yield from new
            if not ranking.more or depth >= DEEPEST:
                return
            depth = min(depth * DEEPER, DEEPEST)
            ranking = self.candidates(query, depth)

    def _code_among(self, places: Sequence[Fused], query: SearchQuery) -> Mapping[str, ChunkContext]:
        """The passages of source code that may change their places.

        A list by date stays one, and so does the list of `match=all`, which is bm25 and nothing else.
        """
        code = [place for place in places if place.is_code]
        is_fixed = query.sort == "date" or query.match == "all" or query.filters.path_glob
        if not code or is_fixed or re.search(_ASKS_FOR_ASIDE, query.text, re.IGNORECASE):
            return {}
        return {place.chunk_id: passage for place, passage in self._read_with(self.contexts, code, _WINDOW)}

    def _read(
        self, places: Iterable[Fused], query: SearchQuery, known: Mapping[str, ChunkContext] = MappingProxyType({})
    ) -> Iterator[Read]:
        copies = REACH + _SOME_COPIES if query.duplicates == "fold" else 0
        return self._read_with(self.contexts, places, query.k + 1 + copies, known)

    def _read_with(
        self,
        read: Callable[[Sequence[str]], Mapping[str, Any]],
        places: Iterable[Fused],
        at_once: int,
        known: Mapping[str, ChunkContext] = MappingProxyType({}),
    ) -> Iterator[Read]:
        """Yields each place with its passage, read in batches; passages that were removed meanwhile are left out."""
        places = iter(places)
        while some := list(islice(places, at_once)):
            chunks = {**known, **{place.chunk_id: place.hit.chunk for place in some if place.hit}}
            chunks |= read([place.chunk_id for place in some if place.chunk_id not in chunks])
            yield from ((place, chunks[place.chunk_id]) for place in some if place.chunk_id in chunks)

    def _hit(self, read: Read, copies: Sequence[Read], rank: int, query: SearchQuery, terms: QueryTerms) -> SearchHit:
        place, chunk = read
        if self.mode != "hybrid":  # in a list of one search, the rank there is the rank of the hit
            lexical, vector = (side and side._replace(rank=rank) for side in (place.lexical, place.vector))
            place = place._replace(lexical=lexical, vector=vector)
        lexical, vector = place.lexical, place.vector
        detail = RetrievalDetail(
            method=self.mode,
            fusion_score=place.score,
            lexical_score=lexical.score if lexical else None,
            lexical_rank=lexical.rank if lexical else None,
            vector_score=vector.score if vector else None,
            vector_rank=vector.rank if vector else None,
            rrf_score=place.rrf_score,
            vector_floor=vector.floor if vector else None,
            exact_rank=place.exact_rank,
            weights=None if place.weights == Weights() else place.weights,
        )
        hit = SearchHit(
            chunk=chunk,
            rank=rank,
            score_kind=(query.fusion or self.policy.kind) if self.policy else _SCORE_KINDS[self.mode],
            retrieval=detail,
            index_version=self.index_version(),
            citation=chunk.citation,
            text=chunk.text,
            exactness=lexical.exactness if lexical else None,
            explanation=self._hit_explanation(place, chunk, query, terms) if query.explain else None,
            duplicates=tuple(
                Duplicate(copy.chunk_id, copy.doc_id, copy.doc_path, copy.source, copy.citation) for _, copy in copies
            ),
        )
        return hit if query.without_snippets else self._with_snippet(hit, place, query, terms)

    def _with_snippet(self, hit: SearchHit, place: Fused, query: SearchQuery, terms: QueryTerms) -> SearchHit:
        """The hit with its snippet. The whole passage decides whether it is flagged as suspicious."""
        if self.snippets is None:
            shown = cast("SearchHit", place.hit)
            return hit._replace(
                snippet=shown.snippet, highlights=shown.highlights, text=shown.text, suspicious=shown.suspicious
            )
        deadline.check()
        snippet = self.snippets.of(hit.chunk.text, terms)
        return hit._replace(
            snippet=snippet.text,
            highlights=snippet.highlights,
            text=hit.text if query.full_text else snippet.text,
            suspicious=reads_like_orders("\n\n".join((hit.title, *hit.heading_path, hit.chunk.text))),
        )

    def _hit_explanation(
        self, place: Fused, chunk: ChunkContext, query: SearchQuery, terms: QueryTerms
    ) -> dict[str, Any]:
        fusion = _fusion_explanation(place, self.policy, query)
        explanation: dict[str, Any] = {"lexical": None, "vector": None, "fusion": fusion, "moved": place.moved}
        if place.relevance:
            explanation["rerank"] = place.relevance._asdict()
        if lexical := place.lexical:
            explanation["lexical"] = {"rank": lexical.rank, "score": lexical.score}
            explanation["matched"] = self._matched(chunk, terms)
        if vector := place.vector:
            explanation["vector"] = {**(vector.explanation or {}), "rank": vector.rank, "score": vector.score}
        return explanation

    def _matched(self, chunk: ChunkContext, terms: QueryTerms) -> dict[str, list[str]]:
        """The terms of the query that occur in each part of the passage."""
        if self.snippets is None:
            return {}
        parts = {
            "title": chunk.title,
            "heading": " > ".join(chunk.heading_path),
            "text": chunk.text,
            "context": "\n".join(chunk.notes),
        }
        phrases = sorted(" ".join(phrase) for phrase in terms.phrases)
        matched = {}
        for name, text in parts.items():
            stems = " ".join(["", *self.snippets.tokenizer.stems(text), ""])
            matched[name] = [phrase for phrase in phrases if f" {phrase} " in stems]
            matched[name] += [term for term in terms.cjk if term in text]
        return matched


def _fusion_explanation(place: Fused, policy: FusionPolicy | None, query: SearchQuery) -> dict[str, Any]:
    if policy is None:
        return {"method": "none", "score": place.score}
    explanation = {"method": query.fusion or policy.kind, "score": place.score, "weights": place.weights._asdict()}
    if place.rrf_score is not None:
        explanation["rrf"] = place.rrf_score
    explanation["from_lexical"], explanation["from_vector"], explanation["from_exact"], most = place.parts
    explanation["divided_by"] = most
    return explanation


def _newest_first(passages: Iterable[Read], query: SearchQuery) -> list[Read]:
    """The passages sorted by date, the newest first; at most `per_doc` of each document."""
    if query.per_doc is not None:
        passages = _at_most_per_document(passages, query.per_doc, lambda read: read[1].doc_id)
    return sorted(passages, key=lambda read: read[1].date, reverse=True)


def _standing(passages: Iterable[Read], query: SearchQuery) -> Iterable[tuple[Read, Sequence[Read]]]:
    """The listed passages, each with the copies folded under it; at most `per_doc` of each document."""

    def text_of(read: Read) -> Passage | None:
        place, chunk = read
        if query.min_score is not None and place.score < query.min_score:
            return None  # in a list sorted by date, good copies could be folded under this bad passage
        return Passage(chunk.text, chunk.content_hash)

    standing: Iterable[tuple[Read, Sequence[Read]]] = ((read, ()) for read in passages)
    if query.duplicates == "fold":
        goes_on = query.per_doc is not None or query.min_score is not None
        standing = fold(passages, text_of, most=inf if goes_on else query.offset + query.k + 1)
    if query.per_doc is not None:
        standing = _at_most_per_document(standing, query.per_doc, lambda group: group[0][1].doc_id)
    return standing


def _at_most_per_document(items: Iterable[T], most: int, document_of: Callable[[T], str]) -> Iterator[T]:
    seen: dict[str, int] = {}
    for item in items:
        document = document_of(item)
        count = seen[document] = seen.get(document, 0) + 1
        if count <= most:
            yield item


# --- passages with (nearly) the same text

REACH = 10
"""The largest distance in the list between a copy and the next one."""
MOST_COPIES = 100
"""The most copies under one passage. The next copy is listed, with later ones under it."""

_SHINGLE = 5
"""The number of consecutive words in a shingle, the unit of comparison."""
_LEAST_OVERLAP = 0.9
"""The least share of common shingles of two duplicates: about one word in a hundred may differ."""
_LEAST_SHINGLES = 60
"""Passages with fewer shingles must be equal, because a single word may make the difference."""
_BEGINNING = 4
"""How many words of two passages are compared before all."""
_PROBE = 24
"""The length of a probe: a piece of one passage that is searched for in the other, before shingles are compared."""
_PROBES = 8
"""The number of probes, spread evenly over the passage."""
_MOST_MISSED = 2
"""The most probes that may be missing, because of edits."""
_LONGEST_WORD = 16
"""A longer non-ASCII word is text of a script without spaces, so its characters are compared as words."""


class Passage:
    """A text to compare with others. Expensive properties are computed on first use."""

    def __init__(self, text: str, content_hash: str = "") -> None:
        """`content_hash` may be given without a text: equal hashes mean equal texts."""
        self.text = text
        self.content_hash = content_hash
        self.length = len(text)
        self.least_length = max(_LEAST_SHINGLES, _LEAST_OVERLAP * self.length)
        """The least length of a passage that may differ from this one and still be its copy."""
        self.beginning = text.split(None, _BEGINNING)[:_BEGINNING]
        """The first words, which differ for most different texts."""

    @cached_property
    def words(self) -> list[str]:
        return self.text.split()

    @cached_property
    def probes(self) -> list[str]:
        starts = (self.length * number // _PROBES for number in range(_PROBES))
        return [self.text[start : start + _PROBE] for start in starts]

    @cached_property
    def shingles(self) -> frozenset[int]:
        """The hashes of all shingles; empty if there are too few, because the text is short or repetitive."""
        units = [unit for word in self.words for unit in (word if _is_unspaced(word) else (word,))]
        shingles = frozenset(map(hash, zip(*(units[start:] for start in range(_SHINGLE)), strict=False)))
        return shingles if len(shingles) >= _LEAST_SHINGLES else frozenset()


class _Group(Generic[T]):
    """A listed item, and the copies that are folded under it."""

    def __init__(self, item: T, passage: Passage | None, place: int) -> None:
        self.item = item
        self.passage = passage
        self.copies: list[T] = []
        self.last = place
        """The place in the list of the last copy, or of the item itself if it has none."""

    def is_open(self, place: int) -> bool:
        """Whether a passage at this place may still be added as a copy."""
        return self.passage is not None and self.last >= place - REACH and len(self.copies) < MOST_COPIES


def is_duplicate(one: Passage, other: Passage) -> bool:
    """Whether two passages have the same words; long ones may differ by a small edit."""
    if one.content_hash == other.content_hash and one.content_hash:
        return True
    if one.beginning == other.beginning:
        if not one.text or not other.text:
            return not (one.text or other.text or one.content_hash or other.content_hash)
        if one.words == other.words:
            return True
    if one.length < other.least_length or other.length < one.least_length:
        return False
    shorter, longer = (one, other) if (one.length, one.text) < (other.length, other.text) else (other, one)
    return _has_pieces_of(longer.text, shorter.probes) and _overlap(one.shingles, other.shingles) >= _LEAST_OVERLAP


def _has_pieces_of(text: str, probes: list[str]) -> bool:
    """Whether enough probes occur in the text: a fast test that excludes most different texts."""
    missed = 0
    for probe in probes:
        if probe not in text:
            missed += 1
            if missed > _MOST_MISSED:
                return False
    return True


def _is_unspaced(word: str) -> bool:
    return len(word) > _LONGEST_WORD and not word.isascii()


def _overlap(one: frozenset[int], other: frozenset[int]) -> float:
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0


def _group_of(passage: Passage | None, place: int, groups: Iterable[_Group[T]]) -> _Group[T] | None:
    """The first open group whose passage has this one as a copy."""
    if passage is None:
        return None
    for group in groups:
        if group.passage is not None and is_duplicate(group.passage, passage) and group.is_open(place):
            return group
    return None


def fold(
    items: Iterable[T], passage_of: Callable[[T], Passage | None], most: float = inf
) -> Iterator[tuple[T, list[T]]]:
    """Yields at most `most` listed items with their copies, each as soon as no further copy can follow.

    An item whose passage is None is never folded. Items are compared only with listed items, not with copies, so that
    small differences do not add up.
    """
    waiting: deque[_Group[T]] = deque()
    standing = 0
    for place, item in enumerate(items):
        while waiting and not waiting[0].is_open(place):
            done = waiting.popleft()
            yield done.item, done.copies
        if standing >= most and not waiting:
            return
        passage = passage_of(item)
        group = _group_of(passage, place, waiting)
        if group is not None:
            group.copies.append(item)
            group.last = place
        elif standing < most:
            waiting.append(_Group(item, passage, place))
            standing += 1
    for group in waiting:
        yield group.item, group.copies


# --- source code: definitions first, tests and examples last


def code_in_order(best: Sequence[Fused], code: Mapping[str, ChunkContext], query: SearchQuery) -> Sequence[Fused]:
    """These places, which are the first `_WINDOW`, in a better order. Those that moved say why in `Fused.moved`."""
    if not code:
        return best
    names = _names(query.text)
    groups: dict[str | None, list[Fused]] = {_DEFINITION: [], _CONSTANT: [], None: [], _SET_ASIDE: []}
    for place in best:
        moved = _moved(place, code[place.chunk_id], query, names) if place.chunk_id in code else None
        groups[moved].append(place._replace(moved=moved))
    return [place for group in groups.values() for place in group]


def _moved(place: Fused, passage: ChunkContext, query: SearchQuery, names: set[str]) -> str | None:
    if re.search(_ASIDE, passage.doc_path, re.IGNORECASE):
        return None if _has_phrase(place, query) else _SET_ASIDE
    span = passage.spans[0]
    symbol = f".{span.symbol}" if isinstance(span, CodeSpan) and span.symbol else ""
    if any(symbol.endswith(f".{name}") for name in names):
        return _DEFINITION
    constants = "|".join(re.escape(name) for name in sorted(names) if re.search(_LOOKS_LIKE_CODE, name))
    return _CONSTANT if constants and re.search(_ASSIGNED.format(constants), passage.text, re.MULTILINE) else None


def _names(text: str) -> set[str]:
    """The names that a query asks for: what looks like code; any word if it is the only one, or if the query asks for
    a definition.
    """
    names = [name.replace("::", ".") for name in re.findall(_IDENTIFIER, text)]
    telling = [name for name in names if not is_stop_word(name)]
    any_word = len(telling) == 1 or re.search(_ASKS_FOR_DEFINITION, text, re.IGNORECASE)
    return {name for name in telling if any_word or re.search(_LOOKS_LIKE_CODE, name)}


def _has_phrase(place: Fused, query: SearchQuery) -> bool:
    exactness = place.lexical.exactness if place.lexical else None
    return exactness is not None and exactness >= Exactness.PHRASE and len(query.text.split()) > 1
