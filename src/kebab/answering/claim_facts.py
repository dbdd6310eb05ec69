"""What must agree to the letter between a claim and the passage behind it: numbers where they stand, names, days and months."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from kebab.answering.clauses import Clause
from kebab.answering.measures import MONTHS, UNITS
from kebab.answering.quantities import Quantity

_NAME = re.compile(
    r"`[^`\n]+`"  # what is set as code
    r"|(?<!\w)--?[a-z][\w-]+"  # options
    r"|\b[A-Za-z]+(?:[a-z][A-Z]|_)\w*"  # identifiers
    r"|\b[A-Z]{2,}[A-Za-z0-9]*\b"  # abbreviations
    r"|\b[A-Za-z]+\d[\w-]*"  # numbers of flights, errors, parts
    r"|(?<=[a-z,;:)] )[A-Z][a-z]+\b"  # capitals within a sentence
    r"|\b[\w-]+\.(?:[a-z]{2,4})\b(?!\s+[A-Z])"  # files and hosts
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
_PERIODS = {
    "day": "daily nightly 매일 하루",
    "week": "weekly 매주",
    "month": "monthly 매월 매달",
    "year": "yearly annually annual 매년",
    "quarter": "quarterly 분기",
}


def names_in(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match[0].strip("`") for match in _NAME.finditer(text) if not _is_unit(match)))


def _is_unit(name: re.Match[str]) -> bool:
    return name[0].lower() in UNITS and re.search(r"\d\s?$", name.string[: name.start()]) is not None


def lacking(claim: Sequence[Clause], names: Iterable[str], passage: Sequence[Clause], said: str) -> list[str]:
    """Numbers, names, days and periods of the claim that the passage has not. `said`: its text, with title and headings."""
    known = [quantity for clause in passage for _, quantity in clause.quantities]
    folded = said.casefold()
    absent = [
        quantity.text for clause in claim for _, quantity in clause.quantities if not any(quantity.is_said_by(one, folded) for one in known)
    ]
    unnamed = [name for name in names if not _is_named(name, folded)]
    days = [day for clause in claim for day in days_in(clause.text) if not _is_period_of(day, folded)]
    if unnamed or days:  # a month may be written as a number
        read = "\n".join(clause.text for clause in passage).casefold()
        absent += [name for name in unnamed if not _is_named(name, read)]
        absent += [day for day in days if not _is_period_of(day, read)]
    return absent


def days_in(text: str) -> Iterator[str]:
    return (match[0].casefold() for match in _CALENDAR.finditer(text))


def _is_period_of(day: str, said: str) -> bool:
    period = day.split()[-1]
    stem = next((name for name, forms in _PERIODS.items() if period == name or period in forms.split()), None)
    return period in said or (stem is not None and any(form in said for form in (stem, *_PERIODS[stem].split())))


def _is_named(name: str, said: str) -> bool:
    wanted = name.casefold().strip()
    return wanted in said or wanted.removesuffix("s") in said or all(part in said for part in re.findall(r"\w{2,}", wanted))


def misplaced(claim: Sequence[Clause], passage: Sequence[Clause]) -> bool:
    """Whether a number stands with other words than in the passage, which has several: 100 for the CPU, where that is the memory's."""
    values = [quantity.value for clause in passage for _, quantity in clause.quantities]
    if len(set(values)) < 2:
        return False
    numbers = [(clause, quantity) for clause in claim for _, quantity in clause.quantities]
    alone = len(numbers) == 1
    if any(_is_of_another_clause(quantity, claim if alone else [clause], passage) for clause, quantity in numbers):
        return True
    following = iter(values)
    in_order = all(quantity.value in following for _, quantity in numbers)
    return not in_order and not all(_stand_together([quantity for _, quantity in clause.quantities], passage) for clause in claim)


def _stand_together(numbers: Sequence[Quantity], passage: Sequence[Clause]) -> bool:
    return len(numbers) < 2 or any(all(_has(clause, quantity) for quantity in numbers) for clause in passage)


def _has(clause: Clause, quantity: Quantity) -> bool:
    return any(quantity.is_said_by(one, "") or quantity.value == one.value for _, one in clause.quantities)


def _is_of_another_clause(quantity: Quantity, claim: Sequence[Clause], passage: Sequence[Clause]) -> bool:
    """Whether the clauses with this number say something else, and another number stands in what the claim says."""
    words = _telling(token for clause in claim for token in clause.tokens)
    clauses = [(_has(clause, quantity), _telling(clause.own_tokens)) for clause in passage if clause.quantities]
    most = max((len(own & words) for has, own in clauses if not has), default=0)
    return not any(own <= words or (len(own & words) >= most and (own & words or not most)) for has, own in clauses if has)


def _telling(tokens: Iterable[str]) -> frozenset[str]:
    return frozenset(token for token in tokens if len(token) > 1 and not token.lstrip("-")[:1].isdigit())
