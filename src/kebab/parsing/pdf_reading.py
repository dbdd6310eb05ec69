"""What PDFium finds in the bytes of a PDF: the text of its pages, their labels, the outline (or what stands out), and
who made it.

The C functions are called directly. pypdfium2's classes recurse once per character that has no text, take the error of
an earlier file for that of a file without pages, and write to the log. Here nothing raises but what is raised below:
each handle is checked, each closed.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

from kebab.core.errors import ParseError
from kebab.parsing.pdf_columns import Box, Columns, Region, misdrawn_columns
from kebab.parsing.pdf_headings import OutlineEntry, TypeLine, outline_by_type, type_line

_MOST_PAGES = 50_000
_MOST_CHARACTERS = 50_000_000
"""A page's content may be shared by all pages: a few kilobytes can stand for any amount of text."""
_MOST_ENTRIES = 4000
_DEEPEST_ENTRY = 8
_LONGEST_VALUE_BYTES = 16_384
_BOLD_WEIGHT = 600
_BOLD_NAME = re.compile(rb"bold|black|heavy|demi|cmbx", re.IGNORECASE)
_LONGEST_FONT_NAME = 128
_GUTTERS = (0.0, -8.0, 8.0)
"""Where a gutter is looked for, in points from the middle of the page: one that is wide enough holds one of these
places.
"""
_LEAST_IN_COLUMNS = 80
_MOST_IN_COLUMNS = 100_000
"""Characters: a page with more is none for two columns, and looking where each of them stands takes time."""
_LEAST_HEIGHT = 1.0
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_INFO_KEYS = ("Title", "Author", "Subject", "Keywords", "CreationDate", "ModDate")

_ONE_AT_A_TIME = Lock()
"""PDFium is not safe for threads, not even with a document for each of them."""


class PdfContents(NamedTuple):
    pages: list[str]
    """Raw text with U+FFFE where PDFium has joined a word that was broken at a line's end."""
    labels: list[str]
    outline: list[OutlineEntry]
    info: dict[str, str]
    damaged_pages: int
    """How many pages there should be and cannot be read; their text is empty."""


def read_pdf(data: bytes, password: str) -> PdfContents:
    """ParseError with reason `encrypted`, `damaged` or `unsafe` when there is nothing to be had."""
    import pypdfium2.raw as pdfium

    with _ONE_AT_A_TIME, _opened(pdfium, data, password) as document:
        count = pdfium.FPDF_GetPageCount(document)
        if count < 1:
            raise _damaged()
        if count > _MOST_PAGES:
            raise _unsafe(f"It says that it has {count:,} pages")
        outline = _read_outline(pdfium, document)
        pages = _Pages(pdfium, document, with_lines=not outline)
        pages.read(count)
        return PdfContents(
            pages.texts,
            [_read_label(pdfium, document, number) for number in range(count)],
            outline or outline_by_type(pages.lines),
            {key: _read_info(pdfium, document, key) for key in _INFO_KEYS},
            pages.damaged,
        )


@contextmanager
def _opened(pdfium: Any, data: bytes, password: str) -> Iterator[Any]:
    """The document's handle; PDFium reads from `data` for as long as it is open."""
    document = pdfium.FPDF_LoadMemDocument64(data, len(data), password.encode("utf-8", "replace") + b"\0")
    if not document:
        error = pdfium.FPDF_GetLastError()
        if error == pdfium.FPDF_ERR_PASSWORD:
            raise ParseError(
                "The password does not open this PDF." if password else "This PDF needs a password.",
                reason="encrypted",
                hint="Give its password with kb ingest --password, or save a copy without one.",
            )
        if error == pdfium.FPDF_ERR_SECURITY:
            raise ParseError(
                "This PDF is encrypted in a way that is not known.",
                reason="encrypted",
                hint="Save a copy without encryption.",
            )
        raise _damaged()
    try:
        yield document
    finally:
        pdfium.FPDF_CloseDocument(document)


def _damaged() -> ParseError:
    return ParseError(
        "This is not a PDF, or a damaged one.", reason="damaged", hint="If it opens in a PDF reader, save a copy there."
    )


def _unsafe(what: str) -> ParseError:
    return ParseError(
        f"{what}, more than a PDF may have here.", reason="unsafe", hint="Split it into several files if it is genuine."
    )


