"""An answer without a model: the sentences that answer, word for word, each with its marker; for "how do I", code blocks whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kebab.answering.evidence import Passage
from kebab.answering.question import Question, Terms, terms_of
from kebab.answering.sentences import Sentence
from kebab.core.ports import Tokenizer
from kebab.core.spans import CodeSpan

_MOST_PASSAGES = 4
_MOST_OF_BEST = 2
"""Sentences of the best passage, code not counted; of the others the best one, to show what else there is."""
_MOST_WORDS = 150
_LONGEST = 700
"""Characters of what is quoted as a sentence: what is longer has no sentences, such as a log."""
_NEAR_THE_BEST = 0.6
"""A second sentence of the best passage that scores less than this share of the first says something else."""
_NEAR_THE_STRONGEST = 0.75
"""Passages that speak less for an answer than this share of the strongest are left out."""
_FROM_CONTEXT = 0.5
"""What a word counts that stands in the title or the headings above a sentence, or in the sentence before it, not in itself."""
_ASKS_FOR_NUMBER = re.compile(r"\bhow (?:many|much|long|often|old|far|large|big|high)\b|\bwhen\b|몇|얼마|언제", re.IGNORECASE)
_MAY_WANT_NUMBER = re.compile(
    r"\b(?:default|port|version|number|size|limit|longest|largest|maximum|minimum|most|least)\b|기본|포트|버전|최대|최소|크기",
    re.IGNORECASE,
)
_ASKS_WHAT = re.compile(r"\bwhat(?:'s| is| are| does)\b|무엇|뭐|(?:이)?란\b", re.IGNORECASE)
_FEW_WORDS = 2
"""Of a question what something is; with more, something is asked about it."""
_FIRST_WORDS = re.compile(r"\W*(?:(?:an?|the)\s+)?\W*[\w-]+(?:\W+[\w-]+)?")
_DEFINES = re.compile(
    r"\b(?:is|are|means|refers to|describes|ensures|provides|defines|lets|allows)\b|(?:은|는|이란|란)\s.*(?:다|입니다|이다)\.?$"
)
_BONUS = 0.1
_FENCE_WITHOUT_LANGUAGE = re.compile(r"\s*(?:`{3,}|~{3,})\s*$", re.MULTILINE)
_QUOTE_MARK = re.compile(r"\n[ \t]*>[ \t]?")


class Quotation(NamedTuple):
    """A sentence or a block of code out of a passage."""

    passage: int
    """Which of the passages, from 0."""
    sentence: Sentence


class _Scored(NamedTuple):
    score: float
    passage: int
    place: int
    """Which sentence of the passage."""


def quotations_for(question: Question, passages: Sequence[Passage], tokenizer: Tokenizer) -> list[Quotation]:
    """The best passage first, what is taken from one in the order in which it stands there; empty when no sentence says anything."""
    scored = sorted(_scores(question, passages, tokenizer), key=lambda one: (-one.score, one.passage, one.place))
    strongest = max((passage.strength for passage in passages), default=0.0)
    chosen: dict[int, set[int]] = {}
    said: list[str] = []
    words = 0
    for one in scored:
        passage = passages[one.passage]
        taken = chosen.get(one.passage)
        if taken is None:
            wanted = not chosen or (len(chosen) < _MOST_PASSAGES and passage.strength >= _NEAR_THE_STRONGEST * strongest)
        else:
            is_first = one.passage == next(iter(chosen))
            wanted = is_first and len(taken) < _MOST_OF_BEST and one.score >= _NEAR_THE_BEST * scored[0].score
        sentence = passage.sentences[one.place]
        text = " ".join(sentence.of(passage.text).split())
        length = len(text.split()) if sentence.kind != "code" else 0
        if wanted and (not chosen or words + length <= _MOST_WORDS) and not any(text in other or other in text for other in said):
            words += length
            said.append(text)
            chosen.setdefault(one.passage, set()).add(one.place)
    if question.wants_steps:
        _add_code(passages, chosen, [one for one in scored if passages[one.passage].sentences[one.place].kind == "code"])
    _add_announcements(passages, chosen)
    return [Quotation(passage, passages[passage].sentences[place]) for passage, places in chosen.items() for place in sorted(places)]


def _scores(question: Question, passages: Sequence[Passage], tokenizer: Tokenizer) -> Iterator[_Scored]:
    for number, passage in enumerate(passages):
        context = terms_of(passage.context, tokenizer)
        before = Terms(frozenset(), "")
        for place, sentence in enumerate(passage.sentences):
            text = sentence.of(passage.text)
            own = terms_of(text, tokenizer)
            if len(text) <= _LONGEST or sentence.kind == "code" or len(passage.sentences) == 1:
                if sentence.kind == "code":  # what announces it belongs to it
                    own = Terms(own.stems | before.stems, f"{own.text}\n{before.text}")
                around = Terms(own.stems | context.stems | before.stems, f"{own.text}\n{context.text}\n{before.text}")
                covered = question.coverage(own)
                score = covered + _FROM_CONTEXT * (question.coverage(around) - covered)
                score += _fit(question, sentence, text)
                # A passage that ranks lower must say more to be quoted first.
                yield _Scored(score * (0.5 + passage.strength) / (1 + 0.05 * number), number, place)
            before = own


def _fit(question: Question, sentence: Sentence, text: str) -> float:
    """Whether it is the kind of sentence that was asked for."""
    bonus = 0.0
    if any(character.isdigit() for character in text):
        bonus += _BONUS * (2 * bool(_ASKS_FOR_NUMBER.search(question.text)) or bool(_MAY_WANT_NUMBER.search(question.text)))
    if len(question.words) <= _FEW_WORDS and _ASKS_WHAT.search(question.text) and _DEFINES.search(text):
        bonus += _BONUS
        beginning = _FIRST_WORDS.match(text.lower())
        if beginning and any(word.text in beginning[0] for word in question.words):
            bonus += _BONUS  # "A Pod is …" rather than "This is how a Pod …"
    if sentence.kind == "code":
        shows_output = _FENCE_WITHOUT_LANGUAGE.match(text) is not None
        bonus += (0.0 if shows_output else _BONUS) if question.wants_steps else -2 * _BONUS
    if sentence.kind == "row" and question.wants_steps:
        bonus -= _BONUS
    if text.endswith(("?", ":")):
        bonus -= _BONUS  # it asks, or announces what follows
    return bonus


def _add_code(passages: Sequence[Passage], chosen: dict[int, set[int]], blocks: Sequence[_Scored]) -> None:
    """Where none is quoted yet: the block that follows what is quoted of the best passage, else the best block of all."""
    if not blocks or any(passages[passage].sentences[place].kind == "code" for passage, places in chosen.items() for place in places):
        return
    best = next(iter(chosen), blocks[0].passage)
    following = [one for one in blocks if one.passage == best and one.place > min(chosen.get(best, {-1}))]
    block = min(following, key=lambda one: one.place, default=blocks[0])
    chosen.setdefault(block.passage, set()).add(block.place)


def _add_announcements(passages: Sequence[Passage], chosen: dict[int, set[int]]) -> None:
    """Code without the sentence that says what it does says little."""
    for number, places in chosen.items():
        cut, text = passages[number].sentences, passages[number].text
        places |= {place - 1 for place in places if place and cut[place].kind == "code" and cut[place - 1].of(text).endswith(":")}


def written_out(quotes: Sequence[tuple[Passage, int, Sentence]]) -> str:
    """Passages, their markers and sentences as one text: sentences of one passage run on, code stands by itself."""
    paragraphs: list[str] = []
    last = None
    for passage, marker, sentence in quotes:
        text = sentence.of(passage.text)
        if sentence.kind == "code":
            paragraphs.append(f"{_fenced(text, passage)}\n[{marker}]")
            last = None
            continue
        said = f"{' '.join(_QUOTE_MARK.sub(' ', text).split())} [{marker}]"
        if last == marker:
            paragraphs[-1] += f" {said}"
        else:
            paragraphs.append(said)
        last = marker
    return "\n\n".join(paragraphs)


def _fenced(text: str, passage: Passage) -> str:
    if text.lstrip().startswith(("```", "~~~")):
        return text
    span = passage.citation.span
    return f"```{(span.lang or '') if isinstance(span, CodeSpan) else ''}\n{text}\n```"
