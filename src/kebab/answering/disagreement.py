"""Finds documents that disagree about one thing: they have other numbers, name somebody else, or say that it changed
since.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kebab.answering.evidence import Passage
from kebab.answering.kinds import CALENDAR, Kind, people_in
from kebab.answering.quantities import in_digits, quantities
from kebab.answering.question import Question
from kebab.answering.ranking import Ranked
from kebab.answering.units import WHOLES

_NUMBERS_DIFFER = frozenset(
    {
        Kind.TIME,
        Kind.MONEY,
        Kind.AMOUNT,
        Kind.DURATION,
        Kind.FREQUENCY,
        Kind.INSTANCE,
        Kind.MEANING,
        Kind.YES_OR_NO,
        None,
    }
)
_NAMES_DIFFER = frozenset({Kind.NAME, Kind.INSTANCE, Kind.PLACE, Kind.SECRET, Kind.MEANING})
_REVISES = re.compile(
    r"\b(?:after all|no longer|any ?more|any longer|instead|chang(?:ed|es)|moved|postponed|delayed|cancell?ed|stays?|stayed|remains?"
    r"|remained|reverted|replaced|revoked|withdrawn|extended|shortened|now|so far|from now on)\b"
    r"|대신|변경|바뀌|바뀐|바꾸|바꿨|미뤘|미뤄|미루|연기|취소|앞당|더 이상|그대로|않기로|연장",
    re.IGNORECASE,
)
_LEAST_IN_COMMON = 2
_FEW = 2
_LEAST_ALIKE = 3
"""The most words by which two sentences may differ, and the least that they must have in common, to be about one thing.
"""
_HALF, _MOST = 0.5, 0.7
"""The least share of the first passage's words that another passage must have: if that is evidence too, and if it is
not.
"""
_DAY = len("2026-03-04")
"""The length of a date that a document gives itself; the date of its file also has a time."""
_WORD = re.compile(r"\w+")


def differs(question: Question, passages: Sequence[Passage], first: Ranked, other: Ranked) -> bool:
    """Whether a sentence says as much about the same thing with other numbers or, in another document, of somebody
    else.
    """
    if (
        question.kind not in (*_NUMBERS_DIFFER, *_NAMES_DIFFER, Kind.PERSON)
        or {first.unit.kind, other.unit.kind} & {"code", *WHOLES}
        or not other.fits
    ):
        return False
    touched = question.touched(first.unit.near)
    # In the same passage, a sentence that goes on about the same says something else of it.
    theirs = other.unit.own if first.passage == other.passage else other.unit.near
    if not touched or not touched <= question.touched(theirs):
        return False
    said = [one.unit.of(passages[one.passage].text) for one in (first, other)]
    elsewhere = passages[first.passage].hit.doc_id != passages[other.passage].hit.doc_id
    if question.kind is Kind.PERSON:
        known = frozenset(_WORD.findall(question.text.lower()))
        people = [people_in(text, known) for text in said]
        return elsewhere and all(people) and not people[0] & people[1]
    if elsewhere and question.kind in _NAMES_DIFFER and _differ_in_a_word(*said):
        return True
    values = list(map(_values, said))
    units = [{unit for _, unit in side} for side in values]
    return bool(units[0] & units[1]) and not values[0] & values[1]


def _differ_in_a_word(one: str, other: str) -> bool:
    """Whether two sentences differ in one word: the server is called heron, the server is called osprey."""
    first, second = (set(_WORD.findall(text.lower())) for text in (one, other))
    only = first - second, second - first
    return all(1 <= len(words) <= _FEW for words in only) and len(first & second) >= _LEAST_ALIKE


def revisions(
    question: Question, passages: Sequence[Passage], chosen: Sequence[Ranked], order: Iterable[Ranked]
) -> list[Ranked]:
    """What another document says about the same thing with a remark that it changed; at most one sentence."""
    first = chosen[0]
    touched = question.touched(first.unit.near)
    documents = {passages[one.passage].hit.doc_id for one in chosen}
    if question.wants_steps or first.unit.kind in ("code", *WHOLES) or len(touched) < _LEAST_IN_COMMON:
        return []
    for one in order:
        passage = passages[one.passage]
        if passage.hit.doc_id in documents or one.unit.kind in ("code", *WHOLES) or not one.is_about:
            continue
        common = touched & question.touched(one.unit.near)
        share = len(common) / len(touched)
        is_same = len(common) >= _LEAST_IN_COMMON and share >= (_HALF if passage.is_enough else _MOST)
        if is_same and _REVISES.search(one.unit.of(passage.text)):
            return [one]
    return []


def newest_first(question: Question, passages: Sequence[Passage], chosen: Sequence[Ranked]) -> Sequence[Ranked]:
    """The sentences, the later document's first, if two dated documents disagree about one thing."""
    first = chosen[0]
    for one in chosen[1:]:
        dates = [passages[other.passage].hit.date for other in (first, one)]
        known = all(len(date) == _DAY for date in dates)
        text = one.unit.of(passages[one.passage].text)
        if known and dates[0] < dates[1] and (_REVISES.search(text) or differs(question, passages, first, one)):
            return [one, *(other for other in chosen if other is not one)]
    return chosen


def _values(text: str) -> set[tuple[str, str | None]]:
    """The numbers of a text with their units, and its months and days of the week."""
    numbers = {(one.value, one.unit) for _, one in quantities(in_digits(CALENDAR.sub(" ", text)))}
    return numbers | {(match[0].lower(), "calendar") for match in CALENDAR.finditer(text)}
