"""The wire object answer.v1."""

from __future__ import annotations

from typing import Any, Literal

from kebab.core.answers import Answer, AnswerCitation, Claim
from kebab.wire import Wire, view
from kebab.wire.search import CitationV1, NoticeV1, SearchHitV1

VerdictV1 = Literal["supported", "misattributed", "stitched", "unsupported"]


class ClaimV1(Wire, of=Claim):
    """One statement of an answer, checked."""

    text: str
    markers: list[int]
    verdict: VerdictV1
    """supported: by a passage that it cites; misattributed: only by another one; stitched: only by several put
    together; unsupported.
    """
    matched: list[str]
    """Its words that the passage has which supports it best."""
    missing: list[str]
    """Its words, numbers and names that this passage has not."""
    supported_by: list[int]
    """Markers of the passages that support it, cited or not."""


class AnswerCitationV1(Wire, of=AnswerCitation):
    """What stands behind a marker, for one claim."""

    marker: int
    citation: CitationV1
    """Of the passage."""
    quote: str | None
    """Its sentence that the claim repeats or comes nearest to, verbatim."""
    quoted_at: CitationV1 | None
    """The lines, or the page, of the quotation itself."""
    verdict: VerdictV1
    claim: int
    """Its place in claims, from 0."""
    chunk_id: str
    doc_id: str
    source: str
    title: str
    """Of the document."""
    date: str
    """Of the document, as in search_hit.v1: what tells which of two that differ is the newer one."""
    stale: bool
    """Whether its file has changed or is gone since it was indexed."""
    suspicious: bool
    """Whether the passage reads like orders to a machine somewhere: quoted data, and that part of it supports nothing.
    """


class AnswerV1(Wire, schema="answer.v1"):
    """An answer with its citations, or why there is none."""

    question: str
    answer: str | None
    """With a marker such as [1] behind every statement; null on refusal."""
    grounded: bool
    """Whether every claim is supported by what it cites."""
    refusal_reason: str | None
    """A word for programs; null when answered."""
    refusal_message: str | None
    """The same for people."""
    citations: list[AnswerCitationV1]
    claims: list[ClaimV1]
    candidates: list[SearchHitV1]
    """What was found, best first, whether it was used or not."""
    model: str | None
    """What wrote it; null when it is made of quotations."""
    prompt_version: str | None
    checker_version: str | None
    notices: list[NoticeV1]
    explanation: dict[str, Any] | None


def answer_v1(answer: Answer) -> AnswerV1:
    return view(AnswerV1, answer, answer=answer.text)
