"""Metrics of ranked lists: arithmetic on grades only.

`gains` are the grades at ranks 1, 2, 3, …, with 0 for hits that are not expected; `wanted` are the grades of everything
that is expected.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

LATENCY = "latency_ms"
LOWER_IS_BETTER = frozenset({"empty_rate", "forbidden", "answer_forbidden", LATENCY})
"""Metrics of which lower values are better; names without their @k."""
RESAMPLES = 4000
_SEED = 20260117
_AT_ONCE = 2_000_000
"""Numbers drawn at a time, to keep memory in bounds."""
CONFIDENCE = 0.95
LEAST_QUERIES = 5
"""With fewer queries all samples are nearly the same, and any difference may be chance."""


def is_better_lower(name: str) -> bool:
    return name.partition("@")[0] in LOWER_IS_BETTER


def worst_of_groups(name: str, rows: Iterable[tuple[str | None, Mapping[str, float]]]) -> dict[str, float]:
    """The lowest value of this metric in each group of paraphrases."""
    groups: dict[str, list[float]] = defaultdict(list)
    for group, values in rows:
        if group is not None and name in values:
            groups[group].append(values[name])
    return {group: min(values) for group, values in groups.items() if len(values) > 1}


def ndcg(gains: Sequence[int], wanted: Sequence[int], k: int) -> float:
    """Discounted cumulative gain of the first k, as a share of the best that is possible."""
    best = _dcg(sorted(wanted, reverse=True)[:k])
    return _dcg(gains[:k]) / best if best else 0.0


def _dcg(gains: Iterable[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def recall(gains: Sequence[int], wanted: Sequence[int], k: int) -> float:
    """The share of the wanted things that are among the first k."""
    return sum(gain > 0 for gain in gains[:k]) / len(wanted) if wanted else 0.0


def precision(gains: Sequence[int], k: int) -> float:
    """The share of k places that hold something wanted; empty places count as places."""
    return sum(gain > 0 for gain in gains[:k]) / k


def reciprocal_rank(gains: Sequence[int], k: int) -> float:
    return next((1 / rank for rank, gain in enumerate(gains[:k], start=1) if gain > 0), 0.0)


def hit(gains: Sequence[int], k: int) -> float:
    """1 if anything wanted is among the first k."""
    return float(any(gain > 0 for gain in gains[:k]))


class Lines(NamedTuple):
    """Lines of a document, or its page with the number `first` where `page` is set; both ends included."""

    doc_id: str
    first: int
    last: int
    page: bool = False


def line_recall(expected: Sequence[Lines], cited: Sequence[Lines]) -> float:
    """The share of the expected lines that the cited ones cover. Long and short expected passages count alike."""
    return sum(_covered(wanted, cited) for wanted in expected) / len(expected) if expected else 0.0


def _covered(wanted: Lines, cited: Iterable[Lines]) -> float:
    lines = range(wanted.first, wanted.last + 1)
    seen: set[int] = set()
    for place in cited:
        if (place.doc_id, place.page) == (wanted.doc_id, wanted.page):
            seen.update(range(max(place.first, wanted.first), min(place.last, wanted.last) + 1))
    return len(seen) / len(lines)


def share_contained(strings: Sequence[str], texts: Sequence[str]) -> float:
    """The share of the strings that stand verbatim in one of the texts."""
    return sum(any(string in text for text in texts) for string in strings) / len(strings)


def means(rows: Iterable[Mapping[str, float]]) -> tuple[dict[str, float], dict[str, int]]:
    """The mean of every metric over the rows that have it, and the number of these rows. Metrics keep the order in
    which they first appear.
    """
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, value in row.items():
            values[name].append(value)
    counts = {name: len(own) for name, own in values.items()}
    return {name: rounded(math.fsum(own) / len(own)) for name, own in values.items()}, counts


def rounded(value: float) -> float:
    """The value with six decimals, so that different machines give the same value."""
    return round(value, 6)


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that this share of the values does not exceed: 0.5 gives the median."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0


# --- differences


class Interval(NamedTuple):
    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> Literal["better", "worse", "same"]:
        """`same` if 0 lies within the interval."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "same"

    def turned(self) -> Interval:
        """The interval with the sign changed, for a metric of which less is better."""
        return Interval(-self.mean, -self.high, -self.low)


def paired_difference(a: Sequence[float], b: Sequence[float]) -> Interval:
    """By how much b exceeds a, query by query: the mean, and its 95 % interval by a paired bootstrap with a fixed seed.

    With too few queries the interval always contains 0.
    """
    import numpy as np

    if len(a) != len(b):
        raise ValueError("Paired values must be of the same queries.")
    differences = np.asarray(b, np.float64) - np.asarray(a, np.float64)
    if not differences.any():
        return Interval(0.0, 0.0, 0.0)
    if len(differences) < LEAST_QUERIES:
        least, most = float(differences.min()), float(differences.max())
        return Interval(float(differences.mean()), min(0.0, least), max(0.0, most))
    generator = np.random.Generator(np.random.PCG64(_SEED))
    means = np.empty(RESAMPLES)
    step = max(1, _AT_ONCE // len(differences))
    for start in range(0, RESAMPLES, step):
        drawn = generator.integers(0, len(differences), (min(step, RESAMPLES - start), len(differences)))
        means[start : start + len(drawn)] = differences[drawn].mean(axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(differences.mean()), float(low), float(high))
