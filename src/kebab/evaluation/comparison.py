"""Compares two runs of the same queries: what is better, what is worse, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from kebab.core.errors import GoldenSetError, UsageError
from kebab.evaluation.metrics import LATENCY, is_better_lower, paired_difference, rounded, worst_of_groups
from kebab.wire import evaluation as wire

_Pair = tuple[wire.EvalQueryV1, wire.EvalQueryV1]
_NOTICEABLE = 1e-9


def compare(a: wire.EvalReportV1, b: wire.EvalReportV1, *, metric: str | None = None) -> wire.EvalComparisonV1:
    """Compares b with a on their common queries. `metric`, or nDCG, decides wins and losses."""
    others = {query.id: query for query in b.queries}
    pairs = [
        (query, others[query.id]) for query in a.queries if query.id in others and others[query.id].query == query.query
    ]
    if not pairs:
        raise GoldenSetError("The two runs have no query in common.", hint="Compare runs of the same golden set.")
    names = [name for name in a.metrics if any(name in one.metrics and name in other.metrics for one, other in pairs)]
    chosen = metric or f"ndcg@{a.configuration.k}"
    if chosen not in names:
        hint = f"Metrics: {', '.join(names) or 'none'}."
        raise UsageError(f"The two runs have no metric {chosen} in common.", hint=hint)
    changes = sorted(_changes(pairs, chosen), key=lambda change: (_gain(change.a, change.b, chosen), change.id))
    regressions = [change for change in changes if _gain(change.a, change.b, chosen) < 0]
    improvements = [change for change in reversed(changes) if _gain(change.a, change.b, chosen) > 0]
    return wire.EvalComparisonV1(
        golden=a.golden,
        metric=chosen,
        wins=len(improvements),
        losses=len(regressions),
        ties=len(_of(pairs, chosen)) - len(changes),
        differences=[
            *(_difference(pairs, name, name) for name in names),
            *_of_groups(pairs, a.configuration.k),
            *_latency(a, b),
        ],
        by_lang=[one for name in names for one in _sliced(pairs, name, lambda query: [query.lang])],
        by_type=[one for name in names for one in _sliced(pairs, name, lambda query: query.types)],
        regressions=regressions,
        improvements=improvements,
        changed=_changed(a, b),
        notices=_notices(a, b, len(pairs)),
    )


def _of(pairs: Iterable[_Pair], metric: str) -> list[_Pair]:
    return [(one, other) for one, other in pairs if metric in one.metrics and metric in other.metrics]


def _difference(pairs: Iterable[_Pair], metric: str, name: str) -> wire.EvalDifferenceV1:
    both = _of(pairs, metric)
    a, b = ([query.metrics[metric] for query in side] for side in zip(*both, strict=True))
    return _between(a, b, metric, name)


def _of_groups(pairs: Sequence[_Pair], k: int) -> list[wire.EvalDifferenceV1]:
    """The difference in nDCG of the worst query in each group of paraphrases."""
    a, b = (
        worst_of_groups(f"ndcg@{k}", ((query.group, query.metrics) for query in side))
        for side in zip(*pairs, strict=True)
    )
    groups = [group for group in a if group in b]
    name = f"worst_paraphrase_ndcg@{k}"
    return [_between([a[group] for group in groups], [b[group] for group in groups], name, name)] if groups else []


def _latency(a: wire.EvalReportV1, b: wire.EvalReportV1) -> list[wire.EvalDifferenceV1]:
    """The difference in latency, query by query, if both runs were timed."""
    if a.timings is None or b.timings is None:
        return []
    one, other = (_each(report.queries, report.timings) for report in (a, b))
    both = [id for id in one if id in other]
    return [_between([one[id] for id in both], [other[id] for id in both], LATENCY, LATENCY)] if both else []


def _each(queries: Sequence[wire.EvalQueryV1], timings: wire.EvalTimingsV1 | None) -> dict[str, float]:
    return dict(zip((query.id for query in queries), timings.each if timings else (), strict=False))


def _between(a: Sequence[float], b: Sequence[float], metric: str, name: str) -> wire.EvalDifferenceV1:
    interval = paired_difference(a, b)
    return wire.EvalDifferenceV1(
        metric=name,
        queries=len(a),
        a=rounded(sum(a) / len(a)),
        b=rounded(sum(b) / len(b)),
        difference=rounded(interval.mean),
        low=rounded(interval.low),
        high=rounded(interval.high),
        verdict=(interval.turned() if is_better_lower(metric) else interval).verdict,
    )


def _sliced(
    pairs: Sequence[_Pair], metric: str, names_of: Callable[[wire.EvalQueryV1], Sequence[str]]
) -> list[wire.EvalDifferenceV1]:
    names = sorted({name for one, _ in _of(pairs, metric) for name in names_of(one)})
    return [
        _difference([pair for pair in pairs if name in names_of(pair[0])], metric, f"{metric}[{name}]")
        for name in names
    ]


def _gain(a: float, b: float, metric: str) -> float:
    return a - b if is_better_lower(metric) else b - a


def _changes(pairs: Sequence[_Pair], metric: str) -> list[wire.EvalChangeV1]:
    return [
        wire.EvalChangeV1(
            id=one.id,
            query=one.query,
            a=one.metrics[metric],
            b=other.metrics[metric],
            expected=other.expected,
            hits_a=one.hits,
            hits_b=other.hits,
        )
        for one, other in _of(pairs, metric)
        if abs(one.metrics[metric] - other.metrics[metric]) > _NOTICEABLE
    ]


def _changed(a: wire.EvalReportV1, b: wire.EvalReportV1) -> dict[str, list[Any]]:
    """The settings and facts in which the runs differ."""
    # A run that asked for answers has more settings.
    both = a.configuration.settings.keys() & b.configuration.settings.keys()
    one, other = _described(a, both), _described(b, both)
    return {name: [one.get(name), other.get(name)] for name in {**one, **other} if one.get(name) != other.get(name)}


def _described(report: wire.EvalReportV1, settings: Collection[str]) -> dict[str, Any]:
    configuration, index = report.configuration, report.index
    return {
        "program": configuration.program,
        "k": configuration.k,
        "hits": configuration.hits,
        **{f"option {name}": value for name, value in configuration.options.items()},
        **{name: value for name, value in configuration.settings.items() if name in settings},
        "index_version": index.index_version,
        "documents": index.sha256,
        **{f"commit of {source.name}": source.commit for source in index.sources if source.commit},
    }


def _notices(a: wire.EvalReportV1, b: wire.EvalReportV1, common: int) -> list[str]:
    said = []
    if a.golden.sha256 != b.golden.sha256:
        same_name = a.golden.name == b.golden.name
        said.append(
            f"The golden sets differ: {a.golden.name} and {'another content of it' if same_name else b.golden.name}."
        )
    if common < max(len(a.queries), len(b.queries)):
        said.append(f"{common:,} queries are in both runs, of {len(a.queries):,} and {len(b.queries):,}.")
    for one, other, which in ((a, b, "first"), (b, a, "second")):
        if alone := [name for name in one.metrics if name not in other.metrics]:
            said.append(f"Only the {which} run has {', '.join(alone)}.")
        if one.timings is not None and other.timings is None:
            said.append(f"Only the {which} run was made with --timings, so latencies are not compared.")
    if a.configuration.k != b.configuration.k:
        said.append(
            f"One run is about the first {a.configuration.k} hits, the other about the first {b.configuration.k}."
        )
    return said
