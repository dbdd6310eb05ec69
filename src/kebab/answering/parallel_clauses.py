"""Statements side by side in one sentence: Marta signs contracts and Igor signs invoices. A claim must not take words from both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from kebab.answering.claim_words import NOTHING_SAID, ClaimWord, Said
from kebab.answering.clauses import Clause
from kebab.answering.word_senses import Senses

_AUXILIARY = (
    r"(?:can|could|may|might|must|shall|should|will|would|cannot|is|are|was|were|has|have|had|do|does|did|needs?|costs?|gets?|\w+n['’]t)\b"
)
_DEPENDENT = (
    r"(?:if|when|unless|because|although|since|until|after|before|that|which|who|whose|where|it|its|they|he|she|this|these|then|to|in|on|at"
    r"|for|from|by|with|without|of|as|instead|rather|except|not|also|only\s+(?:if|when))\b"
)
_HAS_SUBJECT = re.compile(
    rf"\s*(?!{_DEPENDENT})(?!{_AUXILIARY})(?:(?:[\w'’-]+\s+){{1,5}}?{_AUXILIARY}|.*[가-힣](?:은|는|이|가|께서|도)(?=[\s,]))", re.IGNORECASE
)
_TIME_FIRST = re.compile(rf"\s*(?:in|on|at|since|after|before|during)\s.*?\s(?:the|an?)\s(?:\w+\s){{1,3}}?{_AUXILIARY}", re.IGNORECASE)
_RELATIVE = re.compile(r"\s*(?:who|which|whose)\b", re.IGNORECASE)
_MAY_BEGIN = re.compile(rf"\s*(?!{_DEPENDENT})(?!{_AUXILIARY})", re.IGNORECASE)
_STANDS_FOR = re.compile(r"\b(?:ones?|those|that)\b", re.IGNORECASE)
"""The white one: a wine, as was said before."""


class _Statement(NamedTuple):
    """A clause with its own subject, and those that go on with it."""

    first: Clause
    said: Said
    words: tuple[ClaimWord, ...]


def is_crossed(claim: Clause, sentence: Sequence[Clause], senses: Senses) -> bool:
    """Whether the claim has words of two statements of a sentence, each without what it says in the other's place."""
    if len(sentence) < 2:
        return False
    statements, shared = _statements(sentence)
    if len(statements) < 2:
        return False
    words = [word for word in claim.words if not shared.says(word, senses)]
    said_by = [frozenset(word.key for word in words if one.said.says(word, senses)) for one in statements]
    every = frozenset().union(*said_by)
    if every in said_by:
        return False
    for (one, mine), (other, theirs) in combinations(zip(statements, said_by, strict=True), 2):
        left_to_inherit = int(_STANDS_FOR.search(other.first.text) is not None)
        if len(mine - theirs) <= left_to_inherit or not theirs - mine:
            continue
        if _says_more(one, other, claim, senses) and _says_more(other, one, claim, senses):
            return True
    return False


def _statements(sentence: Sequence[Clause]) -> tuple[list[_Statement], Said]:
    """And what stands before them, which holds for all of them."""
    groups: list[list[Clause]] = []
    before: list[Said] = []
    for number, clause in enumerate(sentence):
        if _has_subject(sentence, number) or any(_share_their_verb(clause, one) for one in sentence if one is not clause):
            groups.append([clause])
        elif groups:
            groups[-1].append(clause)
        else:
            before.append(clause.said)
    found = [
        _Statement(group[0], NOTHING_SAID.with_(*(one.said for one in group)), tuple(word for one in group for word in one.words))
        for group in groups
    ]
    return found, NOTHING_SAID.with_(*before)


def _says_more(one: _Statement, other: _Statement, claim: Clause, senses: Senses) -> bool:
    """Than the claim and the other one."""
    return any(not claim.said.says(word, senses) and not other.said.says(word, senses) for word in one.words)


def _has_subject(sentence: Sequence[Clause], number: int) -> bool:
    clause = sentence[number]
    if _HAS_SUBJECT.match(clause.text) is not None:
        return True
    if number == 0 and (_TIME_FIRST.match(clause.text) or (len(clause.order) > 1 and _MAY_BEGIN.match(clause.text))):
        return True
    follows = sentence[number + 1].text if number + 1 < len(sentence) else ""
    return _RELATIVE.match(follows) is not None and _MAY_BEGIN.match(clause.text) is not None  # Lea, who lives in Turin


def _share_their_verb(one: Clause, other: Clause) -> bool:
    """A word with others before it and behind it: the subject and the object."""
    if not _MAY_BEGIN.match(one.text) or not _MAY_BEGIN.match(other.text):
        return False
    return not frozenset(one.order[1:-1]).isdisjoint(other.order[1:-1])
