"""Reads numbers with unit, sign and magnitude; clock times are one number, and 14 days equal two weeks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from kebab.answering.bounds import bound_of, side_of
from kebab.answering.measures import AMBIGUOUS, BINARY, FORMS_OF_UNITS, KOREAN_UNITS, NAME_OF_MONTH, SCALES, UNITS
from kebab.answering.measures import MONTHS as MONTHS
from kebab.answering.spelt_out import in_digits as in_digits

_MAGNITUDES = {
    "thousand": 10**3,
    "million": 10**6,
    "billion": 10**9,
    "trillion": 10**12,
    "천": 10**3,
    "만": 10**4,
    "억": 10**8,
    "조": 10**12,
}
_AM = frozenset("am a 오전 새벽 아침".split())
_KOREAN_HALVES = "오전|오후|새벽|아침|저녁|밤|낮"
QUANTITY = re.compile(
    rf"(?:(?P<half>{_KOREAN_HALVES})\s*)?(?<![\d.:])(?P<hour>\d{{1,2}})시(?!간)(?:\s*(?P<minute>\d{{1,2}})분|\s*(?P<thirty>반)(?![가-힣]))?"
    r"|(?<![\w.:])(?P<clock>\d{1,2}(?::\d{2}){1,2})(?![\d:])(?:\s?(?P<clock_half>[ap])\.?m\b\.?)?"
    r"|(?<![\w.])(?P<full_hour>\d{1,2})\s?(?P<hour_half>[ap])\.?m\b\.?"
    r"|(?P<sign>(?<![\w.)\]])[-\u2212](?=\d)|\bminus\s+(?=\d)|영하\s*(?=\d))?(?P<currency>[$€₩])?"
    r"(?<![\w.])v?(?P<number>\d+(?:[.,:]\d+)*)"
    rf"(?:\s?(?P<magnitude>(?:thousand|million|billion|trillion)\b|[천만억조](?=$|[^가-힣]|{KOREAN_UNITS})))?"
    rf"(?:\s?-?(?P<unit>%|°[CF]?|(?:{KOREAN_UNITS})|[A-Za-zµ]+)(?P<scale>\s(?:Celsius|Fahrenheit))?)?",
    re.IGNORECASE,
)
_PER = re.compile(
    r"\s?(?:(?:per|each|for (?:each|every)|every)\s"
    r"([A-Za-z]+(?:\s(?!(?:in|on|at|for|of|and|or|to|by|as|is|are|if|when|up|with|from|plus)\b)[A-Za-z]+)?)"
    r"|an?\s(second|minute|hour|day|night|week|month|quarter|year)\b"
    r"|(daily|nightly|weekly|monthly|yearly|annually)\b|/\s?([A-Za-z]+))",
    re.IGNORECASE,
)
_PER_BEFORE = re.compile(r"(?<![가-힣])([가-힣]{1,4})당\s?$|(?<![가-힣])(매일|매주|매월|매달|매년)\s?$")
_PERIODS = {
    "daily": "d",
    "nightly": "d",
    "night": "d",
    "weekly": "week",
    "monthly": "month",
    "yearly": "year",
    "annually": "year",
    "매일": "d",
    "매주": "week",
    "매월": "month",
    "매달": "month",
    "매년": "year",
    "연": "year",
    "월": "month",
}
_SAME_BEGINNING = 5
"""How many first letters the forms of one word have in common: adult, adults."""
_RANGE = 6
"""The most characters between the two times of a range."""
_PARTICLE = re.compile("(?<=[가-힣])[가-힣]+")


class Quantity(NamedTuple):
    text: str
    """The number as written, without its unit."""
    value: str
    """The value to compare."""
    unit: str | None
    is_settled: bool = True
    """False for a time of day that may be in the morning or in the evening."""
    written_unit: str | None = None
    """The unit as written, if the value was converted: days, before 14 days became seconds."""
    bound: str = ""
    """<, ≤, ≥ or > if the number is only a limit; otherwise empty."""
    per: str = ""
    """What the number applies to: dog in "5 euros per dog"."""

    def is_said_by(self, other: Quantity, text: str) -> bool:
        """Whether another number says the same. `text`: a text that may have the unit apart from the number, such as
        the head of a table.
        """
        if (self.bound != other.bound and self.bound and other.bound) or _is_counted_otherwise(self.per, other.per):
            return False
        if self.unit == other.unit == "clock":
            return self.value == other.value or (
                not self.is_settled and int(self.value) % 720 == int(other.value) % 720
            )
        if self.unit == other.unit:
            return self.value == other.value or (
                self.unit == "byte" and self.text == other.text and self.written_unit == other.written_unit
            )
        if _may_be(self, other) or _may_be(other, self):
            return True
        if self.unit is None or self.unit == "count":
            return self.text == other.text and (self.unit is None or other.unit is None)
        if other.unit is None:
            return self.text == other.text and any(
                re.search(rf"(?<!\w){re.escape(form)}", text) for form in _forms(self.written_unit)
            )
        return {self.unit, other.unit} == {"degree", "°c"} and self.value == other.value


def _is_counted_otherwise(one: str, other: str) -> bool:
    return bool(one and other) and frozenset(one.split()).isdisjoint(other.split())


def _may_be(one: Quantity, other: Quantity) -> bool:
    """Whether two units may be the same: 11 g are grams or gigabytes, whichever the other number has."""
    return other.written_unit in AMBIGUOUS.get(one.unit or "", ()) and one.text == other.text


def _forms(unit: str | None) -> list[str]:
    return FORMS_OF_UNITS[unit].split() if unit in FORMS_OF_UNITS else []


def quantities(text: str) -> Iterator[tuple[re.Match[str], Quantity]]:
    """The numbers of a text, which must be in digits, each with its match."""
    month_before = -10
    last_clock: tuple[int, int] | None = None
    for match in QUANTITY.finditer(text):
        quantity = _clock(match) or _amount(match, text)
        if quantity.unit == "clock":
            quantity = _in_the_same_half(quantity, last_clock, match.start())
            last_clock = (match.end(), int(quantity.value)) if quantity.is_settled else None
        if quantity.unit == "month of the year":
            month_before = match.end()
        elif match["unit"] == "일" and match.start() - month_before <= 1:
            quantity = Quantity(quantity.text, quantity.text, "date")  # 3월 31일
        bound = side_of(match) if quantity.unit in ("clock", "date") else bound_of(match)
        yield match, quantity._replace(bound=bound, per=_rate(match))


def _in_the_same_half(clock: Quantity, before: tuple[int, int] | None, start: int) -> Quantity:
    """The second time of a range, moved to the half of the day of the first: 오후 2시부터 7시까지 ends at seven in the evening."""
    if (
        clock.is_settled
        or before is None
        or start - before[0] > _RANGE
        or before[1] < 720
        or int(clock.value) + 720 <= before[1]
    ):
        return clock
    return clock._replace(value=str(int(clock.value) % 720 + 720), is_settled=True)


def _rate(match: re.Match[str]) -> str:
    """What a number applies to, from the text behind it: per week, a week, 주당."""
    found = _PER.match(match.string, end_of(match)) or _PER_BEFORE.search(match.string[: match.start()])
    if found is None:
        return ""
    written = next(group for group in found.groups() if group is not None).lower().split()
    return " ".join(
        _PERIODS.get(word) or UNITS.get(word) or word.removesuffix("s")[:_SAME_BEGINNING] for word in written
    )


def end_of(match: re.Match[str]) -> int:
    """Where words continue after a number: behind its unit with particle, or before text that is no unit."""
    unit = match["unit"]
    if unit is not None and unit.lower() not in UNITS:
        return match.start("unit")
    particle = _PARTICLE.match(match.string, match.end())
    return particle.end() if particle else match.end()


def _clock(match: re.Match[str]) -> Quantity | None:
    written = match["hour"] or match["clock"] or match["full_hour"]
    if written is None:
        return None
    hour, minute = (
        int(written.split(":")[0]),
        int(match["minute"] or (match["clock"].split(":")[1] if match["clock"] else 0)),
    )
    minute = 30 if match["thirty"] else minute
    half = (match["half"] or match["clock_half"] or match["hour_half"] or "").lower()
    if half:
        hour = hour % 12 + (0 if half in _AM or (half == "밤" and hour in (12, 1, 2, 3)) else 12)
    settled = bool(half) or hour > 12 or written.startswith("0")
    return Quantity(written, str(hour * 60 + minute), "clock", settled)


def _amount(match: re.Match[str], text: str) -> Quantity:
    written = re.sub(
        r",(?=\d{3}(?!\d))", "", match["number"]
    )  # 1,000 is 1000; 1.50 stays as it is, because versions are numbers too
    shown = f"-{written}" if match["sign"] else written
    form = (match["currency"] or match["unit"] or "").lower()
    unit = UNITS.get(form)
    if match["scale"]:
        unit = f"°{match['scale'].strip()[0].lower()}"
    if match["unit"] and re.match(NAME_OF_MONTH, match["unit"], re.I):
        unit = "date"
    elif unit is None and re.search(rf"{NAME_OF_MONTH}\s$", text[: match.start()], re.I) and len(written) < 3:
        unit = "date"  # March 31
    value, common_unit = _converted(
        shown, unit, _MAGNITUDES.get((match["magnitude"] or "").lower(), 1), BINARY.get(form)
    )
    return Quantity(shown, value, common_unit, written_unit=unit)


def _converted(written: str, unit: str | None, magnitude: int, binary: str | None) -> tuple[str, str | None]:
    """Unit and value in the base unit: 14 days equal two weeks, 5.00 euros 5 euros. A number without unit stays as it
    is, because it may be a version.
    """
    common, factor = SCALES.get(unit or "", (unit, "1"))
    is_measured = unit not in (None, "count", "date", "m", "g")
    if not (is_measured or magnitude > 1) or not re.fullmatch(r"-?\d+(?:\.\d+)?", written):
        return written, unit
    return format((Decimal(written) * magnitude * Decimal(binary or factor)).normalize(), "f"), common
