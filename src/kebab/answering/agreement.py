"""Checks whether two clauses about the same thing agree: yes or no, opposites, who does what to whom, and which word
stands in whose place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kebab.analysis.korean import strip_particle
from kebab.answering.claim_words import ClaimWord, is_action, is_thing
from kebab.answering.clauses import Clause
from kebab.answering.measures import IMPLIED
from kebab.answering.polarity import left_out
from kebab.answering.source_reading import Reading
from kebab.answering.turned_round import (
    comes_otherwise,
    compares_the_other_way,
    ends_too_early,
    ends_where_it_began,
    goes_the_other_way,
    holds_anyway,
    is_surer,
    obliges_instead,
)
from kebab.answering.word_senses import Senses, korean_opposites

_KOREAN_ROLE = re.compile(r"([가-힣A-Za-z0-9]+?)(은|는|이|가|께서|을|를|로|으로|에게|한테)(?=[\s,.]|$)")
_KOREAN_SLOT = re.compile(r"([가-힣A-Za-z0-9]{2,}?)(이|가|을|를|로|으로|에게|한테|에서|께)(?=[\s,.]|$)")
_SAME_PARTICLE = {"가": "이", "를": "을", "으로": "로", "한테": "에게", "께": "에게"}
_TURNABLE = frozenset({"need", "requir", "must", "not", "no", "never", "cannot"})
"""Words of clauses whose subject and object may be exchanged without changing the meaning (the port must be open for
the service, the service needs an open port), and words of denial.
"""
_MEASURED = frozenset(word for words in IMPLIED.values() for word in words.split())
_COMPARES = re.compile(
    r"\b(?:more|less|fewer|over|under|above|below|least|most|up to|than)\b|이상|이하|미만|초과|넘|보다", re.IGNORECASE
)
_CIRCUMSTANCE = re.compile(
    r"\b(?:in|for|on|at|during|per|within|due to|because of|via|through)\s+(?:(?:the|an?|each|every)\s+)?([\w-]+)",
    re.IGNORECASE,
)
_ANYBODY = re.compile(r"\s*(?:whoever|anyone|anybody|everyone|everybody|those who|nobody|no one|누구)", re.IGNORECASE)
_DOER = frozenset("은 는 이 가 께서".split())


def contradicts(claim: Clause, passage: Clause, senses: Senses) -> bool:
    """Whether the passage denies what the claim says, or the claim denies what the passage says, or the claim exchanges
    who does it and to whom.
    """
    return (
        is_denied(claim, passage, senses)
        or claim.polarity.differs_from(passage.polarity)
        or _roles_are_swapped(claim, passage)
        or _korean_roles_are_swapped(claim, passage)
        or _korean_slot_is_another(claim, passage)
        or _something_else_stands_there(claim, passage, senses)
        or _object_is_another(claim, passage, senses)
        or goes_the_other_way(claim, passage)
        or ends_where_it_began(claim, passage)
        or ends_too_early(claim, passage)
        or compares_the_other_way(claim, passage)
        or is_surer(claim, passage)
        or obliges_instead(claim, passage)
        or comes_otherwise(claim, passage)
        or holds_anyway(claim, passage)
    )


def is_denied(claim: Clause, passage: Clause, senses: Senses) -> bool:
    """Whether one clause says yes and the other no, or one says the opposite of the other."""
    opposites = list(_opposites(claim, passage, senses))
    number = len(opposites) + (
        korean_opposites(claim.said.text, passage.said.text) if claim.said.text and passage.said.text else 0
    )
    denial = (claim.polarity.denies != passage.polarity.denies) != _is_without(claim, passage, senses)
    if number == 0:
        return denial
    if number == 1 and not any(one in senses.directions for one in opposites):
        return not denial  # what is not enabled is disabled
    return True


def _is_without(claim: Clause, passage: Clause, senses: Senses) -> bool:
    """Whether one clause says "without" about something that the other has."""
    mine, theirs = left_out(claim.text), left_out(passage.text)
    if bool(mine) == bool(theirs):
        return False
    lacks, has, words = (claim, passage, mine) if mine else (passage, claim, theirs)
    if words & _plain_words(has.text):
        return True
    return any(
        has.said.says(word, senses.without_learned) for word in lacks.words if word.text in words
    )  # approval, approves


def _plain_words(text: str) -> frozenset[str]:
    return frozenset(strip_particle(word) for word in re.findall(r"[\w-]+", text.lower()))


def tells(asked: Clause, said: Clause, senses: Senses) -> bool | None:
    """Whether a clause means yes to the question. None if it is about something else, about all or only some, or about
    a limit.
    """
    if asked.polarity[1:] != said.polarity[1:] or _COMPARES.search(asked.text):
        return None
    has_all = all(said.said.says(word, senses, or_opposite=True) for word in asked.words)
    if not has_all and not (said.words and all(asked.said.says(word, senses, or_opposite=True) for word in said.words)):
        return None
    if asked.quantities and not said.quantities:
        return None
    return not is_denied(asked, said, senses) and all(
        any(one.is_said_by(other, "") for _, other in said.quantities) for _, one in asked.quantities
    )


def _opposites(claim: Clause, passage: Clause, senses: Senses) -> Iterator[str]:
    mine, theirs = ({stem for stem in one.said.stems if stem in senses.same} for one in (claim, passage))
    for one in mine - theirs:
        if any(senses.are_same(one, other) for other in theirs):
            continue
        for other in theirs - mine:
            if senses.are_opposite(one, other) and not any(senses.are_same(other, third) for third in mine):
                yield one
                break


def _roles_are_swapped(claim: Clause, passage: Clause) -> bool:
    """Whether two words have changed sides around a third word that both clauses have: one was before it and is now
    behind it, the other the reverse.
    """
    if claim.is_passive != passage.is_passive or (claim.said.text and passage.said.text):
        return False  # in Korean the order is free
    mine, theirs = claim.order, (*passage.order_before, *passage.order)
    things = set(claim.order) - _circumstances(claim) - _circumstances(passage)
    for pivot in set(mine) & set(passage.order) - _TURNABLE - _nouns(claim, passage):
        if mine.count(pivot) > 1 or theirs.count(pivot) > 1:
            continue
        here, there = mine.index(pivot), theirs.index(pivot)
        moved_back = things & set(mine[:here]) & set(theirs[there + 1 :]) - set(theirs[:there])
        moved_forward = things & set(mine[here + 1 :]) & set(theirs[:there]) - set(theirs[there + 1 :])
        if moved_back and moved_forward:
            return True
    return False


def _nouns(claim: Clause, passage: Clause) -> set[str]:
    """The nouns of a clause (the lead's approval, the approval of the lead), without verbs: around a verb, roles could
    be exchanged.
    """
    theirs = {word.key for word in passage.words if is_thing(word, passage.text)}
    return {word.key for word in claim.words if word.key in theirs and not is_action(word, claim.text)}


def _circumstances(clause: Clause) -> set[str]:
    """The words of circumstances, which may be anywhere in a clause: in Europe, for meals, on Monday."""
    behind = {match[1].lower() for match in _CIRCUMSTANCE.finditer(clause.text)}
    return {word.key for word in clause.words if word.text in behind}


def _korean_roles_are_swapped(claim: Clause, passage: Clause) -> bool:
    """Whether claim and passage mark each other's subject with the particle of the subject."""
    if not claim.said.text or not passage.said.text:
        return False
    mine, theirs = _roles(claim.text), _roles(passage.text)
    doer, other_doer = mine.get(True, set()) - theirs.get(True, set()), theirs.get(True, set()) - mine.get(True, set())
    return bool(doer & theirs.get(False, set())) and bool(other_doer & mine.get(False, set()))


def _korean_slot_is_another(claim: Clause, passage: Clause) -> bool:
    """Whether the claim has 후문으로 where the passage has 정문으로, and the passage says something else about 후문."""
    if not claim.said.text or not passage.said.text:
        return False
    mine, theirs = _slots(claim.text), _slots(passage.text)
    for slot, words in mine.items():
        taken = theirs.get(slot, set())
        elsewhere = {word for other, found in theirs.items() if other != slot for word in found}
        if (
            words
            and taken
            and not words & taken
            and words <= elsewhere
            and not any(word in claim.text for word in taken)
        ):
            return True
    return False


def _slots(text: str) -> dict[str, set[str]]:
    """The words of a clause by their particles, without the particle that may stand for any role."""
    found: dict[str, set[str]] = {}
    for match in _KOREAN_SLOT.finditer(text):
        found.setdefault(_SAME_PARTICLE.get(match[2], match[2]), set()).add(match[1])
    return found


def _roles(text: str) -> dict[bool, set[str]]:
    """The words of the subject and of the object, each with the word before it, which may distinguish it from another
    one.
    """
    roles: dict[bool, set[str]] = {True: set(), False: set()}
    for match in _KOREAN_ROLE.finditer(text):
        before = re.search(r"([가-힣A-Za-z0-9]+)\s$", text[: match.start()])
        roles[match[2] in _DOER].add(f"{before[1]} {match[1]}" if before else match[1])
    return roles


def _something_else_stands_there(claim: Clause, passage: Clause, senses: Senses) -> bool:
    """Whether the passage has another word between the same two words: the billing team, the support team."""
    words = {word.key: word for word in claim.words}
    turned = claim.polarity.denies != passage.polarity.denies  # not open, closed
    for number, token in enumerate(claim.tokens[1:], start=1):
        if token not in words or any(
            said.says(words[token], senses, or_opposite=turned) for said in (passage.said, passage.before)
        ):
            continue
        left, right = claim.tokens[number - 1], "".join(claim.tokens[number + 1 : number + 2])
        if left[:1].isdigit() or right[:1].isdigit():
            continue  # a number says more about its place than the words around it
        for place, there in enumerate(passage.tokens[1:], start=1):
            follows = "".join(passage.tokens[place + 1 : place + 2])
            is_other = there not in words and not there[:1].isdigit()
            at_the_end = not right and words[token].script == "other"  # where Korean has its verbs
            if passage.tokens[place - 1] == left and is_other and (at_the_end or follows == right != ""):
                return True
    return False


def _object_is_another(claim: Clause, passage: Clause, senses: Senses) -> bool:
    """Whether the claim has another object: what follows a word in the claim precedes it in the passage, where another
    word follows (the ferry to A leaves B).
    """
    if claim.is_passive or passage.is_passive or claim.said.text or passage.said.text:
        return False
    mine, theirs = claim.order, passage.order
    for place, pivot in enumerate(mine[1:-1], start=1):
        if pivot in _TURNABLE or mine.count(pivot) > 1 or theirs.count(pivot) != 1:
            continue
        there, taken = theirs.index(pivot), mine[place + 1]
        stands = "".join(theirs[there + 1 : there + 2])
        is_other = stands not in mine and not any(senses.are_same(stands, one) for one in mine)
        if taken in theirs[:there] and stands and is_other and theirs[0] == mine[0] != taken:
            return True
    return False


def is_about_another(claim: Clause, passage: Clause, reading: Reading, senses: Senses) -> bool:
    """Whether the claim begins with a name, and the passage says the same of another one, who is not named beside the
    first anywhere.
    """
    subject = _subject(claim)
    if subject is None or any(said.says(subject, senses) for said in (passage.said, passage.before, reading.context)):
        return False
    if not reading.said.says(subject, senses.without_learned) or _ANYBODY.match(passage.text):
        return False  # a word of the claim's own
    other = _other_subject(claim, passage, subject) or _other_named(claim, passage, subject)
    if other is None:
        return False
    return not any(
        sentence.said.says(subject, senses) and other in _keys(sentence.clauses) for sentence in reading.sentences
    )


def _other_named(claim: Clause, passage: Clause, subject: ClaimWord) -> str | None:
    """The other person who is named at the beginning of the sentence, if the passage continues with a verb: Ada saw it
    and called Emil.
    """
    is_name = re.match(rf"\s*{re.escape(subject.text.capitalize())}\b", claim.text) is not None
    first = passage.tokens_before[:1] if not passage.carried_on else ()
    return first[0] if is_name and first and first[0] not in {word.key for word in claim.words} else None


def _keys(clauses: Iterable[Clause]) -> frozenset[str]:
    return frozenset(token for clause in clauses for token in clause.tokens)


def _subject(claim: Clause) -> ClaimWord | None:
    """The subject of a clause: marked by a particle in Korean, otherwise the first word."""
    for word in claim.words:
        if (
            word.text not in _MEASURED
            and not word.form.endswith("다")
            and word.script == "hangul"
            and re.search(rf"{re.escape(word.text)}(?:은|는|이|가|께서)(?![가-힣])", claim.text)
        ):
            return word
    first = next((word for word in claim.words if claim.tokens[:1] == (word.key,) and word.text not in _MEASURED), None)
    return first if first is not None and first.script == "other" else None


def _other_subject(claim: Clause, passage: Clause, subject: ClaimWord) -> str | None:
    """The words that the passage has as its subject where the claim has another one."""
    mine = {word.key for word in claim.words}
    if subject.script == "hangul":
        marked = (
            word
            for word in passage.words
            if re.search(rf"{re.escape(word.text)}(?:은|는|이|가|께서)(?![가-힣])", passage.text)
        )
        return next((word.key for word in marked if word.key not in mine), None)
    first = passage.tokens[:1]
    return first[0] if first and first[0] not in mine and not first[0][:1].isdigit() else None
