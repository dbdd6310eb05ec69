"""Runs the queries of a golden set against a knowledge base, grades the hits, and makes an eval_report.v1.

A report depends only on the set, the configuration and the index: equal runs give equal bytes. Timings are the
exception, and are taken on request only.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from kebab._version import __version__
from kebab.analysis.language import language_of
from kebab.config.settings import Settings
from kebab.core.answers import Answer
from kebab.core.citations import Citation, LineSpan, PageSpan, parse
from kebab.core.errors import Ambiguous, GoldenSetError, NotFound, QueryError
from kebab.core.records import DocumentRecord
from kebab.core.search import Duplicate, SearchHit, SearchResponse
from kebab.core.text import nfc
from kebab.evaluation import metrics
from kebab.evaluation.files import GoldenQuery, GoldenSet, file_stem, listed
from kebab.evaluation.metrics import Lines, rounded
from kebab.knowledge_base import KnowledgeBase
from kebab.search.options import FILTERS, SearchRequest
from kebab.wire import evaluation as wire
from kebab.wire import view

_UNKNOWN = "Correct them (see: kb list docs), ingest what is missing, or add --skip-unknown to count these as missed."
_UNKNOWN_IN_COLLECTION = (
    "Add --ingest, if the collection is not indexed yet. What its judgements name and its corpus.jsonl lacks counts as "
    "missed with --skip-unknown."
)


class Expected(NamedTuple):
    """One thing that a query should find."""

    name: str
    kind: Literal["doc", "chunk", "span"]
    grade: int
    unit: str | None
    """The id of a document, page or chunk that hits are compared with; None if it is not in the index."""
    doc_id: str | None
    lines: Lines | None = None
    """The lines or the page of a span."""


class Judgement(NamedTuple):
    """A golden query, with the things it expects looked up in the index."""

    golden: GoldenQuery
    ranked_by: Literal["doc", "page", "chunk"]
    expected: tuple[Expected, ...]
    types: tuple[str, ...]
    """The types of the documents that the query should find."""

    @property
    def grades(self) -> dict[str, int]:
        """Grades by unit. A thing that is not in the index gets a unit of its own, so that it counts as missed."""
        return {thing.unit or f"?{thing.name}": thing.grade for thing in self.expected if thing.kind != "span"}

    @property
    def spans(self) -> tuple[Lines, ...]:
        return tuple(thing.lines for thing in self.expected if thing.lines is not None)

    def units_of(self, hit: SearchHit) -> list[str]:
        """The unit of the hit, then those of its duplicates."""
        return [self._unit(hit), *map(self._unit, hit.duplicates)]

    def gains(self, hits: Iterable[SearchHit]) -> list[int]:
        """The grades of hits in order of rank; each unit counts once, at its first rank. A duplicate of a hit counts
        right after it if it is expected, else not at all.
        """
        grades, met, gains = self.grades, set[str](), list[int]()
        for hit in hits:
            own, *copies = self.units_of(hit)
            for unit in (own, *(copy for copy in copies if copy in grades)):
                if unit not in met:
                    met.add(unit)
                    gains.append(grades.get(unit, 0))
        return gains

    def _unit(self, hit: SearchHit | Duplicate) -> str:
        if self.ranked_by == "chunk":
            return hit.chunk_id
        return _page_unit(hit.doc_id, hit.citation.span) if self.ranked_by == "page" else hit.doc_id


def _page_unit(doc_id: str, span: object) -> str:
    return f"{doc_id}#page={span.page}" if isinstance(span, PageSpan) else doc_id


def lines_of(doc_id: str, citation: Citation) -> Lines | None:
    """The lines or the page that a citation covers; None if it has neither."""
    if isinstance(citation.span, PageSpan):
        return Lines(doc_id, citation.span.page, citation.span.page, page=True)
    return Lines(doc_id, *citation.lines) if citation.lines is not None else None


def judge(
    golden: GoldenSet, kb: KnowledgeBase, documents: Sequence[DocumentRecord], *, skip_unknown: bool
) -> tuple[list[Judgement], list[str]]:
    """The judgements in the order of the golden set, and what it names that is not indexed, which raises NotFound
    unless `skip_unknown`.
    """
    names = _Names(kb, documents)
    judgements = [_judgement(query, names) for query in golden.queries]
    things = [thing for judgement in judgements for thing in judgement.expected]
    unknown = list(dict.fromkeys(thing.name for thing in things if thing.doc_id is None))
    if unknown and not skip_unknown:
        message = f"{golden.name} expects what is not in the index, {len(unknown):,} in all: {listed(unknown)}."
        raise NotFound(message, hint=_UNKNOWN_IN_COLLECTION if golden.kind == "beir" else _UNKNOWN)
    return judgements, unknown


class _Names:
    """Finds documents by id, path, SOURCE:path, or path without extension."""

    def __init__(self, kb: KnowledgeBase, documents: Sequence[DocumentRecord]) -> None:
        self._kb = kb
        self._by_name: dict[str, list[DocumentRecord]] = {}
        self._by_stem: dict[str, list[DocumentRecord]] = {}
        for record in documents:
            for name in (record.doc_id, record.path, f"{record.source}:{record.path}"):
                self._by_name.setdefault(name, []).append(record)
            self._by_stem.setdefault(record.path.rpartition(".")[0] or record.path, []).append(record)
        self._pages: dict[str, set[int]] = {}

    def has_page(self, record: DocumentRecord, page: int) -> bool:
        """Whether the document has a passage on this page."""
        if record.doc_id not in self._pages:
            chunks = self._kb.document(record.doc_id)[1]
            spans = [span for chunk in chunks for span in chunk.spans]
            self._pages[record.doc_id] = {span.page for span in spans if isinstance(span, PageSpan)}
        return page in self._pages[record.doc_id]

    def document(self, name: str) -> DocumentRecord | None:
        """The document, or None. If several have this path, the error names them."""
        name = nfc(name)
        found = self._by_name.get(name) or self._by_stem.get(name) or self._by_stem.get(file_stem(name)) or []
        if len(found) > 1:
            both = ", ".join(f"{record.source}:{record.path}" for record in found)
            hint = "Write it as SOURCE:path."
            raise Ambiguous(f"{name} is expected and fits {len(found)} documents: {both}.", hint=hint)
        return found[0] if found else None

    def chunk(self, name: str) -> tuple[str, DocumentRecord | None] | None:
        try:
            found = self._kb.chunk(name)
        except NotFound:
            return None
        return found.chunk_id, self.document(found.doc_id)


def _judgement(query: GoldenQuery, names: _Names) -> Judgement:
    spans = [_span(written, names) for written in query.expected_spans]
    docs = dict(query.expected_docs)
    if not docs and not query.expected_chunks:
        docs = {parse(written)[0]: 1 for written in query.expected_spans}
    by_page = False
    expected: list[Expected] = []
    types: dict[str, None] = {}
    for name, grade in docs.items():
        record, span = names.document(name), None
        if record is None:
            path, span = parse(name)
            record = names.document(path) if isinstance(span, PageSpan) else None
            record = record if record and isinstance(span, PageSpan) and names.has_page(record, span.page) else None
        by_page = by_page or (record is not None and span is not None)
        types |= {record.doc_type: None} if record else {}
        expected.append(
            Expected(name, "doc", grade, record and _page_unit(record.doc_id, span), record and record.doc_id)
        )
    for name in query.expected_chunks:
        chunk_id, record = names.chunk(name) or (None, None)
        types |= {record.doc_type: None} if record else {}
        expected.append(Expected(name, "chunk", 1, chunk_id, record and record.doc_id))
    if query.expected_chunks:  # chunks decide the ranking; documents that are not in the index stay, to be reported
        expected = [thing for thing in expected if thing.kind == "chunk" or thing.doc_id is None]
    ranked_by: Literal["doc", "page", "chunk"] = "chunk" if query.expected_chunks else "page" if by_page else "doc"
    return Judgement(query, ranked_by, (*expected, *spans), tuple(types))


def _span(written: str, names: _Names) -> Expected:
    path, span = parse(written)
    record = names.document(path)
    lines = None
    if record is not None and isinstance(span, LineSpan):
        # A document read page by page has no lines, so a span of lines is not in the index.
        lines = Lines(record.doc_id, span.start, span.end) if 1 <= span.start <= span.end <= record.line_count else None
    elif record is not None and isinstance(span, PageSpan) and names.has_page(record, span.page):
        lines = Lines(record.doc_id, span.page, span.page, page=True)
    doc_id = record.doc_id if record is not None and lines is not None else None
    return Expected(written, "span", 1, doc_id, doc_id, lines)


# --- what is expected


_NOT_SHAPING = frozenset(
    "search.default_k search.snippet_chars search.freshness search.freshness_ms ask.api_key ask.endpoint".split()
)
"""Settings of search and answers that do not change which passages are found."""
_MOST_AT_ONCE = 4
_NOT_OF_SEARCH = frozenset({"full_text", "highlight", "explain", "group", "neighbours", "cursor", "offset"})
_OF_ASK = ("mode", *FILTERS, "doc")


class RunOptions(NamedTuple):
    k: int = 10
    """Metrics are about the first k."""
    hits: int | None = None
    """How many hits each search returns; None means k."""
    search: Mapping[str, Any] = {}
    """Options of search, such as mode and filters."""
    ask: bool = False
    skip_unknown: bool = False
    timings: bool = False
    """Whether to time each search by itself; otherwise queries are embedded many at a time."""


def run(
    kb: KnowledgeBase,
    golden: GoldenSet,
    options: RunOptions = RunOptions(),  # noqa: B008 - immutable
) -> wire.EvalReportV1:
    """Runs all queries and returns the report. Unknown ids raise an error before the first search."""
    documents = kb.documents()
    judgements, unknown = judge(golden, kb, documents, skip_unknown=options.skip_unknown)
    expected = () if options.timings else [query.query for query in golden.queries]
    searching = kb.variant(expecting=expected, freshness="off")  # freshness changes no hits
    request = SearchRequest.from_options({**options.search, "k": options.hits or options.k})
    if options.timings:
        for first in {language_of(query.query): query for query in golden.queries}.values():
            search_for(searching, first, request)  # loading a model is not part of a query's time
    # One query at a time if each is timed, or if a chat model answers, which may take no more.
    alone = options.timings or (options.ask and kb.settings.ask.model)
    with ThreadPoolExecutor(1 if alone else min(_MOST_AT_ONCE, os.cpu_count() or 1)) as threads:
        done = list(threads.map(partial(_done, searching, request, options), judgements))
    queries = [one.query for one in done]
    notices = Counter(code for one in done for code in one.notices)
    worst = metrics.worst_of_groups(f"ndcg@{options.k}", ((query.group, query.metrics) for query in queries))
    rows = [{f"worst_paraphrase_ndcg@{options.k}": value} for value in worst.values()]
    values, counted = metrics.means([*(query.metrics for query in queries), *rows])
    return wire.EvalReportV1(
        golden=golden.as_wire(),
        configuration=_configuration(kb.settings, request, options),
        index=_index(kb, documents, done[-1].index_version if done else ""),
        metrics=values,
        counted=counted,
        by_lang=_slices(queries, lambda query: [query.lang]),
        by_type=_slices(queries, lambda query: query.types),
        notices=dict(sorted(notices.items())),
        unknown=unknown,
        queries=queries,
        timings=_timings([one.milliseconds for one in done]) if options.timings else None,
    )


# --- one query


class _Done(NamedTuple):
    query: wire.EvalQueryV1
    notices: frozenset[str]
    index_version: str
    milliseconds: float


def _done(kb: KnowledgeBase, request: SearchRequest, options: RunOptions, judgement: Judgement) -> _Done:
    started = time.perf_counter()
    response = search_for(kb, judgement.golden, request)
    taken = (time.perf_counter() - started) * 1000
    answer = _ask(kb, judgement, request) if options.ask else None
    notices = frozenset(notice.code for notice in response.notices)
    return _Done(_query(judgement, response, answer, options.k), notices, response.index_version, taken)


def search_for(kb: KnowledgeBase, golden: GoldenQuery, request: SearchRequest) -> SearchResponse:
    """The response to one query; a query that cannot be parsed is an error of the golden set."""
    try:
        return kb.search(request._replace(query=golden.query), without_snippets=True)
    except QueryError as error:
        hint = error.hint
        raise GoldenSetError(f"The query {golden.id} cannot be searched for: {error.message}", hint=hint) from error


def values_of(judgement: Judgement, hits: Sequence[SearchHit], k: int) -> dict[str, float]:
    """The metrics of one list of hits; only those for which the query names expectations."""
    if judgement.golden.unanswerable:
        return {}
    wanted = list(judgement.grades.values())
    values: dict[str, float] = {}
    if wanted:
        gains = judgement.gains(hits)
        values[f"ndcg@{k}"] = metrics.ndcg(gains, wanted, k)
        values[f"recall@{k}"] = metrics.recall(gains, wanted, k)
        values[f"mrr@{k}"] = metrics.reciprocal_rank(gains, k)
        values["hit@1"] = metrics.hit(gains, 1)
        values[f"hit@{k}"] = metrics.hit(gains, k)
        values[f"precision@{k}"] = metrics.precision(gains, k)
    if judgement.golden.expected_spans:
        covered = metrics.line_recall(judgement.spans, cited(hits[:k])) * len(judgement.spans)
        values[f"citation_line_recall@{k}"] = covered / len(judgement.golden.expected_spans)
    texts = [hit.text for hit in hits[:k]]
    if judgement.golden.must_contain:
        values[f"must_contain@{k}"] = metrics.share_contained(judgement.golden.must_contain, texts)
    if judgement.golden.forbidden:
        values[f"forbidden@{k}"] = float(metrics.share_contained(judgement.golden.forbidden, texts) > 0)
    values["empty_rate"] = float(not hits)
    return values


def cited(hits: Sequence[SearchHit]) -> list[Lines]:
    """The lines that the hits and their duplicates cite."""
    places: list[SearchHit | Duplicate] = [*hits, *(copy for hit in hits for copy in hit.duplicates)]
    return _all_lines((place.doc_id, place.citation) for place in places)


def _all_lines(places: Iterable[tuple[str, Citation | None]]) -> list[Lines]:
    """The lines and pages that citations in documents cover."""
    found = (lines_of(doc_id, citation) for doc_id, citation in places if citation is not None)
    return [lines for lines in found if lines is not None]


def _query(judgement: Judgement, response: SearchResponse, answer: Answer | None, k: int) -> wire.EvalQueryV1:
    golden, hits = judgement.golden, response.hits
    values = values_of(judgement, hits, k) | (_values_of_answer(judgement, answer) if answer is not None else {})
    return view(
        wire.EvalQueryV1,
        golden,
        lang=language_of(golden.query),
        types=list(judgement.types),
        metrics={name: rounded(value) for name, value in values.items()},
        expected=[_expected(thing, judgement, hits) for thing in judgement.expected],
        hits=[_hit(hit, judgement) for hit in hits],
        answer=None if answer is None else _answer(answer),
    )


def _expected(thing: Expected, judgement: Judgement, hits: Sequence[SearchHit]) -> wire.EvalExpectedV1:
    if thing.kind == "span":
        covered = metrics.line_recall([thing.lines], cited(hits)) if thing.lines else 0.0
        met = [hit for hit in hits if thing.lines and metrics.line_recall([thing.lines], cited([hit]))]
    else:
        met = [hit for hit in hits if thing.unit in judgement.units_of(hit)]
        covered = float(bool(met))
    return view(wire.EvalExpectedV1, thing, rank=met[0].rank if met else None, covered=rounded(covered))


def _hit(hit: SearchHit, judgement: Judgement) -> wire.EvalHitV1:
    grades = judgement.grades
    grade = max(grades.get(unit, 0) for unit in judgement.units_of(hit))
    return view(wire.EvalHitV1, hit, citation=hit.citation.uri, score=rounded(hit.score), grade=grade)


# --- answers


def _ask(kb: KnowledgeBase, judgement: Judgement, request: SearchRequest) -> Answer:
    given = {name: getattr(request, name) for name in _OF_ASK}
    return kb.ask(judgement.golden.query, **{name: value for name, value in given.items() if value})


def _values_of_answer(judgement: Judgement, answer: Answer) -> dict[str, float]:
    golden, text = judgement.golden, answer.text
    values = {"refusal_correctness": float((text is None) == golden.unanswerable)}
    values["refused_unanswerable" if golden.unanswerable else "answered_answerable"] = values["refusal_correctness"]
    if text is not None:
        supported = sum(claim.verdict == "supported" for claim in answer.claims)
        values["groundedness"] = supported / max(1, len(answer.claims))
    if golden.forbidden:
        values["answer_forbidden"] = float(text is not None and metrics.share_contained(golden.forbidden, [text]) > 0)
    if judgement.spans:
        # Recall counts whole cited passages; `quoted_expected` counts only the quoted lines, which may be fewer.
        passages = _all_lines((citation.doc_id, citation.citation) for citation in answer.citations)
        quoted = _all_lines((citation.doc_id, citation.quoted_at) for citation in answer.citations)
        values["answer_line_recall"] = metrics.line_recall(judgement.spans, passages)
        values["quoted_expected"] = float(metrics.line_recall(judgement.spans, quoted) > 0)
    return values


def _answer(answer: Answer) -> wire.EvalAnswerV1:
    quoted = (citation.quoted_at.uri for citation in answer.citations if citation.quoted_at is not None)
    return view(
        wire.EvalAnswerV1,
        answer,
        refused=answer.text is None,
        claims=len(answer.claims),
        supported=sum(claim.verdict == "supported" for claim in answer.claims),
        quoted=list(dict.fromkeys(quoted)),
    )


# --- over all queries


def _slices(queries: Sequence[wire.EvalQueryV1], names_of: Any) -> list[wire.EvalSliceV1]:
    by_name: dict[str, list[wire.EvalQueryV1]] = {}
    for query in queries:
        for name in names_of(query):
            by_name.setdefault(name, []).append(query)
    return [
        wire.EvalSliceV1(name=name, queries=len(own), metrics=metrics.means(query.metrics for query in own)[0])
        for name, own in sorted(by_name.items())
    ]


def _timings(taken: Sequence[float]) -> wire.EvalTimingsV1:
    p50, p95, p99 = (round(metrics.percentile(taken, share), 3) for share in (0.5, 0.95, 0.99))
    return wire.EvalTimingsV1(
        p50=p50,
        p95=p95,
        p99=p99,
        queries_per_second=round(1000 * len(taken) / sum(taken), 1) if taken else 0.0,
        each=[round(one, 3) for one in taken],
    )


# --- configuration and index


def _configuration(settings: Settings, request: SearchRequest, options: RunOptions) -> wire.EvalConfigurationV1:
    defaults = SearchRequest()
    chosen = {
        name: value
        for name, value in request._asdict().items()
        if name not in _NOT_OF_SEARCH and name not in ("query", "k") and value != getattr(defaults, name)
    }
    sections = ("search", "chunking", "ask") if options.ask else ("search", "chunking")
    shaping = {
        f"{section}.{name}": value
        for section in sections
        for name, value in getattr(settings, section)._asdict().items()
        if f"{section}.{name}" not in _NOT_SHAPING
    }
    shaping |= {
        "analysis.korean": settings.analysis.korean,
        "embedding.cross_language": settings.embedding.cross_language,
        "embedding.model": _model_name(settings.embedding.model),
    }
    return wire.EvalConfigurationV1(
        program=f"kebab {__version__}",
        k=options.k,
        hits=options.hits or options.k,
        asked=options.ask,
        options={name: list(value) if isinstance(value, tuple) else value for name, value in chosen.items()},
        settings=dict(sorted(shaping.items())),
    )


def _model_name(model: str) -> str:
    """The name of a model without its folder, since runs are shown to others."""
    kind, colon, name = model.strip().partition(":")
    return f"{kind}:{PurePath(name).name}" if colon and kind == "onnx" else model.strip()


def _index(kb: KnowledgeBase, documents: Sequence[DocumentRecord], index_version: str) -> wire.EvalIndexV1:
    return wire.EvalIndexV1(
        index_version=index_version,
        sha256=corpus_hash(documents),
        documents=len(documents),
        sources=[
            view(wire.EvalSourceV1, source, branch=place and place.branch, commit=place and place.commit)
            for source in kb.sources()
            for place in (source.repository,)
        ],
    )


def corpus_hash(documents: Sequence[DocumentRecord]) -> str:
    """A hash that changes whenever a document is added, removed or changed."""
    lines = sorted(f"{record.doc_id} {record.content_hash} {record.chunker_version}\n" for record in documents)
    return sha256("".join(lines).encode()).hexdigest()
