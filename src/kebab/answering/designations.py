"""Reads designations that distinguish one of several things by its place in a row: the third car, A동, 2반. A sentence
about another one is about something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kebab.analysis import korean
from kebab.answering.labels import NUMBERED_NOUNS
from kebab.answering.named import Named

_ORDINALS = (
    ("first", "1st", "첫", "첫째"),
    ("second", "2nd", "두", "둘째"),
    ("third", "3rd", "세", "셋째"),
    ("fourth", "4th", "네", "넷째"),
    ("fifth", "5th", "다섯", "다섯째"),
    ("sixth", "6th", "여섯", "여섯째"),
    ("seventh", "7th", "일곱", "일곱째"),
    ("eighth", "8th", "여덟", "여덟째"),
    ("ninth", "9th", "아홉", "아홉째"),
    ("tenth", "10th", "열", "열째"),
)
_FORMS = [
    rf"\b(?:{word}|{short})\b(?!-)|(?<![가-힣\d])(?:{counted}|{number})\s?번\s?째|(?<![가-힣]){native}(?![가-힣]{{2}})"
    for number, (word, short, counted, native) in enumerate(_ORDINALS, start=1)
]
_ANY_ORDINAL = re.compile("|".join(_FORMS), re.IGNORECASE)
_ASKED = [
    re.compile(
        rf"\b(?:the|our|my|your|a|his|her|their)\s(?:{word}|{short})\s[a-z]|(?<![가-힣\d])(?:{counted}|{number})\s?번\s?째|(?<![가-힣]){native}\s",
        re.IGNORECASE,
    )
    for number, (word, short, counted, native) in enumerate(_ORDINALS, start=1)
]
_LETTERED = re.compile(r"(?<![A-Za-z\d.])([A-Z])([가-힣]+)")
_NUMBERED = re.compile(
    rf"(?<![A-Za-z\d.,:])(\d{{1,4}})\s?({NUMBERED_NOUNS}|호|번\s?출구)(?=[\s?!.,]|[은는이가을를의에도와과로])"
)


def designations(question: str) -> Iterator[Named]:
    yield from _ordinals(question)
    for match in _LETTERED.finditer(question):
        noun = korean.strip_particle(match[2])
        if noun and not korean.is_particle(match[2]):  # 비타민 C는 is told apart by its letter alone
            yield _one_of(match[1], "[A-Z]", noun)
    for match in _NUMBERED.finditer(question):
        yield _one_of(match[1], r"\d{1,4}", match[2])


def _ordinals(question: str) -> Iterator[Named]:
    for form, asked in zip(_FORMS, _ASKED, strict=True):
        if match := asked.search(question):
            # A text that puts nothing in order may be about any of them.
            yield Named(
                match[0].strip(), re.compile(form, re.IGNORECASE), _ANY_ORDINAL, only_among_rivals=True, is_name=True
            )


def _one_of(sign: str, any_sign: str, noun: str) -> Named:
    apart = r"(?<![A-Za-z\d])"
    return Named(
        f"{sign}{noun}",
        re.compile(rf"{apart}{sign}\s?{re.escape(noun)}"),
        others := re.compile(rf"{apart}{any_sign}\s?{re.escape(noun)}"),
        others,
        is_name=True,
    )
