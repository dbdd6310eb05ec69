"""Runs a search: checks the request, asks a retriever, applies score and token limits, adds notices."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kebab.analysis.orders import reads_like_orders
from kebab.config.settings import SearchSettings, Settings
from kebab.core.citations import Citation
from kebab.core.deadline import time_limit
from kebab.core.errors import ModelError, ModelMismatch, ModelMissing, QueryError, StaleCursor, UsageError, VectorsOff
from kebab.core.notices import UNKNOWN_VALUES, Notice, Says
from kebab.core.ports import ColumnWeights, EmbeddingModels, IndexedFile, Retriever, VectorCoverage
from kebab.core.query_tree import excludes, insists, is_raw, parse
from kebab.core.search import (
    MAX_QUERY_CHARS,
    Duplicates,
    Fusion,
    HitList,
    Match,
    Mode,
    Neighbours,
    SearchFilters,
    SearchHit,
    SearchQuery,
    SearchResponse,
    Sort,
)
from kebab.core.text import content_hash
from kebab.search.lexical import LexicalRetriever
from kebab.search.options import SearchRequest
from kebab.search.reranking import Reranking

if TYPE_CHECKING:
    from kebab.config.settings import IngestSettings, Settings
    from kebab.core.records import SourceRecord
    from kebab.core.store_ports import LexicalIndex, Reading
    from kebab.search.hybrid import HybridRetriever
    from kebab.search.vector import VectorRetriever
    from kebab.session import Session


_MISSING_COUNTS = 32
"""While vectors are missing, their list is trusted by this power of the share that is there: 0.72 at 99 %, 0.03 at
90 %.
"""


def search(session: Session, request: SearchRequest, *, without_snippets: bool = False) -> SearchResponse:
    """Searches, and returns the response. A library in the request must exist."""
    with time_limit(session.settings.search.timeout_s), session.reading() as reading:
        if reading is not None:
            return search_in(reading, session, request, without_snippets=without_snippets)
    if request.mode == "vector":
        raise _nothing_ingested()
    return _no_hits(request, session.store.index_version(), [Says.EMPTY_CORPUS.notice()])


def search_in(
    reading: Reading, session: Session, request: SearchRequest, *, without_snippets: bool = False
) -> SearchResponse:
    """Searches one reading of the store, within the time limit of the caller."""
    started = time.perf_counter()
    settings = session.settings.search
    request, notices = checked(session, request, reading)
    retrievers = open_retrievers(session, reading, with_vectors=request.mode != "lexical")
    asked = request.query
    if len(asked) > MAX_QUERY_CHARS and not is_raw(asked):
        request = request._replace(query=asked[:MAX_QUERY_CHARS])
        notices.append(Says.LONG_QUERY.notice())
    if not request.query.strip(" \t\r\n'"):  # '' is raw FTS5 without an expression
        return _no_hits(request, retrievers.of(_mode(request)).index_version(), notices)
    query, hits, version = _answer(request, settings, retrievers, notices, without_snippets=without_snippets)
    notices = _with_reasons(query, hits, reading, retrievers, notices)
    kept = with_neighbours(_above_scores(hits, request, notices), request, reading)
    packed = within_budget(kept, request.max_tokens)
    truncated = len(packed) < len(kept)
    taken = packed[-1].rank - query.offset if truncated else len(hits)
    more = truncated or hits.more
    cursor = f"{_fingerprint(query, version)}.{query.offset + taken}"
    if request.library is not None and not without_snippets:
        packed = [_cited_within(hit, request.library) for hit in packed]
    response = SearchResponse(
        query=asked,
        mode=_mode(request),
        method=query.mode,
        hits=tuple(packed if request.highlight else (hit._replace(highlights=()) for hit in packed)),
        index_version=version,
        match=hits.match,
        took_ms=(time.perf_counter() - started) * 1000,
        notices=tuple(notices),
        next_cursor=cursor if more and taken else None,
        truncated=truncated,
        explanation=_explanation(query, hits, kept, packed, request) if request.explain else None,
        grouped=request.group,
    )
    add_freshness(response, session, reading)
    return response


def _mode(request: SearchRequest) -> Mode:
    return cast("Mode", request.mode or "hybrid")


def _no_hits(request: SearchRequest, index_version: str, notices: Sequence[Notice]) -> SearchResponse:
    blank = [] if request.query.strip(" \t\r\n'") else [Says.EMPTY_QUERY.notice()]
    return SearchResponse(
        query=request.query,
        mode=_mode(request),
        method=_mode(request),
        hits=(),
        index_version=index_version,
        match=None,
        took_ms=0.0,
        notices=(*notices, *blank),
        grouped=request.group,
    )


def checked(session: Session, request: SearchRequest, reading: Reading) -> tuple[SearchRequest, list[Notice]]:
    """The request with checked filters, and the notices about the store and about unknown filter values."""
    is_stale = reading.index_version() != session.store.index_version()
    notices = [Says.STALE_INDEX.notice()] if is_stale else []
    notices += [Says.READ_ONLY.notice()] if reading.is_immutable else []
    origin = reading.migrating_from()
    notices += [Says.INCOMPLETE_MIGRATION.notice(origin, session.store.address)] if origin is not None else []
    if request.source or request.doc or request.tags_any or request.tags_all or request.lang or request.format:
        from kebab.search.filters import checked_filters  # imported here, because most searches need no catalog

        request, about_values = checked_filters(request, reading.catalog)
        notices += about_values
    return request, notices


# --- retrievers


class Retrievers(NamedTuple):
    """The lexical retriever and, if vectors are wanted and exist, the vector and the hybrid one."""

    lexical: LexicalRetriever
    vector: VectorRetriever | None = None
    hybrid: HybridRetriever | None = None
    """Combines the lexical and the vector retriever, and searches in every mode."""
    why_not: ModelError | None = None
    """The reason why there is no vector retriever, or None."""

    def of(self, mode: Mode) -> Retriever:
        if self.hybrid is None or self.vector is None or mode == "lexical":
            return self.lexical
        return self.vector if mode == "vector" else self.hybrid


def open_retrievers(session: Session, reading: Reading, *, with_vectors: bool = True) -> Retrievers:
    """The retrievers for one reading of the store, configured by the settings."""
    settings = session.settings
    chars = settings.search.snippet_chars
    index, chunks = lexical_index(reading, settings), reading.chunks()
    version = reading.index_version()
    reranking = Reranking(lambda: session.reranker, settings.search.rerank_seconds)
    lexical = LexicalRetriever(index, chunks, version, snippet_chars=chars)
    lexical.reranking = reranking
    if not with_vectors:
        return Retrievers(lexical)
    from kebab.search.hybrid import HybridRetriever
    from kebab.search.vector import VectorRetriever

    try:
        models = session.models
    except ModelError as error:  # lexical search still works
        return Retrievers(lexical, why_not=error)
    if models is None:
        return Retrievers(lexical, why_not=VectorsOff())
    coverage = reading.vector_coverage(models)
    before = reading.vector_coverage(models.earlier) if models.earlier and coverage.chunks is not None else None
    changed: list[Notice] = []
    if models.earlier and before and before.any and coverage.is_behind(before):
        changed = [Says.EARLIER_MODEL.notice(models.earlier.embedders[-1].name, models.embedders[-1].name)]
        models, coverage = models.earlier, before
    is_incomplete = reading.migrating_from() is not None  # another notice already explains this
    if not coverage.any:
        return Retrievers(lexical, why_not=_no_vectors(coverage, models, is_incomplete=is_incomplete))
    notices = [] if is_incomplete else changed or _partial_vectors(coverage)
    share = 1 - coverage.missing / coverage.chunks if coverage.chunks else 1.0
    vector = VectorRetriever(
        reading.vectors(),
        models,
        chunks,
        coverage.index_version,
        index=index,
        snippet_chars=chars,
        notices=notices,
        trust=share**_MISSING_COUNTS,
    )
    hybrid = HybridRetriever(settings.search, lexical, vector)
    vector.reranking = hybrid.reranking = reranking
    return Retrievers(lexical, vector, hybrid)


def lexical_index(reading: Reading, settings: Settings) -> LexicalIndex:
    chosen = settings.search
    weights = ColumnWeights(chosen.title_weight, chosen.heading_weight, chosen.text_weight, chosen.cjk_weight)
    return reading.lexical_index(weights)


def _nothing_ingested() -> ModelError:
    return ModelMissing("Nothing has been ingested yet.", hint="Begin with: kb ingest FOLDER")


def _no_vectors(coverage: VectorCoverage, models: EmbeddingModels, *, is_incomplete: bool) -> ModelError:
    if is_incomplete:
        return ModelMissing(
            "The vectors have not come here yet.", hint="They come with the rest, when the migration goes on."
        )
    if coverage.chunks == 0:
        return _nothing_ingested()
    if not coverage.other_models:
        return ModelMissing("There are no vectors yet.", hint="Make them with: kb ingest")
    names = [embedder.name for embedder in models.embedders]
    made = [model.partition("@")[0] for model in coverage.other_models]
    by = f"The vectors here were made by {', '.join(made)}"
    happened = (
        f"{by} in another version or with other settings"
        if set(made) <= set(names)
        else f"{by}, and embedding.model stands for {', '.join(names)}"
    )
    return ModelMismatch(f"{happened}.", hint="Make them anew with: kb index --rebuild-vectors")


def _partial_vectors(coverage: VectorCoverage) -> list[Notice]:
    if coverage.chunks is None:
        return []
    if not coverage.missing:
        return [Says.UNFINISHED_VECTORS.notice()]
    if coverage.seconds_left is not None:
        share, minutes = 100 * (coverage.embedded or 0) // coverage.chunks, max(1, round(coverage.seconds_left / 60))
        return [Says.VECTORS_COMING.notice(share, minutes)]
    return [Says.PARTIAL_VECTORS.notice(coverage.embedded, coverage.chunks)]


# --- asking


def _answer(
    request: SearchRequest,
    settings: SearchSettings,
    retrievers: Retrievers,
    notices: list[Notice],
    *,
    without_snippets: bool,
) -> tuple[SearchQuery, HitList, str]:
    """The query, its hits and the index version. If a model fails in hybrid mode, searches by words, with a notice."""

    def answer(mode: Mode) -> tuple[SearchQuery, HitList, str]:
        version = retrievers.of(mode).index_version()
        query = _query(request, settings, mode, version)._replace(without_snippets=without_snippets)
        return query, retrievers.of(mode).search(query), version

    mode = _possible_mode(request, retrievers, notices)
    try:
        query, hits, version = answer(mode)
    except ModelError as error:
        if mode != "hybrid":
            raise
        notices.append(_lexical_instead(error))
        query, hits, version = answer("lexical")
    notices.extend(notice for notice in hits.notices if notice not in notices)
    return query, hits, version


def _possible_mode(request: SearchRequest, retrievers: Retrievers, notices: list[Notice]) -> Mode:
    mode = _mode(request)
    if mode == "lexical":
        return mode
    if retrievers.why_not is not None:
        if mode == "vector":
            raise retrievers.why_not
        notices.append(_lexical_instead(retrievers.why_not))
        return "lexical"
    if excludes(parse(request.query)):
        if mode == "vector":
            raise QueryError(
                "Meaning alone cannot exclude words or read FTS5 expressions.",
                hint="Leave out NOT and single quotes, or use --mode lexical.",
            )
        notices.append(Says.WORDS_ONLY.notice())
        return "lexical"
    return mode


def _lexical_instead(error: ModelError) -> Notice:
    return Says.LEXICAL_INSTEAD.notice(f"{error.message} {error.hint or ''}".strip(), code=error.code)


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
        rerank=settings.rerank if request.rerank is None else request.rerank,
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


# --- cursors: positions in a list of hits


def _fingerprint(query: SearchQuery, index_version: str) -> str:
    shaped_by = [query.text, query.mode, query.match, query.fusion, query.sort, query.per_doc, query.duplicates]
    bound = [*shaped_by, query.rerank, query.type_ahead, query.filters._asdict(), index_version]
    return content_hash(json.dumps(bound, sort_keys=True))[:16]


def _resumed(query: SearchQuery, cursor: str, index_version: str) -> SearchQuery:
    try:
        of, offset = cursor.split(".")
        start = int(offset)
    except ValueError as error:
        raise StaleCursor("This is not a cursor of ours.", hint="Take next_cursor from the response before.") from error
    if of != _fingerprint(query, index_version) or not 0 <= start < 10**9:
        raise StaleCursor(
            "This cursor belongs to another query, other filters or an older index.",
            hint="Run the search again without the cursor.",
        )
    return query._replace(offset=start)


# --- cutting, and notices


def _above_scores(hits: HitList, request: SearchRequest, notices: list[Notice]) -> list[SearchHit]:
    threshold, least = request.threshold, request.min_score
    if threshold is not None and hits and hits[0].retrieval.rrf_score is None:
        notices.append(Says.THRESHOLD_UNUSED.notice())
        threshold = None
    return [
        hit
        for hit in hits
        if (least is None or hit.score >= least)
        and (threshold is None or (hit.retrieval.rrf_score or 0.0) >= threshold)
    ]


def _with_reasons(
    query: SearchQuery, hits: HitList, reading: Reading, retrievers: Retrievers, notices: list[Notice]
) -> list[Notice]:
    """The notices, with reasons if the first page has no hits or no word matches: misspelt words, or the filters."""
    if query.offset:
        return notices
    if not hits and retrievers.lexical.index.size() == 0 and not Says.INCOMPLETE_MIGRATION.is_in(notices):
        return [Says.EMPTY_CORPUS.notice()]
    no_words = not hits or Says.FAR_AWAY.is_in(hits.notices) or Says.SIMILAR_ONLY.is_in(hits.notices)
    if no_words and not hits.below_scores and query.mode != "vector" and not query.type_ahead:
        suggestions = retrievers.lexical.suggestions(query)
        notices += [_did_you_mean(suggestions)] if suggestions else []
    unmatched = [] if hits else about_filters(query.filters, reading, notices)
    if unmatched or (not hits and any(notice.code in UNKNOWN_VALUES for notice in notices)):
        # The filters are the reason, so the note on scripts would mislead.
        return [*(notice for notice in notices if notice.code != Says.OTHER_SCRIPTS.code), *unmatched]
    return notices


def about_filters(filters: SearchFilters, reading: Reading, notices: Sequence[Notice]) -> list[Notice]:
    """Notices about filters that no document passes, except those that `notices` already has."""
    if not filters:
        return []
    from kebab.search.filters import unmatched_filters

    said = {notice.code for notice in notices} & UNKNOWN_VALUES
    unmatched = unmatched_filters(filters, reading.catalog.count_documents)
    return [notice for notice in unmatched if notice.code not in said]


def _did_you_mean(suggestions: Sequence[str]) -> Notice:
    *others, last = suggestions
    listed = f"{', '.join(others)} or {last}" if others else last
    return Says.DID_YOU_MEAN.notice(listed.removesuffix("?"), suggestions=tuple(suggestions))


def within_budget(hits: list[SearchHit], max_tokens: int | None) -> list[SearchHit]:
    """The first hits whose tokens together fit `max_tokens`, but at least one hit."""
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


def with_neighbours(hits: list[SearchHit], request: SearchRequest, reading: Reading) -> list[SearchHit]:
    if not request.neighbours:
        return hits
    beside = reading.chunks().neighbours([hit.chunk_id for hit in hits], request.neighbours)
    flagged = {
        chunk_id: Neighbours(
            *(tuple(one._replace(suspicious=reads_like_orders(one.text)) for one in side) for side in sides)
        )
        for chunk_id, sides in beside.items()
    }
    return [hit._replace(neighbours=flagged[hit.chunk_id]) for hit in hits]


def _cited_within(hit: SearchHit, library: str) -> SearchHit:
    """The hit with its library's name in all citations: the path alone may also exist in a note or another version."""

    def within(citation: Citation) -> Citation:
        return citation._replace(path=f"{library}:{citation.path}")

    neighbours = hit.neighbours
    if neighbours is not None:
        neighbours = Neighbours(
            *(tuple(one._replace(citation=within(one.citation)) for one in side) for side in neighbours)
        )
    duplicates = tuple(copy._replace(citation=within(copy.citation)) for copy in hit.duplicates)
    return hit._replace(citation=within(hit.citation), duplicates=duplicates, neighbours=neighbours)


