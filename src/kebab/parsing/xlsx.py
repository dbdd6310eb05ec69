"""Workbooks: one page per sheet, the values of a row on one line. Formulas are not computed, what they last gave is
read.
"""

from __future__ import annotations

import re

from kebab.core.documents import ParsedDocument
from kebab.parsing.extracted_text import ExtractedText
from kebab.parsing.office_parts import first_of_kind, member_name, office_document, relationships
from kebab.parsing.safe_xml import read_xml
from kebab.parsing.xlsx_dates import date_styles, date_text
from kebab.parsing.zip_container import ZipContainer, damaged

_MOST_ROWS = 20_000
_MOST_COLUMNS = 100
_ROWS_PER_BLOCK = 20
_ESCAPED = re.compile("_x([0-9A-Fa-f]{4})_")
_COLUMN = re.compile("[A-Za-z]{1,4}")


class XlsxParser:
    version = "xlsx-1"
    keeps_lines = False
    isolated = True

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        container = ZipContainer(data)
        main = first_of_kind(relationships(container, ""), "officeDocument", "xl/workbook.xml")
        parts = relationships(container, main)
        workbook = _Workbook()
        read_xml(container.read(main), workbook)
        strings = _shared_strings(
            container, first_of_kind(parts, "sharedStrings", member_name("xl", "sharedStrings.xml"))
        )
        styles = first_of_kind(parts, "styles", member_name("xl", "styles.xml"))
        dates = date_styles(container.read(styles)) if styles in container else frozenset()
        extracted, warnings = ExtractedText(), []
        for number, (name, id_) in enumerate(workbook.sheets):
            if number:
                extracted.end_page()
            extracted.add("heading", name, 1)
            if id_ in parts and parts[id_].kind == "worksheet":
                sheet = _Sheet(strings, dates)
                read_xml(container.read(parts[id_].part), sheet)
                _add_rows(extracted, sheet.rows)
                warnings += sheet.warnings(name)
        # The first sheet's name, mostly "Sheet1", says nothing about the whole.
        return office_document(container, extracted, path, headings_title=False, paged=True, warnings=warnings)


def _add_rows(extracted: ExtractedText, rows: list[str]) -> None:
    for first in range(0, len(rows), _ROWS_PER_BLOCK):
        extracted.add("table", "\n".join(rows[first : first + _ROWS_PER_BLOCK]))


def _shared_strings(container: ZipContainer, part: str) -> list[str]:
    if part not in container:
        return []
    strings = _SharedStrings()
    read_xml(container.read(part), strings)
    return strings.found


class _Workbook:
    def __init__(self) -> None:
        self.sheets: list[tuple[str, str]] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            self.sheets.append((" ".join(attributes.get("name", "").split()), attributes.get("r:id", "")))

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...


class _SharedStrings:
    def __init__(self) -> None:
        self.found: list[str] = []
        self._parts: list[str] = []
        self._in_text = self._in_reading = False

    def start(self, name: str, attributes: dict[str, str]) -> None:  # noqa: ARG002
        if name == "rPh":
            self._in_reading = True  # how the characters are pronounced
        self._in_text = name == "t" and not self._in_reading

    def end(self, name: str) -> None:
        self._in_text = False
        if name == "rPh":
            self._in_reading = False
        elif name == "si":
            self.found.append(_cell_text("".join(self._parts)))
            self._parts = []

    def text(self, data: str) -> None:
        if self._in_text:
            self._parts.append(data)


class _Sheet:
    """Handles the XML of one sheet. `rows` are lines of text, those without any value left out."""

    def __init__(self, strings: list[str], dates: frozenset[str]) -> None:
        self._strings = strings
        self._dates = dates
        self._is_date = False
        self.rows: list[str] = []
        self._row: list[str] = []
        self._column = 0
        self._type = ""
        self._parts: list[str] = []
        self._reads = self._in_reading = False
        self._rows_left_out = 0
        self._columns_left_out = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "c":
            self._column = _column(attributes.get("r", ""), len(self._row))
            self._type = attributes.get("t", "n")
            self._is_date = self._type == "n" and attributes.get("s") in self._dates
            self._parts = []
        elif name == "row":
            self._row = []
        elif name == "rPh":
            self._in_reading = True
        self._reads = name in ("v", "t") and not self._in_reading

    def end(self, name: str) -> None:
        self._reads = False
        if name == "c":
            self._put("".join(self._parts))
            self._parts = []
        elif name == "rPh":
            self._in_reading = False
        elif name == "row" and any(self._row):
            if len(self.rows) < _MOST_ROWS:
                self.rows.append(" | ".join(self._row))
            else:
                self._rows_left_out += 1

    def text(self, data: str) -> None:
        if self._reads:
            self._parts.append(data)

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
        if self._is_date and (date := date_text(raw)):
            return date
        return _number_text(raw) if self._type == "n" else _cell_text(raw)

    def warnings(self, name: str) -> list[str]:
        left_out = []
        if self._rows_left_out:
            left_out.append(f"sheet {name}: {self._rows_left_out:,} rows after the first {_MOST_ROWS:,} are left out")
        if self._columns_left_out:
            left_out.append(f"sheet {name}: columns after the first {_MOST_COLUMNS} are left out")
        return left_out


def _column(reference: str, following: int) -> int:
    """B7 → 1; a cell that does not say where it stands follows the one before."""
    letters = _COLUMN.match(reference)
    if not letters:
        return following
    number = 0
    for letter in letters[0].upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number - 1


def _cell_text(raw: str) -> str:
    """On one line, with the characters that XML cannot hold put back, where they are text at all."""
    if "_x" in raw:
        raw = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), raw)
    return " ".join(raw.split())


def _number_text(raw: str) -> str:
    """0.30000000000000004 → 0.3, as the program shows it: Excel computes with 15 digits."""
    if len(raw) <= 15 or "." not in raw:
        return _cell_text(raw)
    try:
        return f"{float(raw):.15g}"
    except ValueError:
        return _cell_text(raw)
