"""Explains why expected things were missed, and renders a run as one HTML file without scripts, fonts or network.

An expected document, chunk or span was not found because it is not indexed, filters exclude it, it is ranked low, the
question does not match it, or a chunk boundary cuts it. All quoted text of the page is escaped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Literal, NamedTuple

from kebab.core.citations import Citation, PageSpan, parse
from kebab.core.ports import ChunkContext
from kebab.core.search import Duplicate, SearchHit
from kebab.evaluation.metrics import Lines, is_better_lower, line_recall
from kebab.evaluation.runner import corpus_hash, lines_of
from kebab.knowledge_base import KnowledgeBase
from kebab.search.options import SearchRequest
from kebab.wire.evaluation import EvalExpectedV1, EvalQueryV1, EvalReportV1

Reason = Literal["not indexed", "filtered", "ranked low", "not matched", "chunk boundary"]
REASONS: tuple[Reason, ...] = ("not indexed", "filtered", "ranked low", "not matched", "chunk boundary")
DEPTH = 100
"""How many hits are searched for a missing thing."""


class Miss(NamedTuple):
    name: str
    reason: Reason
    detail: str


def explain_misses(report: EvalReportV1, kb: KnowledgeBase) -> dict[str, list[Miss]] | None:
    """The misses of each query; None if documents were added, removed or changed since the run."""
    documents = kb.documents()
    if corpus_hash(documents) != report.index.sha256:
        return None
    request = SearchRequest.from_options({**report.configuration.options, "k": max(DEPTH, report.configuration.hits)})
    passing = {record.doc_id for record in kb.documents(kb.filters_of(request))} if request.filters() else None
    chunk_counts = {record.doc_id: record.chunk_count for record in documents}
    explaining = _Explaining(kb.variant(freshness="off"), request, chunk_counts, passing)
    misses = {
        query.id: explaining.of(query, missing)
        for query in report.queries
        if (missing := missing_of(query, report.configuration.k))
    }
    return {id: found for id, found in misses.items() if found}


def missing_of(query: EvalQueryV1, k: int) -> list[EvalExpectedV1]:
    """The expected things of a query that are not among its first k hits."""
    if min(query.metrics.get(f"{name}@{k}", 1.0) for name in ("recall", "citation_line_recall")) >= 1.0:
        return []
    return [
        thing
        for thing in query.expected
        if thing.rank is None or thing.rank > k or (thing.kind == "span" and thing.covered < 1.0)
    ]


def counted_reasons(misses: Iterable[Sequence[Miss]]) -> dict[Reason, int]:
    counts = Counter(miss.reason for some in misses for miss in some)
    return {reason: counts[reason] for reason in REASONS}


class _Explaining(NamedTuple):
    kb: KnowledgeBase
    request: SearchRequest
    chunk_counts: dict[str, int]
    passing: set[str] | None
    """Documents that pass the filters; None without filters."""

    def of(self, query: EvalQueryV1, missing: Sequence[EvalExpectedV1]) -> list[Miss]:
        found: tuple[SearchHit, ...] | None = None
        misses = []
        for thing in missing:
            miss = self._without_searching(thing)
            if miss is None:
                if found is None:
                    found = self.kb.search(self.request._replace(query=query.query), without_snippets=True).hits
                miss = self._ranked(thing, found)
            misses.append(miss)
        return misses

    def _without_searching(self, thing: EvalExpectedV1) -> Miss | None:
        if thing.doc_id is None:
            return Miss(thing.name, "not indexed", "it is not in the index")
        if not self.chunk_counts.get(thing.doc_id):
            return Miss(thing.name, "not indexed", "its document has no text")
        if self.passing is not None and thing.doc_id not in self.passing:
            return Miss(thing.name, "filtered", "its document does not pass the filters")
        if thing.kind != "span":
            return None
        parts = self._parts(thing)
        if not parts:
            return Miss(thing.name, "not indexed", "no passage has these lines")
        if len(parts) > 1 and thing.covered > 0:
            detail = f"its lines are in {len(parts)} passages, and not all of them were found"
            return Miss(thing.name, "chunk boundary", detail)
        return None

    def _parts(self, thing: EvalExpectedV1) -> list[ChunkContext]:
        """The chunks that contain lines of a span."""
        lines = _lines(thing)
        if lines is None:
            return []
        cited = ((chunk, lines_of(chunk.doc_id, chunk.citation)) for chunk in self.kb.document(lines.doc_id)[1])
        return [chunk for chunk, place in cited if place is not None and line_recall([lines], [place])]

    def _ranked(self, thing: EvalExpectedV1, found: Sequence[SearchHit]) -> Miss:
        wanted = {chunk.chunk_id for chunk in self._parts(thing)} if thing.kind == "span" else set()
        for hit in found:
            places: list[SearchHit | Duplicate] = [hit, *hit.duplicates]
            if thing.kind == "span":
                met = any(place.chunk_id in wanted for place in places)
            elif thing.kind == "chunk":
                met = any(place.chunk_id.startswith(thing.name) for place in places)
            else:
                met = any(
                    place.doc_id == thing.doc_id and _is_page(place.citation.span, thing.name) for place in places
                )
            if met:
                return Miss(thing.name, "ranked low", _rank(hit))
        if len(found) < (self.request.k or DEPTH):
            return Miss(thing.name, "not matched", f"not among the {len(found)} that the question finds at all")
        return Miss(thing.name, "ranked low", f"not among the first {self.request.k}")


def _rank(hit: SearchHit) -> str:
    detail = hit.retrieval
    sides = [
        f"{name} rank {rank}" if rank is not None else f"not found by {name}"
        for name, rank in (("lexical", detail.lexical_rank), ("vector", detail.vector_rank))
        if detail.method == "hybrid" or rank is not None
    ]
    return f"rank {hit.rank} ({', '.join(sides)})" if sides else f"rank {hit.rank}"


def _lines(thing: EvalExpectedV1) -> Lines | None:
    path, span = parse(thing.name)
    return lines_of(thing.doc_id, Citation(path, span)) if thing.doc_id is not None and span is not None else None


def _is_page(span: object, name: str) -> bool:
    """Whether a span is on the judged page; always True if no page was judged."""
    _, wanted = parse(name)
    return not isinstance(wanted, PageSpan) or (isinstance(span, PageSpan) and span.page == wanted.page)


MOST_BYTES = 5_000_000
_HITS_SHOWN = (10, 5, 3, 1, 0)
"""Numbers of hits to list for each query, tried in this order until the page is small enough."""
_MEANINGS = {
    "not indexed": "not in the index, or in no passage of it",
    "filtered": "left out by the filters of the run",
    "ranked low": "there, and other passages stand before it",
    "not matched": "there, and nothing of the question leads to it",
    "chunk boundary": "expected lines are spread over several passages, and only some of those were found",
}


def report_page(report: EvalReportV1, misses: Mapping[str, Sequence[Miss]] | None) -> str:
    """The page of a run. `misses` is None if they cannot be explained. Lists of hits are shortened to keep it small."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(
        cut=lambda text, most: text if len(text) <= most else text[: most - 1] + "…",
        fixed=lambda number, digits: f"{number:.{digits}f}",
        grouped=lambda count: f"{count:,}",
    )
    template = environment.from_string(files(__package__).joinpath("report_page.html").read_text(encoding="utf-8"))
    ndcg = f"ndcg@{report.configuration.k}"
    page = ""
    for shown in _HITS_SHOWN:
        page = template.render(
            report=report,
            is_better_lower=is_better_lower,
            shares={name: value for name, value in report.metrics.items() if not is_better_lower(name)},
            by_slice={
                part.name: part.metrics[ndcg] for part in (*report.by_lang, *report.by_type) if ndcg in part.metrics
            },
            **_distributions([query for query in report.queries if ndcg in query.metrics], report.configuration.k),
            misses=misses,
            reasons=counted_reasons((misses or {}).values()),
            meanings=_MEANINGS,
            worst_first=sorted(report.queries, key=lambda query: (query.metrics.get(ndcg, 2.0), query.id)),
            names=_shown_metrics(report),
            hits_shown=shown,
            shows_all=shown == _HITS_SHOWN[0],
            settings=_settings(report),
        )
        if len(page.encode("utf-8")) <= MOST_BYTES:
            break
    return page


