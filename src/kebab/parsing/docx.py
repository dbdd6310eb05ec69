"""Parses Word documents: one line per paragraph and per table row, headings by their styles."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kebab.core.documents import ParsedDocument
from kebab.parsing.building import ExtractedText, FileParser
from kebab.parsing.zipped_xml import (
    XmlHandler,
    ZipContainer,
    elements,
    first_of_kind,
    office_document,
    read_xml,
    relationships,
)

_HEADING_NAME = re.compile(r"heading ?([1-9])", re.IGNORECASE)
_MOST_ANCESTORS = 20
_STYLE_PARTS = ("basedOn", "name", "outlineLvl")
_IN_RUN = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}


class DocxParser(FileParser):
    version = "docx-2"
    keeps_lines = False

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
    """Maps style ids to heading levels, by the names of the styles: Word translates the ids, but not the names."""
    if part not in container:
        return {}
    parents: dict[str, str] = {}
    levels: dict[str, int] = {}
    parent, level = "", 0
    for name, attributes, _ in elements(container.read(part), "docDefaults", "style", *_STYLE_PARTS):
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
