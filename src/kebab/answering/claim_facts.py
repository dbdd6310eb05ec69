"""What must agree to the letter between a claim and the passage behind it: numbers, names, and yes or no."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kebab.analysis.stop_words import is_stop_word
from kebab.core.ports import Tokenizer

_NUMBER = re.compile(r"(?<![\w.])v?(\d+(?:[.,:]\d+)*)\s?-?(%|[A-Za-zµ가-힣]+)?")
_AFTER_DIGITS = re.compile(r"[가-힣]+")
"""시에, 분은, 권까지: a unit, whatever is written to it."""
_TOKEN = re.compile(r"v?\d+(?:[.,:]\d+)*|[^\W\d_]+", re.UNICODE)
_CLAUSE = re.compile(r"[;:()\n]|[,.!?](?=\s|$)|\s(?:and|but|while|whereas|then)\s|(?<=[고며])\s")
_WEAK = frozenset({"up", "down", "out", "off", "over", "about", "than", "least", "most", "time", "onli", "per"})
"""Words that stand with any number."""
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
        "eur": "euro euros eur 유로",
        "krw": "won krw 원",
        "c": "celsius degrees °c 도",
        "km": "km kilometre kilometer kilometres kilometers 킬로미터",
        "count": "개 명 번 회 건 대",
    }.items()
    for form in forms.split()
}
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nothing|neither|nor|cannot|without|unable|impossible)\b|n['’]t\b"
    r"|않|못\s?[하한할합했해]|없[는다이고습을으어었]|아니|(?<![가-힣])안\s|불가능|(?<=지\s)말",
    re.IGNORECASE,
)
_CONTRARIES = """enable/disable enabled/disabled allow/deny allow/forbid allowed/forbidden increase/decrease increase/reduce before/after
    always/never minimum/maximum least/most true/false required/optional mandatory/optional first/last add/remove start/stop open/close
    more/fewer more/less above/below higher/lower older/newer inside/outside public/private accept/reject success/failure include/exclude
    ascending/descending encrypt/decrypt stable/deprecated left/right north/south east/west earliest/latest fastest/slowest
    synchronous/asynchronous internal/external up/down indoors/outdoors readable/writable writable/readonly
    early/late import/export upload/download push/pull"""
_KOREAN_CONTRARIES = tuple(
    (re.compile(one), re.compile(other))
    for one, other in (
        ("비활성", "(?<!비)활성"),
        ("거부|금지", "허용"),
        ("감소|줄[어이였인]", "증가|늘[어리렸린]"),
        ("(?<![가-힣])(?:이)?후(?:에|로)?(?![가-힣])", "(?<![가-힣])(?:이)?전(?:에|까지)?(?![가-힣])"),
        ("최소", "최대"),
        ("필수", "선택"),
        ("불가능", "(?<!불)가능"),
        ("마지막", "처음|첫"),
        ("제거|삭제", "추가"),
        ("중지", "시작"),
        ("실패", "성공"),
        ("제외", "포함"),
        ("느[리린려]", "빠[르른]"),
        ("낮[은다추]", "높[은다이]"),
    )
)


class Number(NamedTuple):
    value: str
    unit: str | None
    clause: int
    """Which of the text's clauses it stands in."""
    place: int
    """Which token of the clause it is."""


class Facts(NamedTuple):
    numbers: tuple[Number, ...]
    names: tuple[str, ...]
    negated: bool
    clauses: tuple[tuple[str, ...], ...]
    """Each as stems of words, and numbers, in order, without units."""
    stems: frozenset[str]
    text: str

    @classmethod
    def union(cls, parts: Iterable[Facts]) -> Facts:
        """For what they say together; which clause a number is in is lost."""
        together = list(parts)
        return cls(
            numbers=tuple(number for part in together for number in part.numbers),
            names=tuple(name for part in together for name in part.names),
            negated=any(part.negated for part in together),
            clauses=(),
            stems=frozenset().union(*(part.stems for part in together)),
            text="\n".join(part.text for part in together),
        )


def facts_of(text: str, tokenizer: Tokenizer) -> Facts:
    numbers: list[Number] = []
    clauses: list[tuple[str, ...]] = []
    for clause in _CLAUSE.split(_in_digits(text)):
        tokens = _tokens(clause, tokenizer)
        numbers += _numbers(clause, tokens, len(clauses))
        clauses.append(tokens)
    return Facts(
        numbers=tuple(numbers),
        names=tuple(dict.fromkeys(match[0].strip("`") for match in _NAME.finditer(text))),
        negated=_NEGATION.search(text) is not None,
        clauses=tuple(clauses),
        stems=frozenset(token for clause in clauses for token in clause),
        text=text,
    )


def without_numbers(text: str) -> str:
    """For what is compared word by word: numbers with their units are compared by themselves."""
    return _NUMBER.sub(lambda match: " " if _is_unit(match[2] or "") else match[0], text)


def _is_unit(text: str) -> bool:
    return text.lower() in _UNITS or _AFTER_DIGITS.fullmatch(text) is not None


