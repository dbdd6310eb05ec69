"""Parses workbooks: one page per sheet, the values of a row on one line. Formulas are read as their last result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta

from kebab.core.documents import ParsedDocument
from kebab.parsing.building import ExtractedText, FileParser
from kebab.parsing.zipped_xml import (
    XmlHandler,
    ZipContainer,
    damaged,
    elements,
    first_of_kind,
    office_document,
    read_xml,
    relationships,
)

_MOST_ROWS = 20_000
_MOST_COLUMNS = 100
_ROWS_PER_BLOCK = 20
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_COLUMN = re.compile("[A-Za-z]{1,4}")
_BUILT_IN_DATES = frozenset([*range(14, 18), 22, *range(27, 32), 36, *range(50, 55), 57, 58])
"""Numbers of the built-in date formats; those from 27 on are of Korean, Chinese and Japanese programs."""
_NO_LETTERS = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.')
_DAY_0 = datetime(1899, 12, 30)
_LAST_DAY = 2_958_466
"""The first day of the year 10000."""


class XlsxParser(FileParser):
    version = "xlsx-1"
    keeps_lines = False

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        container = ZipContainer(data)
        main = first_of_kind(relationships(container, ""), "officeDocument", "xl/workbook.xml")
        parts = relationships(container, main)
        sheets = elements(container.read(main), "sheet")
        strings, dates = _SharedStrings(), frozenset[str]()
        if (part := first_of_kind(parts, "sharedStrings", "xl/sharedStrings.xml")) in container:
            read_xml(container.read(part), strings)
        if (part := first_of_kind(parts, "styles", "xl/styles.xml")) in container:
            dates = _date_styles(container.read(part))
        extracted = ExtractedText()
        warnings: list[str] = []
        for number, (_, listed, _) in enumerate(sheets):
            if number:
                extracted.end_page()
            name, id_ = " ".join(listed.get("name", "").split()), listed.get("r:id", "")
            extracted.add("heading", name, 1)
            if id_ in parts and parts[id_].kind == "worksheet":
                sheet = _Sheet(strings.found, dates)
                read_xml(container.read(parts[id_].part), sheet)
                for first in range(0, len(sheet.rows), _ROWS_PER_BLOCK):
                    extracted.add("table", "\n".join(sheet.rows[first : first + _ROWS_PER_BLOCK]))
                warnings += sheet.warnings(name)
        # The name of the first sheet, usually "Sheet1", is no title.
        return office_document(container, extracted, path, headings_title=False, paged=True, warnings=warnings)


def _date_styles(data: bytes) -> frozenset[str]:
    """The numbers of the cell styles that show a date: only its style tells a date from a plain number of days."""
    dates = {str(number) for number in _BUILT_IN_DATES}
    formats: list[str] = []
    cells: list[str] = []
    for name, attributes, _ in elements(data, "numFmt", "xf", "cellStyleXfs", "cellXfs"):
        id_ = attributes.get("numFmtId", "")
        if name == "numFmt":
            letters = _NO_LETTERS.sub("", attributes.get("formatCode", "")).lower()
            if "yy" in letters or "d" in letters:
                dates.add(id_)
        elif name == "xf":
            formats.append(id_)
        else:
            cells, formats = formats if name == "cellXfs" else cells, []
    return frozenset(str(number) for number, format_ in enumerate(cells) if format_ in dates)


class _SharedStrings(XmlHandler):
    def __init__(self) -> None:
        self.found: list[str] = []
        self._parts: list[str] = []

    def end(self, name: str, text: str) -> None:
        if name == "t":
            self._parts.append(text)
        elif name == "si":
            self.found.append(_cell_text("".join(self._parts)))
            self._parts = []


class _Sheet(XmlHandler):
    """Reads one sheet. `rows` are lines of text; rows without a value are left out."""

    def __init__(self, strings: list[str], dates: frozenset[str]) -> None:
        self._strings = strings
        self._dates = dates
        self.rows: list[str] = []
        self._row: list[str] = []
        self._column = 0
        self._type = ""
        self._parts: list[str] = []
        self._rows_left_out = 0
        self._columns_left_out = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "c":
            self._column = _column(attributes.get("r", ""), len(self._row))
            self._type = attributes.get("t", "n")
            if self._type == "n" and attributes.get("s") in self._dates:
                self._type = "date"
            self._parts = []
        elif name == "row":
            self._row = []

    def end(self, name: str, text: str) -> None:
        if name in ("v", "t"):
            self._parts.append(text)
        elif name == "c":
            self._put("".join(self._parts))
            self._parts = []
        elif name == "row" and any(self._row):
            if len(self.rows) < _MOST_ROWS:
                self.rows.append(" | ".join(self._row))
            else:
                self._rows_left_out += 1

    def _put(self, raw: str) -> None:
        if not raw:
            return
        if self._column >= _MOST_COLUMNS:
            self._columns_left_out = True
            return
        self._row += [""] * (self._column - len(self._row) + 1)
        self._row[self._column] = self._value(raw.strip())

    def _value(self, raw: str) -> str:
        if self._type == "s":
            if not raw.isdecimal() or len(raw) > 9 or int(raw) >= len(self._strings):
                raise damaged("A cell names a text that is not there.")
            return self._strings[int(raw)]
        if self._type == "b":
            return "TRUE" if raw == "1" else "FALSE"
        if self._type == "date":
            return _date_text(raw) or _number_text(raw)
        return _number_text(raw) if self._type == "n" else _cell_text(raw)

    def warnings(self, name: str) -> Iterator[str]:
        if self._rows_left_out:
            yield f"sheet {name}: {self._rows_left_out:,} rows after the first {_MOST_ROWS:,} are left out"
        if self._columns_left_out:
            yield f"sheet {name}: columns after the first {_MOST_COLUMNS} are left out"


def _column(reference: str, following: int) -> int:
    """The column of a cell reference, counted from 0 (B7 → 1), or `following` without a reference."""
    letters = _COLUMN.match(reference)
    if not letters:
        return following
    number = 0
    for letter in letters[0].upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _cell_text(raw: str) -> str:
    """The text of a cell on one line, with escapes such as _x000D_ decoded."""
    if "_x" in raw:
        raw = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), raw)
    return " ".join(raw.split())


def _date_text(raw: str) -> str | None:
    """45443.5 → 2024-05-31 12:00; None for a number that is no day of the calendar."""
    with suppress(ValueError):
        if 1 <= (days := float(raw)) < _LAST_DAY:
            moment = _DAY_0 + timedelta(minutes=round(days * 1440))
            return moment.isoformat(sep=" ", timespec="minutes").removesuffix(" 00:00")
    return None


def _number_text(raw: str) -> str:
    """0.30000000000000004 → 0.3, as Excel shows it: it computes with 15 digits."""
    if len(raw) > 15 and "." in raw:
        with suppress(ValueError):
            return f"{float(raw):.15g}"
    return _cell_text(raw)
