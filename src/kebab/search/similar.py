"""Finds passages similar to a given one: by its stored vectors or, without vectors, by its key terms."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from math import log
from typing import TYPE_CHECKING, cast

from kebab.analysis.terms import content_words
from kebab.core.deadline import time_limit
from kebab.core.errors import ModelError, ModelMissing, UsageError
from kebab.core.notices import Notice, Says
from kebab.core.ports import Tokenizer
from kebab.core.query_tree import Bag, Phrase
from kebab.core.search import HitList, Mode, SearchFilters, SearchHit, SearchQuery, SearchResponse
from kebab.core.text import nfc
from kebab.search.listing import DEEPER, DEEPEST
from kebab.search.lookup import Passage, find_passage
from kebab.search.options import SearchRequest
from kebab.search.pipeline import (
    Retrievers,
    about_filters,
    add_freshness,
    checked,
    open_retrievers,
    with_neighbours,
    within_budget,
)

if TYPE_CHECKING:
    from kebab.core.store_ports import LexicalIndex
    from kebab.session import Session

_ABOUT_QUERIES = ("cursor", "match", "fusion", "sort", "threshold", "explain", "type_ahead", "duplicates")
"""Options of search that only make sense for typed queries."""
_SHOWN_WORDS = 5
MOST_WORDS = 20
"""The most key terms to search for; more do not find better passages."""
_MOST_WEIGHED = 200
"""How many of a document's most frequent words are weighed; each costs a count in the whole corpus."""


def similar(session: Session, request: SearchRequest, *, other_docs: bool = False) -> SearchResponse:
    """Finds passages similar to the one that `request.query` names, without that one.

    `other_docs`: also leaves out all other passages of its document.
    """
    _check(request)
    started = time.perf_counter()
    with time_limit(session.settings.search.timeout_s), session.existing() as reading:
        passage = find_passage(reading.catalog, request.query)
        request, notices = checked(session, request, reading)
        retrievers = open_retrievers(session, reading, with_vectors=request.mode != "lexical")
        query = _query(passage, request, request.k or session.settings.search.default_k, other_docs)
        method, hits = _answer(passage, request, query, retrievers, notices)
        notices.extend(hits.notices)
        above = [hit for hit in hits if request.min_score is None or hit.score >= request.min_score]
        kept = with_neighbours(above, request, reading)
        packed = within_budget(kept, request.max_tokens)
        if not packed:
            if not hits and not request.offset:
                notices += about_filters(request.filters(), reading, notices)
            notices.append(_nothing(method, hits, request, other_docs))
        response = SearchResponse(
            query=request.query,
            mode=cast("Mode", request.mode or "vector"),
            method=method,
            hits=tuple(packed if request.highlight else (hit._replace(highlights=()) for hit in packed)),
            index_version=retrievers.of(method).index_version(),
            match=hits.match,
            took_ms=(time.perf_counter() - started) * 1000,
            notices=tuple(notices),
            truncated=len(packed) < len(kept),
            grouped=request.group,
        )
        add_freshness(response, session, reading)
        return response


def _check(request: SearchRequest) -> None:
    """Raises UsageError for options that only make sense for typed queries, and for a missing passage."""
    if not request.query.strip():
        raise UsageError(
            "No passage is named.", hint="Name a chunk id, a path, or a citation such as notes/git.md#L10-L20."
        )
    unused = [name for name in _ABOUT_QUERIES if getattr(request, name) != SearchRequest._field_defaults[name]]
    if unused:
        raise UsageError(
            f"{unused[0]} is about a typed query, and a passage is none.",
            hint="Use k, offset, mode, per_doc, min_score, max_tokens, full_text, group, neighbours "
            "and the filters of search.",
        )
    if request.mode == "hybrid":
        raise UsageError(
            "Passages are compared by vectors or by words, not by both.", hint="Valid modes: vector, lexical."
        )


def _query(passage: Passage, request: SearchRequest, k: int, other_docs: bool) -> SearchQuery:
    filters = request.filters()
    if other_docs or len(passage.chunks) == passage.document.chunk_count:
        filters = filters._replace(exclude_docs=(passage.document.doc_id,))  # cheaper than leaving out many chunks
    return SearchQuery(
        "", k=k, offset=request.offset, filters=filters, per_doc=request.per_doc, full_text=request.full_text
    )


