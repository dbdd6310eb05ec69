"""Parts of a question, by its form: what it is about, what is counted, which of several things is asked for, and what was done."""

from __future__ import annotations

import re
from typing import NamedTuple

from kebab.analysis.word_forms import base_of
from kebab.answering.kinds import Kind

_SUBJECT = re.compile(r"\b(?:of|for|in|on|at|to|from)\s(?:(?:an?|the|my|our)\s)?((?:[\w'-]+\s?){1,3})\?*$", re.IGNORECASE)
_THING = re.compile(r"\bwhich\s(\w+)|(?:무슨|어느|어떤)\s([가-힣]+)", re.IGNORECASE)
_COUNTED = re.compile(
    r"\bhow\s(?:many|much)\s(?:of\s(?:the\s)?)?((?:\w+\s){1,3}?)"
    r"(?:is|are|was|were|do|does|did|can|may|must|should|has|have|goes|go|fits?)\b",
    re.IGNORECASE,
)
_HAS_SIZE = re.compile(r"\bhow\s(?:much|high|large|big|long)\s(?:is|are|was|were)\s(?:the|my|our|its)\s(\w+)\b", re.IGNORECASE)
_DONE = re.compile(r"\b(?:is|are|was|were)\b.*\s(\w+)\s*\?*$", re.IGNORECASE)
_DOES = re.compile(r"\bwho\s(?!is\b|are\b|was\b|were\b|has\b|may\b|can\b|will\b|does\b|did\b|do\b)(\w+)", re.IGNORECASE)
_TRAIT = re.compile(r"\bwho\s(?:is|are|was|were)\s(?!the\b|an?\b)(\w+)\s(?:from|at|to|of|by|with|for|about|in|on)\b", re.IGNORECASE)
_OF_EVENTS = frozenset({Kind.TIME, Kind.PERSON, Kind.PLACE, Kind.REASON})


class Parts(NamedTuple):
    """Words in small letters."""

    subject: frozenset[str] = frozenset()
    """heron of "what is the budget of Heron?": what everything else is asked about."""
    thing: str | None = None
    """database of "which database do we use?": what the answer is one of."""
    counted: frozenset[str] = frozenset()
    """holiday of "how much holiday do I get?", deposit of "how high is the deposit of the flat?"."""
    done: str | None = None
    """installed of "when was it installed?": a sentence about something else that was done does not answer that."""
    does: str | None = None
    """booked of "who booked the hotel?"."""
    trait: str | None = None
    """absent of "who was absent from the meeting?": without it, whoever is named was only there."""


def parts_of(question: str, kind: Kind | None) -> Parts:
    text = question.strip()
    thing = _THING.search(text)
    return Parts(
        subject=_words(_SUBJECT.search(text)),
        thing=(thing[1] or thing[2]).lower() if thing else None,
        counted=_words(_COUNTED.search(text) or _HAS_SIZE.search(text)),
        done=next(filter(is_past, _words(_DONE.search(text))), None) if kind in _OF_EVENTS else None,
        does=next(iter(_words(_DOES.search(text))), None),
        trait=next(iter(_words(_TRAIT.search(text))), None),
    )


def is_past(word: str) -> bool:
    """Of an English verb: installed, built."""
    return (word.endswith("ed") and len(word) > 4) or (base_of(word) is not None and not word.endswith("ing"))


def _words(match: re.Match[str] | None) -> frozenset[str]:
    return frozenset(match[1].lower().split()) if match else frozenset()