class _Pages:
    """Reads page after page. Each is closed before the next one is opened: PDFium holds all that is drawn on an open
    page.
    """

    def __init__(self, pdfium: Any, document: Any, *, with_lines: bool) -> None:
        """`with_lines`: also how each line is set."""
        self._pdfium = pdfium
        self._document = document
        self._with_lines = with_lines
        self._room = _MOST_CHARACTERS
        self.texts: list[str] = []
        self.lines: list[list[TypeLine]] = []
        self.damaged = 0
        """How many pages could not be read."""

    def read(self, count: int) -> None:
        for number in range(count):
            with self._text_page(number) as (page, text_page):
                text = self._read_text(text_page) if text_page else ""
                columns = _find_columns(self._pdfium, page, text_page, text)
                pieces = _read_pieces(self._pdfium, text_page, text, columns) if columns else [_Piece(0, text)]
                lines = (
                    [line for piece in pieces for line in _read_lines(self._pdfium, text_page, piece)]
                    if self._with_lines
                    else []
                )
            self.damaged += not text_page
            self._room -= len(text)
            self.texts.append("\n".join([piece.text for piece in pieces]))
            self.lines.append(lines)

    @contextmanager
    def _text_page(self, number: int) -> Iterator[Any]:
        pdfium = self._pdfium
        page = pdfium.FPDF_LoadPage(self._document, number)
        text_page = pdfium.FPDFText_LoadPage(page) if page else None
        try:
            yield page, text_page
        finally:
            if text_page:
                pdfium.FPDFText_ClosePage(text_page)
            if page:
                pdfium.FPDF_ClosePage(page)

    def _read_text(self, text_page: Any) -> str:
        pdfium = self._pdfium
        first, end = 0, pdfium.FPDFText_CountChars(text_page)
        if end > self._room:
            raise _unsafe(f"It has more than {_MOST_CHARACTERS:,} characters")
        # A range that begins or ends with a character that has no text, such as an unknown glyph, gives no text at all.
        while first < end and pdfium.FPDFText_GetTextIndexFromCharIndex(text_page, first) < 0:
            first += 1
        while first < end and pdfium.FPDFText_GetTextIndexFromCharIndex(text_page, end - 1) < 0:
            end -= 1
        if first >= end:
            return ""
        buffer = (ctypes.c_ushort * (2 * (end - first) + 1))()  # two for characters beyond U+FFFF, and a NUL at the end
        written = pdfium.FPDFText_GetText(text_page, first, end - first, buffer)
        return memoryview(buffer)[: max(0, written - 1)].tobytes().decode("utf-16-le", "ignore")


class _Piece(NamedTuple):
    """A stretch of a page's text as PDFium gives it, and where it begins there."""

    start: int
    text: str


def _find_columns(pdfium: Any, page: Any, text_page: Any, text: str) -> Columns | None:
    """The columns of a page that is not to be read as it is drawn. Most pages have letters at all places where a gutter
    could be.
    """
    lines = text.count("\n") + 1
    if not _LEAST_IN_COLUMNS <= len(text) <= _MOST_IN_COLUMNS or pdfium.FPDFPage_GetRotation(page):
        return None
    paper = pdfium.FS_RECTF()
    if not pdfium.FPDF_GetPageBoundingBox(page, paper):
        return None
    middle = (paper.left + paper.right) / 2
    letters = [
        pdfium.FPDFText_GetBoundedText(
            text_page, middle + place - 1, paper.top, middle + place + 1, paper.bottom, None, 0
        )
        for place in _GUTTERS
    ]
    if min(letters) > lines or _RIGHT_TO_LEFT.search(text):
        return None
    return misdrawn_columns(_read_boxes(pdfium, text_page), middle + _GUTTERS[letters.index(min(letters))])


def _read_boxes(pdfium: Any, text_page: Any) -> list[Box]:
    """Where the pieces of text stand that were drawn in one go, in the order drawn."""
    boxes = []
    left, top, right, bottom = (ctypes.c_double() for _ in range(4))
    for number in range(pdfium.FPDFText_CountRects(text_page, 0, -1)):
        if pdfium.FPDFText_GetRect(text_page, number, left, top, right, bottom):
            boxes.append(Box(left.value, bottom.value, right.value, top.value))
    flat = sum(box.top - box.bottom < _LEAST_HEIGHT for box in boxes)
    return _read_loose_boxes(pdfium, text_page) if 2 * flat >= len(boxes) else boxes


def _read_loose_boxes(pdfium: Any, text_page: Any) -> list[Box]:
    """The same for letters without a shape, of a font that neither the file nor this machine has: by the room each of
    them is given.
    """
    boxes: list[Box] = []
    letter = pdfium.FS_RECTF()
    for index in range(pdfium.FPDFText_CountChars(text_page)):
        if not pdfium.FPDFText_GetLooseCharBox(text_page, index, letter) or letter.left >= letter.right:
            continue
        box, height = Box(letter.left, letter.bottom, letter.right, letter.top), letter.top - letter.bottom
        before = boxes[-1] if boxes else None
        if before and abs(before.middle - box.middle) < height / 2 and abs(box.left - before.right) < height / 2:
            boxes[-1] = Box(before.left, min(before.bottom, box.bottom), box.right, max(before.top, box.top))
        else:
            boxes.append(box)
    return boxes


