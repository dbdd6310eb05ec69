"""Decides whether the evidence is enough to answer a question, or says why not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kebab.analysis.cjk import has_cjk
from kebab.answering.evidence import LEAST_BY_WORDS, LEAST_STRENGTH, Evidence
from kebab.answering.question import Question
from kebab.answering.ranking import STRICT

_NEAREST = 3
_NAMED = 4
"""The most words of the question that a refusal names."""


class Refusal(NamedTuple):
    reason: str
    """The reason as a code for programs."""
    message: str


NO_SUBJECT = Refusal(
    "no_subject", "The question does not say what it is about. Each question stands alone: name the thing."
)


def refusal(question: Question, evidence: Evidence) -> Refusal | None:
    if not evidence.passages:
        return Refusal("below_score_gate", "What was found is below the least score of the setting ask.score_gate.")
    if not question.stands_alone:
        return NO_SUBJECT
    needed = (question.thing.text if question.thing else None, question.parts.trait)
    if (
        evidence.absent
        or any(word in evidence.missing for word in needed)
        or not any(passage.is_enough for passage in evidence.passages)
    ):
        return Refusal("weak_evidence", _weak(question, evidence))
    return None


def no_sentence(question: Question) -> Refusal:
    """The refusal for evidence that is about the right thing but has no sentence that answers."""
    if question.kind in STRICT:
        return Refusal("no_sentence", f"What was found is about this, but does not say {question.kind.value}.")
    return Refusal("no_sentence", "What was found has no sentence that answers this.")


def about_another(question: Question, lacking: Sequence[str]) -> Refusal:
    """The refusal for evidence that has all the words, but says what was asked for of other things of that kind, or of
    nothing that was named.
    """
    names = [named.text for named in question.named if named.is_name and named.text in lacking]
    deed = question.parts.deed
    if deed is not None and question.wants_steps and deed.verb in lacking and not names:
        return not_done(question, " ".join(filter(None, deed)))
    if names:
        return Refusal("no_sentence", f"What was found says this of others, not of {', '.join(names[:_NAMED])}.")
    return Refusal(
        "no_sentence", f"What was found has {', '.join(lacking[:_NAMED])}, but not in what would answer this."
    )


def not_done(question: Question, deed: str) -> Refusal:
    """The refusal for evidence about the right thing that says only something else is done with it."""
    how = "how to" if question.wants_steps else "this of what is asked about: to"
    return Refusal("no_sentence", f"What was found is about this, but does not say {how} {deed}.")


def least_strength(evidence: Evidence) -> float:
    """The least strength of evidence for an answer."""
    return LEAST_STRENGTH if evidence.by_meaning else LEAST_BY_WORDS


def _weak(question: Question, evidence: Evidence) -> str:
    if has_cjk(question.text) and not any(has_cjk(passage.text) for passage in evidence.passages[:_NEAREST]):
        return "The nearest passages are in another language, and an answer is made of passages in the language of the question."
    if evidence.missing:
        return f"What was found says nothing about {', '.join(evidence.missing[:_NAMED])}."
    return "What was found touches on this, but no passage speaks to all of it."
