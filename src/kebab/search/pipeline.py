"""Search, step by step: read the request, ask the retriever, cut to thresholds and budget, say what the user must know."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from kebab.analysis.orders import reads_like_orders
from kebab.analysis.query_syntax import is_raw, parse
from kebab.config.settings import SearchSettings
from kebab.core.errors import ModelError, QueryError, StaleCursor, UsageError
from kebab.core.ports import Retriever
from kebab.core.query_tree import excludes, insists
from kebab.core.search import (
    FAR_AWAY,
    LONG_QUERY,
    MAX_QUERY_CHARS,
    SIMILAR_ONLY,
    Duplicates,
    Fusion,
    HitList,
    Match,
    Mode,
    Neighbour,
    Neighbours,
    Notice,
    SearchFilters,
    SearchHit,
    SearchQuery,
    SearchResponse,
    Sort,
)
from kebab.search.request import SearchRequest

if TYPE_CHECKING:
    from kebab.core.store_ports import ChunkReader

_WORDS_ONLY = Notice("words_only", "The query excludes words or is raw FTS5, so only words were compared.")
_THRESHOLD_UNUSED = Notice(
    "threshold_unused", "--threshold compares RRF scores, and there are none here; --min-score works in every mode."
)


class WordRetriever(Retriever, Protocol):
    def telling_words(self, text: str) -> Sequence[str]: ...
    def suggestions(self, query: SearchQuery) -> Sequence[str]: ...


class ComposedRetriever(Retriever, Protocol):
    def index_version(self, mode: Mode = "hybrid") -> str: ...


class NearRetriever(Protocol):
    def near(self, chunk_ids: Sequence[str], query: SearchQuery) -> HitList | None: ...


UNMATCHED = frozenset({"unknown_tag", "unknown_lang", "unknown_format"})
"""Codes of notices about filters that no document passes."""


class Retrievers(NamedTuple):
    """What can answer: words always, vectors when there are some."""

    lexical: WordRetriever
    hybrid: ComposedRetriever | None
    """Composes both sides and answers in every mode."""
    why_not: ModelError | None = None
    """Why there is no hybrid."""
    vector: NearRetriever | None = None
    """The side of hybrid that goes by meaning."""
    chunks: Callable[[], ChunkReader] | None = None
    """What reads the neighbours of hits."""
    passing: Callable[[SearchFilters], int] | None = None
    """How many documents pass filters."""

    def of(self, mode: Mode) -> Retriever:
        return self.lexical if self.hybrid is None or mode == "lexical" else self.hybrid

    def index_version(self, mode: Mode) -> str:
        """Of the side that answers in this mode."""
        return self.lexical.index_version() if self.hybrid is None else self.hybrid.index_version(mode)


def search(
    request: SearchRequest,
    settings: SearchSettings,
    retrievers: Retrievers | None,
    *,
    notices: Sequence[Notice] = (),
    unbuilt_version: str = "",
    bare: bool = False,
) -> SearchResponse:
    """`retrievers` is None for a knowledge base that does not exist yet: an empty corpus, said so in the notices, which
    would be of `unbuilt_version`. `bare`: hits with their whole text and no snippet.
    """
    started = time.perf_counter()
    said = list(notices)
    asked = request.query
    if len(asked) > MAX_QUERY_CHARS and not is_raw(asked):
        request = request._replace(query=asked[:MAX_QUERY_CHARS])
        said.append(LONG_QUERY)
    mode = cast("Mode", request.mode or "hybrid")
    blank = not request.query.strip(" \t\r\n'")  # '' is raw FTS5 without an expression
    if blank:
        said.append(Notice("empty_query", "The query is empty: there is nothing to search for."))
    if retrievers is None or blank:
        version = retrievers.index_version(mode) if retrievers else unbuilt_version
        return SearchResponse(
            query=asked,
            mode=mode,
            method=mode,
            hits=(),
            index_version=version,
            match=None,
            took_ms=0.0,
            notices=tuple(said),
            grouped=request.group,
        )
    query, hits, version = _answer(request, settings, retrievers, mode, said, bare=bare)
    said.extend(notice for notice in hits.notices if notice not in said)
    nothing = not hits or any(notice.code in (FAR_AWAY, SIMILAR_ONLY) for notice in hits.notices)
    if nothing and query.mode != "vector" and not query.offset and not query.type_ahead:
        said.extend(_did_you_mean(retrievers.lexical.suggestions(query)))
    unmatched = about_filters(query.filters, retrievers, said) if not hits and not query.offset else []
    if unmatched or (not hits and any(notice.code in UNMATCHED for notice in said)):
        # Which scripts were compared is beside the point then.
        said = [*(notice for notice in said if notice.code != "other_scripts"), *unmatched]
    kept = with_neighbours(_above_scores(hits, request, said), request, retrievers)
    packed = within_budget(kept, request.max_tokens)
    truncated = len(packed) < len(kept)
    taken = packed[-1].rank - query.offset if truncated else len(hits)
    by_score = all(hit.score >= after.score for hit, after in pairwise(hits))
    below_minimum = len(kept) < len(hits) and by_score  # then all that follows is below it too
    more = truncated or (hits.more and not below_minimum)
    return SearchResponse(
        query=asked,
        mode=mode,
        method=query.mode,
        hits=tuple(packed if request.highlight else (hit._replace(highlights=()) for hit in packed)),
        index_version=version,
        match=hits.match,
        took_ms=(time.perf_counter() - started) * 1000,
        notices=tuple(said),
        next_cursor=_cursor(query, request.match or settings.match, hits, version, query.offset + taken)
        if more and taken
        else None,
        truncated=truncated,
        explanation=_explanation(query, hits, kept, packed, request),
        grouped=request.group,
    )


def _answer(
    request: SearchRequest,
    settings: SearchSettings,
    retrievers: Retrievers,
    mode: Mode,
    said: list[Notice],
    *,
    bare: bool,
) -> tuple[SearchQuery, HitList, str]:
    """What the mode asks for; when hybrid cannot have its vectors, what the words give, and why."""
    used = _possible_mode(request.query, mode, retrievers, said)
    if used != "lexical":
        try:
            return _ask(request, settings, retrievers, used, bare=bare)
        except ModelError as error:
            if mode != "hybrid":
                raise
            said.append(_instead(error))
    return _ask(request, settings, retrievers, "lexical", bare=bare)


def _instead(error: ModelError) -> Notice:
    return Notice(error.code, f"These are lexical results: {error.message} {error.hint or ''}".strip())


def about_filters(filters: SearchFilters, retrievers: Retrievers, said: Sequence[Notice]) -> list[Notice]:
    """Whether it is for the filters that nothing was found, as far as that has not been said."""
    if not filters or retrievers.passing is None:
        return []
    from kebab.search.unmatched_filters import unmatched_filters

    codes = {notice.code for notice in said} & UNMATCHED
    return [notice for notice in unmatched_filters(filters, retrievers.passing) if notice.code not in codes]


def _did_you_mean(suggestions: Sequence[str]) -> list[Notice]:
    *others, last = suggestions or ("",)
    listed = f"{', '.join(others)} or {last}" if others else last
    return (
        [Notice("did_you_mean", f"Did you mean: {listed.removesuffix('?')}?", tuple(suggestions))]
        if suggestions
        else []
    )


def _ask(
    request: SearchRequest, settings: SearchSettings, retrievers: Retrievers, mode: Mode, *, bare: bool
) -> tuple[SearchQuery, HitList, str]:
    version = retrievers.index_version(mode)
    query = _query(request, settings, mode, version)._replace(bare=bare)
    return query, retrievers.of(mode).search(query), version


def _possible_mode(text: str, mode: Mode, retrievers: Retrievers, said: list[Notice]) -> Mode:
    if mode == "lexical":
        return mode
    if retrievers.why_not is not None:
        if mode == "vector":
            raise retrievers.why_not
        said.append(_instead(retrievers.why_not))
        return "lexical"
    if excludes(parse(text)):
        if mode == "vector":
            raise QueryError(
                "Meaning alone cannot exclude words or read FTS5 expressions.",
                hint="Leave out NOT and single quotes, or use --mode lexical.",
            )
        said.append(_WORDS_ONLY)
        return "lexical"
    return mode


def _query(request: SearchRequest, settings: SearchSettings, mode: Mode, index_version: str) -> SearchQuery:
    query = SearchQuery(
        text=request.query,
        mode=mode,
        k=request.k or settings.default_k,
        offset=request.offset,
        filters=request.filters(),
        match=cast("Match", request.match or settings.match),
        sort=cast("Sort", request.sort),
        per_doc=request.per_doc,
        duplicates=cast("Duplicates", request.duplicates or settings.duplicates),
        type_ahead=request.type_ahead,
        full_text=request.full_text,
        explain=request.explain,
        fusion=cast("Fusion", request.fusion or settings.hybrid_fusion) if mode == "hybrid" else None,
        min_score=request.min_score,
        threshold=request.threshold if mode == "hybrid" else None,
        insists=mode == "hybrid" and (request.match == "all" or insists(parse(request.query))),
    )
    if not request.cursor:
        return query
    resumed = _resumed(query, request.cursor, index_version)
    if request.offset:
        raise UsageError(
            "A cursor and an offset contradict each other.", hint="Keep one of them: a cursor knows its place."
        )
    return resumed


# --- cursors: where a list was left, bound to the list it belongs to


def _fingerprint(query: SearchQuery, index_version: str) -> str:
    shaped_by = [query.text, query.mode, query.fusion, query.sort, query.per_doc, query.duplicates, query.type_ahead]
    bound = [*shaped_by, query.filters._asdict(), index_version]
    return sha256(json.dumps(bound, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _cursor(query: SearchQuery, asked: str, hits: HitList, index_version: str, offset: int) -> str:
    """Match class and depth go along: the next page must come from the same list, which both of them shape."""
    return f"{_fingerprint(query, index_version)}.{asked}.{hits.match}.{hits.depth or 0}.{offset}"


def _resumed(query: SearchQuery, cursor: str, index_version: str) -> SearchQuery:
    try:
        of, asked, match, depth, offset = cursor.split(".")
        start, deep = int(offset), int(depth)
    except ValueError as error:
        raise StaleCursor("This is not a cursor of ours.", hint="Take next_cursor from the response before.") from error
    if (
        of != _fingerprint(query, index_version)
        or asked != query.match
        or not 0 <= start < 10**9
        or not 0 <= deep < 10**6
    ):
        raise StaleCursor(
            "This cursor belongs to another query, other filters or an older index.",
            hint="Run the search again without the cursor.",
        )
    return query._replace(
        offset=start, match=_pinned(match, query.match), keep_stop_words=asked == "all", depth=deep or None
    )


def _pinned(match: str, asked: Match) -> Match:
    return cast("Match", match) if match in ("all", "any") else asked


# --- cutting


def _above_scores(hits: HitList, request: SearchRequest, notices: list[Notice]) -> list[SearchHit]:
    threshold, least = request.threshold, request.min_score
    if threshold is not None and hits and hits[0].retrieval.rrf_score is None:
        notices.append(_THRESHOLD_UNUSED)
        threshold = None
    return [
        hit
        for hit in hits
        if (least is None or hit.score >= least)
        and (threshold is None or (hit.retrieval.rrf_score or 0.0) >= threshold)
    ]


def within_budget(hits: list[SearchHit], max_tokens: int | None) -> list[SearchHit]:
    """Whole hits up to the budget, and always the first one: an answer too long is better than none."""
    if max_tokens is None:
        return hits
    used = 0
    packed: list[SearchHit] = []
    for hit in hits:
        used += hit.tokens
        if packed and used > max_tokens:
            break
        packed.append(hit)
    return packed


def with_neighbours(hits: list[SearchHit], request: SearchRequest, retrievers: Retrievers) -> list[SearchHit]:
    if not request.neighbours or retrievers.chunks is None:
        return hits
    beside = retrievers.chunks().neighbours([hit.chunk_id for hit in hits], request.neighbours)
    return [
        hit._replace(neighbours=Neighbours(*(tuple(map(_flagged, side)) for side in beside[hit.chunk_id])))
        for hit in hits
    ]


def _flagged(neighbour: Neighbour) -> Neighbour:
    return neighbour._replace(suspicious=reads_like_orders(neighbour.text))


def _explanation(
    query: SearchQuery, hits: HitList, kept: list[SearchHit], packed: list[SearchHit], request: SearchRequest
) -> dict[str, Any] | None:
    if not request.explain:
        return None
    below = sum(hit.score < request.min_score for hit in hits) if request.min_score is not None else 0
    return {
        "fewer_than_asked": max(0, query.k - len(hits)),
        "removed_by_min_score": below,
        "removed_by_threshold": len(hits) - len(kept) - below,
        "removed_by_max_tokens": len(kept) - len(packed),
        **(hits.explanation or {}),  # a hybrid list has removed what is below by itself
    }
