"""An answer and what it rests on: claims, the passages they cite, and a verdict on each."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from kebab.core.citations import Citation
from kebab.core.notices import Notice
from kebab.core.search import SearchHit

Verdict = Literal["supported", "misattributed", "stitched", "unsupported"]
VERDICTS: tuple[str, ...] = ("supported", "misattributed", "stitched", "unsupported")
"""By the passage that is cited; by another one only; only by several of them put together; by none."""


class Claim(NamedTuple):
    """One statement of an answer."""

    text: str
    """As the answer has it, without its markers."""
    markers: tuple[int, ...]
    verdict: Verdict
    matched: tuple[str, ...] = ()
    """Its words that the passage has which supports it best."""
    missing: tuple[str, ...] = ()
    """Those that it has not."""
    supported_by: tuple[int, ...] = ()
    """The markers of the passages that would support it, or a clause of it where each has its own, whether they are
    cited or not.
    """


class AnswerCitation(NamedTuple):
    """What stands behind a marker, for one claim."""

    marker: int
    citation: Citation
    """Of the passage."""
    chunk_id: str
    doc_id: str
    source: str
    title: str
    """Of the document."""
    date: str
    """Of the document; it shows which of two differing documents is newer."""
    stale: bool
    """Whether its file has changed or is gone since it was indexed."""
    quote: str | None
    """Its sentence that the claim repeats or comes nearest to; verbatim. None when none comes near."""
    quoted_at: Citation | None
    """The lines, or the page, of the quotation itself."""
    verdict: Verdict
    """On this passage alone: of two that a claim cites, one may not support it."""
    claim: int
    """Which of the claims, from 0."""
    suspicious: bool
    """Whether the passage reads like orders to a machine somewhere: that part of it supports nothing."""


class Answer(NamedTuple):
    question: str
    text: str | None
    """With a marker such as [1] behind every statement; None when there is no answer."""
    grounded: bool
    """Whether every claim is supported by what it cites."""
    refusal_reason: str | None
    """A word for why there is no answer; None when there is one."""
    refusal_message: str | None
    """The same in a sentence."""
    claims: tuple[Claim, ...] = ()
    citations: tuple[AnswerCitation, ...] = ()
    candidates: tuple[SearchHit, ...] = ()
    """What was found, best first, whether it was used or not."""
    model: str | None = None
    """What wrote it; None when it is made of quotations."""
    prompt_version: str | None = None
    checker_version: str | None = None
    notices: tuple[Notice, ...] = ()
    explanation: dict[str, Any] | None = None
