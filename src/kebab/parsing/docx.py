"""Word documents: paragraphs one per line, headings by their styles, tables a row per line."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kebab.core.documents import ParsedDocument
from kebab.parsing.building import ExtractedText
from kebab.parsing.zipped_xml import (
    XmlHandler,
    ZipContainer,
    first_of_kind,
    office_document,
    read_xml,
    relationships,
)

_HEADING_NAME = re.compile(r"heading ?([1-9])", re.IGNORECASE)
_MOST_ANCESTORS = 20
_IN_RUN = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


class DocxParser:
    version = "docx-2"
    keeps_lines = False
    isolated = True

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        container = ZipContainer(data)
        main = first_of_kind(relationships(container, ""), "officeDocument", "word/document.xml")
        beside = relationships(container, main)
        levels = _heading_levels(container, first_of_kind(beside, "styles", "word/styles.xml"))
        body = _Body(levels)
        read_xml(container.read(main), body)
        for kind in ("footnotes", "endnotes"):
            notes = first_of_kind(beside, kind, f"word/{kind}.xml")
            if notes in container:
                read_xml(container.read(notes), body)
        body.end_list()
        return office_document(container, body.extracted, path)


def _heading_levels(container: ZipContainer, part: str) -> dict[str, int]:
    """The level of each heading style. Names are English in Word of every language, ids are not."""
    if part not in container:
        return {}
    styles = _Styles()
    read_xml(container.read(part), styles)
    return {style: level for style in styles.parents if (level := styles.level(style))}


class _Styles(XmlHandler):
    def __init__(self) -> None:
        self.parents: dict[str, str] = {}
        self._levels: dict[str, int] = {}
        self._style = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        value = attributes.get("val", "")
        if name == "style":
            self._style = attributes.get("styleId", "")
            self.parents[self._style] = ""
        elif name == "basedOn":
            self.parents[self._style] = value
        elif name == "name" and (level := _named_level(value)):
            self._levels[self._style] = level
        elif name == "outlineLvl" and self._style and (level := _outline_level(value)):
            self._levels.setdefault(self._style, level)

    def end(self, name: str) -> None:
        if name == "style":
            self._style = ""

    def level(self, style: str) -> int:
        for _ in range(_MOST_ANCESTORS):
            if style in self._levels or not style:
                break
            style = self.parents.get(style, "")
        return self._levels.get(style, 0)


def _named_level(name: str) -> int:
    if name.lower() == "title":
        return 1
    match = _HEADING_NAME.fullmatch(name.strip())
    return int(match[1]) if match else 0


def _outline_level(value: str) -> int:
    """The file counts from 0, and 9 means no heading."""
    return int(value) + 1 if value in tuple("012345678") else 0


@dataclass
class _Paragraph:
    parts: list[str] = field(default_factory=list)
    level: int = 0
    in_list: bool = False


class _Body(XmlHandler):
    """Reads the main part, then the notes."""

    def __init__(self, levels: dict[str, int]) -> None:
        self.extracted = ExtractedText()
        self._levels = levels
        self._paragraphs: list[_Paragraph] = []  # a text box is inside the paragraph it is anchored to
        self._list: list[str] = []
        self._tables = self._runs = self._skipped = 0
        self._rows: list[list[str]] = []
        self._in_text = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Fallback" or self._skipped:
            self._skipped += 1  # the same again, for programs that do not know the first form
        elif name == "p":
            self._paragraphs.append(_Paragraph())
        elif name == "t":
            self._in_text = True
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

    def end(self, name: str) -> None:
        if self._skipped:
            self._skipped -= 1
        elif name == "t":
            self._in_text = False
        elif name == "r":
            self._runs = max(0, self._runs - 1)
        elif name == "p" and self._paragraphs:
            self._end_paragraph(self._paragraphs.pop())
        elif name == "tbl":
            self._tables -= 1
            if not self._tables:
                self.extracted.add("table", "\n".join(" | ".join(row) for row in self._rows if any(row)))
                self._rows = []

    def text(self, data: str) -> None:
        if self._in_text and self._paragraphs and not self._skipped:
            self._paragraphs[-1].parts.append(data)

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
