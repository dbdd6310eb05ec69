"""Answering, step by step: search, weigh the evidence, quote it or have a model write, check every claim, or refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kebab.answering.citation_check import CHECKER_VERSION, CitationChecker
from kebab.answering.citing import citation_of, citations_of, source_of
from kebab.answering.claims import claims_of, declines, marked
from kebab.answering.evidence import Evidence, Passage, gather
from kebab.answering.extractive import quotations_for, written_out
from kebab.answering.gate import Refusal, least_strength, refusal
from kebab.answering.prompt import PROMPT_VERSION, PromptSource, messages
from kebab.answering.question import Question, read_question
from kebab.config.settings import AskSettings
from kebab.core.answers import Answer
from kebab.core.errors import TextRefused
from kebab.core.ports import ChatModel, LexicalIndex, Tokenizer, Written
from kebab.core.search import Notice, SearchHit, SearchResponse
from kebab.pipelines.search_request import SearchRequest

_HITS = 8
"""Passages that are looked at (benchmarks/README.md)."""


class Dictation(NamedTuple):
    """Who writes, who listens, and who may interrupt."""

    writer: ChatModel | None = None
    on_text: Callable[[str], None] | None = None
    stop: Callable[[], bool] | None = None


def evidence_request(request: SearchRequest) -> SearchRequest:
    """The search behind an answer: whole passages with their neighbours. The budget is for what of them becomes evidence."""
    return request._replace(k=request.k or _HITS, full_text=True, neighbours=max(1, request.neighbours), max_tokens=None)


def answer(
    request: SearchRequest, settings: AskSettings, response: SearchResponse, index: LexicalIndex | None, dictation: Dictation
) -> Answer:
    """`index` is None for a knowledge base that does not exist yet; without a writer, an answer is made of quotations."""
    candidates = response.hits if request.full_text else tuple(map(_as_candidate, response.hits))
    base = Answer(request.query, None, False, None, None, candidates=candidates, notices=response.notices)
    if index is None or not response.hits:
        nothing = "Nothing that was ingested is about this." if index else "Nothing has been ingested yet."
        return _refused(base, Refusal("no_evidence", nothing))._replace(explanation=_explained(request, response, None))
    question = read_question(request.query, index, request.filters())
    budget = request.max_tokens or settings.max_tokens
    evidence = gather(question, response.hits, index.tokenizer, score_gate=settings.score_gate, max_tokens=budget)
    why_not = refusal(evidence)
    if why_not is not None:
        made = _refused(base, why_not)
    elif dictation.writer is None:
        made = _quoted(base, question, evidence, index.tokenizer)
    else:
        made = _written(base, evidence.passages, index.tokenizer, dictation.writer, dictation, settings)
    return made._replace(explanation=_explained(request, response, evidence))


def _refused(base: Answer, why: Refusal) -> Answer:
    return base._replace(text=None, grounded=False, refusal_reason=why.reason, refusal_message=why.message)


def _as_candidate(hit: SearchHit) -> SearchHit:
    """As a search would show it."""
    return hit._replace(text=hit.snippet, neighbours=None)


def _explained(request: SearchRequest, response: SearchResponse, evidence: Evidence | None) -> dict[str, Any] | None:
    if not request.explain:
        return None
    weighed = {**evidence.explained(), "least": least_strength(evidence)} if evidence else None
    return {"retrieval": response.explanation, "evidence": weighed}


def _quoted(base: Answer, question: Question, evidence: Evidence, tokenizer: Tokenizer) -> Answer:
    chosen = quotations_for(question, evidence.passages, tokenizer)
    if not chosen:
        return _refused(base, Refusal("no_sentence", "What was found has no sentence that answers this."))
    markers = {passage: number for number, passage in enumerate(dict.fromkeys(one.passage for one in chosen), start=1)}
    checker = CitationChecker([source_of(evidence.passages[passage], marker) for passage, marker in markers.items()], tokenizer)
    quotes = [(evidence.passages[one.passage], markers[one.passage], one.sentence) for one in chosen]
    claims = tuple(checker.check(sentence.of(passage.text), (marker,)) for passage, marker, sentence in quotes)
    return base._replace(
        text=written_out(quotes),
        grounded=all(claim.verdict == "supported" for claim in claims),
        claims=claims,
        citations=tuple(
            citation_of(passage, marker, claim, number, sentence)
            for number, ((passage, marker, sentence), claim) in enumerate(zip(quotes, claims, strict=True))
        ),
        checker_version=CHECKER_VERSION,
    )


def _written(
    base: Answer, passages: Sequence[Passage], tokenizer: Tokenizer, writer: ChatModel, dictation: Dictation, settings: AskSettings
) -> Answer:
    base = base._replace(model=writer.name, prompt_version=PROMPT_VERSION, checker_version=CHECKER_VERSION)
    written, passages = _dictated(base.question, passages, writer, dictation)
    if written.stopped:
        return _refused(base, Refusal("stopped", "It was stopped before the answer was complete."))
    text = written.text.strip()
    said = claims_of(text)
    if not said or declines(text):
        return _refused(base, Refusal("model_declined", "The model found no answer in the nearest passages."))
    numbered = dict(enumerate(passages, start=1))
    checker = CitationChecker([source_of(passage, marker) for marker, passage in numbered.items()], tokenizer)
    claims = tuple(checker.check(claim.text, claim.markers) for claim in said)
    base = base._replace(claims=claims, citations=tuple(citations_of(claims, numbered, tokenizer)))
    base = base._replace(
        notices=(*base.notices, *_about(written, {marker for claim in claims for marker in claim.markers} - set(numbered)))
    )
    doubtful = [claim for claim in claims if claim.verdict in ("unsupported", "stitched")]
    if len(doubtful) == len(claims) or (doubtful and settings.unsupported == "refuse"):
        return _refused(base, Refusal("unsupported_claims", "The model made claims that the passages it cites do not support."))
    marks = [(one.end, claim.verdict) for one, claim in zip(said, claims, strict=True) if claim.verdict != "supported"]
    return base._replace(text=marked(text, marks), grounded=not marks)


def _dictated(question: str, passages: Sequence[Passage], writer: ChatModel, dictation: Dictation) -> tuple[Written, Sequence[Passage]]:
    """What the model wrote, and from which passages: when all are too much for it, from the better half."""
    while True:
        sources = [PromptSource(marker, one.citation.text, one.context, one.text) for marker, one in enumerate(passages, start=1)]
        try:
            return writer.write(messages(question, sources), on_text=dictation.on_text, stop=dictation.stop), passages
        except TextRefused:
            if len(passages) == 1:
                raise
            passages = passages[: len(passages) // 2]


def _about(written: Written, unknown: set[int]) -> list[Notice]:
    notices = []
    if written.cut_off:
        notices.append(Notice("cut_off", "The model had more to say: raise ask.answer_tokens to let it."))
    if unknown:
        listed = ", ".join(f"[{marker}]" for marker in sorted(unknown))
        notices.append(Notice("unknown_markers", f"The model cited sources that it was not given: {listed}."))
    return notices
