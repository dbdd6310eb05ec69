"""Parts of a question, recognised by its form: its subject, what is counted, which of several things is asked for, and
what was done.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kebab.analysis.word_forms import base_of
from kebab.answering.kinds import Kind

_SUBJECT = re.compile(
    r"\b(?:of|for|in|on|at|to|from)\s(?:(?:an?|the|my|our)\s)?((?:[\w'-]+\s?){1,3})\?*$", re.IGNORECASE
)
_THING = re.compile(r"\bwhich\s(\w+)|(?:무슨|어느|어떤)\s([가-힣]+)", re.IGNORECASE)
_THING_IN_ENGLISH = re.compile(r"\bwhich\s(\w+)", re.IGNORECASE)
_COUNTED = re.compile(
    r"\bhow\s(?:many|much)\s(?:of\s(?:the\s)?)?((?:\w+\s){1,3}?)"
    r"(?:is|are|was|were|do|does|did|can|may|must|should|has|have|goes|go|fits?)\b",
    re.IGNORECASE,
)
_HAS_SIZE = re.compile(
    r"\bhow\s(?:much|high|large|big|long)\s(?:is|are|was|were)\s(?:the|my|our|its)\s(\w+)\b", re.IGNORECASE
)
_DONE = re.compile(r"\b(?:is|are|was|were)\b.*\s(\w+)\s*\?*$", re.IGNORECASE)
_DOES = re.compile(r"\bwho\s(?!is\b|are\b|was\b|were\b|has\b|may\b|can\b|will\b|does\b|did\b|do\b)(\w+)", re.IGNORECASE)
_TRAIT = re.compile(
    r"\bwho\s(?:is|are|was|were)\s(?!the\b|an?\b)(\w+)\s(?:from|at|to|of|by|with|for|about|in|on)\b", re.IGNORECASE
)
_PARTICLES = "on|off|in|out|up|down|back|over|away"
_TO_DO = re.compile(
    rf"\bhow\s(?:do|can|could|should|must)\s(?:i|we|you|one)\s([a-z]+)(?:\s({_PARTICLES}))?\b|\bhow\sto\s([a-z]+)(?:\s({_PARTICLES}))?\b",
    re.IGNORECASE,
)
_ANY_DEED = frozenset(
    "use make do get set add put see find check view show look have let enable configure create write know tell start run change".split()
)
"""Verbs that apply to anything and that texts express in many ways."""
_IT_DOES = re.compile(
    rf"\b(?:do|does|did|will|can|is|are|was|were|gets?)\b(?:\s[\w'’.-]+)*?\s([a-z]+)(?:\s({_PARTICLES}))?\W*$",
    re.IGNORECASE,
)
_OF_WHAT_NUMBER = re.compile(
    r"\bnumber\sof\s((?:[a-z]+\s?){1,2}?)(?=\s(?:on|in|of|per|for|that|an?|can|may|is|are)\b|\W*$)", re.IGNORECASE
)
_WHAT = re.compile(
    r"\bwhat\s(?!is\b|are\b|was\b|were\b|does\b|do\b|did\b|has\b|have\b|happen|about\b|if\b|should\b|can\b|must\b|may\b|will\b|would\b|could\b|time\b)"
    r"(\w+)\s(?:is|are|was|were|does|do|did|has|have|can|must|should)\b",
    re.IGNORECASE,
)
_OF_EVENTS = frozenset({Kind.TIME, Kind.PERSON, Kind.PLACE, Kind.REASON})


class Deed(NamedTuple):
    """The words of an action: back and up of "how do I back up the server?", switch and on of "when does it switch
    on?".
    """

    verb: str
    particle: str | None = None

    @property
    def says_something(self) -> bool:
        return self.verb not in _ANY_DEED


class Parts(NamedTuple):
    """The parts of a question, as lower-case words."""

    subject: frozenset[str] = frozenset()
    """What the question is about: heron of "what is the budget of Heron?"."""
    thing: str | None = None
    """What the answer is an instance of: database of "which database do we use?"."""
    counted: frozenset[str] = frozenset()
    """What is counted or measured: holiday of "how much holiday do I get?", deposit of "how high is the deposit of the
    flat?".
    """
    done: str | None = None
    """The participle of what was done: installed of "when was it installed?". A sentence about something else that was
    done is no answer.
    """
    does: str | None = None
    """The verb of what somebody did: booked of "who booked the hotel?"."""
    trait: str | None = None
    """A property of the person asked for: absent of "who was absent from the meeting?". A sentence without it only
    names people who were there.
    """
    sort: str | None = None
    """The sort of thing that is asked for: toner of "which toner does it need?", port of "what port does it use?".
    Sentences that have it are preferred.
    """
    deed: Deed | None = None
    """The action that the question asks about."""


def parts_of(question: str, kind: Kind | None) -> Parts:
    text = question.strip()
    thing = _THING.search(text)
    return Parts(
        subject=_words(_SUBJECT.search(text)),
        thing=(thing[1] or thing[2]).lower() if thing else None,
        counted=_words(_COUNTED.search(text) or _HAS_SIZE.search(text) or _OF_WHAT_NUMBER.search(text)),
        done=next(filter(is_past, _words(_DONE.search(text))), None) if kind in _OF_EVENTS else None,
        does=next(iter(_words(_DOES.search(text))), None),
        trait=next(iter(_words(_TRAIT.search(text))), None),
        sort=next(iter(_words(_THING_IN_ENGLISH.search(text) or _WHAT.search(text))), None),
        deed=_deed(text),
    )


def _deed(question: str) -> Deed | None:
    found = _TO_DO.search(question) or _IT_DOES.search(question)
    if found is None:
        return None
    verb, particle = (found[1], found[2]) if found[1] else (found[3], found[4])
    return Deed(verb.lower(), particle.lower() if particle else None)


def is_past(word: str) -> bool:
    """Whether an English verb is in the past: installed, built."""
    return (word.endswith("ed") and len(word) > 4) or (base_of(word) is not None and not word.endswith("ing"))


def _words(match: re.Match[str] | None) -> frozenset[str]:
    return frozenset(match[1].lower().split()) if match else frozenset()
