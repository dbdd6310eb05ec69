"""What must agree to the letter between a claim and the passage behind it: numbers, names, and yes or no."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from kebab.analysis.stop_words import is_stop_word
from kebab.core.ports import Tokenizer

_NUMBER = re.compile(r"(?<![\w.])v?(\d+(?:[.,:]\d+)*)\s?-?(%|[A-Za-zµ가-힣]+)?")
_TOKEN = re.compile(r"v?\d+(?:[.,:]\d+)*|[^\W\d_]+", re.UNICODE)
_NAME = re.compile(
    r"`[^`\n]+`"  # what is set as code
    r"|--?[a-z][\w-]+"  # options
    r"|\b[A-Za-z]+(?:[a-z][A-Z]|_)\w*"  # identifiers
    r"|\b[A-Z]{2,}[A-Za-z0-9]*\b"  # abbreviations
    r"|(?<=[a-z,;:)] )[A-Z][a-z]+\b"  # capitals within a sentence
    r"|\b[\w-]+\.(?:[a-z]{2,4})\b(?!\s+[A-Z])"  # files and hosts
)
_SPELT_OUT = {
    word: str(number)
    for number, words in enumerate(
        ("zero", "", "two twice", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
    for word in words.split()
} | {"thirty": "30", "sixty": "60", "hundred": "100"}
_UNITS = {
    form: unit
    for unit, forms in {
        "s": "s sec secs second seconds 초",
        "ms": "ms millisecond milliseconds 밀리초",
        "min": "min mins minute minutes 분",
        "h": "h hr hrs hour hours 시간",
        "d": "d day days 일",
        "week": "week weeks 주",
        "month": "month months 개월 달",
        "year": "year years 년",
        "%": "% percent per cent 퍼센트",
        "kb": "kb kilobyte kilobytes kib ki k",
        "mb": "mb megabyte megabytes mib mi m",
        "gb": "gb gigabyte gigabytes gib gi g",
        "tb": "tb terabyte terabytes tib ti",
        "usd": "dollar dollars usd 달러",
        "krw": "won krw 원",
        "c": "celsius degrees °c 도",
        "km": "km kilometre kilometer kilometres kilometers 킬로미터",
        "count": "개 명 번 회 건 대",
    }.items()
    for form in forms.split()
}
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nothing|neither|nor|cannot|without|unable|impossible|lacks?|refuses?|fails?)\b|n['’]t\b"
    r"|않|못\s?[하한할합했해]|없[는다이고습을으어었]|아니|(?<![가-힣])안\s|불가능|(?<=지\s)말",
    re.IGNORECASE,
)
_CONTRARIES = (
    ("enable", "disable"),
    ("enabled", "disabled"),
    ("allow", "deny"),
    ("allow", "forbid"),
    ("allowed", "forbidden"),
    ("increase", "decrease"),
    ("increase", "reduce"),
    ("before", "after"),
    ("always", "never"),
    ("minimum", "maximum"),
    ("least", "most"),
    ("true", "false"),
    ("required", "optional"),
    ("mandatory", "optional"),
    ("first", "last"),
    ("add", "remove"),
    ("start", "stop"),
    ("open", "close"),
    ("more", "fewer"),
    ("more", "less"),
    ("above", "below"),
    ("higher", "lower"),
    ("older", "newer"),
    ("inside", "outside"),
    ("public", "private"),
    ("sync", "async"),
    ("accept", "reject"),
    ("success", "failure"),
    ("include", "exclude"),
    ("ascend", "descend"),
    ("encrypt", "decrypt"),
    ("stable", "deprecated"),
    ("read", "write"),
    ("left", "right"),
    ("north", "south"),
    ("east", "west"),
)
_KOREAN_CONTRARIES = (
    ("비활성", "활성"),
    ("거부", "허용"),
    ("금지", "허용"),
    ("감소", "증가"),
    ("줄", "늘"),
    ("이후", "이전"),
    ("최소", "최대"),
    ("선택", "필수"),
    ("불가능", "가능"),
    ("마지막", "처음"),
    ("제거", "추가"),
    ("삭제", "추가"),
    ("중지", "시작"),
    ("닫", "열"),
    ("실패", "성공"),
    ("제외", "포함"),
    ("느리", "빠르"),
    ("낮", "높"),
)


class Number(NamedTuple):
    value: str
    unit: str | None
    place: int
    """Which token of the text it is."""


class Facts(NamedTuple):
    numbers: tuple[Number, ...]
    names: tuple[str, ...]
    negated: bool
    tokens: tuple[str, ...]
    """Stems of words, and numbers, in order."""
    stems: frozenset[str]
    text: str

    @classmethod
    def union(cls, parts: Iterable[Facts]) -> Facts:
        together = list(parts)
        return cls(
            numbers=tuple(number for part in together for number in part.numbers),
            names=tuple(name for part in together for name in part.names),
            negated=any(part.negated for part in together),
            tokens=tuple(token for part in together for token in part.tokens),
            stems=frozenset().union(*(part.stems for part in together)),
            text="\n".join(part.text for part in together),
        )


def facts_of(text: str, tokenizer: Tokenizer) -> Facts:
    plain = _digits(text)
    tokens = _tokens(plain, tokenizer)
    return Facts(
        numbers=tuple(_numbers(plain, tokens)),
        names=tuple(dict.fromkeys(match[0].strip("`") for match in _NAME.finditer(text))),
        negated=_NEGATION.search(text) is not None,
        tokens=tokens,
        stems=frozenset(tokens),
        text=text,
    )


def lacking(claim: Facts, passage: Facts, whole_text: str) -> list[str]:
    """Numbers and names of the claim that the passage has not; names may stand in its title and headings too."""
    known = {(number.value, number.unit) for number in passage.numbers}
    values = {value for value, _ in known}
    said = whole_text.casefold()
    absent = [
        number.value
        for number in claim.numbers
        if number.value not in values
        or (number.unit is not None and (number.value, number.unit) not in known and (number.value, None) not in known)
    ]
    return [*absent, *(name for name in claim.names if not _is_named(name, said))]


def misplaced(claim: Facts, passage: Facts) -> bool:
    """Whether a number stands beside other words than in the passage, which has several: 100 for the CPU, where that is the memory's."""
    if len({number.value for number in passage.numbers}) < 2:
        return False
    return any(_is_misplaced(number, claim, passage) for number in claim.numbers)


