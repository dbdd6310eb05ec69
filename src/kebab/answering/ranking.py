"""Ranks the quotable units of passages by how well they answer a question: by words, by subject, and by the kind of
thing asked for. The numbers were chosen on four sets of questions together (benchmarks/README.md); none matters by
itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from kebab.answering.asked_for import asked_for, names_it
from kebab.answering.evidence import Passage
from kebab.answering.kinds import Kind, names_who, share_of_kind
from kebab.answering.question import Question, QuestionWord, share_of, terms_of
from kebab.answering.question_parts import is_past
from kebab.answering.table_cells import cells_under
from kebab.answering.units import WHOLES, Unit
from kebab.core.ports import Tokenizer

STRICT = frozenset(
    {
        Kind.PERSON,
        Kind.TIME,
        Kind.REASON,
        Kind.MONEY,
        Kind.DURATION,
        Kind.FREQUENCY,
        Kind.AMOUNT,
        Kind.PHONE,
        Kind.SECRET,
        Kind.NAME,
    }
    | {Kind.TEMPERATURE, Kind.WEIGHT, Kind.LENGTH, Kind.PLACE}
)
"""Kinds without which a unit is no answer."""

_IN_HEADS = frozenset({Kind.FREQUENCY, Kind.DURATION, Kind.TEMPERATURE, Kind.WEIGHT, Kind.LENGTH, Kind.MONEY})
"""Kinds that the head of a table may show, whose rows then have only the number: water_every_days, °C."""
_FROM_NEAR = 0.8
"""The weight of a word that is not in the unit itself but in the text that says what the unit is about."""
_FROM_AROUND = 0.5
"""The weight of a word that is only in the title or an outer heading."""
_ELSEWHERE = 0.6
"""The factor for a unit if only the title has words of the question."""
_NO_SUBJECT = 0.7
"""The factor for a unit without a word of the question's subject, or without what is counted."""

_STRICTLY = {1.0: 0.25, 0.5: 0.1, 0.0: -0.25}
_LOOSELY = {1.0: 0.2, 0.5: 0.1, 0.0: -0.1}
_AS_A_STEP = {1.0: 0.05, 0.5: -0.1, 0.0: -0.25}
"""What it adds to the score that a unit certainly has, may have, or lacks something of the kind asked for: for strict
kinds, for kinds that almost every sentence has, for steps.
"""
_A_LITTLE = 0.1
_COUNTS = 0.15
_SAME_QUESTION = 0.2
_WITH_STEPS = 0.25