def _explanation(
    query: SearchQuery, hits: HitList, kept: list[SearchHit], packed: list[SearchHit], request: SearchRequest
) -> dict[str, Any]:
    below = sum(hit.score < request.min_score for hit in hits) if request.min_score is not None else 0
    return {
        "fewer_than_asked": max(0, query.k - len(hits)),
        "removed_by_min_score": below,
        "removed_by_threshold": len(hits) - len(kept) - below,
        "removed_by_max_tokens": len(kept) - len(packed),
        **(hits.explanation or {}),  # a hybrid list has its own counts of removed hits, which replace these
    }


# --- freshness: whether the index is up to date, judged by times and sizes of files. A hit is stale if its file was
# changed or deleted after indexing. Files are pending if they are changed, deleted or new


def add_freshness(response: SearchResponse, session: Session, reading: Reading) -> None:
    """Marks stale hits and adds a notice about pending files, if the settings say so."""
    settings = session.settings
    if settings.search.freshness == "off":
        return
    if response.hits:
        stale = {file.doc_id for file in reading.files({hit.doc_id for hit in response.hits}) if is_stale(file)}
        response.hits = tuple(hit._replace(stale=True) if hit.doc_id in stale else hit for hit in response.hits)
    if settings.search.freshness == "check":
        own_files = session.store.own_files()
        response.notices += pending_notice(reading.files(), reading.catalog.sources(), settings, own_files)


