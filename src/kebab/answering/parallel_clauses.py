"""Distinguishes parallel statements in one sentence: Marta signs contracts and Igor signs invoices. A claim must not
mix words of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations, pairwise
from typing import NamedTuple

from kebab.answering.claim_facts import names_in
from kebab.answering.claim_words import NOTHING_SAID, ClaimWord, Said, is_action
from kebab.answering.clauses import Clause
from kebab.answering.word_senses import Senses

_AUXILIARY = r"(?:can|could|may|might|must|shall|should|will|would|cannot|is|are|was|were|has|have|had|do|does|did|needs?|costs?|gets?|\w+n['’]t)\b"
_DEPENDENT = (
    r"(?:if|when|unless|because|although|since|until|after|before|that|which|who|whose|where|it|its|they|he|she|this|these|then|to|in|on|at"
    r"|for|from|by|with|without|of|as|instead|rather|except|not|also|only\s+(?:if|when))\b"
)
_HAS_SUBJECT = re.compile(
    rf"\s*(?!{_DEPENDENT})(?!{_AUXILIARY})(?:(?:[\w'’-]+\s+){{1,5}}?{_AUXILIARY}|.*[가-힣](?:은|는|이|가|께서|도)(?=[\s,]))",
    re.IGNORECASE,
)
_TIME_FIRST = re.compile(
    rf"\s*(?:in|on|at|since|after|before|during)\s.*?\s(?:the|an?)\s(?:\w+\s){{1,3}}?{_AUXILIARY}", re.IGNORECASE
)
_GAPPED = re.compile(
    rf"\s*(?!{_DEPENDENT})(?:(?:Dr|Mr|Ms|Mrs|Prof)\.?\s)?[A-Z][\w-]*\s+(?:to|on|in|at|for|from|by|with|the|only|\d)\b"
)
"""A clause without its verb: Ada takes Mondays, Emil the rest."""
_VERBLESS = re.compile(
    rf"\s*(?!.*\b{_AUXILIARY})(?:[\w'’-]+\s+){{1,4}}(?:by|to|on|in|at|for|from|with)\s+(?:[\w'’-]+\s*){{1,4}}",
    re.IGNORECASE,
)
_PREPOSITION = re.compile(r"\s*(to|from|on|in|at|for|with|by|until|within)\s", re.IGNORECASE)
_INNER_PREPOSITION = re.compile(r"\s(by|to|on|in|at|for|from|with)\s", re.IGNORECASE)
_RELATIVE = re.compile(r"\s*(?:who|which|whose)\b", re.IGNORECASE)
_MAY_BEGIN = re.compile(rf"\s*(?!{_DEPENDENT})(?!{_AUXILIARY})", re.IGNORECASE)
_STANDS_FOR = re.compile(r"\b(?:ones?|those|that)\b", re.IGNORECASE)
"""Words that stand for a noun before: the white one, for a wine."""


class _Statement(NamedTuple):
    """A clause with its own subject, and the clauses that continue it."""

    first: Clause
    said: Said
    words: tuple[ClaimWord, ...]


class _Half(NamedTuple):
    text: str
    words: tuple[ClaimWord, ...]


def is_crossed(claim: Clause, sentence: Sequence[Clause], senses: Senses) -> bool:
    """Whether the claim mixes words of two statements of a sentence, each without what the statement says in the place
    of the other's word.
    """
    if len(sentence) < 2:
        return False
    if any(_is_mixed(claim, one, other, senses) for one, other in _halves(sentence)):
        return True
    if any(_is_led_astray(claim, one, other, senses) for one, other in pairwise(sentence)):
        return True
    statements, shared = _statements(sentence)
    if len(statements) < 2:
        return False
    words = [
        word for word in claim.words if not shared.says(word, senses) and not is_action(word, claim.text)
    ]  # verbs are shared
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


def _halves(sentence: Sequence[Clause]) -> Iterator[tuple[_Half, _Half]]:
    """Two halves of a sentence with the same preposition: to the bank on weekdays and to the farm on Saturdays."""
    for one, other in pairwise(sentence):
        begins = _PREPOSITION.match(other.text)
        found = re.search(rf"\b{begins[1]}\s", one.text, re.IGNORECASE) if begins else None
        if found is not None and found.start() > 0:
            behind = one.text[found.start() :]
            tail = tuple(word for word in one.words if re.search(rf"\b{re.escape(word.text)}", behind, re.IGNORECASE))
            yield _Half(behind, tail), _Half(other.text, other.words)


def _is_mixed(claim: Clause, one: _Half, other: _Half, senses: Senses) -> bool:
    """Whether the claim has a word of each statement, and each statement has one that the claim lacks."""
    for half, rest in ((one, other), (other, one)):
        shared = frozenset(word.key for word in rest.words)
        said = [claim.said.says(word, senses) for word in half.words if word.key not in shared]
        unnamed = any(name.lower() not in claim.text.lower() for name in names_in(half.text))
        if not any(said) or (all(said) and not unnamed):
            return False
    return True


def _is_led_astray(claim: Clause, one: Clause, other: Clause, senses: Senses) -> bool:
    """Whether the claim combines a condition with the wrong statement: "Faults go to Ada, at night to Emil", and the
    claim has the night and Ada, without Emil.
    """
    if not _is_without_verb(other):
        return False
    found = _INNER_PREPOSITION.search(other.text)
    before = re.search(rf"\b{found[1]}\s", one.text, re.IGNORECASE) if found else None
    if found is None or before is None:
        return False
    lead, tail = (
        [word for word in other.words if _stands_in(word, part)]
        for part in (other.text[: found.start()], other.text[found.end() :])
    )
    mine = [word for word in one.words if _stands_in(word, one.text[before.end() :])]
    says = partial(claim.said.says, senses=senses)
    return bool(mine) and any(map(says, lead)) and any(map(says, mine)) and bool(tail) and not any(map(says, tail))


def _stands_in(word: ClaimWord, text: str) -> bool:
    return re.search(rf"\b{re.escape(word.text)}\b", text, re.IGNORECASE) is not None


def _statements(sentence: Sequence[Clause]) -> tuple[list[_Statement], Said]:
    """The statements of a sentence, each with the words before all of them, which apply to each."""
    groups: list[list[Clause]] = []
    before: list[Said] = []
    for number, clause in enumerate(sentence):
        begins = (clause.anew and not clause.goes_on) or (
            number == 0 and any(one.anew and not one.goes_on for one in sentence)
        )
        if (
            begins
            or _has_subject(sentence, number)
            or any(_share_their_verb(clause, one) for one in sentence if one is not clause)
        ):
            groups.append([clause])
        elif groups:
            groups[-1].append(clause)
        else:
            before.append(clause.said)
    found = [
        _Statement(
            group[0],
            NOTHING_SAID.with_(*(one.said for one in group)),
            tuple(word for one in group for word in one.words),
        )
        for group in groups
    ]
    return found, NOTHING_SAID.with_(*before)


def _says_more(one: _Statement, other: _Statement, claim: Clause, senses: Senses) -> bool:
    """Whether a statement says more than the claim and the other statement."""
    return any(not claim.said.says(word, senses) and not other.said.says(word, senses) for word in one.words)


def _has_subject(sentence: Sequence[Clause], number: int) -> bool:
    clause = sentence[number]
    if _HAS_SUBJECT.match(clause.text) is not None:
        return True
    if number == 0 and (_TIME_FIRST.match(clause.text) or (len(clause.order) > 1 and _MAY_BEGIN.match(clause.text))):
        return True
    if number > 0 and (_GAPPED.match(clause.text) or _is_without_verb(clause)):
        return True
    follows = sentence[number + 1].text if number + 1 < len(sentence) else ""
    return _RELATIVE.match(follows) is not None and _MAY_BEGIN.match(clause.text) is not None  # Lea, who lives in Turin


def _is_without_verb(clause: Clause) -> bool:
    """Whether a clause has no verb and takes it from the clause before: new accounts by Ada."""
    if _VERBLESS.fullmatch(clause.text) is None or _MAY_BEGIN.match(clause.text) is None:
        return False
    first = clause.text.split()[0]
    return not first.endswith(("ed", "s")) and not any(
        is_action(word, clause.text) for word in clause.words if word.text == first.lower()
    )


def _share_their_verb(one: Clause, other: Clause) -> bool:
    """Whether two clauses have a word in common with other words before and behind it: their verb, between subject and
    object.
    """
    if not _MAY_BEGIN.match(one.text) or not _MAY_BEGIN.match(other.text):
        return False
    return not frozenset(one.order[1:-1]).isdisjoint(other.order[1:-1])