def lacking(claim: Facts, passage: Facts, context: str = "") -> list[str]:
    """Numbers and names of the claim that the passage has not; names may stand in its title and headings too."""
    known = {(number.value, number.unit) for number in passage.numbers}
    values = {value for value, _ in known}
    said = f"{passage.text}\n{context}".casefold()
    absent = [
        number.value
        for number in claim.numbers
        if number.value not in values
        or (number.unit is not None and (number.value, number.unit) not in known and (number.value, None) not in known)
    ]
    return [*absent, *(name for name in claim.names if not _is_named(name, said))]


def misplaced(claim: Facts, passage: Facts) -> bool:
    """Whether a number stands with other words than in the passage, which has several: 100 for the CPU, where that is the memory's."""
    if len({number.value for number in passage.numbers}) < 2:
        return False
    if len(claim.numbers) == 1:
        return _is_of_another_clause(claim.numbers[0].value, claim, passage)
    following = iter(number.value for number in passage.numbers)
    in_order = all(number.value in following for number in claim.numbers)
    return any(_is_misplaced(number, claim, passage, in_order=in_order) for number in claim.numbers)


def _is_of_another_clause(value: str, claim: Facts, passage: Facts) -> bool:
    """Whether the clauses with this number say something else, and another number stands in what the claim says."""
    words = _telling(token for clause in claim.clauses for token in clause)
    clauses = [(value in clause, _telling(clause)) for clause in passage.clauses if any(token[:1].isdigit() for token in clause)]
    most = max((len(own & words) for has, own in clauses if not has), default=0)
    return not any(own <= words or (own & words and len(own & words) >= most) for has, own in clauses if has)


def _stands_with(number: Number, clause: tuple[str, ...], words: frozenset[str]) -> bool:
    """Whether a clause has the number and one of the words, or no words that could tell."""
    return number.value in clause and (not (own := _telling(clause)) or bool(own & words))


def _is_misplaced(number: Number, claim: Facts, passage: Facts, *, in_order: bool) -> bool:
    """By the words next to it; of numbers without any, by whether they come in the order of the passage."""
    labels = frozenset(_labels(number, claim))
    known = labels & passage.stems
    if not known:
        return not in_order
    return not any(_stands_with(number, clause, known) for clause in passage.clauses)


def _labels(number: Number, claim: Facts) -> Iterator[str]:
    """The telling word before a number and the one after it, without passing another number or leaving the clause."""
    clause = claim.clauses[number.clause]
    for step in (-1, 1):
        position = number.place + step
        while 0 <= position < len(clause) and not clause[position][:1].isdigit():
            if _telling((clause[position],)):
                yield clause[position]
                break
            position += step


def _telling(tokens: Iterable[str]) -> frozenset[str]:
    return frozenset(
        token for token in tokens if len(token) > 1 and not token[:1].isdigit() and token not in _WEAK and not is_stop_word(token)
    )


def contradicts(claim: Facts, sentence: Facts, pairs_of_stems: Iterable[tuple[str, str]]) -> bool:
    """Whether a sentence denies what the claim says, or the claim what it says, or one says the contrary of the other."""
    if claim.negated != sentence.negated:
        return True
    for one, other in pairs_of_stems:
        if _differ(one in claim.stems, other in claim.stems, one in sentence.stems, other in sentence.stems):
            return True
    pairs = ((low.search, high.search) for low, high in _KOREAN_CONTRARIES)
    return any(_differ(*(bool(side(text)) for text in (claim.text, sentence.text) for side in (low, high))) for low, high in pairs)


def _differ(mine: bool, mine_contrary: bool, theirs: bool, their_contrary: bool) -> bool:
    """One says one of them, the other its contrary, and neither says both."""
    return (mine, mine_contrary) in ((True, False), (False, True)) and (theirs, their_contrary) == (mine_contrary, mine)


def contraries(tokenizer: Tokenizer) -> tuple[tuple[str, str], ...]:
    """As stems."""
    stems = (tokenizer.stems(pair.replace("/", " ")) for pair in _CONTRARIES.split())
    return tuple((one, other) for one, other in stems)


def _in_digits(text: str) -> str:
    return re.sub(r"[A-Za-z]+", lambda match: _SPELT_OUT.get(match[0].lower(), match[0]), text)


def _tokens(text: str, tokenizer: Tokenizer) -> tuple[str, ...]:
    tokens: list[str] = []
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token.lstrip("v")[:1].isdigit():
            tokens.append(_value(token.lstrip("v")))
        elif token.lower() not in _UNITS:
            tokens.append("".join(tokenizer.stems(token)[:1]) or token)
    return tuple(tokens)


def _numbers(text: str, tokens: tuple[str, ...], clause: int) -> Iterator[Number]:
    places = [place for place, token in enumerate(tokens) if token[:1].isdigit()]
    for match in _NUMBER.finditer(text):
        value = _value(match[1])
        place = next((place for place in places if tokens[place] == value), None)
        if place is not None:
            places.remove(place)
            yield Number(value, _UNITS.get((match[2] or "").lower()), clause, place)


def _value(number: str) -> str:
    """1,000 is 1000; 1.50 stays as it is, because versions are numbers too."""
    return re.sub(r",(?=\d{3}(?!\d))", "", number)


def _is_named(name: str, said: str) -> bool:
    wanted = name.casefold().strip()
    return wanted in said or wanted.removesuffix("s") in said or all(part in said for part in re.findall(r"\w{2,}", wanted))
