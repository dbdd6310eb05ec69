"""Checks who does what to whom: a sentence with the right name may give it another role than the question. "Bea takes
over from Ingrid" does not say who takes over from Bea, and "never call the CEO" does not say who the CEO is.
"""

from __future__ import annotations

import re
from functools import cache

from kebab.analysis.word_forms import base_of

_TOWARDS = r"(?:from|to|for|with)"
_ARTICLE = r"(?:the\s|our\s|my\s|your\s|their\s|its\s|an?\s)?"
_WHO_IS = re.compile(
    r"\bwho(?:'s|’s|\sis|\sare|\swas|\swere)\s(?:the|our|my|your|an?)\s(?:[\w-]+\s){0,2}?([\w-]+)\s*(?:\?|$|\b(?:of|for|in|at|on)\b)",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    rf"\b(?:to|from|by|with|for|of|than|via|through|without|call|ask|tell|inform|see)\s{_ARTICLE}(?:[\w-]+\s)?$",
    re.IGNORECASE,
)
"""Prepositions before somebody who is only addressed or mentioned."""
_NAME_FOLLOWS = re.compile(r"\W{1,3}[A-Z]")
_PREFIX = 4


def has_its_part(name: str, question: str, text: str) -> bool:
    """Whether a name may have the role in a text that it has in the question; True if no role is visible. The text has
    the name.
    """
    parts = _parts_in(name, question)
    if parts is None:
        return True
    is_subject, words = parts
    towards = _named(rf"\b{_TOWARDS}\s{{}}", name).findall(text)
    every = _named("{}", name).findall(text)
    if is_subject:
        return not towards or len(towards) < len(every)
    acting = [match[1] for match in _named(r"{}\s(?:\w+ly\s)?([a-z]+)", name).finditer(text)]
    return bool(towards) or not any(_is_form(verb, words) for verb in acting)


@cache
def _parts_in(name: str, question: str) -> tuple[bool, frozenset[str]] | None:
    words = frozenset(re.findall(r"[a-z]{3,}", question.lower()))
    if _named(r"\b(?:do|does|did|will|has|had|can|may|should)\s{}\s[a-z]", name).search(question):
        return True, words
    return (False, words) if _named(rf"\b{_TOWARDS}\s{{}}", name).search(question) else None


@cache
def _named(pattern: str, name: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("{}", rf"(?<![\w-]){re.escape(name)}(?![\w-])"))


def _is_form(verb: str, words: frozenset[str]) -> bool:
    base = base_of(verb) or verb
    return any((base_of(word) or word)[:_PREFIX] == base[:_PREFIX] for word in words)


def says_who_is(question: str, text: str) -> bool:
    """Whether a text says who somebody is, and does not only address or mention that person. True for questions that do
    not ask that.
    """
    asked = _WHO_IS.search(question)
    if asked is None:
        return True
    every = list(re.finditer(rf"\b{re.escape(asked[1])}(?:'s|s)?\b", text, re.IGNORECASE))
    aside = [one for one in every if _ASIDE.search(text[: one.start()]) and not _NAME_FOLLOWS.match(text, one.end())]
    return not every or len(aside) < len(every)