def _read_pieces(pdfium: Any, text_page: Any, text: str, columns: Columns) -> list[_Piece]:
    """The text in reading order. What is not drawn, such as a space between words, stays with what stands before it."""
    pieces: list[tuple[Region, _Piece]] = []
    region, start = None, 0
    for place in range(len(text) + 1):
        found = (
            _read_region(pdfium, text_page, place, columns) if place < len(text) and not text[place].isspace() else None
        )
        if place == len(text) or (found is not None and found != region):
            written = text[start:place].rstrip()
            if region is not None and written:
                pieces.append((region, _Piece(start, written)))
            region, start = found, start if region is None else place
    return [piece for _, piece in sorted(pieces, key=lambda pair: pair[0])]


def _read_region(pdfium: Any, text_page: Any, place: int, columns: Columns) -> Region | None:
    box, index = pdfium.FS_RECTF(), pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, place)
    if index < 0 or not pdfium.FPDFText_GetLooseCharBox(text_page, index, box) or box.left == box.right:
        return None
    return columns.region_of((box.left + box.right) / 2, (box.top + box.bottom) / 2)


def _read_lines(pdfium: Any, text_page: Any, piece: _Piece) -> list[TypeLine]:
    """How the lines of a page are set, told by their first and last letters: asking for every letter takes as long as
    reading.
    """
    lines, start = [], piece.start
    for line in piece.text.split("\n"):
        written = line.strip()
        if written:
            first = start + line.find(written[0])
            ends = [
                pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, place)
                for place in (first, first + len(written) - 1)
            ]
            # A line is as large as the smaller of them: a borrowed font may have a huge box around its letters.
            height = min([_read_height(pdfium, text_page, index) for index in ends])
            bold = all(
                _is_bold(pdfium, text_page, index) for index in ends
            )  # the second is not asked if the first is not
            lines.append(type_line(written, height, bold=bold))
        start += len(line) + 1
    return lines


def _read_height(pdfium: Any, text_page: Any, index: int) -> float:
    """Of a letter, with room for all letters of its font; nothing for one that is not drawn."""
    box = pdfium.FS_RECTF()
    if index < 0 or not pdfium.FPDFText_GetLooseCharBox(text_page, index, box):
        return 0.0
    return float(abs(box.top - box.bottom))


def _is_bold(pdfium: Any, text_page: Any, index: int) -> bool:
    """By the weight of its font, or by the font's name: many fonts, the standard ones among them, do not tell their
    weight.
    """
    if index < 0:
        return False
    if pdfium.FPDFText_GetFontWeight(text_page, index) >= _BOLD_WEIGHT:
        return True
    name = ctypes.create_string_buffer(_LONGEST_FONT_NAME)
    written = pdfium.FPDFText_GetFontInfo(text_page, index, name, _LONGEST_FONT_NAME, None)
    return 0 < written <= _LONGEST_FONT_NAME and _BOLD_NAME.search(name.value) is not None


def _read_label(pdfium: Any, document: Any, number: int) -> str:
    return _read_value(lambda buffer, size: pdfium.FPDF_GetPageLabel(document, number, buffer, size))


def _read_info(pdfium: Any, document: Any, key: str) -> str:
    name = key.encode() + b"\0"
    return _read_value(lambda buffer, size: pdfium.FPDF_GetMetaText(document, name, buffer, size))


def _read_value(fill: Callable[[Any, int], int]) -> str:
    """PDFium's way of giving a text: asked without a buffer it says how many bytes it needs, a NUL included. Halves of
    characters go.
    """
    size = fill(None, 0)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    fill(buffer, size)
    return buffer.raw[: min(size - 2, _LONGEST_VALUE_BYTES)].decode("utf-16-le", "ignore")


def _read_outline(pdfium: Any, document: Any) -> list[OutlineEntry]:
    """The entries that lead to a page, in order. A damaged outline may name an entry twice, or lead in circles."""
    entries: list[OutlineEntry] = []
    seen: set[int | None] = {None}  # no entry
    ahead = [(pdfium.FPDFBookmark_GetFirstChild(document, None), 1)]
    while ahead and len(seen) <= _MOST_ENTRIES:
        bookmark, level = ahead.pop()
        address = ctypes.cast(bookmark, ctypes.c_void_p).value
        if address in seen:
            continue
        seen.add(address)
        page = _page_of(pdfium, document, bookmark)
        if page >= 0:
            title = _read_value(lambda buffer, size, entry=bookmark: pdfium.FPDFBookmark_GetTitle(entry, buffer, size))  # type: ignore[misc]  # the default of a lambda has no type
            entries.append(OutlineEntry(title, page, level))
        ahead.append((pdfium.FPDFBookmark_GetNextSibling(document, bookmark), level))
        if level < _DEEPEST_ENTRY:
            ahead.append((pdfium.FPDFBookmark_GetFirstChild(document, bookmark), level + 1))
    return entries


def _page_of(pdfium: Any, document: Any, bookmark: Any) -> int:
    """Counted from 0; -1 when the entry leads nowhere in this document."""
    destination = pdfium.FPDFBookmark_GetDest(document, bookmark)
    return int(pdfium.FPDFDest_GetDestPageIndex(document, destination)) if destination else -1
