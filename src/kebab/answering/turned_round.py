"""What a claim must not turn round: where from and where to, what is excluded, and what may be done into what must be done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kebab.answering.claim_words import ClaimWord
from kebab.answering.clauses import Clause
from kebab.answering.polarity import polarity_of
from kebab.answering.word_senses import Senses

_NOUNS = r"((?:(?!(?:to|until|till|into|from|by|on|at|in|and|or|for|with|as|of)\b)[\w./:-]+\s*){1,4})"
_FROM_TO = re.compile(rf"\bfrom\s+{_NOUNS}(?:to|until|till|into)\s+{_NOUNS}", re.IGNORECASE)
_TO_FROM = re.compile(rf"\b(?:to|into)\s+{_NOUNS}from\s+{_NOUNS}", re.IGNORECASE)
_BETWEEN = re.compile(rf"\bbetween\s+{_NOUNS}(?:and|to)\s+{_NOUNS}", re.IGNORECASE)
_KOREAN_FROM_TO = re.compile(
    r"([가-힣A-Za-z0-9]+)(?:에서|부터)\s(?:[가-힣A-Za-z0-9]+\s){0,2}?([가-힣A-Za-z0-9]+?)(?:으로|로|까지|에게)(?![가-힣])"
)
_ARTICLE = re.compile(r"^(?:the|an?|its|their|our|your)\s+", re.IGNORECASE)
_LEFT_OUT = re.compile(
    r"\s*(?:and\s+|or\s+)?(?:never|not|nor|no)\s+(?!(?:only|just|more|less|later|earlier|matter|be|been|to\s+be|one)\b|\d)", re.IGNORECASE
)
_DO_NOT = re.compile(r"\s*(?:do not|don['’]t|never)\s", re.IGNORECASE)
_HAS_VERB = re.compile(r"\b(?:is|are|was|were|be|do|does|did|can|may|must|will|would|should|has|have)\b", re.IGNORECASE)
_WITHOUT = re.compile(r"\bwithout\s+\w+", re.IGNORECASE)
"""Which denies a circumstance, not what is done."""
_OBLIGES = re.compile(
    r"\b(?:must|ha(?:ve|s|d) to|needs? to|required|mandatory|obligatory|compulsory|obliged)\b"
    r"|[해아어여]야\s?[하한합만]|필수|의무|반드시",
    re.IGNORECASE,
)
_PERMITS = re.compile(
    r"\b(?:may|can|could|allowed|permitted|optional(?:ly)?|possible)\b|수\s?[도는]?\s?있|도\s?(?:되|된|됩|돼)|가능|허용", re.IGNORECASE
)
_ANYWAY = re.compile(
    r"\b(?:even (?:if|when|though|without)|regardless|whether or not|no matter)\b"
    r"|[아어여와해워려져라]도(?!\s?(?:된|되|됩|돼|괜찮|좋|무방))(?=\s)",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"\b(?:if|when|unless|only|provided|as long as)\b|면(?=[\s,])|경우|때만|어야만|만(?=[\s,.])", re.IGNORECASE)
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
    """From A to B, where the passage has it from B to A."""
    ways = list(_ways(passage.text))
    return any(_is_same(mine.start, theirs.end) and _is_same(mine.end, theirs.start) for mine in _ways(claim.text) for theirs in ways)


def _ways(text: str) -> Iterator[_Way]:
    for pattern in (_FROM_TO, _BETWEEN):
        yield from (_Way(_noun(match[1]), _noun(match[2])) for match in pattern.finditer(text))
    yield from (_Way(_noun(match[2]), _noun(match[1])) for match in _TO_FROM.finditer(text))
    yield from (_Way(match[1], match[2]) for match in _KOREAN_FROM_TO.finditer(text))


def _noun(words: str) -> str:
    return _ARTICLE.sub("", words.strip()).strip(" .").casefold()


def _is_same(one: str, other: str) -> bool:
    """Of one, the other may have more words: S3, S3 by the end."""
    mine, theirs = one.split(), other.split()
    return bool(mine and theirs) and (mine[0] == theirs[0] or mine[-1] == theirs[-1])


def is_excluded(claim: Clause, sentence: Sequence[Clause], senses: Senses) -> bool:
    """Whether the claim says what the sentence leaves out: to Ada, not to Emil; weekly, never on Sundays."""
    if polarity_of(_WITHOUT.sub(" ", claim.text)).denies:
        return False
    for clause in sentence:
        fragment = _LEFT_OUT.match(clause.text) is not None and not _HAS_VERB.search(clause.text)
        if not fragment and not _DO_NOT.match(clause.text):
            continue
        left_out = [word for word in clause.words if not _is_manner(word)]
        if left_out and all(claim.said.says(word, senses) for word in left_out):
            return True
    return False


def _is_manner(word: ClaimWord) -> bool:
    return word.script == "other" and word.text.endswith("ly")


def obliges_instead(claim: Clause, passage: Clause) -> bool:
    """Whether the claim demands what the passage allows."""
    if claim.polarity.denies or passage.polarity.denies or _OBLIGES.search(claim.text) is None or _PERMITS.search(claim.text):
        return False
    return _PERMITS.search(passage.text) is not None and _OBLIGES.search(passage.text) is None


def holds_anyway(claim: Clause, passage: Clause) -> bool:
    """Even if, where the passage makes it a condition."""
    return _ANYWAY.search(claim.text) is not None and _ANYWAY.search(passage.text) is None and _CONDITION.search(passage.text) is not None


def comes_otherwise(claim: Clause, passage: Clause) -> bool:
    """Every day, where the passage has every other day."""
    mine, theirs = _how_often(claim.text), _how_often(passage.text)
    return bool(mine and theirs) and mine.isdisjoint(theirs)


def _how_often(text: str) -> frozenset[str]:
    return frozenset(name for name, pattern in _OFTEN.items() if pattern.search(text))