_LONGEST = 700
"""The most characters of a unit quoted as a sentence: a longer one is no sentence, such as a log."""
_LONG = 300
_WORDS_OF_A_NAME = 2
"""The most words of a name in "what is …?"; with more words, the question asks about something."""
_EXAMPLE = re.compile(r"\W*(?:for (?:example|instance)|e\.g\.|예를 들어|예컨대)", re.IGNORECASE)
_SAYS_HOW = re.compile(
    r"^(?:\d+[.)]?\s*)?(?:method|steps|instructions|procedure|directions|preparation|usage|how to|set-?up"
    r"|만드는 ?(?:법|방법)|방법|순서|절차|조리법)|(?:방법|는 법|하기)$",
    re.IGNORECASE,
)
"""Headings of texts that say how something is done."""
_LIST_OR_CODE = re.compile(r"^\s*(?:\d{1,3}[.)]|[-*+•]|`{3}|~{3})", re.MULTILINE)
_ITEMS = re.compile(r"^\s*(?:\d{1,3}[.)]|[-*+•])\s", re.MULTILINE)
_STEPS = re.compile(r"^\s*\d{1,3}[.)]\s|^\s*(?:`{3}|~{3})", re.MULTILINE)
_SHOWS_OUTPUT = re.compile(r"\s*(?:`{3,}|~{3,})\s*(?:none|text|console|output)?\s*$", re.MULTILINE)
_CODE = re.compile(r"(?:`{3,}|~{3,}).*?(?:`{3,}|~{3,}|$)", re.DOTALL)
_SAYS_HOW_MANY = re.compile(r"\b(?:no|times|at (?:most|least)|up to|number of)\b|없", re.IGNORECASE)
_POINTS_ELSEWHERE = re.compile(
    r"^\W*(?:\d+[.)]\s*)?(?:see|read|learn|refer to|check out|visit|(?:for|to learn) more|for (?:details|a list)|참고)\b[^\n]*\]\(",
    re.IGNORECASE | re.MULTILINE,
)
_HAPPENED = re.compile(r"\b(?:did|was|were|had|has|have)\b|[았었였했됐]|[가-힣]ㅆ", re.IGNORECASE)
_BY = re.compile(r"\bby\s")
_FIRST_WORDS = re.compile(r"\W*(?:(?:an?|the)\s+)?\W*[\w-]+(?:\W+[\w-]+)?")
_DEFINES = re.compile(
    r"\b(?:is|are|means|refers to|describes|ensures|provides|defines|lets|allows)\b|(?:은|는|이란|란)\s.*(?:다|입니다|이다)\.?$"
)
_MAY_WANT_NUMBER = re.compile(
    r"\b(?:default|port|version|number|size|limit|longest|largest|maximum|minimum|most|least)\b|기본|포트|버전|최대|최소|크기",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")


class Ranked(NamedTuple):
    passage: int
    """The index of the passage, from 0."""
    unit: Unit
    score: float
    by_words: float
    """The score by words, without what the kind adds."""
    fits: bool
    """Whether the unit has something of the kind that was asked for."""
    is_about: bool
    """Whether more than the title of the document has words of the question."""


def ranked(question: Question, passages: Sequence[Passage], tokenizer: Tokenizer) -> list[Ranked]:
    """The quotable units of all passages, best first."""
    judge = _Judge(question, passages, tokenizer)
    found = [one for number, passage in enumerate(passages) for one in judge.units_of(passage, number)]
    return sorted(found, key=lambda one: (-one.score, one.passage, one.unit.start))


def _stands_in_one(word: QuestionWord, passages: Sequence[Passage]) -> bool:
    return any(share_of(word, unit.own) > 0 for passage in passages if passage.is_enough for unit in passage.units)


class _Judge:
    """Scores units for one question."""

    def __init__(self, question: Question, passages: Sequence[Passage], tokenizer: Tokenizer) -> None:
        self._question = question
        self._kind = question.kind
        self._tokenizer = tokenizer
        self._known = frozenset(_WORD.findall(question.text.lower()))
        parts = question.parts
        self._subject = [word for word in self._words(parts.subject) if not word.weak]
        self._done = [word for word in self._words({parts.done}) if not word.weak]
        self._does = self._words({parts.does})
        self._counted = self._words(parts.counted)
        self._sort = [word for word in self._words({parts.sort}) if not word.weak and _stands_in_one(word, passages)]

    def _words(self, texts: Collection[str | None]) -> list[QuestionWord]:
        return [word for word in self._question.words if word.text in texts]

    @cached_property
    def _wants_number(self) -> bool:
        return self._kind not in STRICT and _MAY_WANT_NUMBER.search(self._question.text) is not None

    def units_of(self, passage: Passage, number: int) -> Iterator[Ranked]:
        # A passage that ranks lower must say more to be quoted first.
        trust = (0.5 + passage.strength) / (1 + 0.05 * number)
        for unit in passage.units:
            text = unit.of(passage.text)
            if unit.kind in WHOLES:
                words = self._as_steps(unit, passage)
                if words is not None:
                    shows = _LIST_OR_CODE.search(text) is not None and not _SHOWS_OUTPUT.match(text)
                    score = words + (_WITH_STEPS if shows else -_A_LITTLE)
                    yield Ranked(number, unit, trust * score, trust * words, fits=True, is_about=True)
            elif len(text) <= _LONGEST or unit.kind == "code" or len(passage.units) == 1:
                words, is_about = self._by_words(unit, text, passage)
                share = self._share_of_kind(unit, text, passage)
                score = words + self._by_kind(unit, text, share) + self._by_form(unit, text, share)
                yield Ranked(number, unit, trust * score, trust * words, share > 0, is_about)

    def _as_steps(self, unit: Unit, passage: Passage) -> float | None:
        """The score of a list or section as an answer to how something is done: by its heading or its introduction.
        None if it is no answer.
        """
        question = self._question
        if not question.wants_steps:
            return None
        heading = (unit.headings or passage.headings or ("",))[-1]
        text = unit.of(passage.text)
        if 2 * len(_POINTS_ELSEWHERE.findall(text)) >= max(1, len(_ITEMS.findall(text))) and _POINTS_ELSEWHERE.search(
            text
        ):
            return None  # where it is said, not how
        is_title = heading == passage.hit.title and not _STEPS.search(
            text
        )  # what else stands below it may be about anything
        head = terms_of("" if is_title else heading, self._tokenizer)
        lead = terms_of(text.split("\n", 1)[0], self._tokenizer) if unit.kind == "list" else head
        says_how = _SAYS_HOW.search(heading) is not None and question.touches(unit.around)
        if not says_how and not question.touches(head | lead):
            return None
        about = max(question.coverage(head | lead | passage.title), 0.5 if says_how else 0.0)
        return 0.6 * question.coverage(unit.around) + 0.4 * about

    def _by_words(self, unit: Unit, text: str, passage: Passage) -> tuple[float, bool]:
        """The share of the question that a unit has, and whether that is more than the title has."""
        own, near, around = map(self._question.share, (unit.own, unit.near, unit.around))
        begins_line = unit.kind == "item" or passage.text[max(0, unit.start - 1) : unit.start] in ("", "\n")
        is_of_title = begins_line and around > 0 and names_it(text, self._kind)
        near = around if is_of_title else near
        is_about = is_of_title or self._question.touches(unit.near)
        words = own + _FROM_NEAR * (near - own) + _FROM_AROUND * (around - near)
        if self._subject and not any(share_of(word, unit.around) for word in self._subject):
            words *= _NO_SUBJECT
        if self._counted and not any(share_of(word, unit.near) for word in self._counted):
            words *= _NO_SUBJECT
        if self._sort and not any(share_of(word, unit.near) for word in self._sort):
            words *= _NO_SUBJECT
        return words * (1.0 if is_about else _ELSEWHERE), is_about

    def _share_of_kind(self, unit: Unit, text: str, passage: Passage) -> float:
        if self._kind is None:
            return 1.0
        if self._kind in STRICT and _SHOWS_OUTPUT.match(text):
            return 0.0
        if self._kind is Kind.PERSON and unit.kind == "code" and passage.hit.doc_type != "code":
            text = _CODE.sub("", text)  # what a program prints names nobody
        if unit.header is not None:
            head = passage.text[slice(*unit.header)].replace("_", " ")
            cells = list(cells_under(head, text))
            if self._kind is Kind.PERSON and any(self._says_who(name, cell) for name, cell in cells):
                return 1.0
            if self._kind in _IN_HEADS:
                text = "\n".join((head, text, *(f"{name}: {cell}" for name, cell in cells)))
        if self._kind is Kind.PERSON and self._question.parts.does and names_who(text, self._question.parts.does):
            return 1.0
        share = share_of_kind(self._kind, text, self._known)
        if self._kind is Kind.AMOUNT and self._counted:
            has = unit.around if share == 1.0 else unit.own  # "all of them" and "none" only where it is said of what
            if not any(share_of(word, has) for word in self._counted) or (
                share < 1.0 and not _SAYS_HOW_MANY.search(text)
            ):
                return 0.0
        if not share and self._is_of_that_day(unit, text, passage):
            return 0.5
        if (
            self._done
            and not any(share_of(word, unit.around) for word in self._done)
            and any(map(is_past, _WORD.findall(text.lower())))
        ):
            return 0.0  # it speaks of something else that was done
        return share

    def _is_of_that_day(self, unit: Unit, text: str, passage: Passage) -> bool:
        """Whether a sentence in the past under a dated title answers when something happened."""
        if (
            self._kind is not Kind.TIME
            or not _HAPPENED.search(self._question.text)
            or not any(map(is_past, _WORD.findall(text.lower())))
        ):
            return False
        return share_of_kind(Kind.TIME, "\n".join((passage.hit.title, *unit.headings))) == 1.0

    def _says_who(self, head: str, cell: str) -> bool:
        """Whether a table has a person under the head that the question asks for: Bea under "owner", for who owns
        something.
        """
        named = terms_of(head, self._tokenizer)
        asked = any(share_of(word, named) for word in self._question.words)
        return asked and cell[:1].isalpha() and not cell[:1].islower() and cell.lower() not in self._known

    def _by_kind(self, unit: Unit, text: str, share: float) -> float:
        """What it adds to the score that a unit has something of the kind asked for."""
        kind, question = self._kind, self._question
        bonus = 0.0
        if kind in STRICT:
            bonus += _STRICTLY[share]
        elif kind is Kind.INSTANCE:
            bonus += _LOOSELY[share]
        elif kind is Kind.STEPS and unit.kind in ("prose", "item"):
            bonus += _AS_A_STEP[share]
        if kind is Kind.PERSON and share:
            bonus += _A_LITTLE * (_BY.search(text) is not None and question.touches(unit.own))
            bonus += _A_LITTLE * any(share_of(word, unit.own) for word in self._does)
        if self._wants_number and share_of_kind(Kind.AMOUNT, text) == 1.0:
            bonus += _A_LITTLE
        if any(share_of(word, unit.near) for word in self._counted):
            bonus += _COUNTS
        if unit.answers is not None:
            is_same = asked_for(unit.answers.strip("*_ ")) is kind and question.touches(unit.near)
            bonus += _SAME_QUESTION if is_same else -_A_LITTLE
        return bonus

    def _by_form(self, unit: Unit, text: str, share: float) -> float:
        """What the form adds to the score: a definition, an example, code."""
        kind = self._kind
        bonus = 0.0
        if kind is Kind.MEANING and len(self._question.words) <= _WORDS_OF_A_NAME and _DEFINES.search(text):
            bonus += _A_LITTLE
        if kind in (Kind.MEANING, Kind.YES_OR_NO) and self._begins_with_it(text):
            bonus += _A_LITTLE  # "A Pod is …" rather than "This is how a Pod …"
        if unit.kind == "code":
            bonus += (0.0 if _SHOWS_OUTPUT.match(text) else _A_LITTLE) if kind is Kind.STEPS else -2 * _A_LITTLE
        announces = text.endswith(":") and not (kind in STRICT and share == 1.0)
        too_long = unit.kind == "prose" and len(text) > _LONG
        no_step = unit.kind == "row" and kind is Kind.STEPS
        points = kind is Kind.STEPS and _POINTS_ELSEWHERE.match(text) is not None
        return bonus - _A_LITTLE * (2 * points + announces + too_long + no_step + (_EXAMPLE.match(text) is not None))

    def _begins_with_it(self, text: str) -> bool:
        beginning = _FIRST_WORDS.match(text.lower())
        return beginning is not None and any(word.text in beginning[0] for word in self._question.words)