def _distributions(judged: Sequence[EvalQueryV1], k: int) -> dict[str, dict[str, int]]:
    """The number of queries by rank of the first right hit, and by tenth of nDCG."""
    reciprocals = [query.metrics.get(f"mrr@{k}", 0.0) for query in judged]
    first = [round(1 / reciprocal) if reciprocal else None for reciprocal in reciprocals]
    tenths = [min(9, int(query.metrics[f"ndcg@{k}"] * 10)) for query in judged]
    return {
        "ranks": {**{str(rank): first.count(rank) for rank in range(1, min(k, 20) + 1)}, "none": first.count(None)},
        "tenths": {f".{tenth}": tenths.count(tenth) for tenth in range(10)},
    }


def _shown_metrics(report: EvalReportV1) -> list[str]:
    """The columns of the table of queries."""
    names = (f"{name}@{report.configuration.k}" for name in ("ndcg", "recall", "mrr", "citation_line_recall"))
    return [name for name in names if name in report.metrics]


def _settings(report: EvalReportV1) -> dict[str, object]:
    configuration = report.configuration
    return {
        "golden set": report.golden.sha256,
        "index": report.index.sha256,
        "hits": configuration.hits,
        **{f"option {name}": value for name, value in configuration.options.items()},
        **configuration.settings,
    }
