"""Distinguishes statements about things with labels: if things are distinguished by a letter or number, it decides
which statement is meant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kebab.answering.clauses import Clause
from kebab.answering.labels import LABEL
from kebab.answering.word_senses import Senses


class _Statement(NamedTuple):
    marks: frozenset[str]
    clauses: tuple[Clause, ...]


def is_said_of_another_label(claim: Clause, sentences: Iterable[Sequence[Clause]], senses: Senses) -> bool:
    """Whether the passage says of label A what the claim says of label B, and nothing of that of B alone: sample A took
    an hour, sample B was lost.
    """
    marks = _marks(claim)
    if not marks:
        return False
    statements = [one for sentence in sentences for one in _statements(sentence)]
    own = _items(claim, (clause for one in statements if one.marks & marks for clause in one.clauses), senses)
    others = _items(claim, (clause for one in statements if not one.marks & marks for clause in one.clauses), senses)
    spoken_of = any(one.marks & marks for one in statements)
    return spoken_of and bool(others - own) and not own - others


def _marks(clause: Clause) -> frozenset[str]:
    return frozenset(word.key for word in clause.words if word.script == LABEL)


def _statements(sentence: Sequence[Clause]) -> Iterator[_Statement]:
    """The statements of a sentence, each from one label to the next. Rods A and B were coated: that is one statement."""
    marks: frozenset[str] = frozenset()
    clauses: list[Clause] = []
    was_bare = False
    for clause in sentence:
        here = _marks(clause)
        if here and marks and not was_bare:
            yield _Statement(marks, tuple(clauses))
            marks, clauses = frozenset(), []
        was_bare = bool(here) and _is_bare(clause)
        marks |= here
        if marks:
            clauses.append(clause)
    if marks:
        yield _Statement(marks, tuple(clauses))


def _is_bare(clause: Clause) -> bool:
    """Whether a statement has only the thing and its label: sample A."""
    return not clause.quantities and sum(word.script != LABEL for word in clause.words) <= 1


def _items(claim: Clause, clauses: Iterable[Clause], senses: Senses) -> frozenset[str]:
    """The words and numbers of the claim that these statements have."""
    every = list(clauses)
    words = {
        word.key for word in claim.words if word.script != LABEL and any(one.said.says(word, senses) for one in every)
    }
    numbers = {
        quantity.value
        for _, quantity in claim.quantities
        if any(quantity.is_said_by(other, "") for one in every for _, other in one.quantities)
    }
    return frozenset(words | numbers)
