"""Search, step by step: read the request, ask the retriever, cut to thresholds and budget, say what the user must know."""

from __future__ import annotations

import json
import time
from hashlib import sha256
from typing import Any, cast

from kebab.config.settings import SearchSettings
from kebab.core.errors import ModelMissing, StaleCursor
from kebab.core.ports import Retriever
from kebab.core.search import HitList, Match, Mode, Notice, SearchHit, SearchQuery, SearchResponse, Sort
from kebab.core.text import estimate_tokens
from kebab.pipelines.search_request import SearchRequest


def search(
    request: SearchRequest,
    settings: SearchSettings,
    retriever: Retriever | None,
    *,
    index_version: str,
    notices: list[Notice] | None = None,
) -> SearchResponse:
    """`retriever` is None for a knowledge base that does not exist yet: an empty corpus, said so in the notices."""
    started = time.perf_counter()
    notices = list(notices or ())
    mode = cast("Mode", request.mode or "hybrid")
    if mode == "vector":
        raise ModelMissing("This knowledge base has no vectors.", hint="Search with --mode lexical.")
    if mode == "hybrid":
        notices.append(Notice("no_vectors", "There are no vectors yet: these are lexical results."))
    query = _query(request, settings, index_version)
    hits = HitList() if retriever is None or not request.query.strip() else retriever.search(query)
    if not request.query.strip():
        notices.append(Notice("empty_query", "The query is empty: there is nothing to search for."))
    notices.extend(hits.notices)
    kept = _above_scores(hits, request, notices)
    packed = _within_budget(kept, request)
    truncated = len(packed) < len(kept)
    taken = packed[-1].rank - query.offset if truncated else len(hits)
    below_minimum = len(kept) < len(hits) and request.sort == "relevance"  # then all that follows is below it too
    more = truncated or (hits.more and not below_minimum)
    return SearchResponse(
        query=request.query,
        mode=mode,
        method="lexical",
        hits=tuple(packed if request.highlight else (hit._replace(highlights=()) for hit in packed)),
        index_version=index_version,
        match=hits.match,
        took_ms=(time.perf_counter() - started) * 1000,
        notices=tuple(notices),
        next_cursor=_cursor(query, request.match or settings.match, hits.match, index_version, query.offset + taken)
        if more and taken
        else None,
        truncated=truncated,
        explanation=_explanation(hits, kept, packed, request),
    )


def _query(request: SearchRequest, settings: SearchSettings, index_version: str) -> SearchQuery:
    query = SearchQuery(
        text=request.query,
        mode="lexical",
        k=request.k or settings.default_k,
        offset=request.offset,
        filters=request.filters(),
        match=cast("Match", request.match or settings.match),
        sort=cast("Sort", request.sort),
        per_doc=request.per_doc,
        type_ahead=request.type_ahead,
        full_text=request.full_text,
        explain=request.explain,
    )
    return _resumed(query, request.cursor, index_version) if request.cursor else query


# --- cursors: where a list was left, bound to the list it belongs to


def _fingerprint(query: SearchQuery, index_version: str) -> str:
    bound = [query.text, query.mode, query.sort, query.per_doc, query.type_ahead, query.filters._asdict(), index_version]
    return sha256(json.dumps(bound, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _cursor(query: SearchQuery, asked: str, match: str | None, index_version: str, offset: int) -> str:
    """The match class goes along: the next page must come from the same list, even if `auto` would now choose another."""
    return f"{_fingerprint(query, index_version)}.{asked}.{match}.{offset}"


def _resumed(query: SearchQuery, cursor: str, index_version: str) -> SearchQuery:
    try:
        of, asked, match, offset = cursor.split(".")
        start = int(offset)
    except ValueError as error:
        raise StaleCursor("This is not a cursor of ours.", hint="Take next_cursor from the response before.") from error
    if of != _fingerprint(query, index_version) or asked != query.match or not 0 <= start < 10**9:
        raise StaleCursor(
            "This cursor belongs to another query, other filters or an older index.", hint="Run the search again without --cursor."
        )
    return query._replace(offset=start, match=_pinned(match, query.match), keep_stop_words=asked == "all")


def _pinned(match: str, asked: Match) -> Match:
    return cast("Match", match) if match in ("all", "any") else asked


# --- cutting


def _above_scores(hits: HitList, request: SearchRequest, notices: list[Notice]) -> list[SearchHit]:
    if request.threshold is not None:
        notices.append(
            Notice(
                "threshold_unused",
                "--threshold compares RRF scores, and there are none here; --min-score works in every mode.",
            )
        )
    least = request.min_score
    return [hit for hit in hits if least is None or hit.score >= least]


def _within_budget(hits: list[SearchHit], request: SearchRequest) -> list[SearchHit]:
    """Whole hits up to the budget, and always the first one: an answer too long is better than none."""
    if request.max_tokens is None:
        return hits
    used = 0
    packed: list[SearchHit] = []
    for hit in hits:
        used += estimate_tokens(hit.text)
        if packed and used > request.max_tokens:
            break
        packed.append(hit)
    return packed


def _explanation(hits: HitList, kept: list[SearchHit], packed: list[SearchHit], request: SearchRequest) -> dict[str, Any] | None:
    if not request.explain:
        return None
    return {
        **(hits.explanation or {}),
        "removed_by_min_score": len(hits) - len(kept),
        "removed_by_max_tokens": len(kept) - len(packed),
    }
