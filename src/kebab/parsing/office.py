"""Parses Office files.

Word documents: one line per paragraph and per table row, headings by their styles. Presentations: one page per slide,
in the order of the show; the notes of a slide follow its text. Workbooks: one page per sheet, the values of a row on
one line; formulas are read as their last result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kebab.core.documents import ParsedDocument
from kebab.parsing.building import ExtractedText, FileParser
from kebab.parsing.zipped_xml import XmlHandler, ZipContainer, damaged, office_document

_HEADING_NAME = re.compile(r"heading ?([1-9])", re.IGNORECASE)
_MOST_ANCESTORS = 20
_STYLE_PARTS = ("basedOn", "name", "outlineLvl")
_IN_RUN = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


class DocxParser(FileParser):
    version = "docx-3"
    keeps_lines = False

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        container = ZipContainer(data)
        main = container.related("", "officeDocument", "word/document.xml")
        body = _Body(_heading_levels(container, container.related(main, "styles", "word/styles.xml")))
        container.walk(main, body)
        for kind in ("footnotes", "endnotes"):
            notes = container.related(main, kind, f"word/{kind}.xml")
            if notes in container:
                container.walk(notes, body)
        body.end_list()
        return office_document(container, body.extracted, path)


def _heading_levels(container: ZipContainer, part: str) -> dict[str, int]:
    """Maps style ids to heading levels, by the names of the styles: Word translates the ids, but not the names."""
    if part not in container:
        return {}
    parents: dict[str, str] = {}
    levels: dict[str, int] = {}
    parent, level = "", 0
    for name, attributes, _ in container.elements(part, "docDefaults", "style", *_STYLE_PARTS):
        value = attributes.get("val", "")
        if name == "basedOn":
            parent = value
        elif name == "name":
            level = _named_level(value) or level
        elif name == "outlineLvl":
            level = level or _outline_level(value)
        else:
            if name == "style":
                style = attributes.get("styleId", "")
                parents[style], levels[style] = parent, level
            parent, level = "", 0
    return {style: level for style in parents if (level := _inherited_level(style, parents, levels))}


def _inherited_level(style: str, parents: dict[str, str], levels: dict[str, int]) -> int:
    for _ in range(_MOST_ANCESTORS):
        if levels.get(style) or not style:
            break
        style = parents.get(style, "")
    return levels.get(style, 0)


def _named_level(name: str) -> int:
    if name.lower() == "title":
        return 1
    match = _HEADING_NAME.fullmatch(name.strip())
    return int(match[1]) if match else 0


def _outline_level(value: str) -> int:
    """Converts an outline level, which counts from 0, to a heading level; 0 if it is no heading (9)."""
    return int(value) + 1 if value in tuple("012345678") else 0


@dataclass
class _Paragraph:
    parts: list[str] = field(default_factory=list)
    level: int = 0
    in_list: bool = False


class _Body(XmlHandler):
    """Extracts the text of the main part, then of the notes."""

    def __init__(self, levels: dict[str, int]) -> None:
        self.extracted = ExtractedText()
        self._levels = levels
        self._paragraphs: list[_Paragraph] = []  # nested, because a text box is inside a paragraph
        self._list: list[str] = []
        self._tables = self._runs = 0
        self._rows: list[list[str]] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "p":
            self._paragraphs.append(_Paragraph())
        elif name == "r":
            self._runs += 1
        elif name == "tbl":
            self._tables += 1
            self.end_list()
        elif name == "tr" and self._tables == 1:
            self._rows.append([])
        elif name == "tc" and self._tables == 1 and self._rows:
            self._rows[-1].append("")
        elif self._paragraphs:
            self._property(name, attributes.get("val", ""), self._paragraphs[-1])

    def _property(self, name: str, value: str, paragraph: _Paragraph) -> None:
        if self._runs and name in _IN_RUN:
            paragraph.parts.append(_IN_RUN[name])
        elif name == "pStyle":
            paragraph.level = self._levels.get(value) or _named_level(value)
        elif name == "outlineLvl":
            paragraph.level = _outline_level(value)
        elif name == "numId":
            paragraph.in_list = value != "0"

    def end(self, name: str, text: str) -> None:
        if name == "t" and self._paragraphs:
            self._paragraphs[-1].parts.append(text)
        elif name == "r":
            self._runs = max(0, self._runs - 1)
        elif name == "p" and self._paragraphs:
            self._end_paragraph(self._paragraphs.pop())
        elif name == "tbl":
            self._tables -= 1
            if not self._tables:
                self.extracted.add("table", "\n".join(" | ".join(row) for row in self._rows if any(row)))
                self._rows = []

    def _end_paragraph(self, paragraph: _Paragraph) -> None:
        text = "".join(paragraph.parts).strip()
        if not text:
            return
        if self._tables:
            if self._rows and self._rows[-1]:
                self._rows[-1][-1] = " ".join((self._rows[-1][-1] + " " + text).split())
        elif paragraph.level:
            self.end_list()
            self.extracted.add("heading", " ".join(text.split()), paragraph.level)
        elif paragraph.in_list:
            self._list.append(f"- {text}")
        else:
            self.end_list()
            self.extracted.add("paragraph", text)

    def end_list(self) -> None:
        self.extracted.add("list", "\n".join(self._list))
        self._list = []


# --- presentations


_TITLES = frozenset(("title", "ctrTitle"))
_FURNITURE = frozenset(("sldNum", "dt", "ftr", "hdr", "sldImg"))
"""Placeholders that are left out, because they have the same text on every slide."""


class PptxParser(FileParser):
    version = "pptx-2"
    keeps_lines = False

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        container = ZipContainer(data)
        extracted = ExtractedText()
        for number, part in enumerate(_slides(container)):
            if number:
                extracted.end_page()
            _add_slide(extracted, container, part)
        return office_document(container, extracted, path, paged=True)


def _slides(container: ZipContainer) -> list[str]:
    main = container.related("", "officeDocument", "ppt/presentation.xml")
    slides = [slide.attributes.get("r:id", "") for slide in container.elements(main, "sldId")]
    parts = container.relationships(main)
    return [parts[id_].part for id_ in slides if id_ in parts]


def _add_slide(extracted: ExtractedText, container: ZipContainer, part: str) -> None:
    """Adds a slide as a section. Without a title, its first line is the heading."""
    shapes = _shapes(container, part)
    title = next((shape for shape in shapes if shape.placeholder in _TITLES and shape.lines), None)
    others = [shape for shape in shapes if shape is not title and shape.placeholder not in _FURNITURE]
    if title:
        extracted.add("heading", " ".join(title.lines), 1)
    else:
        first = next((shape for shape in others if shape.lines), None)
        extracted.add("heading", first.lines.pop(0) if first else "", 1)
    for shape in others:
        extracted.add(shape.kind, "\n".join(shape.lines))
    notes = container.related(part, "notesSlide", "")
    if notes in container:
        for shape in _shapes(container, notes):
            if shape.placeholder not in _FURNITURE:
                extracted.add("paragraph", "\n".join(shape.lines))


def _shapes(container: ZipContainer, part: str) -> list[_Shape]:
    slide = _Slide()
    container.walk(part, slide)
    return slide.shapes


@dataclass
class _Shape:
    kind: str
    placeholder: str = ""
    lines: list[str] = field(default_factory=list)


class _Slide(XmlHandler):
    """Reads a slide or its notes: text shapes and tables, in the order of the file."""

    def __init__(self) -> None:
        self.shapes: list[_Shape] = []
        self._line: list[str] = []
        self._row: list[str] | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name in ("sp", "tbl"):
            self.shapes.append(_Shape("table" if name == "tbl" else "paragraph"))
        elif name == "ph" and self.shapes:
            self.shapes[-1].placeholder = attributes.get("type", "body")
        elif name in ("br", "tab"):
            self._line.append(" ")
        elif name == "tr":
            self._row = []
        elif name == "tc" and self._row is not None:
            self._row.append("")

    def end(self, name: str, text: str) -> None:
        if name == "t":
            self._line.append(text)
        elif name == "p":
            self._end_paragraph()
        elif name == "tr":
            if self._row and any(self._row) and self.shapes:
                self.shapes[-1].lines.append(" | ".join(self._row))
            self._row = None

    def _end_paragraph(self) -> None:
        text, self._line = " ".join("".join(self._line).split()), []
        if not text:
            return
        if self._row:
            self._row[-1] = f"{self._row[-1]} {text}".strip()
        elif self.shapes:
            self.shapes[-1].lines.append(text)


# --- workbooks


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
    version = "xlsx-2"
    keeps_lines = False

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        container = ZipContainer(data)
        main = container.related("", "officeDocument", "xl/workbook.xml")
        parts = container.relationships(main)
        sheets = container.elements(main, "sheet")
        strings, dates = _SharedStrings(), frozenset[str]()
        if (part := container.related(main, "sharedStrings", "xl/sharedStrings.xml")) in container:
            container.walk(part, strings)
        if (part := container.related(main, "styles", "xl/styles.xml")) in container:
            dates = _date_styles(container, part)
        extracted = ExtractedText()
        warnings: list[str] = []
        for number, (_, listed, _) in enumerate(sheets):
            if number:
                extracted.end_page()
            name, id_ = " ".join(listed.get("name", "").split()), listed.get("r:id", "")
            extracted.add("heading", name, 1)
            if id_ in parts and parts[id_].kind == "worksheet":
                sheet = _Sheet(strings.found, dates)
                container.walk(parts[id_].part, sheet)
                for first in range(0, len(sheet.rows), _ROWS_PER_BLOCK):
                    extracted.add("table", "\n".join(sheet.rows[first : first + _ROWS_PER_BLOCK]))
                warnings += sheet.warnings(name)
        # The name of the first sheet, usually "Sheet1", is no title.
        return office_document(container, extracted, path, headings_title=False, paged=True, warnings=warnings)


def _date_styles(container: ZipContainer, part: str) -> frozenset[str]:
    """The numbers of the cell styles that show a date: only its style tells a date from a plain number of days."""
    dates = {str(number) for number in _BUILT_IN_DATES}
    formats: list[str] = []
    cells: list[str] = []
    for name, attributes, _ in container.elements(part, "numFmt", "xf", "cellStyleXfs", "cellXfs"):
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
