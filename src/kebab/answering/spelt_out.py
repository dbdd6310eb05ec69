"""Converts numbers and dates that are spelt out or written in another form: three days, 사흘, 3천만, 2024-03-12, March
12th.
"""

from __future__ import annotations

import re

from kebab.answering.measures import KOREAN_UNITS, MONTHS, NAME_OF_MONTH, UNITS

_SPELT_OUT = {
    word: str(number)
    for number, words in enumerate(
        (
            "zero",
            "",
            "two twice",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
        )
    )
    for word in words.split()
} | {
    "fourteen": "14",
    "fifteen": "15",
    "sixteen": "16",
    "seventeen": "17",
    "eighteen": "18",
    "nineteen": "19",
    "twenty": "20",
    "thirty": "30",
    "forty": "40",
    "fifty": "50",
    "sixty": "60",
    "hundred": "100",
}
_KOREAN_SPELT_OUT = {
    word: str(number)
    for number, words in enumerate("한 두 세 네 다섯 여섯 일곱 여덟 아홉 열 열한 열두".split(), start=1)
    for word in words.split()
}
_BEFORE_KOREAN_UNIT = re.compile(rf"(?<![가-힣])({'|'.join(_KOREAN_SPELT_OUT)})(?=\s?(?:{KOREAN_UNITS}))")
_ONE = re.compile(
    rf"\bone(?=[\s-](?:{'|'.join(form for form in UNITS if form.isalpha() and form.isascii() and len(form) > 2)})\b)",
    re.I,
)
_KOREAN_DAYS = dict(
    zip("하루 이틀 사흘 나흘 닷새 엿새 이레 여드레 아흐레 열흘 보름".split(), (*range(1, 11), 15), strict=True)
)
_DAYS = re.compile(rf"(?<![가-힣])(?:({'|'.join(_KOREAN_DAYS)})|일(?=주일))")
_A_PERIOD = re.compile(
    r"\b(within|in|for|after|than|last|lasts|least|most|takes?|every)\s(?:an?|one)\s(?=(?:second|minute|hour|day|week|month|year)\b)",
    re.IGNORECASE,
)
_UNIT_BEHIND = re.compile(
    r"\b(\d+)\s(consecutive|successive|full|whole|working|business|calendar|paid|unpaid|additional|extra|further|more)"
    r"\s((?:second|minute|hour|day|week|month|year)s?)\b",
    re.IGNORECASE,
)
_KOREAN_ORDINALS = ("첫째", "둘째", "셋째", "넷째", "첫 번째", "두 번째", "세 번째", "네 번째")
_KOREAN_ORDINAL = re.compile(rf"(?<![가-힣])(?:{'|'.join(_KOREAN_ORDINALS)})")
_A_YEAR = re.compile(r"(?<![가-힣])연\s?(?=\d)")
"""연 before a number: 연 10일 is ten days a year."""
_IN_PARTS = re.compile(
    r"(?<![\d.,])(\d[\d,]*)([십백천]?)([만억])(?:\s?(\d[\d,]*)([십백천]?)(만?))?(?=\s?(?:원|명|개|달러|유로|$|[^\d가-힣]))"
)
_WITHOUT_DIGIT = re.compile(r"(?<![\d가-힣])([십백천]|(?=만))(만?)(?=\s?(?:원|명|개|달러|유로|건))")
"""Korean units of ten without a digit before them: 천만 원, 백 명."""
_PARTS = {"": 1, "십": 10, "백": 100, "천": 1000, "만": 10_000, "억": 100_000_000}
_HALVES = (
    (re.compile(r"\ban? hour and a half\b", re.IGNORECASE), "90 minutes"),
    (re.compile(r"\ban? hour and a quarter\b", re.IGNORECASE), "75 minutes"),
    (re.compile(r"\bhalf an hour\b", re.IGNORECASE), "30 minutes"),
    (re.compile(r"\ba quarter of an hour\b", re.IGNORECASE), "15 minutes"),
    (re.compile(r"\ba year and a half\b", re.IGNORECASE), "18 months"),
    (re.compile(r"\bhalf a year\b", re.IGNORECASE), "6 months"),
)
_DIGIT = re.compile(r"\d")
_NUMERIC_DATE = re.compile(
    r"(?<![\w.-])(?:(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})|(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4}))(?![\d-])"
)
_MONTH_FIRST = re.compile(
    rf"\b({NAME_OF_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(\d{{4}}))?(?![\d:])", re.IGNORECASE
)
_ORDINAL = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)\s+(?:of\s+)?(?={NAME_OF_MONTH})", re.IGNORECASE)


def in_digits(text: str) -> str:
    """The text with spelt-out numbers as digits, if they certainly are numbers, and dates as day, month and year."""
    if "half" in text or "quarter" in text:
        for words, number in _HALVES:
            text = words.sub(number, text)
    text = re.sub(r"[A-Za-z]+", lambda match: _SPELT_OUT.get(match[0].lower(), match[0]), text)
    text = _A_PERIOD.sub(r"\1 1 ", text)
    if _DIGIT.search(text):
        text = _NUMERIC_DATE.sub(_written_date, text)
        text = _ORDINAL.sub(r"\1 ", text)
        text = _MONTH_FIRST.sub(lambda match: " ".join(part for part in (match[2], match[1], match[3]) if part), text)
        text = _UNIT_BEHIND.sub(r"\1 \3 \2", text)
    if text.isascii():
        return _ONE.sub("1", text)
    text = re.sub(r"(?<![가-힣])자정", "밤 12시", re.sub(r"(?<![가-힣])정오", "낮 12시", text))
    text = _WITHOUT_DIGIT.sub(lambda match: f"{_PARTS[match[1]] * (_PARTS['만'] if match[2] else 1)}", text)
    text = _KOREAN_ORDINAL.sub(lambda match: f"{_KOREAN_ORDINALS.index(match[0]) % 4 + 1}번째", text)
    text = _A_YEAR.sub("1년 ", text)
    text = _DAYS.sub(lambda match: f"{_KOREAN_DAYS[match[1]]}일" if match[1] else "1", text)
    text = _BEFORE_KOREAN_UNIT.sub(lambda match: _KOREAN_SPELT_OUT[match[1]], text)
    return _ONE.sub("1", _IN_PARTS.sub(_as_one_number, text))


def _written_date(match: re.Match[str]) -> str:
    year, month, day = match["year"] or match["y"], int(match["month"] or match["m"]), int(match["day"] or match["d"])
    if not 1 <= month <= len(MONTHS):
        return match[0]
    if any("가" <= letter <= "힣" for letter in match.string):
        return f"{year}년 {month}월 {day}일"
    return f"{day} {MONTHS[month - 1].title()} {year}"


def _as_one_number(match: re.Match[str]) -> str:
    """The value of a number that mixes digits and Korean units: 3천만, 3만 5천."""
    number = int(match[1].replace(",", "")) * _PARTS[match[2]] * _PARTS[match[3]]
    if match[4]:
        number += int(match[4].replace(",", "")) * _PARTS[match[5]] * _PARTS[match[6]]
    return str(number)
