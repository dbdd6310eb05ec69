"""Renders a run as one HTML file without scripts, fonts or network access. All quoted text is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from kebab.evaluation.metrics import is_better_lower
from kebab.evaluation.misses import Miss, counted_reasons
from kebab.wire.evaluation import EvalQueryV1, EvalReportV1

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


def report_page(
    report: EvalReportV1, misses: Mapping[str, Sequence[Miss]] | None, *, most_bytes: int = MOST_BYTES
) -> str:
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
        if len(page.encode("utf-8")) <= most_bytes:
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
