"""How sure one can be of a difference: paired bootstrap over queries, with a fixed seed, so that it says the same every
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

RESAMPLES = 4000
_SEED = 20260117
_AT_ONCE = 2_000_000
"""Numbers drawn at a time, to keep memory in bounds."""
CONFIDENCE = 0.95
LEAST_QUERIES = 5
"""Of fewer, every sample is nearly the same one: whatever they say may be chance."""


class Interval(NamedTuple):
    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> Literal["better", "worse", "same"]:
        """same: 0 lies within it."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "same"

    def turned(self) -> Interval:
        """Of what is better when it is lower."""
        return Interval(-self.mean, -self.high, -self.low)


def paired_difference(a: Sequence[float], b: Sequence[float]) -> Interval:
    """Of b over a, query by query: its mean, and the interval that holds it in 95 of 100 samples of as many queries; of
    too few queries one that holds 0.
    """
    import numpy as np

    if len(a) != len(b):
        raise ValueError("Paired values must be of the same queries.")
    differences = np.asarray(b, np.float64) - np.asarray(a, np.float64)
    if not differences.any():
        return Interval(0.0, 0.0, 0.0)
    if len(differences) < LEAST_QUERIES:
        return Interval(
            float(differences.mean()), min(0.0, float(differences.min())), max(0.0, float(differences.max()))
        )
    generator = np.random.Generator(np.random.PCG64(_SEED))
    means = np.empty(RESAMPLES)
    step = max(1, _AT_ONCE // len(differences))
    for start in range(0, RESAMPLES, step):
        drawn = generator.integers(0, len(differences), (min(step, RESAMPLES - start), len(differences)))
        means[start : start + len(drawn)] = differences[drawn].mean(axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(differences.mean()), float(low), float(high))