def _is_misplaced(number: Number, claim: Facts, passage: Facts) -> bool:
    labels = _labels(number.place, claim, passage.stems)
    if not labels:
        return False
    for label in labels:
        for place, token in enumerate(passage.tokens):
            if token == label and _nearest_number(place, passage) == number.value:
                return False
    return True


def _labels(place: int, claim: Facts, known: frozenset[str]) -> list[str]:
    """The words nearest to a number that are words of the passage too: one before it and one after, without passing another number."""
    found = []
    for step in (-1, 1):
        position = place + step
        while 0 <= position < len(claim.tokens) and not claim.tokens[position][:1].isdigit():
            token = claim.tokens[position]
            if len(token) > 1 and token in known and token not in _UNITS and not is_stop_word(token):
                found.append(token)
                break
            position += step
    return found


def _nearest_number(place: int, passage: Facts) -> str | None:
    nearest = min(passage.numbers, key=lambda number: abs(number.place - place), default=None)
    if nearest is None:
        return None
    tied = [number for number in passage.numbers if abs(number.place - place) <= abs(nearest.place - place) + 1]
    return nearest.value if len(tied) == 1 else max(tied, key=lambda number: (number.place > place, -abs(number.place - place))).value


def contradicts(claim: Facts, passage: Facts) -> bool:
    """Whether one denies what the other says, or says its contrary."""
    if claim.negated != passage.negated:
        return True
    for one, other in _stemmed_contraries():
        for mine, theirs in ((one, other), (other, one)):
            if mine in claim.stems and mine not in passage.stems and theirs in passage.stems and theirs not in claim.stems:
                return True
    for low, high in _KOREAN_CONTRARIES:
        mine_low, their_low = low in claim.text, low in passage.text
        mine_high, their_high = high in claim.text.replace(low, ""), high in passage.text.replace(low, "")
        if (mine_low and not their_low and their_high and not mine_high) or (mine_high and not their_high and their_low and not mine_low):
            return True
    return False


@cache
def _stemmed_contraries() -> tuple[tuple[str, str], ...]:
    return tuple((_rough_stem(one), _rough_stem(other)) for one, other in _CONTRARIES)


def _rough_stem(word: str) -> str:
    return word


def _digits(text: str) -> str:
    return re.sub(r"[A-Za-z]+", lambda match: _SPELT_OUT.get(match[0].lower(), match[0]), text)


def _tokens(text: str, tokenizer: Tokenizer) -> tuple[str, ...]:
    tokens = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token.lstrip("v")[:1].isdigit():
            tokens.append(_value(token.lstrip("v")))
        else:
            tokens.append("".join(tokenizer.stems(token)[:1]) or token)
    return tuple(tokens)


def _numbers(text: str, tokens: tuple[str, ...]) -> Iterable[Number]:
    places = [place for place, token in enumerate(tokens) if token[:1].isdigit()]
    matches = list(_NUMBER.finditer(text))
    for match in matches:
        value = _value(match[1])
        place = next((place for place in places if tokens[place] == value), None)
        if place is not None:
            places.remove(place)
        yield Number(value, _UNITS.get((match[2] or "").lower()), -1 if place is None else place)


def _value(number: str) -> str:
    """1,000 is 1000; 1.50 stays as it is, because versions are numbers too."""
    return re.sub(r",(?=\d{3}(?!\d))", "", number)


def _is_named(name: str, said: str) -> bool:
    wanted = name.casefold().strip()
    return wanted in said or wanted.removesuffix("s") in said or all(part in said for part in re.findall(r"\w{2,}", wanted))
