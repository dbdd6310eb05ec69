"""An answer: its claims, the passages they cite, and a verdict on each claim."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from kebab.core.citations import Citation
from kebab.core.notices import Notice
from kebab.core.search import SearchHit

Verdict = Literal["supported", "misattributed", "stitched", "unsupported"]
"""The claim is supported by the cited passage, by another passage only, by several only together, or by none."""


class Claim(NamedTuple):
    """One statement of an answer."""

    text: str
    """The statement as written in the answer, without its markers."""
    markers: tuple[int, ...]
    verdict: Verdict
    matched: tuple[str, ...] = ()
    """Words of the claim that occur in the passage that supports it best."""
    missing: tuple[str, ...] = ()
    """Words of the claim that this passage lacks."""
    supported_by: tuple[int, ...] = ()
    """Markers of passages, cited or not, that support the claim, or a clause of it if each has its own passage."""


class AnswerCitation(NamedTuple):
    """The passage that one claim cites with one marker."""

    marker: int
    citation: Citation
    """Where the passage is."""
    chunk_id: str
    doc_id: str
    source: str
    title: str
    """The title of the document."""
    date: str
    """The date of the document. It shows which of two contradicting documents is newer."""
    stale: bool
    """Whether the file was changed or deleted after it was indexed."""
    quote: str | None
    """The sentence of the passage that is closest to the claim, verbatim; None when none is close."""
    quoted_at: Citation | None
    """The lines or the page of the quoted sentence."""
    verdict: Verdict
    """Whether this passage alone supports the claim; a claim may cite one that does and one that does not."""
    claim: int
    """The index of the claim in `Answer.claims`."""
    suspicious: bool
    """Whether some part of the passage reads like orders to a machine. That part never supports a claim."""


class Answer(NamedTuple):
    question: str
    text: str | None
    """The answer, with a marker such as [1] after every statement; None when there is no answer."""
    grounded: bool
    """Whether every claim is supported by the passages it cites."""
    refusal_reason: str | None
    """A code for the reason why there is no answer; None when there is one."""
    refusal_message: str | None
    """The same reason as a sentence."""
    claims: tuple[Claim, ...] = ()
    citations: tuple[AnswerCitation, ...] = ()
    candidates: tuple[SearchHit, ...] = ()
    """All passages that the search found, best first, used or not."""
    model: str | None = None
    """The chat model that wrote the answer; None when it consists of quotations."""
    prompt_version: str | None = None
    checker_version: str | None = None
    notices: tuple[Notice, ...] = ()
    explanation: dict[str, Any] | None = None
