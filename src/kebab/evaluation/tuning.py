"""Finds the settings of search that suit a user's own queries: fusion, its weights, and the weights of the columns.

The best of thirty candidates on the same queries is partly luck. So the queries are divided into folds: a candidate is
chosen on all folds but one and measured on that one, for each fold. It is recommended only if it is significantly
better than the current settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from itertools import product
from typing import Any

from kebab.core.errors import UsageError
from kebab.evaluation.files import GoldenSet
from kebab.evaluation.metrics import paired_difference, rounded
from kebab.evaluation.runner import Judgement, RunOptions, judge, search_for, values_of
from kebab.knowledge_base import KnowledgeBase
from kebab.search.options import SearchRequest
from kebab.wire.evaluation import EvalTrialV1, EvalTuningV1

FOLDS = 5
_LEAST_QUERIES = 2 * FOLDS
_RRF = {"rrf_k": (10, 30, 60), "vector_weight": (0.5, 1.0, 2.0)}
_CONVEX = (0.35, 0.5, 0.65, 0.8)
_COLUMNS = {"title_weight": (1.0, 4.0, 8.0, 16.0), "heading_weight": (1.0, 2.0, 4.0)}

Change = tuple[tuple[str, Any], ...]
"""Settings of [search] that differ from the current ones; empty for the current settings."""
Tell = Callable[[int, int], None]
"""Called with the number of candidates tried so far, and the number of all candidates."""


def tune(kb: KnowledgeBase, golden: GoldenSet, options: RunOptions, *, tell: Tell | None = None) -> EvalTuningV1:
    """Returns the recommended settings, if any, without writing them."""
    found, _ = judge(golden, kb, kb.documents(), skip_unknown=options.skip_unknown)
    judgements = [judgement for judgement in found if judgement.grades]
    if len(judgements) < _LEAST_QUERIES:
        raise UsageError(
            f"{golden.name} has {len(judgements)} queries that expect a document, too few to tune on.",
            hint=f"At least {_LEAST_QUERIES} are needed, and a hundred to notice anything but large differences.",
        )
    trying = _Trying(kb, judgements, options, tell)
    families = _families(kb, SearchRequest.from_options(options.search), judgements)
    trying.expected = 1 + sum(map(len, families))
    current = trying.values(())
    for family in families:
        for change in family:
            trying.values(change)
    folds = _dealt(judgements)
    held_out = [0.0] * len(judgements)
    for fold in sorted(set(folds)):
        chosen = _chosen(trying, families, [place for place, own in enumerate(folds) if own != fold])
        for place, own in enumerate(folds):
            if own == fold:
                held_out[place] = trying.values(chosen)[place]
    interval = paired_difference(current, held_out)
    best = _chosen(trying, families, range(len(judgements)))
    helps = interval.low > 0 and best != ()
    mean = _mean(current)
    trials = [
        EvalTrialV1(settings=_keys(change), value=rounded(_mean(values))) for change, values in trying.known.items()
    ]
    return EvalTuningV1(
        golden=golden.as_wire(),
        metric=f"ndcg@{options.k}",
        folds=FOLDS,
        current=rounded(mean),
        held_out=rounded(mean + interval.mean),
        difference=rounded(interval.mean),
        low=rounded(interval.low),
        high=rounded(interval.high),
        helps=helps,
        settings=_keys(best if helps else ()),
        trials=sorted(trials, key=lambda trial: -trial.value),
        written=None,
    )


def _keys(change: Change) -> dict[str, Any]:
    return {f"search.{name}": value for name, value in change}


class _Trying:
    """Measures the nDCG of every query with each candidate; every candidate is tried once."""

    def __init__(
        self, kb: KnowledgeBase, judgements: Sequence[Judgement], options: RunOptions, tell: Tell | None
    ) -> None:
        self._kb = kb.variant(expecting=[judgement.golden.query for judgement in judgements])
        self._judgements = judgements
        self._options = options
        self._request = SearchRequest.from_options({**options.search, "k": options.hits or options.k})
        self._tell = tell
        self.known: dict[Change, list[float]] = {}
        self.expected = 0

    def values(self, change: Change) -> list[float]:
        if change not in self.known:
            kb = self._kb.variant(freshness="off", **dict(change))
            self.known[change] = [self._value(kb, judgement) for judgement in self._judgements]
            if self._tell is not None:
                self._tell(len(self.known), max(self.expected, len(self.known)))
        return self.known[change]

    def _value(self, kb: KnowledgeBase, judgement: Judgement) -> float:
        hits = search_for(kb, judgement.golden, self._request).hits
        return values_of(judgement, hits, self._options.k)[f"ndcg@{self._options.k}"]


def _families(kb: KnowledgeBase, request: SearchRequest, judgements: Sequence[Judgement]) -> list[list[Change]]:
    """Groups of candidates. The best of each group may be combined."""
    now = kb.settings.search
    other_scripts = any(not judgement.golden.query.isascii() for judgement in judgements)
    families: list[list[dict[str, Any]]] = []
    if request.mode != "vector":
        families.append([dict(zip(_COLUMNS, values, strict=True)) for values in product(*_COLUMNS.values())])
    if request.mode in (None, "hybrid"):
        fusions: list[dict[str, Any]] = []
        if request.fusion in (None, "rrf"):
            fusions += [
                {"hybrid_fusion": "rrf", **dict(zip(_RRF, values, strict=True))} for values in product(*_RRF.values())
            ]
        if request.fusion in (None, "convex"):
            fusions += [{"hybrid_fusion": "convex", "convex_weight": weight} for weight in _CONVEX]
        families.append(fusions)
    if other_scripts and request.mode != "vector":
        families.append([{"cjk_weight": weight} for weight in (0.5, 1.0, 2.0, 4.0)])
    changed = ([_change(way, now._asdict()) for way in family] for family in families)
    return [[change for change in dict.fromkeys(family) if change] for family in changed]


def _change(way: Mapping[str, Any], now: Mapping[str, Any]) -> Change:
    return tuple(sorted((name, value) for name, value in way.items() if now[name] != value))


def _chosen(trying: _Trying, families: Sequence[Sequence[Change]], places: Sequence[int]) -> Change:
    """The best candidate on these queries: the current settings, the best of one family, or the best of each combined.

    Of equally good candidates it is the one that changes the fewest settings.
    """
    ways: list[Change] = [()]
    together: Change = ()
    for family in families:
        best = _best(trying, [(), *family], places)
        ways.append(best)
        together = tuple(sorted({**dict(together), **dict(best)}.items()))
    return _best(trying, [*ways, together], places)


def _best(trying: _Trying, ways: Sequence[Change], places: Sequence[int]) -> Change:
    def mean(change: Change) -> float:
        values = trying.values(change)
        return rounded(_mean([values[place] for place in places]))

    return max(dict.fromkeys(ways), key=lambda change: (mean(change), -len(change)))


def _dealt(judgements: Sequence[Judgement]) -> list[int]:
    """The fold of each query, by a hash of its id. Paraphrases share a fold, because they are not independent."""
    names = [judgement.golden.group or judgement.golden.id for judgement in judgements]
    shuffled = sorted(set(names), key=lambda name: sha256(name.encode()).digest())
    fold_of = {name: place % FOLDS for place, name in enumerate(shuffled)}
    return [fold_of[name] for name in names]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
