"""Answering, step by step: search, weigh the evidence, quote it or have a model write, check every claim, or refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kebab.answering.citation_check import CHECKER_VERSION, CitationChecker, Source
from kebab.answering.evidence import Evidence, Passage, gather
from kebab.answering.extractive import quotations_for
from kebab.answering.gate import Refusal, refusal
from kebab.answering.question import Question, read_question
from kebab.answering.sentences import Sentence
from kebab.config.settings import AskSettings
from kebab.core.answers import Answer, AnswerCitation, Claim
from kebab.core.citations import Citation
from kebab.core.ports import LexicalIndex
from kebab.core.search import SearchHit, SearchResponse
from kebab.core.spans import CodeSpan, LineSpan
from kebab.pipelines.search_request import SearchRequest

_HITS = 8
"""Passages that are looked at; what stands further down has not helped (benchmarks/README.md)."""


def evidence_request(request: SearchRequest) -> SearchRequest:
    """The search behind an answer: whole passages with their neighbours. The budget is for what of them becomes evidence."""
    return request._replace(k=request.k or _HITS, full_text=True, neighbours=max(1, request.neighbours), max_tokens=None)


def answer(
    request: SearchRequest,
    settings: AskSettings,
    response: SearchResponse,
    index: LexicalIndex | None,
) -> Answer:
    """`index` is None for a knowledge base that does not exist yet."""
    candidates = tuple(map(_as_candidate, response.hits)) if not request.full_text else response.hits
    base = Answer(request.query, None, False, None, None, candidates=candidates, notices=response.notices)
    if index is None or not response.hits:
        found = Refusal("no_evidence", "Nothing that was ingested is about this." if index else "Nothing has been ingested yet.")
        return _refused(base, found, _explained(request, response, None))
    question = read_question(request.query, index, request.filters())
    budget = request.max_tokens or settings.max_tokens
    evidence = gather(question, response.hits, index.tokenizer, score_gate=settings.score_gate, max_tokens=budget)
    why_not = refusal(evidence)
    if why_not is not None:
        return _refused(base, why_not, _explained(request, response, evidence))
    return _quoted(base, question, evidence, index)._replace(explanation=_explained(request, response, evidence))


def _refused(base: Answer, why: Refusal, explanation: dict[str, Any] | None) -> Answer:
    return base._replace(refusal_reason=why.reason, refusal_message=why.message, explanation=explanation)


def _as_candidate(hit: SearchHit) -> SearchHit:
    """As a search would show it."""
    return hit._replace(text=hit.snippet, neighbours=None)


def _explained(request: SearchRequest, response: SearchResponse, evidence: Evidence | None) -> dict[str, Any] | None:
    if not request.explain:
        return None
    return {"retrieval": response.explanation, "evidence": evidence.explained() if evidence else None}


# --- quoting


class _Said(NamedTuple):
    """One statement of the answer, and what it quotes."""

    text: str
    marker: int
    passage: Passage
    quoted: Sentence


def _quoted(base: Answer, question: Question, evidence: Evidence, index: LexicalIndex) -> Answer:
    chosen = quotations_for(question, evidence.passages, index.tokenizer)
    if not chosen:
        return _refused(base, Refusal("no_sentence", "What was found has no sentence that answers this."), None)
    markers = {passage: number for number, passage in enumerate(dict.fromkeys(one.passage for one in chosen), start=1)}
    said = []
    for one in chosen:
        passage = evidence.passages[one.passage]
        said.append(_Said(one.sentence.of(passage.text), markers[one.passage], passage, one.sentence))
    checker = CitationChecker([_source(evidence.passages[passage], marker) for passage, marker in markers.items()], index.tokenizer)
    claims = tuple(checker.check(one.text, (one.marker,)) for one in said)
    citations = tuple(_citation(one, claim, number) for number, (one, claim) in enumerate(zip(said, claims, strict=True)))
    return base._replace(
        text=_written(said),
        grounded=all(claim.verdict == "supported" for claim in claims),
        claims=claims,
        citations=citations,
        checker_version=CHECKER_VERSION,
    )


def _source(passage: Passage, marker: int) -> Source:
    return Source(marker, passage.text, passage.context, passage.sentences)


def _citation(said: _Said, claim: Claim, number: int) -> AnswerCitation:
    hit, passage = said.passage.hit, said.passage
    return AnswerCitation(
        marker=said.marker,
        citation=passage.citation,
        chunk_id=passage.chunk_id,
        doc_id=hit.doc_id,
        source=hit.source,
        quote=said.text,
        quoted_at=place_of(passage, said.quoted),
        verdict=claim.verdict,
        claim=number,
    )


def place_of(passage: Passage, sentence: Sentence) -> Citation:
    """The lines of a sentence; where there are no lines, as exactly as the passage is known."""
    lines = passage.citation.lines
    if lines is None:
        return passage.citation
    first = lines[0] + passage.text.count("\n", 0, sentence.start)
    last = min(lines[1], first + passage.text.count("\n", sentence.start, sentence.end))
    span = passage.citation.span
    moved = span._replace(line_start=first, line_end=last) if isinstance(span, CodeSpan) else LineSpan(first, last)
    return passage.citation._replace(span=moved, content_hash=None)


def _written(said: Sequence[_Said]) -> str:
    """Sentences of one passage run on; code stands by itself."""
    parts: list[str] = []
    last: _Said | None = None
    for one in said:
        if one.quoted.kind == "code":
            parts.append(f"\n\n{_fenced(one)}\n[{one.marker}]\n\n")
        else:
            runs_on = last is not None and last.marker == one.marker and last.quoted.kind != "code"
            parts.append(f"{' ' if runs_on else chr(10) * 2}{' '.join(one.text.split())} [{one.marker}]")
        last = one
    lines = "".join(parts).strip().split("\n")
    return "\n".join(line for line, after in zip(lines, [*lines[1:], "end"], strict=True) if line.strip() or after.strip())


def _fenced(said: _Said) -> str:
    if said.text.lstrip().startswith(("```", "~~~")):
        return said.text
    span = said.passage.citation.span
    return f"```{(span.lang or '') if isinstance(span, CodeSpan) else ''}\n{said.text}\n```"
