"""Whether what may be quoted is about the very thing that a question names, not about another one of its kind.

Its own words decide: February's bill is not March's, though the note was written in March. What it does not say itself, its paragraph, the
head of its table, headings and title may say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kebab.answering.named_things import Named
from kebab.answering.quantities import in_digits
from kebab.answering.question import Question, QuestionWord, Terms, joined, share_of
from kebab.answering.roles import has_its_part, says_who_is
from kebab.answering.units import WHOLES, Unit
from kebab.core.paths import file_stem

if TYPE_CHECKING:
    from kebab.answering.evidence import Passage

_ACRONYM = re.compile(r"[A-Z]{2,5}s?$")


class Identity:
    """Of one question; what was found out about a unit is kept."""

    def __init__(self, question: Question) -> None:
        self._question = question.text
        self._patterns = [named for named in question.named if named.pattern is not None]
        self._names: list[tuple[Named, list[QuestionWord]]] = []
        self._things: list[tuple[Named, list[QuestionWord]]] = []
        for named in question.named:
            words = [word for word in question.words if word.text in named.words and not word.weak]
            if named.pattern is None and words:
                is_name = named.is_name and not all(word.common for word in words)
                (self._names if is_name else self._things).append((named, words))
        self._known: dict[tuple[str, int, int], tuple[str, ...]] = {}

    def lacks(self, unit: Unit, passage: Passage) -> tuple[str, ...]:
        """What it is not about, as the question has it."""
        key = (passage.chunk_id, unit.start, unit.end)
        if key not in self._known:
            self._known[key] = tuple(self._lacking(unit, passage))
        return self._known[key]

    def absent(self, passages: Sequence[Passage]) -> tuple[str, ...]:
        """What none of the passages has anywhere."""
        words = [named.text for named, words in (*self._names, *self._things) if not any(_has_one(words, one.terms) for one in passages)]
        return (*(named.text for named in self._patterns if not any(_stands_in(named, one) for one in passages)), *words)

    def _lacking(self, unit: Unit, passage: Passage) -> Iterator[str]:
        for named, words in self._things:
            if not _has_one(words, passage.terms):
                yield named.text
        if self._names:
            nearby = unit.around | joined([one.own for one in _paragraph(unit, passage)])
            for named, words in self._names:
                if not _has_one(words, nearby) and not _is_spelt_out(named.text, unit.of(passage.text)):
                    yield named.text
        for named in self._patterns:
            if not _is_about(named, unit, passage):
                yield named.text

    def has_their_parts(self, unit: Unit, passage: Passage) -> bool:
        """Whether those that the question names may do there what it says of them."""
        text = unit.of(passage.text)
        return says_who_is(self._question, text) and all(has_its_part(named.text, self._question, text) for named, _ in self._names)


def _has_one(words: list[QuestionWord], terms: Terms) -> bool:
    return any(share_of(word, terms) > 0 for word in words)


def _is_spelt_out(name: str, text: str) -> bool:
    """HPA is the HorizontalPodAutoscaler."""
    if not _ACRONYM.match(name):
        return False
    initials = name.removesuffix("s")
    return re.search(r"\b" + r"[\s-]?".join(f"{letter}[a-z]+" for letter in initials), text) is not None


def _is_about(named: Named, unit: Unit, passage: Passage) -> bool:
    assert named.pattern is not None
    own = unit.of(passage.text)
    if _finds(named.pattern, own):
        return True
    if named.rivals is not None and named.rivals.search(own):
        return False
    header = passage.text[slice(*unit.header)] if unit.header else ""
    outer = (passage.hit.title, *passage.headings, *unit.headings, header, file_stem(passage.citation.path), unit.answers or "")
    paragraph = (one.of(passage.text) for one in _paragraph(unit, passage))
    return any(_finds(named.pattern, text) for text in (*outer, *paragraph) if text)


def _stands_in(named: Named, passage: Passage) -> bool:
    assert named.pattern is not None
    return any(_finds(named.pattern, text) for text in (passage.text, *passage.titles, file_stem(passage.citation.path)))


def _finds(pattern: re.Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None or pattern.search(in_digits(text)) is not None


def _paragraph(unit: Unit, passage: Passage) -> list[Unit]:
    """What stands in one block with it, before it: what it goes on about. A row of a table is about itself."""
    if unit.kind == "row":
        return []
    block = passage.sentences[unit.first].block
    return [
        one
        for one in passage.units
        if one.kind not in WHOLES and one.first <= unit.last and passage.sentences[one.last].block == block
    ]
