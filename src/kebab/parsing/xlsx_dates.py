"""Dates of workbooks: numbers of days that only the style of their cell tells from other numbers."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from kebab.parsing.safe_xml import read_xml

_BUILT_IN = frozenset([*range(14, 18), 22, *range(27, 32), 36, *range(50, 55), 57, 58])
"""Formats that need no definition; the second half are those of Korean, Chinese and Japanese programs."""
_NO_LETTERS = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.')
_SINCE = datetime(1899, 12, 30)
_LAST = 2_958_466
"""The first day of the year 10000."""


def date_styles(data: bytes) -> frozenset[str]:
    """The numbers of the cell styles, as cells name them, that show a date. `data` is the part styles.xml."""
    styles = _Styles()
    read_xml(data, styles)
    return frozenset(str(number) for number, format_ in enumerate(styles.formats) if format_ in styles.dates)


def date_text(raw: str) -> str | None:
    """45443.5 → 2024-05-31 12:00; None for what is no day of the calendar."""
    try:
        days = float(raw)
    except ValueError:
        return None
    if not 1 <= days < _LAST:
        return None
    moment = _SINCE + timedelta(minutes=round(days * 1440))
    return moment.isoformat(sep=" ", timespec="minutes").removesuffix(" 00:00")


class _Styles:
    def __init__(self) -> None:
        self.dates = {str(number) for number in _BUILT_IN}
        self.formats: list[str] = []
        self._in_cells = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "numFmt":
            letters = _NO_LETTERS.sub("", attributes.get("formatCode", "")).lower()
            if "yy" in letters or "d" in letters:
                self.dates.add(attributes.get("numFmtId", ""))
        elif name == "cellXfs":
            self._in_cells = True
        elif name == "xf" and self._in_cells:
            self.formats.append(attributes.get("numFmtId", ""))

    def end(self, name: str) -> None:
        if name == "cellXfs":
            self._in_cells = False

    def text(self, data: str) -> None: ...
