"""Answering, step by step: search, weigh the evidence, quote it or have a model write, check every claim, or refuse."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.analysis.orders import speaks_to_a_machine
from kebab.answering.citation_check import CHECKER_VERSION, CitationChecker
from kebab.answering.citing import citation_of, citations_of, source_of
from kebab.answering.claims import declines, marked
from kebab.answering.evidence import Evidence, Passage, gather
from kebab.answering.extractive import quotations_for, written_out
from kebab.answering.gate import NO_SUBJECT, Refusal, about_another, least_strength, no_sentence, not_done, refusal
from kebab.answering.left_out import left_out
from kebab.answering.prompt import PROMPT_VERSION, PromptSource, messages
from kebab.answering.question import Question, is_asking, read_question
from kebab.answering.written_check import checked
from kebab.config.settings import AskSettings
from kebab.core.answers import Answer
from kebab.core.errors import TextRefused
from kebab.core.notices import UNKNOWN_VALUES, Notice, Says
from kebab.core.ports import ChatModel, Tokenizer, WordsAlike, Written
from kebab.core.search import MAX_MEANING_CHARS, SearchHit, SearchResponse
from kebab.search.options import SearchRequest

if TYPE_CHECKING:
    from kebab.core.store_ports import LexicalIndex

_WORD = re.compile(r"\w+")
_HITS = 8
"""How many passages are considered (benchmarks/README.md)."""


_NOWHERE = ("unsupported", "stitched")
"""Verdicts on a claim that no passage states; a misattributed claim is stated by another passage."""
_UNSUPPORTED = Refusal("unsupported_claims", "The model made claims that the passages it cites do not support.")
_DECLINED = Refusal("model_declined", "The model found no answer in the nearest passages.")
_CUT_OFF = Refusal("cut_off", "The model was cut off before it began to answer: raise ask.answer_tokens.")


class Dictation(NamedTuple):
    """The model that writes an answer, if any, and the callbacks of the caller."""

    writer: ChatModel | None = None
    alike: WordsAlike | None = None
    """Compares words by meaning, to check what the model writes; None if words are compared by tables only."""
    on_text: Callable[[str], None] | None = None
    stop: Callable[[], bool] | None = None


def evidence_request(request: SearchRequest) -> SearchRequest:
    """The search behind an answer: whole passages with their neighbours. The budget of tokens applies to the evidence
    made from them.
    """
    return request._replace(
        k=request.k or _HITS, full_text=True, neighbours=max(1, request.neighbours), max_tokens=None
    )


def answer(
    request: SearchRequest,
    settings: AskSettings,
    response: SearchResponse,
    index: LexicalIndex | None,
    dictation: Dictation,
) -> Answer:
    """Answers the question from the response. `index` is None if the knowledge base does not exist yet. Without a
    writer, the answer is made of quotations.
    """
    candidates = response.hits if request.full_text else tuple(map(_as_candidate, response.hits))
    said = tuple(notice for notice in response.notices if _is_worth_saying(notice, request.query))
    base = Answer(request.query, None, False, None, None, candidates=candidates, notices=said)
    if index is None or not response.hits:
        return _refused(base, _nothing_found(request.query, said, index))._replace(
            explanation=_explained(request, response, None)
        )
    question = read_question(request.query[:MAX_MEANING_CHARS], index, request.filters())
    budget = request.max_tokens or settings.max_tokens
    evidence = gather(question, response.hits, index.tokenizer, score_gate=settings.score_gate, max_tokens=budget)
    why_not = refusal(question, evidence)
    if why_not is not None:
        made = _refused(base, why_not)
    elif dictation.writer is None:
        made = _quoted(base, question, evidence, index.tokenizer)
    else:
        made = _written(base, evidence.passages, index.tokenizer, dictation.writer, dictation, settings)
    if made.text is None and (unread := left_out(question, evidence.passages)):
        made = made._replace(notices=(*made.notices, Says.ORDERS_LEFT_OUT.notice(unread)))
    return made._replace(explanation=_explained(request, response, evidence))


def _nothing_found(query: str, said: Sequence[Notice], index: LexicalIndex | None) -> Refusal:
    if index is None:
        return Refusal("no_evidence", "Nothing has been ingested yet.")
    if Says.UNMATCHED_FILTER.is_in(said) or any(notice.code in UNKNOWN_VALUES for notice in said):
        return Refusal("no_evidence", "No document passes the filters.")
    return (
        Refusal("no_evidence", "Nothing that was ingested is about this.")
        if any(map(str.isalnum, query))
        else NO_SUBJECT
    )


def _is_worth_saying(notice: Notice, query: str) -> bool:
    """Whether a notice is useful with an answer. "Did you mean" is not if it replaces a word of asking, such as "name"
    in "what is the name of our dog?".
    """
    if notice.code != Says.DID_YOU_MEAN.code:
        return True
    words = set(_WORD.findall(query.lower()))
    replaced = {word for other in notice.suggestions for word in words - set(_WORD.findall(other.lower()))}
    return not replaced or not all(map(is_asking, replaced))


def _refused(base: Answer, why: Refusal) -> Answer:
    return base._replace(text=None, grounded=False, refusal_reason=why.reason, refusal_message=why.message)


def _as_candidate(hit: SearchHit) -> SearchHit:
    """The hit with its snippet as text, as a search returns it."""
    return hit._replace(text=hit.snippet, neighbours=None)


def _explained(request: SearchRequest, response: SearchResponse, evidence: Evidence | None) -> dict[str, Any] | None:
    if not request.explain:
        return None
    weighed = {**evidence.explained(), "least": least_strength(evidence)} if evidence else None
    return {"retrieval": response.explanation, "evidence": weighed}


def _quoted(base: Answer, question: Question, evidence: Evidence, tokenizer: Tokenizer) -> Answer:
    chosen, lacking, undone = quotations_for(question, evidence.passages, tokenizer)
    if not chosen:
        return _refused(
            base,
            about_another(question, lacking)
            if lacking
            else not_done(question, undone)
            if undone
            else no_sentence(question),
        )
    markers = {passage: number for number, passage in enumerate(dict.fromkeys(one.passage for one in chosen), start=1)}
    quotes = [(evidence.passages[one.passage], markers[one.passage], one.unit) for one in chosen]
    sources = [
        source_of(evidence.passages[passage], marker, (one.unit for one in chosen if one.passage == passage))
        for passage, marker in markers.items()
    ]
    checker = CitationChecker(sources, tokenizer)
    claims = tuple(checker.check(unit.of(passage.text), (marker,)) for passage, marker, unit in quotes)
    return base._replace(
        text=written_out(quotes),
        grounded=all(claim.verdict == "supported" for claim in claims),
        claims=claims,
        citations=tuple(
            citation_of(passage, marker, claim, number, unit)
            for number, ((passage, marker, unit), claim) in enumerate(zip(quotes, claims, strict=True))
        ),
        checker_version=CHECKER_VERSION,
    )


def _written(
    base: Answer,
    passages: Sequence[Passage],
    tokenizer: Tokenizer,
    writer: ChatModel,
    dictation: Dictation,
    settings: AskSettings,
) -> Answer:
    base = base._replace(model=writer.name, prompt_version=PROMPT_VERSION, checker_version=CHECKER_VERSION)
    written, passages = _dictated(base.question, passages, writer, dictation)
    if written.stopped:
        return _refused(base, Refusal("stopped", "It was stopped before the answer was complete."))
    text = written.text.strip()
    numbered = dict(enumerate(passages, start=1))
    checker = CitationChecker(
        [source_of(passage, marker) for marker, passage in numbered.items()], tokenizer, dictation.alike
    )
    judged = [] if declines(text) else list(checked(text, base.question, checker))
    claims = tuple(claim for _, claim in judged)
    cited = {marker for claim in claims for marker in claim.markers}
    base = base._replace(
        claims=claims,
        citations=tuple(citations_of(claims, numbered, tokenizer)),
        notices=(*base.notices, *_about(written, cited - set(numbered))),
    )
    if not judged:
        return _refused(base, _CUT_OFF if written.cut_off and not text else _DECLINED)
    marks = [(one.end, claim.verdict) for one, claim in judged if claim.verdict != "supported"]
    is_nowhere = all(claim.verdict in _NOWHERE for claim in claims)
    # That they have no answer, some models say in words of their own; and some do what a source tells them to.
    is_no_answer = is_nowhere and (
        not cited & set(numbered) or any(speaks_to_a_machine(passage.text) for passage in passages)
    )
    if is_no_answer or (marks and settings.unsupported == "refuse"):
        return _refused(base, _UNSUPPORTED)
    return base._replace(text=marked(text, marks), grounded=not marks)


def _dictated(
    question: str, passages: Sequence[Passage], writer: ChatModel, dictation: Dictation
) -> tuple[Written, Sequence[Passage]]:
    """What the model wrote, and the passages it was given: all, or the better half if all are too long for it."""
    while True:
        sources = [
            PromptSource(marker, one.citation.text, one.titles, one.text)
            for marker, one in enumerate(passages, start=1)
        ]
        try:
            return writer.write(messages(question, sources), on_text=dictation.on_text, stop=dictation.stop), passages
        except TextRefused:
            if len(passages) == 1:
                raise
            passages = passages[: len(passages) // 2]


def _about(written: Written, unknown: set[int]) -> list[Notice]:
    notices = []
    if written.cut_off and written.text.strip():
        notices.append(Says.CUT_OFF.notice())
    if unknown:
        notices.append(Says.UNKNOWN_MARKERS.notice(", ".join(f"[{marker}]" for marker in sorted(unknown))))
    return notices