def _answer(
    passage: Passage, request: SearchRequest, query: SearchQuery, retrievers: Retrievers, notices: list[Notice]
) -> tuple[Mode, HitList]:
    """The similar passages and how they were found: by vectors or, if that fails, by words with a notice."""
    why_not: ModelError | None = None
    if request.mode != "lexical":
        try:
            return "vector", _page(lambda asked: _near(passage, asked, retrievers), passage, query)
        except ModelError as error:
            if request.mode == "vector":
                raise
            why_not = error
    words = key_terms(passage.text, retrievers.lexical.index)
    if why_not is not None:
        notices.append(_by_words_instead(words, why_not))
    by_words = query._replace(text=" ".join(words), match="any")
    return "lexical", _page(retrievers.lexical.search, passage, by_words) if words else HitList(match="any")


def _near(passage: Passage, query: SearchQuery, retrievers: Retrievers) -> HitList:
    if retrievers.vector is None:
        raise retrievers.why_not or ModelMissing("There are no vectors.", hint="Make them with: kb ingest")
    if not passage.chunks:
        raise ModelMissing(
            "No passage is indexed there, only text around passages.",
            hint=f"See where they are: kb inspect doc {passage.document.path}",
        )
    hits = retrievers.vector.near([chunk.chunk_id for chunk in passage.chunks], query)
    if hits is None:
        raise ModelMissing("This passage has no vector yet.", hint="Make it with: kb ingest")
    return hits


def _page(ask: Callable[[SearchQuery], HitList], passage: Passage, query: SearchQuery) -> HitList:
    """The requested page of similar passages, without the passage itself, and with ranks that do not count it."""
    own = set() if query.filters.exclude_docs else {chunk.chunk_id for chunk in passage.chunks}
    wanted = query.offset + query.k
    depth = wanted + len(own)
    while True:  # deeper, if `per_doc` removes too many hits
        hits = ask(query._replace(k=depth, offset=0, per_doc=None))
        others: list[SearchHit] = []
        of_document: dict[str, int] = {}
        for hit in hits:
            count = of_document[hit.doc_id] = of_document.get(hit.doc_id, 0) + (hit.chunk_id not in own)
            if hit.chunk_id not in own and (query.per_doc is None or count <= query.per_doc):
                others.append(hit)
        if len(others) >= wanted or not hits.more or depth >= DEEPEST:
            break
        depth *= DEEPER
    page = [_ranked(hit, rank) for rank, hit in enumerate(others[:wanted], start=1)]
    return HitList(page[query.offset :], match=hits.match, notices=hits.notices)


def _ranked(hit: SearchHit, rank: int) -> SearchHit:
    detail = hit.retrieval
    placed = detail._replace(vector_rank=rank) if detail.method == "vector" else detail._replace(lexical_rank=rank)
    return hit._replace(rank=rank, retrieval=placed)


def _by_words_instead(words: Sequence[str], why_not: ModelError) -> Notice:
    more = ", …" if len(words) > _SHOWN_WORDS else ""
    listed = f" ({', '.join(words[:_SHOWN_WORDS])}{more})" if words else ""
    return Says.KEY_TERMS_INSTEAD.notice(listed, f"{why_not.message} {why_not.hint or ''}".strip(), code=why_not.code)


def _nothing(method: Mode, hits: HitList, request: SearchRequest, other_docs: bool) -> Notice:
    if hits:
        return Says.ALL_BELOW_SCORE.notice()
    if request.offset:
        return Says.NO_MORE_SIMILAR.notice()
    where = " of another document" if other_docs else ""
    filtered = " that passes the filters" if request.filters() else ""
    nothing = Says.NOTHING_SIMILAR if method == "vector" else Says.NO_KEY_TERMS
    return nothing.notice(f"{where}{filtered}")


def key_terms(text: str, index: LexicalIndex) -> list[str]:
    """The most typical words of a text, best first: frequent in it, rare elsewhere. Words that only one passage has are
    left out, because they find no other passage.
    """
    frequencies = _frequencies(nfc(text), index.tokenizer)
    total = index.size()
    weighed = []
    for word, frequency in sorted(frequencies.items(), key=lambda item: (-item[1], item[0]))[:_MOST_WEIGHED]:
        passages = index.count(Bag((Phrase(word),)), match="all", drop_stop_words=False, filters=SearchFilters())
        if passages > 1:
            weighed.append((-(1 + log(frequency)) * log(1 + total / passages), word))
    return [word for _, word in sorted(weighed)[:MOST_WORDS]]


def _frequencies(text: str, tokenizer: Tokenizer) -> dict[str, int]:
    """How often each word occurs. Forms of the same word are counted together, under the form that occurs first."""
    shown: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for word in content_words(text, tokenizer):
        counts[shown.setdefault(word.key, word.text)] += 1
    return counts
