"""Checks whether a quotable unit is about the thing that a question names, not about another one of its kind. Its own
words decide: February's bill is not March's, though the note was written in March. What the unit does not say itself,
its paragraph, the head of its table, headings and title may say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kebab.analysis.word_forms import edit_distance
from kebab.answering.kinds import Kind
from kebab.answering.named import Named
from kebab.answering.quantities import in_digits
from kebab.answering.question import NO_TERMS, Question, QuestionWord, Terms, joined, share_of
from kebab.answering.roles import has_its_part, says_who_is
from kebab.answering.units import WHOLES, Unit
from kebab.core.paths import file_stem

if TYPE_CHECKING:
    from kebab.answering.evidence import Passage

_LEAST_OF_NAME = 0.2
_LEAST_OF_THINGS = 0.24
_MOST_OF_ONE = 4.0
"""The most weight of one word, and the least shares of a question, by weight, that must be missing to refuse: of many
words, some may be said otherwise (benchmarks/README.md).
"""
_LEAST_OF_ALL = 0.41
_MOST_WEIGHT = 3.0
_FEW_WORDS = 5
"""The number of words up to which a sentence must have all of them."""
_LEAST_MISSPELT = 5
_LEAST_OF_ROOT = 7
_DAY = len("2026-03-04")
"""The length of a date that a document gives itself; the date of its file also has a time."""
_ACRONYM = re.compile(r"[A-Z]{2,5}s?$")


class Identity:
    """Compares units with one question, and keeps what it found out about each unit."""

    def __init__(self, question: Question) -> None:
        self._question = question.text
        self._is_question = question.kind is not None
        self._asks_who = question.kind is Kind.PERSON
        self._patterns = [named for named in question.named if named.pattern is not None]
        self._names: list[tuple[Named, list[QuestionWord]]] = []
        self._things: list[tuple[Named, list[QuestionWord]]] = []
        for named in question.named:
            words = [word for word in question.words if word.text in named.words and not word.weak]
            if named.pattern is None and words:
                is_name = named.is_name and not all(word.common for word in words)
                (self._names if is_name else self._things).append((named, words))
        self._weight = sum(min(word.weight, _MOST_OF_ONE) for word in question.words if not word.weak)
        found = {named.text.lower() for named in self._patterns}  # which may stand anywhere in the passage
        self._capped = [
            (word, min(word.weight, _MOST_WEIGHT))
            for word in question.words
            if not word.weak and word.text not in found
        ]
        self._paragraphs: dict[tuple[str, int], Terms] = {}
        self._known: dict[tuple[str, int, int], tuple[str, ...]] = {}

    def lacks(self, unit: Unit, passage: Passage) -> tuple[str, ...]:
        """The things of the question that a unit is not about, as the question has them."""
        key = (passage.chunk_id, unit.start, unit.end)
        if key not in self._known:
            self._known[key] = tuple(self._lacking(unit, passage))
        return self._known[key]

    def is_beside_the_point(self, unit: Unit, passage: Passage) -> tuple[str, ...]:
        """The things that neither the unit nor the text before it mentions, though its passage does: later text is not
        read with it.
        """
        things = [(named, words) for named, words in self._things if not _has_one(words, unit.around)]
        if things:
            before = joined([one.own for one in _before(unit, passage)])
            things = [(named, words) for named, words in things if not _has_one(words, before)]
        return tuple(self._weighty(things, _LEAST_OF_THINGS))

    def has_enough(self, unit: Unit, passage: Passage) -> bool:
        """Whether a unit has a good part of the question: a rare name alone, however much it weighs, is no answer."""
        if not self._is_question or not 0 < len(self._capped) <= _FEW_WORDS:
            return True
        nearby = unit.around | self._said_beside(unit, passage)
        has = sum(weight for word, weight in self._capped if share_of(word, nearby) > 0)
        return has >= _LEAST_OF_ALL * sum(weight for _, weight in self._capped)

    def _said_beside(self, unit: Unit, passage: Passage) -> Terms:
        """Whether the paragraph of a unit has these words."""
        if unit.kind == "row":
            return NO_TERMS
        key = (passage.chunk_id, passage.sentences[unit.first].block)
        if key not in self._paragraphs:
            self._paragraphs[key] = joined([one.own for one in _paragraph(unit, passage)])
        return self._paragraphs[key]

    def absent(self, passages: Sequence[Passage]) -> tuple[str, ...]:
        """The things of the question that no passage has anywhere."""
        patterns = (named.text for named in self._patterns if not any(_stands_in(named, one) for one in passages))
        names = [
            (named, words)
            for named, words in self._names
            if not any(_has_one(words, one.terms) or _is_spelt_out(named.text, one.text) for one in passages)
        ]
        things = [
            (named, words) for named, words in self._things if not any(_has_one(words, one.terms) for one in passages)
        ]
        return (*patterns, *self._weighty(names, _LEAST_OF_NAME), *self._weighty(things, _LEAST_OF_THINGS))

    def _weighty(self, lacking: Sequence[tuple[Named, list[QuestionWord]]], least: float) -> Iterator[str]:
        """All absent words, if together they are so much of the question that an answer without them would answer
        another one.
        """
        weight = sum({word.key: min(word.weight, _MOST_OF_ONE) for _, words in lacking for word in words}.values())
        if lacking and weight >= least * self._weight:
            yield from (named.text for named, _ in lacking)

    def _lacking(self, unit: Unit, passage: Passage) -> Iterator[str]:
        things = [(named, words) for named, words in self._things if not _has_one(words, passage.terms)]
        yield from self._weighty(things, _LEAST_OF_THINGS)
        if self._names:
            paragraph = self._said_beside(unit, passage)
            own = unit.of(passage.text)
            names = []
            for named, words in self._names:
                is_other = named.kin is not None and named.kin.search(own) is not None
                if not _has_one(words, unit.own if is_other else unit.around | paragraph) and not _is_spelt_out(
                    named.text, own
                ):
                    names.append((named, words))
            yield from self._weighty(names, _LEAST_OF_NAME)
        for named in self._patterns:
            if not _is_about(named, unit, passage):
                yield named.text

    def is_of_kin(self, unit: Unit, passage: Passage) -> bool:
        """Whether a unit speaks only of another thing with the same name: of release 5.0, not of 4.2."""
        lacking = self.lacks(unit, passage)
        kin = {named.text: named.kin for named in self._patterns}
        own = unit.of(passage.text)
        return all((pattern := kin.get(name)) is not None and pattern.search(own) for name in lacking)

    def has_their_parts(self, unit: Unit, passage: Passage) -> bool:
        """Whether the names of the question may have the roles in a unit that they have in the question."""
        if not self._asks_who:
            return True
        text = unit.of(passage.text)
        return says_who_is(self._question, text) and all(
            has_its_part(named.text, self._question, text) for named, _ in self._names
        )


def _has_one(words: list[QuestionWord], terms: Terms) -> bool:
    """Whether a text has one of the words or, of a name of several words, half of them."""
    has = sum(word.weight for word in words if share_of(word, terms) > 0 or _is_written_otherwise(word, terms))
    return has > 0 and 2 * has >= sum(word.weight for word in words)


def _is_written_otherwise(word: QuestionWord, terms: Terms) -> bool:
    """Whether a text has the word in another spelling: Ctenophores for Ctenophora; for a word that occurs nowhere, also
    with another letter.
    """
    key = word.key
    if not (key.isalpha() and key.isascii()):
        return False
    if len(key) >= _LEAST_OF_ROOT and any(
        stem.startswith(key[: max(_LEAST_OF_ROOT, len(key) - 2)]) for stem in terms.stems
    ):
        return True
    if not word.unknown or len(key) < _LEAST_MISSPELT:
        return False
    near = (stem for stem in terms.stems if abs(len(stem) - len(key)) <= 1 and stem[:1] == key[:1])
    return any(edit_distance(key, stem, 1) is not None for stem in near)


def _is_spelt_out(name: str, text: str) -> bool:
    """Whether a text spells out an abbreviation: HPA is the HorizontalPodAutoscaler."""
    if not _ACRONYM.match(name):
        return False
    initials = name.removesuffix("s")
    return re.search(r"\b" + r"[\s-]?".join(f"{letter}[a-z]+" for letter in initials), text) is not None


def _is_about(named: Named, unit: Unit, passage: Passage) -> bool:
    own = unit.of(passage.text)
    if _finds(named, own):
        return True
    if any(other is not None and other.search(own) for other in (named.rivals, named.kin)):
        return False
    if named.only_among_rivals and not any(
        named.rivals.search(text) for text in (passage.text, *passage.titles) if named.rivals
    ):
        return True
    header = passage.text[slice(*unit.header)] if unit.header else ""
    outer = (*_titles(passage), *unit.headings, header, unit.answers or "")
    if any(_finds(named, text) for text in outer if text):
        return True
    if unit.kind == "row":
        return False  # it is about itself
    before = passage.text[: unit.end]
    return named.elsewhere.search(before) is not None if named.elsewhere else _finds(named, before)


def _titles(passage: Passage) -> tuple[str, ...]:
    """The titles above the passage, with the name of its file and its date."""
    date = passage.hit.date if len(passage.hit.date) == _DAY else ""
    return (*passage.titles, file_stem(passage.citation.path), date)


def _stands_in(named: Named, passage: Passage) -> bool:
    texts = (passage.text, *_titles(passage))
    if named.only_among_rivals and named.rivals and not any(named.rivals.search(text) for text in texts):
        return True
    return any(_finds(named, text) for text in texts)


def _finds(named: Named, text: str) -> bool:
    """Whether a text has the thing, also spelt out unless it is a number of something: light 3 is not three lights."""
    pattern = named.pattern
    return pattern is not None and (
        pattern.search(text) is not None or (named.kin is None and pattern.search(in_digits(text)) is not None)
    )


def _before(unit: Unit, passage: Passage) -> list[Unit]:
    """The text before a unit in its section or in an enclosing one."""
    outer = (unit.headings[:depth] for depth in range(len(unit.headings) + 1))
    sections = frozenset(outer)
    return [
        one for one in passage.units if one.kind not in WHOLES and one.end <= unit.start and one.headings in sections
    ]


def _paragraph(unit: Unit, passage: Passage) -> list[Unit]:
    """The text of the block that a unit is in."""
    block = passage.sentences[unit.first].block
    return [one for one in passage.units if one.kind not in WHOLES and passage.sentences[one.last].block == block]
