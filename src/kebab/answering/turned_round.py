"""Finds claims that reverse what a passage says: origin and destination, what is excluded, or "may" instead of "must"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kebab.answering.claim_words import ClaimWord
from kebab.answering.clauses import Clause
from kebab.answering.polarity import polarity_of
from kebab.answering.word_senses import Senses

_NOUNS = r"((?:(?!(?:to|until|till|into|from|by|on|at|in|and|or|for|with|as|of)\b)[\w./:$€₩%°-]+\s*){1,4})"
_FROM_TO = re.compile(rf"\bfrom\s+{_NOUNS}(?:to|until|till|into)\s+{_NOUNS}", re.IGNORECASE)
_TO_FROM = re.compile(rf"\b(?:to|into)\s+{_NOUNS}from\s+{_NOUNS}", re.IGNORECASE)
_BETWEEN = re.compile(rf"\bbetween\s+{_NOUNS}(?:and|to)\s+{_NOUNS}", re.IGNORECASE)
_KOREAN_FROM_TO = re.compile(
    r"([가-힣A-Za-z0-9]+)(?:에서|부터)\s(?:[가-힣A-Za-z0-9]+\s){0,2}?([가-힣A-Za-z0-9]+?)(?:으로|로|까지|에게)(?![가-힣])"
)
_TO = re.compile(rf"\b(?:to|until|till|into)\s+{_NOUNS}", re.IGNORECASE)
_IS_AT = re.compile(rf"\b(?:on|at|in|is|are|now|costs?)\s+{_NOUNS}", re.IGNORECASE)
_FROM = re.compile(
    rf"\b(?:from|instead of|rather than|not|before|originally|previously|formerly|first|used to)\s+{_NOUNS}",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:mov|shift|chang|rais|increas|reduc|decreas|lower|postpon|reschedul|upgrad|downgrad|migrat|relocat|renam|switch|convert|extend"
    r"|push|delay|transfer|adjust|drop|climb)(?:e|s|es|d|ed|ing|ped|ping)?\b"
    r"|\b(?:cut|cuts|cutting|rose|rises?|risen|fell|falls?|fallen|grew|grows?|grown|went|goes|gone|brought)\b",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:the|an?|its|their|our|your)\s+", re.IGNORECASE)
_THAN = re.compile(r"(?<![가-힣A-Za-z0-9])((?:[가-힣]\s)?[가-힣A-Za-z0-9]+?)보다(?=\s)")
_SUBJECT = re.compile(r"(?<![가-힣A-Za-z0-9])((?:[가-힣]\s)?[가-힣A-Za-z0-9]+?)(?:은|는|이|가)(?=[\s,])")
"""A subject with a short word before it, which may distinguish two things: 새 서버, 옛 서버."""
_PERHAPS = re.compile(
    r"\b(?:might|perhaps|maybe|possibly|probably|presumably|supposedly|allegedly|reportedly)\b|아마|지도 모[르른릅]",
    re.IGNORECASE,
)
_KEPT = re.compile(r"\b(?:kept|retained|stored|keep|retain)\b|보관", re.IGNORECASE)
_GONE = re.compile(r"\b(?:delet|remov|eras|purg|discard)|삭제|폐기", re.IGNORECASE)
_GONE_WITHIN = re.compile(
    rf"(?:{_GONE.pattern}).*\b(?:within|before|in|for|up to)\b|(?:이내|안에|내에|까지|전에).*(?:삭제|폐기)",
    re.IGNORECASE,
)
_LEFT_OUT = re.compile(
    r"\s*(?:and\s+|or\s+)?(?:never|not|nor|no)\s+(?!(?:only|just|more|less|later|earlier|matter|be|been|to\s+be|one)\b|\d)",
    re.IGNORECASE,
)
_TAKEN_OUT = re.compile(
    r"([가-힣A-Za-z0-9]+?)(?:[을를]|만)?(?<!에서)\s(?:제외(?:한|된|하고|하면|하곤)(?=\s)|빼고|뺀(?=\s)|(?:이?외에?|말고)(?:의|는|도)?\s(?:다른|모든|나머지|언제든|누구나|어디든|무엇이든))"
)
_DO_NOT = re.compile(r"\s*(?:do not|don['’]t|never)\s", re.IGNORECASE)
_HAS_VERB = re.compile(r"\b(?:is|are|was|were|be|do|does|did|can|may|must|will|would|should|has|have)\b", re.IGNORECASE)
_WITHOUT = re.compile(r"\bwithout\s+\w+", re.IGNORECASE)
""""without …", which denies a circumstance and not the action."""
_BEFORE_OR_AFTER = re.compile(r"\b(before|after)\b", re.IGNORECASE)
_SHORT = 4
"""The number of letters of a stem with which all forms of the word begin."""
_OBLIGES = re.compile(
    r"\b(?:must|ha(?:ve|s|d) to|needs? to|required|mandatory|obligatory|compulsory|obliged)\b"
    r"|[해아어여]야\s?[하한합만]|필수|의무|반드시",
    re.IGNORECASE,
)
_PERMITS = re.compile(
    r"\b(?:may|can|could|allowed|permitted|optional(?:ly)?|possible)\b|수\s?[도는]?\s?있|도\s?(?:되|된|됩|돼)|가능|허용",
    re.IGNORECASE,
)
_ANYWAY = re.compile(
    r"\b(?:even (?:if|when|though|without)|regardless|whether or not|no matter)\b"
    r"|[아어여와해워려져라]도(?!\s?(?:된|되|됩|돼|괜찮|좋|무방))(?=\s)",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\b(?:if|when|unless|only|provided|as long as)\b|면(?=[\s,])|경우|때만|어야만|만(?=[\s,.])", re.IGNORECASE
)
_OFTEN = {
    name: re.compile(rf"\b(?:{english})\b|{korean}", re.IGNORECASE)
    for name, english, korean in (
        ("day", r"daily|every day|each day|(?:\d|once) a day", "매일|날마다|하루에|1일에"),
        ("two days", r"every (?:other|second|2) days?", "격일|2일에 [1한]|2일마다"),
        ("week", r"weekly|every week|each week|(?:\d|once) a week", "매주|1?주일에|1주에"),
        ("two weeks", r"every (?:other|second|2) weeks?|fortnightly|biweekly", "격주|2주마다"),
        ("month", r"monthly|every month|each month|(?:\d|once) a month", "매월|매달|1 ?(?:달|개월)에"),
        ("quarter", r"quarterly|every quarter|each quarter|(?:\d|once) a quarter", "매 ?분기|분기마다|분기에"),
        ("year", r"yearly|annually|every year|each year|(?:\d|once) a year", "매년|해마다|1년에|연간"),
        ("two years", r"every (?:other|second|2) years?|biennially", "2년마다|2년에 [1한]"),
    )
}


class _Way(NamedTuple):
    start: str
    end: str


def goes_the_other_way(claim: Clause, passage: Clause) -> bool:
    """Whether the claim says from A to B, and the passage from B to A."""
    ways = list(_ways(passage.text))
    return any(
        _is_same(mine.start, theirs.end) and _is_same(mine.end, theirs.start)
        for mine in _ways(claim.text)
        for theirs in ways
    )


def ends_where_it_began(claim: Clause, passage: Clause) -> bool:
    """Whether the claim says to A, or at A, and the passage that something moved from A to B."""
    if any(True for _ in _ways(claim.text)):
        return False  # which has been compared with the other way
    left = [_noun(match[1]) for match in _FROM.finditer(claim.text)]
    for way in _ways(passage.text):
        ends = [_noun(match[1]) for match in _TO.finditer(claim.text)]
        if _CHANGES.search(passage.text):
            ends += [_noun(match[1]) for match in _IS_AT.finditer(claim.text)]
        length = len(way.start.split())  # what follows, such as last spring, is about all of it
        if any(
            _in_common(end, way.start, length) > _in_common(end, way.end, length) and end not in left for end in ends
        ):
            return True
    return False


def _in_common(one: str, other: str, length: int) -> int:
    """How many of their first words both have in common."""
    return len(frozenset(one.split()[:length]) & frozenset(other.split()[:length]))


def _ways(text: str) -> Iterator[_Way]:
    for pattern in (_FROM_TO, _BETWEEN):
        yield from (_Way(_noun(match[1]), _noun(match[2])) for match in pattern.finditer(text))
    yield from (_Way(_noun(match[2]), _noun(match[1])) for match in _TO_FROM.finditer(text))
    yield from (_Way(match[1], match[2]) for match in _KOREAN_FROM_TO.finditer(text))


def _noun(words: str) -> str:
    return _ARTICLE.sub("", words.strip()).strip(" .").casefold()


def _is_same(one: str, other: str) -> bool:
    """Whether both are the same place, if one has more words: S3, S3 by the end."""
    mine, theirs = one.split(), other.split()
    return bool(mine and theirs) and (mine[0] == theirs[0] or mine[-1] == theirs[-1])


def compares_the_other_way(claim: Clause, passage: Clause) -> bool:
    """Whether the claim reverses a comparison: 동생은 언니보다 크다, if the passage has 언니는 동생보다 크다."""
    mine, theirs = _compared(claim.text), _compared(passage.text)
    return any(
        one.end in {other.start for other in theirs} and any(one.start == other.end for other in theirs) for one in mine
    )


def _compared(text: str) -> list[_Way]:
    """The subjects, each with the thing that it is compared with."""
    than = [match[1].strip() for match in _THAN.finditer(text)]
    subjects = [match[1].strip() for match in _SUBJECT.finditer(text)] if than else []
    return [_Way(subject, thing) for subject in subjects for thing in than]


def ends_too_early(claim: Clause, passage: Clause) -> bool:
    """Whether the claim says deleted within a month, and the passage kept for a month."""
    return (
        _GONE_WITHIN.search(claim.text) is not None
        and _KEPT.search(passage.text) is not None
        and not _GONE.search(passage.text)
    )


def is_surer(claim: Clause, passage: Clause) -> bool:
    """Whether the claim states as certain what the passage says might be."""
    return (
        _PERHAPS.search(passage.text) is not None
        and _PERHAPS.search(claim.text) is None
        and _PERMITS.search(claim.text) is None
    )


def is_excluded(claim: Clause, sentence: Sequence[Clause], senses: Senses) -> bool:
    """Whether the claim says what the sentence excludes: to Ada, not to Emil; weekly, never on Sundays."""
    if polarity_of(_WITHOUT.sub(" ", claim.text)).denies:
        return False
    if any(_is_taken_out(claim.text, clause) for clause in sentence):
        return True
    for clause in sentence:
        fragment = _LEFT_OUT.match(clause.text) is not None and not _HAS_VERB.search(clause.text)
        fragment = fragment or (clause.is_exception and clause.polarity.denies)
        if not fragment and not _DO_NOT.match(clause.text):
            continue
        if _comes_first(claim, clause):
            continue
        left_out = [word for word in clause.words if not _is_manner(word)]
        if left_out and all(claim.said.says(word, senses) for word in left_out):
            return True
    return False


def _comes_first(claim: Clause, passage: Clause) -> bool:
    """Whether the claim (ask Ada before opening it, or open it after asking her) says that something needed comes
    first, as the passage does with "without": never open it without asking Ada.
    """
    without, order = _WITHOUT.search(passage.text), _BEFORE_OR_AFTER.search(claim.text)
    if without is None or order is None or _WITHOUT.search(claim.text):
        return False
    first, second = claim.text[: order.start()], claim.text[order.end() :]
    if order[1].lower() == "after":
        first, second = second, first
    needed = [
        word
        for word in passage.words
        if re.search(rf"\b{re.escape(word.text)}\b", passage.text[without.start() :], re.IGNORECASE)
    ]
    done = [word for word in passage.words if word not in needed]
    return (
        bool(needed)
        and bool(done)
        and all(_begins_in(word, first) for word in needed)
        and all(_begins_in(word, second) for word in done)
    )


def _begins_in(word: ClaimWord, text: str) -> bool:
    """Whether a text begins with a word in any form: asking, ask."""
    return (
        re.search(rf"\b{re.escape(word.key[:-1] if len(word.key) > _SHORT else word.key)}", text, re.IGNORECASE)
        is not None
    )


def _is_taken_out(claim: str, passage: Clause) -> bool:
    """Whether the claim is about 교통비, and the passage about everything 교통비를 제외한."""
    if _TAKEN_OUT.search(claim) or passage.polarity.denies:
        return False
    return any(re.search(rf"(?<![가-힣]){re.escape(match[1])}", claim) for match in _TAKEN_OUT.finditer(passage.text))


def _is_manner(word: ClaimWord) -> bool:
    return word.script == "other" and word.text.endswith("ly")


def obliges_instead(claim: Clause, passage: Clause) -> bool:
    """Whether the claim demands what the passage only allows."""
    if (
        claim.polarity.denies
        or passage.polarity.denies
        or _OBLIGES.search(claim.text) is None
        or _PERMITS.search(claim.text)
    ):
        return False
    return _PERMITS.search(passage.text) is not None and _OBLIGES.search(passage.text) is None


def holds_anyway(claim: Clause, passage: Clause) -> bool:
    """Whether the claim says "even if" where the passage has a condition."""
    return (
        _ANYWAY.search(claim.text) is not None
        and _ANYWAY.search(passage.text) is None
        and _CONDITION.search(passage.text) is not None
    )


def comes_otherwise(claim: Clause, passage: Clause) -> bool:
    """Whether the claim says every day, and the passage every other day."""
    mine, theirs = _how_often(claim.text), _how_often(passage.text)
    return bool(mine and theirs) and mine.isdisjoint(theirs)


def _how_often(text: str) -> frozenset[str]:
    return frozenset(name for name, pattern in _OFTEN.items() if pattern.search(text))