def is_stale(file: IndexedFile) -> bool:
    try:
        status = os.stat(file.place)  # noqa: PTH116 - faster than Path.stat for thousands of files
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False  # an unreadable file need not be changed
    if status.st_size != file.size:
        return True
    if file.mtime_ns is not None:
        return status.st_mtime_ns != file.mtime_ns
    return status.st_mtime > _seconds(file.indexed_at) + 1


def pending_notice(
    files: Sequence[IndexedFile], sources: Sequence[SourceRecord], settings: Settings, own_files: Iterable[Path]
) -> tuple[Notice, ...]:
    """A notice with the number of pending files, if any; it says "at least" if the time limit ended the count."""
    until = time.perf_counter() + settings.search.freshness_ms / 1000
    pending, complete = 0, True
    for number, file in enumerate(files):
        if number % 64 == 0 and time.perf_counter() > until:
            complete = False
            break
        pending += is_stale(file)
    if complete:
        found = _new_files(files, sources, settings.ingest, {str(file) for file in own_files}, until)
        pending, complete = pending + found[0], found[1]
    if not pending:
        return ()
    count = f"{pending} file{'s' if pending != 1 else ''}" + ("" if complete else " at least")
    return (Says.PENDING.notice(count),)


def _new_files(
    files: Sequence[IndexedFile],
    sources: Sequence[SourceRecord],
    settings: IngestSettings,
    own_files: set[str],
    until: float,
) -> tuple[int, bool]:
    from kebab.sources.folder import KnownFolder, count_new_files

    roots = {source.root for source in sources if source.root is not None}
    paths: dict[str, list[str]] = {root: [] for root in roots}
    for file in files:
        paths[file.root].append(file.path)
    count = 0
    for source in sources:
        if source.kind != "folder" or source.root is None or source.ingested_at is None:
            continue
        since = _seconds(source.ingested_at) + 1  # the stored time has whole seconds
        folder = KnownFolder(Path(source.root), paths[source.root], since, own_files | roots - {source.root})
        found = count_new_files(folder, settings, until)
        count += found.number
        if not found.complete:
            return count, False
    return count, True


def _seconds(moment: str) -> float:
    from datetime import UTC, datetime  # most searches need no date

    try:
        return datetime.fromisoformat(moment.removesuffix("Z")).replace(tzinfo=UTC).timestamp()
    except ValueError:  # a damaged record: the time is unknown
        return 0.0
