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

_MOST_PASSAGES = 3
_MOST_OF_ONE = 2
"""Sentences of one passage, code not counted."""
_MOST_WORDS = 120
_LONGEST = 700
"""Characters of what is quoted as a sentence: what is longer has no sentences, such as a log."""
_NEAR_THE_BEST = 0.6
"""What scores less than this share of the best sentence answers something else."""
_FROM_CONTEXT = 0.5
"""What a word counts that stands in the title or the headings above a sentence, or in the sentence before it, not in itself."""
_ASKS_FOR_NUMBER = re.compile(
    r"\bhow (?:many|much|long|often|old|far|large|big)\b|\b(?:when|default|port|version|number|size|limit|maximum|minimum)\b"
    r"|몇|얼마|언제|기본값|기본|포트|버전|최대|최소|크기",
    re.IGNORECASE,
)
_ASKS_WHAT = re.compile(r"\bwhat(?:'s| is| are| does)\b|무엇|뭐|(?:이)?란\b", re.IGNORECASE)
_DEFINES = re.compile(r"\b(?:is|are|means|refers to|describes|lets you|allows you)\b|(?:은|는|이란|란)\s.*(?:다|입니다|이다)\.?$")
_BONUS = 0.1
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
    chosen: dict[int, set[int]] = {}
    words = 0
    for one in scored:
        sentence = passages[one.passage].sentences[one.place]
        taken = chosen.get(one.passage, set())
        length = len(sentence.of(passages[one.passage].text).split()) if sentence.kind != "code" else 0
        full = len(chosen) >= _MOST_PASSAGES and not taken
        if one.score < _NEAR_THE_BEST * scored[0].score or full or _counted(taken, passages[one.passage]) >= _MOST_OF_ONE:
            continue
        if chosen and words + length > _MOST_WORDS:
            continue
        words += length
        chosen.setdefault(one.passage, set()).add(one.place)
    if question.wants_steps:
        _add_code(passages, chosen)
    _add_announcements(passages, chosen)
    return [Quotation(passage, passages[passage].sentences[place]) for passage, places in chosen.items() for place in sorted(places)]


def _counted(places: set[int], passage: Passage) -> int:
    return sum(passage.sentences[place].kind != "code" for place in places)


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
                yield _Scored(score * (0.5 + 0.5 * passage.coverage) / (1 + 0.08 * number), number, place)
            before = own


def _fit(question: Question, sentence: Sentence, text: str) -> float:
    """Whether it is the kind of sentence that was asked for."""
    bonus = 0.0
    if _ASKS_FOR_NUMBER.search(question.text) and any(character.isdigit() for character in text):
        bonus += _BONUS
    if _ASKS_WHAT.search(question.text) and _DEFINES.search(text):
        bonus += _BONUS
    if sentence.kind == "code":
        bonus += _BONUS if question.wants_steps else -2 * _BONUS
    if sentence.kind == "row" and question.wants_steps:
        bonus -= _BONUS
    if text.endswith(("?", ":")):
        bonus -= _BONUS  # it asks, or announces what follows
    return bonus


def _add_code(passages: Sequence[Passage], chosen: dict[int, set[int]]) -> None:
    """Of the best passage: the block that follows what is quoted of it, else its first one; of none, that of what stands beside it."""
    if any(passages[passage].sentences[place].kind == "code" for passage, places in chosen.items() for place in places):
        return
    for number in [*chosen, *(number for number, passage in enumerate(passages) if passage.beside)]:
        blocks = [place for place, sentence in enumerate(passages[number].sentences) if sentence.kind == "code"]
        if blocks:
            first = min(chosen.get(number, {0}))
            block = next((place for place in blocks if place > first), blocks[0])
            chosen.setdefault(number, set()).add(block)
            return


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
