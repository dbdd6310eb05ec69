"""Parses presentations: one page per slide, in the order of the show; the notes of a slide follow its text."""

from __future__ import annotations

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

_TITLES = frozenset(("title", "ctrTitle"))
_FURNITURE = frozenset(("sldNum", "dt", "ftr", "hdr", "sldImg"))
"""Placeholders that are left out, because they have the same text on every slide."""


class PptxParser(FileParser):
    version = "pptx-1"
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
    main = first_of_kind(relationships(container, ""), "officeDocument", "ppt/presentation.xml")
    slides = [slide.attributes.get("r:id", "") for slide in elements(container.read(main), "sldId")]
    parts = relationships(container, main)
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
    notes = first_of_kind(relationships(container, part), "notesSlide", "")
    if notes in container:
        for shape in _shapes(container, notes):
            if shape.placeholder not in _FURNITURE:
                extracted.add("paragraph", "\n".join(shape.lines))


def _shapes(container: ZipContainer, part: str) -> list[_Shape]:
    slide = _Slide()
    read_xml(container.read(part), slide)
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
