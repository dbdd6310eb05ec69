"""Reads whether a clause denies, hedges or restricts what it says, or says it of everything."""

from __future__ import annotations

import re
from typing import NamedTuple

YES_OR_NO = r"(?:(?P<yes>yes|네|예|그렇습니다)|no|아니요|아니오|아뇨|아닙니다)"
"""Yes and no, as an answer by themselves or at the beginning of one."""
_NO_DENIAL = re.compile(
    r"\b(?:not only|whether or not|no(?:t)? (?:more|less|fewer|later|earlier|sooner|longer) than|no matter|not just|not exceed"
    r"|not be (?:more|less|fewer|later|earlier|longer|older|younger|over|under|above|below))\b"
    r"|(?:넘지|초과하지)\s?(?:않|못|말)|(?:넘을|초과할) 수 없"
    r"|뿐(?:만)?\s?아니라",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:not|never|no|none|nothing|nobody|neither|cannot|unable|impossible|hardly|barely|scarcely|seldom|rarely|unless|except"
    r"|forbid(?:s|den)?|prohibit(?:s|ed)?|den(?:y|ies|ied)|ban(?:s|ned)?|fail(?:s|ed|ing)? to|refuse[sd]? to"
    r"|(?:instead|rather) (?:of|than))\b"
    r"|n['’]t\b|(?<!neither )\bnor\b"
    r"|않|못\s?[하한할합했해]|(?<![가-힣])못\s|없(?!이)|아니[다라며고]|아닙|아닌|(?<![가-힣])안\s(?!에)|불가|금지|거부|(?<=[^까]지\s)[말마]"
    r"|(?:외에는|말고는|(?<=[가-힣])밖에)(?=\s.*(?:없|않|못|(?<![가-힣])안\s))",  # nobody but: twice no
    re.IGNORECASE,
)
_HEDGE = re.compile(r"\b(?:hardly|barely|scarcely|seldom|rarely)\b|(?<![가-힣])거의(?![가-힣])", re.IGNORECASE)
_RESTRICTION = re.compile(
    r"\b(?:only|solely|exclusively)\b|(?<=[가-힣])(?<![지다그])만(?=[\s,.]|[이은을]\s|$)|밖에|외에는|말고는",
    re.IGNORECASE,
)
_FREQUENCY = re.compile(
    r"\b(?:every|each|all)\s+(?:\d+\s+)?(?:other\s+)?"
    r"(?:seconds?|minutes?|hours?|days?|nights?|weeks?|months?|years?|quarters?|time|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b",
    re.IGNORECASE,
)
_UNIVERSAL = re.compile(
    r"\b(?:all|every|each|always|everyone|everything|everywhere)\b|모든|모두|항상|언제나|전부|누구나", re.IGNORECASE
)

_OF_EACH = re.compile(r"(?:\b(?:each|every)|모든)\s+(\w+)", re.IGNORECASE)


def speaks_of_each(claim: str, passage: str) -> bool:
    """Whether the passage says per core what the claim says of each core."""
    things = [match[1] for match in _OF_EACH.finditer(claim)]
    if things and re.search(
        r"\bper\s+(?:person|head|capita|participant|member|guest|pupil|student)\b|1인당|인당|[가-힣]마다",
        passage,
        re.IGNORECASE,
    ):
        return True
    return bool(things) and all(
        re.search(
            rf"(?<!some )(?<!most )(?<!many )(?<!few )(?<!several )\b{thing}s\b|\bper\s+{thing}\b|{thing[:-1]}\w?마다",
            passage,
            re.IGNORECASE,
        )
        for thing in things
    )


_WITHOUT = re.compile(
    r"\bwithout\s+(?:(?:an?|the|any|giving|having|using|prior)\s+)*([\w-]+)(?:\s+([\w-]+))?|([가-힣]+)\s없이",
    re.IGNORECASE,
)


def left_out(text: str) -> frozenset[str]:
    """The words of things that a clause excludes: without a token, 예약 없이."""
    return frozenset(word.lower() for match in _WITHOUT.finditer(text) for word in match.groups() if word)


class Polarity(NamedTuple):
    denies: bool
    hedges: bool
    restricts: bool
    of_everything: bool

    def differs_from(self, passage: Polarity) -> bool:
        """Whether the claim says with less reserve, or of more things, what the passage says. Yes and no are compared
        elsewhere, because opposites may reverse them.
        """
        return self.hedges != passage.hedges or (self.restricts and not passage.restricts)


def polarity_of(text: str) -> Polarity:
    plain = _NO_DENIAL.sub(" ", text)
    return Polarity(
        denies=len(_DENIAL.findall(plain)) % 2 == 1,
        hedges=_HEDGE.search(text) is not None,
        restricts=_RESTRICTION.search(text) is not None,
        of_everything=_UNIVERSAL.search(_FREQUENCY.sub(" ", text)) is not None,
    )
