"""Finds whom a relative clause is about: in "Anna lives with Per, who was born in 1980" that is Per, not Anna."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kebab.answering.clauses import Clause
from kebab.answering.word_senses import Senses

_RELATIVE = re.compile(r"\s*(?:who|whom|whose|which)\b", re.IGNORECASE)
_PERSON = re.compile(r"\s*(?:who|whom|whose)\b", re.IGNORECASE)
_BY_PRONOUN = re.compile(r"\b(?:before|after|when|while|until|because|since|as)\s+(?:he|she|they)\s", re.IGNORECASE)
_WORD = re.compile(r"[\w-]+")
_NAMES = re.compile(r"[A-Z][\w-]*(?:\s+[A-Z][\w-]*)*$")
_OF = re.compile(r"([\w-]+)\s+of\s+(?:(?:the|an?|our|its|their|his|her)\s+)?(?:[\w-]+\s+)?[\w-]+$", re.IGNORECASE)
"""A noun of another noun before a relative clause: in "the head of the lab, who", that is the head or the lab."""


def is_of_another(claim: Clause, passage: Clause, sentence: Sequence[Clause], senses: Senses) -> bool:
    """Whether the claim gives a relative clause to somebody else: it has other words of the sentence, but not the noun
    that the clause is about.
    """
    if _RELATIVE.match(passage.text) is None or passage not in sentence:
        return False
    place = next(number for number, one in enumerate(sentence) if one is passage or one == passage)
    if place == 0:
        return False
    spoken_of = _antecedents(sentence[place - 1].text.strip(), of_a_person=_PERSON.match(passage.text) is not None)
    said = {word.lower() for word in _WORD.findall(claim.text)}
    if not spoken_of or any(_is_said(word.lower(), said) for word in spoken_of):
        return False
    keys = {word.key for word in sentence[place - 1].words if word.text in {one.lower() for one in spoken_of}}
    if not keys.isdisjoint(word.key for word in claim.words):
        return False
    return any(not passage.said.says(word, senses) for word in claim.words)


def is_of_whom_it_began_with(claim: Clause, passage: Clause) -> bool:
    """Whether the claim relates "she" to another person than the first: in "Mina met Jun before she left", the sentence
    does not say who.
    """
    found = _BY_PRONOUN.search(passage.text)
    if found is None or len(claim.tokens) < 2:
        return False
    subject, *rest = claim.tokens
    head = {
        word.key
        for word in passage.words
        if re.search(rf"\b{re.escape(word.text)}\b", passage.text[: found.start()], re.IGNORECASE)
    }
    return subject in head and subject != passage.tokens[0] and bool(rest) and head.isdisjoint(rest)


def _is_said(word: str, said: set[str]) -> bool:
    return word in said or f"{word}s" in said or word.removesuffix("s") in said


def _antecedents(before: str, *, of_a_person: bool) -> list[str]:
    """The nouns that a relative clause may be about: the last noun with the name it belongs to, and what that noun is
    of.
    """
    names = _NAMES.search(before)
    found = _WORD.findall(names[0]) if names is not None else _WORD.findall(before)[-1:]
    chain = _OF.search(before)
    if chain is not None and not (of_a_person and names is not None and chain[1][:1].islower()):
        found.append(chain[1])
    return found
