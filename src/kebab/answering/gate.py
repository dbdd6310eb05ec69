"""Whether the evidence is enough to answer a question, or why not."""

from __future__ import annotations

from typing import NamedTuple

from kebab.answering.evidence import LEAST_BY_WORDS, LEAST_STRENGTH, Evidence

_NAMED = 4
"""Words of the question named in a refusal."""


class Refusal(NamedTuple):
    reason: str
    """A word for programs."""
    message: str


def refusal(evidence: Evidence) -> Refusal | None:
    if not evidence.passages:
        return Refusal("below_score_gate", "What was found is below the least score of the setting ask.score_gate.")
    if not any(passage.is_enough for passage in evidence.passages):
        return Refusal("weak_evidence", _weak(evidence))
    return None


def least_strength(evidence: Evidence) -> float:
    """What lets an answer pass."""
    return LEAST_STRENGTH if evidence.by_meaning else LEAST_BY_WORDS


def _weak(evidence: Evidence) -> str:
    if evidence.missing:
        return f"What was found says nothing about {', '.join(evidence.missing[:_NAMED])}."
    return "What was found touches on this, but no passage speaks to all of it."
