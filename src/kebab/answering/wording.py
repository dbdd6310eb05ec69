"""Checks whether a claim only rewords a passage: which clause is nearest, and what it has in place of the claim's
words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kebab.answering.claim_words import ClaimWord, is_action, is_added
from kebab.answering.clauses import Clause
from kebab.answering.source_reading import Reading, Window
from kebab.answering.word_kinds import is_one_of_a_kind
from kebab.answering.word_senses import Senses

_LEAST_OF_A_CLAUSE = 3
"""The least number of words and numbers of a clause; in a shorter one the verb is most of what it says."""
_MOST_PUT_OTHERWISE = 1 / 3
"""The largest share of a claim's words and numbers that may be reworded."""
_STATES = re.compile(
    r"(?:listen|run|operat|sit|sitt|hold|serv|measur|weigh|amount|cost|tak|need|us|inflat|adjust|resid|stay)(?:e|s|es|ed|d|ing)?"
    r"|stands?|stood|holds?|held|sets?|lies?|took|set"
)
"""Verbs that a number can do without: listens on port 22, inflate it to 5 bar."""
_DONE_TO = 1.2
"""The weight of a word with the particle of an object: of two equally near places, the one that mentions it is meant.
"""


def closeness(clause: Clause, other: Clause, known: Senses) -> float:
    """How many of a clause's words and numbers another clause has; words that it need not repeat count less."""
    score, inherited = 0.0, 0.0
    for word in clause.words:
        if other.said.says(word, known, or_opposite=True):
            score += (
                _DONE_TO
                if word.script == "hangul" and re.search(rf"{re.escape(word.text)}[을를](?![가-힣])", clause.text)
                else 1.0
            )
        elif other.before.says(word, known, or_opposite=True):
            inherited += other.inherited
    if score or not other.is_fragment:  # "but not drinks" is about drinks only
        score += inherited
    return score + sum(
        any(quantity.is_said_by(one, "") for _, one in other.quantities) for _, quantity in clause.quantities
    )


def is_only_worded(
    clauses: Sequence[Clause], missing: Sequence[str], window: Window, reading: Reading, known: Senses
) -> bool:
    """Whether the missing words are only reworded: none is a name, the passage says none of them elsewhere, and has
    nothing else in their place.
    """
    if len(missing) > max(1, _size(clauses) * _MOST_PUT_OTHERWISE):
        return False
    for clause in clauses:
        lacks = [word for word in clause.words if word.text in missing]
        if not lacks:
            continue
        nearest = max(window.clauses, key=lambda one: closeness(clause, one, known))
        left = [word for word in nearest.words if not clause.said.says(word, known)]
        actions = [word for word in _actions_of(nearest, window) if not clause.said.says(word, known)]
        if any(is_one_of_a_kind(word.text) for word in lacks):
            return False
        for word in lacks:
            if is_action(word, clause.text):
                if _only_states(word, clause, nearest, left):
                    continue
                if actions or _size([clause]) < _LEAST_OF_A_CLAUSE:
                    return False
            elif (
                any(not is_action(one, nearest.text) for one in left)
                or word.key not in known.kindred
                or reading.said.says(word, known.without_learned)
                or is_added(word, clause.text)
            ):
                return False
    return True


def _only_states(verb: ClaimWord, clause: Clause, nearest: Clause, left: Sequence[ClaimWord]) -> bool:
    """Whether a verb says no more than that a number applies, and the passage has that number for the same thing and no
    verb that contradicts it.
    """
    if not clause.quantities or _STATES.fullmatch(verb.text) is None:
        return False
    if not all(any(quantity.is_said_by(one, "") for _, one in nearest.quantities) for _, quantity in clause.quantities):
        return False
    things = [word for word in clause.words if word != verb]
    return bool(things) and not any(
        _is_done(word, nearest.text) for word in left if _STATES.fullmatch(word.text) is None
    )


def _is_done(word: ClaimWord, text: str) -> bool:
    """Whether a word is an action, by its ending or by the word before it; a word behind "is" may be a noun."""
    if word.text.endswith(("s", "ed", "ing")) and is_action(word, text):
        return True
    return (
        re.search(
            rf"(?:^\s*|\b(?:to|can|cannot|may|must|should|will|not|never)\s+){re.escape(word.text)}\b(?!\s*:)",
            text,
            re.I,
        )
        is not None
    )


def _size(clauses: Sequence[Clause]) -> int:
    return len({word.key for clause in clauses for word in clause.words}) + sum(
        len(clause.quantities) for clause in clauses
    )


def _actions_of(one: Clause, sentence: Window) -> list[ClaimWord]:
    """The verbs of a clause or, if it has none, of the next clause that has: Ada in the morning and Emil in the evening
    sweeps the yard.
    """
    place = sentence.clauses.index(one) if one in sentence.clauses else 0
    found = ([word for word in clause.words if is_action(word, clause.text)] for clause in sentence.clauses[place:])
    return next((actions for actions in found if actions), [])
