"""Checks facts that claim and passage must have literally in common: numbers and what they count, names, days and
months.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from kebab.answering.claim_words import ClaimWord
from kebab.answering.clauses import Clause
from kebab.answering.labels import mislabelled
from kebab.answering.measures import IMPLIED, MONTHS, UNITS
from kebab.answering.quantities import Quantity
from kebab.answering.source_reading import Window

_NAME = re.compile(
    r"`[^`\n]+`"  # what is set as code
    r"|(?<!\w)--?[a-z][\w-]+"  # options
    r"|\b[A-Za-z]+(?:[a-z][A-Z]|_)\w*"  # identifiers
    r"|\b[A-Z]{2,}[A-Za-z0-9]*\b"  # abbreviations
    r"|\b[A-Za-z]+\d[\w-]*|\b[A-Z]{1,3}[.-]\d[\w.-]*\w|\b[A-Z]{1,3}[.-]\d"  # numbers of flights, errors, parts
    r"|(?<![\w.])[A-F][+-]?(?=까지|학점|등급)|(?<=grade )[A-F][+-]?"
    r"|(?<=[a-z,;:)] )[A-Z][a-z]+\b"  # capitals within a sentence
    r"|\b[\w-]+(?:\.[\w-]+)*\.(?:[a-z]{2,4})\b(?!\s+[A-Z])"  # files and hosts
    r"|[\w.+-]+@[\w-]+\.[\w.-]+|https?://\S+",
    re.ASCII,  # a Korean particle is no part of a name
)
_CALENDAR = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    rf"|\b(?:{'|'.join(month for month in MONTHS if month != 'may')})\b"  # as a verb it is commoner
    r"|\b(?:daily|nightly|weekly|monthly|quarterly|yearly|annually|weekdays?|weekends?)\b"
    r"|\b(?:a|per|every|each)\s(?:second|minute|hour|day|week|month|quarter|year)\b"
    r"|[월화수목금토일]요일|매[일주월년]|평일|주말|분기",
    re.IGNORECASE,
)
_EVERY_OTHER = re.compile(r"\bevery (?:other|second|third) \w+|격일|격주")
_CODE = re.compile(r"[a-z]+[.-]?\d[\w.-]*")
"""A code: F.28 is neither F.29 nor F.281."""
_PART = re.compile(r"\s*(?:of (?:which|these|those|them)|그\s?중|이\s?중|그\s?가운데)", re.IGNORECASE)
_MONEY = frozenset({"eur", "usd", "krw", "cent"})
_WEEKDAY = re.compile(r"\b(?:every|on) (?:mon|tues|wednes|thurs|fri|satur|sun)days?\b|[월화수목금토일]요일")
_DURATIONS = frozenset({"s", "month"})
_TIMES = frozenset({"date", "clock"})
_PERIODS = {
    "day": "daily nightly 매일 하루",
    "week": "weekly 매주 1주",
    "month": "monthly 매월 매달 한 달 1개월 1달",
    "year": "yearly annually annual 매년 1년 연간",
    "quarter": "quarterly 분기",
}


def names_in(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match[0].strip("`") for match in _NAME.finditer(text) if not _is_unit(match)))


def _is_unit(name: re.Match[str]) -> bool:
    return name[0].lower() in UNITS and re.search(r"\d\s?$", name.string[: name.start()]) is not None


def lacking(claim: Sequence[Clause], names: Iterable[str], passage: Sequence[Clause], said: str) -> list[str]:
    """Numbers, names, days and periods of the claim that the passage lacks. `said`: the text of the passage with its
    title and headings.
    """
    known = [quantity for clause in passage for _, quantity in clause.quantities]
    folded = said.casefold()
    absent = [
        quantity.text
        for clause in claim
        for _, quantity in clause.quantities
        if not any(quantity.is_said_by(one, folded) for one in known)
    ]
    unnamed = [name for name in names if not _is_named(name, folded)]
    days = [day for clause in claim for day in days_in(clause.text) if not _is_period_of(day, folded)]
    if unnamed or days:  # a month may be written as a number
        read = "\n".join(clause.text for clause in passage).casefold()
        absent += [name for name in unnamed if not _is_named(name, read)]
        absent += [day for day in days if not _is_period_of(day, read)]
    return [*absent, *mislabelled("\n".join(clause.text for clause in claim), said)]


def is_implied(word: ClaimWord, claim: Sequence[Clause], passage: Window) -> bool:
    """Whether the numbers of the claim imply this word, or it is a period that the passage has in another form."""
    units = {quantity.unit or "none" for clause in claim for _, quantity in clause.quantities}
    if any(word.text in IMPLIED.get(unit, "").split() for unit in units):
        return True
    folded = passage.text.casefold()
    return any(_is_period_of(day, folded) for day in days_in(word.text))


def days_in(text: str) -> Iterator[str]:
    return (match[0].casefold() for match in _CALENDAR.finditer(text))


def _is_period_of(day: str, said: str) -> bool:
    period = day.split()[-1]
    if "other" not in day:
        said = _EVERY_OTHER.sub(" ", said)
    if period in ("week", "weekly", "매주") and _WEEKDAY.search(said):
        return True
    stem = next((name for name, forms in _PERIODS.items() if period == name or period in forms.split()), None)
    return period in said or (stem is not None and any(form in said for form in (stem, *_PERIODS[stem].split())))


def _is_named(name: str, said: str) -> bool:
    wanted = name.casefold().strip()
    if len(wanted.rstrip("+-")) == 1:  # a mark
        return re.search(rf"(?<!\w){re.escape(wanted)}(?![a-z\d+-])", said) is not None
    if any(map(str.isdigit, wanted)) and _CODE.fullmatch(wanted):
        letters = r"[\s.-]?".join(map(re.escape, re.findall(r"[a-z]+|\d+|[^a-z\d\s.-]+", wanted)))
        return re.search(rf"(?<![a-z\d]){letters}(?![a-z\d]|[.-]\d)", said) is not None
    return (
        wanted in said
        or wanted.removesuffix("s") in said
        or all(part in said for part in re.findall(r"\w{2,}", wanted))
    )


def misplaced(claim: Sequence[Clause], passage: Sequence[Clause]) -> bool:
    """Whether the claim gives a number to other words than the passage, which has several numbers: 100 for the CPU
    instead of the memory.
    """
    values = [quantity.value for clause in passage for _, quantity in clause.quantities]
    if len(set(values)) < 2:
        return False
    numbers = [(clause, quantity) for clause in claim for _, quantity in clause.quantities]
    alone = len(numbers) == 1
    if any(_is_of_another_clause(quantity, claim if alone else [clause], passage) for clause, quantity in numbers):
        return True
    if any(
        _is_said_of_another(clause, quantity, passage) or _is_of_a_kind(clause, quantity, passage)
        for clause, quantity in numbers
    ):
        return True
    following = iter(values)
    in_order = all(quantity.value in following for _, quantity in numbers)
    return not in_order and not all(
        _stand_together([quantity for _, quantity in clause.quantities], passage) for clause in claim
    )


def _stand_together(numbers: Sequence[Quantity], passage: Sequence[Clause]) -> bool:
    return len(numbers) < 2 or any(all(_has(clause, quantity) for quantity in numbers) for clause in passage)


def _has(clause: Clause, quantity: Quantity) -> bool:
    return any(quantity.is_said_by(one, "") or quantity.value == one.value for _, one in clause.quantities)


def _is_of_another_clause(quantity: Quantity, claim: Sequence[Clause], passage: Sequence[Clause]) -> bool:
    """Whether the clauses with this number say something else, and another number stands in the clause that the claim
    repeats.
    """
    words = _telling(token for clause in claim for token in clause.tokens)
    clauses = [
        (_has(clause, quantity), _telling(clause.own_tokens))
        for clause in passage
        if _has(clause, quantity) or any(_is_comparable(one, quantity) for _, one in clause.quantities)
    ]
    most = max((len(own & words) for has, own in clauses if not has), default=0)
    return not any(
        (own <= words and (own or not most)) or (len(own & words) >= most and (own & words or not most))
        for has, own in clauses
        if has
    )


def _is_comparable(one: Quantity, other: Quantity) -> bool:
    units = {one.unit, other.unit}
    return len(units) == 1 or (None in units and not units & _TIMES) or units <= _MONEY or units <= _DURATIONS


def _is_said_of_another(clause: Clause, quantity: Quantity, passage: Sequence[Clause]) -> bool:
    """Whether a word of the claim's clause comes only later in the passage, with another number of the same kind: 900
    euros, of which 300 were tax.
    """
    first = next((place for place, one in enumerate(passage) if _has(one, quantity)), len(passage))
    own = {quantity.value for _, quantity in clause.quantities}
    for token in _telling(clause.tokens):
        places = [place for place, one in enumerate(passage) if token in one.tokens]
        if places and min(places) > first and all(_counts_otherwise(passage[place], quantity, own) for place in places):
            return True
    return False


def _is_of_a_kind(claim: Clause, quantity: Quantity, passage: Sequence[Clause]) -> bool:
    """Whether the passage gives this number only to a special kind of what the claim names, and another number to the
    rest: logs 30 days, audit logs two years.
    """
    holding = [clause for clause in passage if _has(clause, quantity)]
    others = [
        clause
        for clause in passage
        if clause not in holding and any(_is_comparable(one, quantity) for _, one in clause.quantities)
    ]
    words = _telling(claim.tokens)

    def is_narrowed(token: str, clause: Clause) -> bool:
        before = _before(token, clause)
        return (
            bool(before)
            and before not in words
            and any(_before(token, other) is not None for other in others)
            and not any(_before(token, other) == before for other in others)
        )

    return (
        bool(holding) and bool(others) and any(all(is_narrowed(token, clause) for clause in holding) for token in words)
    )


def _before(token: str, clause: Clause) -> str | None:
    """The word before this one; empty if this is the first word, None if it does not occur."""
    if token not in clause.tokens:
        return None
    place = clause.tokens.index(token)
    before = clause.tokens[place - 1] if place else ""
    return "" if before[:1].isdigit() else before


def _counts_otherwise(clause: Clause, quantity: Quantity, own: set[str]) -> bool:
    is_part = _PART.match(clause.text) is not None
    values = {one.value for _, one in clause.quantities if is_part or _is_comparable(one, quantity)}
    return bool(values) and values.isdisjoint(own)


def _telling(tokens: Iterable[str]) -> frozenset[str]:
    return frozenset(token for token in tokens if len(token) > 1 and not token.lstrip("-")[:1].isdigit())
