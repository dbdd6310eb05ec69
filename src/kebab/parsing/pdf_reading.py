"""Reads a PDF with PDFium: the text of its pages, their labels, the outline or headings by style, and metadata.

Calls the C functions directly: the classes of pypdfium2 recurse once per character without text, report the error of an
earlier file for a file without pages, and write to the log. Every handle is checked and closed.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from kebab.core.errors import ParseError
from kebab.parsing.pdf_blocks import OutlineEntry, Style, TypeLine, outline_by_type
from kebab.parsing.pdf_columns import Box, Columns, Region, misdrawn_columns

_MOST_PAGES = 50_000
_MOST_CHARACTERS = 50_000_000
"""Limit for all pages together: pages may share one content, so a few kilobytes can expand to any amount of text."""
_MOST_ENTRIES = 4000
_DEEPEST_ENTRY = 8
_LONGEST_VALUE_BYTES = 16_384
_BOLD_WEIGHT = 600
_BOLD_NAME = re.compile(rb"bold|black|heavy|demi|cmbx", re.IGNORECASE)
_LONGEST_FONT_NAME = 128
_GUTTERS = (0.0, -8.0, 8.0)
"""Where a gutter is searched for, in points from the middle of the page: a wide one contains one of these places."""
_LEAST_IN_COLUMNS = 80
_MOST_IN_COLUMNS = 100_000
"""Pages with more characters are not searched for columns, because locating each character takes time."""
_LEAST_HEIGHT = 1.0
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_INFO_KEYS = ("Title", "Author", "Subject", "Keywords", "CreationDate", "ModDate")

_ONE_AT_A_TIME = Lock()
"""PDFium is not thread-safe, not even with one document per thread."""


class PdfContents(NamedTuple):
    pages: list[str]
    """Raw text, with U+FFFE where PDFium joined a word that was broken at the end of a line."""
    labels: list[str]
    outline: list[OutlineEntry]
    info: dict[str, str]
    damaged_pages: int
    """How many pages could not be read; their text is empty."""


def read_pdf(data: bytes, password: str) -> PdfContents:
    """The contents, or ParseError with the reason `encrypted`, `damaged` or `unsafe`."""
    with _ONE_AT_A_TIME, _opened(data, password) as document:
        count = pdfium.FPDF_GetPageCount(document)
        if count < 1:
            raise _damaged()
        if count > _MOST_PAGES:
            raise _unsafe(f"It says that it has {count:,} pages")
        outline = _read_outline(document)
        pages: list[_Page] = []
        room = _MOST_CHARACTERS
        for number in range(count):
            pages.append(_read_page(document, number, room, with_lines=not outline))
            room -= len(pages[-1].text)
        return PdfContents(
            [page.text for page in pages],
            [_read_value(partial(pdfium.FPDF_GetPageLabel, document, number)) for number in range(count)],
            outline or outline_by_type([page.lines for page in pages]),
            {key: _read_value(partial(pdfium.FPDF_GetMetaText, document, key.encode() + b"\0")) for key in _INFO_KEYS},
            sum(page.damaged for page in pages),
        )


@contextmanager
def _opened(data: bytes, password: str) -> Iterator[Any]:
    """The document's handle; PDFium reads from `data` for as long as it is open."""
    document = pdfium.FPDF_LoadMemDocument64(data, len(data), password.encode("utf-8", "replace") + b"\0")
    if not document:
        error = pdfium.FPDF_GetLastError()
        if error == pdfium.FPDF_ERR_PASSWORD:
            message = "The password does not open this PDF." if password else "This PDF needs a password."
            hint = "Give its password with kb ingest --password, or save a copy without one."
            raise ParseError(message, reason="encrypted", hint=hint)
        if error == pdfium.FPDF_ERR_SECURITY:
            message, hint = "This PDF is encrypted in a way that is not known.", "Save a copy without encryption."
            raise ParseError(message, reason="encrypted", hint=hint)
        raise _damaged()
    try:
        yield document
    finally:
        pdfium.FPDF_CloseDocument(document)


def _damaged() -> ParseError:
    hint = "If it opens in a PDF reader, save a copy there."
    return ParseError("This is not a PDF, or a damaged one.", reason="damaged", hint=hint)


def _unsafe(what: str) -> ParseError:
    hint = "Split it into several files if it is genuine."
    return ParseError(f"{what}, more than a PDF may have here.", reason="unsafe", hint=hint)


class _Page(NamedTuple):
    text: str = ""
    lines: Sequence[TypeLine] = ()
    damaged: bool = False


class _Piece(NamedTuple):
    """A range of the text of a page as PDFium returns it."""

    start: int
    text: str


def _read_page(document: Any, number: int, room: int, *, with_lines: bool) -> _Page:
    """Reads a page; ParseError if it has more than `room` characters. `with_lines` adds the style of each line."""
    with _text_page(document, number) as (page, text_page):
        if not text_page:
            return _Page(damaged=True)
        text = _read_text(text_page, room)
        columns = _find_columns(page, text_page, text)
        pieces = _read_pieces(text_page, text, columns) if columns else [_Piece(0, text)]
        lines = [line for piece in pieces for line in _read_lines(text_page, piece)] if with_lines else []
    return _Page("\n".join([piece.text for piece in pieces]), lines)


@contextmanager
def _text_page(document: Any, number: int) -> Iterator[Any]:
    """Opens a page and its text, each None if damaged, and closes them: PDFium keeps a page in memory until then."""
    page = pdfium.FPDF_LoadPage(document, number)
    text_page = pdfium.FPDFText_LoadPage(page) if page else None
    try:
        yield page, text_page
    finally:
        if text_page:
            pdfium.FPDFText_ClosePage(text_page)
        if page:
            pdfium.FPDF_ClosePage(page)


def _read_text(text_page: Any, room: int) -> str:
    first, end = 0, pdfium.FPDFText_CountChars(text_page)
    if end > room:
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


def _find_columns(page: Any, text_page: Any, text: str) -> Columns | None:
    """The columns of a page not drawn in reading order, or None. Most pages have text in every possible gutter."""
    lines = text.count("\n") + 1
    if not _LEAST_IN_COLUMNS <= len(text) <= _MOST_IN_COLUMNS or pdfium.FPDFPage_GetRotation(page):
        return None
    paper = pdfium.FS_RECTF()
    if not pdfium.FPDF_GetPageBoundingBox(page, paper):
        return None
    middle = (paper.left + paper.right) / 2
    letters = {}
    for x in (middle + place for place in _GUTTERS):
        letters[x] = pdfium.FPDFText_GetBoundedText(text_page, x - 1, paper.top, x + 1, paper.bottom, None, 0)
    gutter = min(letters, key=letters.__getitem__)
    if letters[gutter] > lines or _RIGHT_TO_LEFT.search(text):
        return None
    return misdrawn_columns(_read_boxes(text_page), gutter)


def _read_boxes(text_page: Any) -> list[Box]:
    """The boxes around the pieces of text, in drawing order."""
    boxes = []
    left, top, right, bottom = (ctypes.c_double() for _ in range(4))
    for number in range(pdfium.FPDFText_CountRects(text_page, 0, -1)):
        if pdfium.FPDFText_GetRect(text_page, number, left, top, right, bottom):
            boxes.append(Box(left.value, bottom.value, right.value, top.value))
    flat = sum(box.top - box.bottom < _LEAST_HEIGHT for box in boxes)
    return _read_loose_boxes(text_page) if 2 * flat >= len(boxes) else boxes


def _read_loose_boxes(text_page: Any) -> list[Box]:
    """Like `_read_boxes`, for letters without a shape, whose font is missing: joins the space reserved for each."""
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


def _read_pieces(text_page: Any, text: str, columns: Columns) -> list[_Piece]:
    """The text in reading order. A character that is not drawn, such as a space, stays with the one before."""
    pieces: list[tuple[Region, _Piece]] = []
    region, start = None, 0
    for place in range(len(text) + 1):
        is_drawn = place < len(text) and not text[place].isspace()
        found = _read_region(text_page, place, columns) if is_drawn else None
        if place == len(text) or (found is not None and found != region):
            written = text[start:place].rstrip()
            if region is not None and written:
                pieces.append((region, _Piece(start, written)))
            region, start = found, start if region is None else place
    return [piece for _, piece in sorted(pieces, key=lambda pair: pair[0])]


def _read_region(text_page: Any, place: int, columns: Columns) -> Region | None:
    box, index = pdfium.FS_RECTF(), pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, place)
    if index < 0 or not pdfium.FPDFText_GetLooseCharBox(text_page, index, box) or box.left == box.right:
        return None
    return columns.region_of((box.left + box.right) / 2, (box.top + box.bottom) / 2)


def _read_lines(text_page: Any, piece: _Piece) -> list[TypeLine]:
    """The lines of a piece with their styles, by first and last letters only: all letters would take too long."""
    lines, start = [], piece.start
    for line in piece.text.split("\n"):
        written = line.strip()
        if written:
            first = start + line.find(written[0])
            places = (first, first + len(written) - 1)
            ends = [pdfium.FPDFText_GetCharIndexFromTextIndex(text_page, place) for place in places]
            # The smaller one counts: a substituted font may have a huge box around its letters.
            height = min([_read_height(text_page, index) for index in ends])
            bold = all(_is_bold(text_page, index) for index in ends)
            lines.append(TypeLine(written, Style(round(2 * height) / 2, bold)))
        start += len(line) + 1
    return lines


def _read_height(text_page: Any, index: int) -> float:
    """The height that the font reserves for a letter; 0 for a letter that is not drawn."""
    box = pdfium.FS_RECTF()
    if index < 0 or not pdfium.FPDFText_GetLooseCharBox(text_page, index, box):
        return 0.0
    return float(abs(box.top - box.bottom))


def _is_bold(text_page: Any, index: int) -> bool:
    """Whether a letter is bold, by the weight or the name of its font: many fonts have no weight."""
    if index < 0:
        return False
    if pdfium.FPDFText_GetFontWeight(text_page, index) >= _BOLD_WEIGHT:
        return True
    name = ctypes.create_string_buffer(_LONGEST_FONT_NAME)
    written = pdfium.FPDFText_GetFontInfo(text_page, index, name, _LONGEST_FONT_NAME, None)
    return 0 < written <= _LONGEST_FONT_NAME and _BOLD_NAME.search(name.value) is not None


def _read_value(fill: Callable[[Any, int], int]) -> str:
    """Reads a text with a PDFium function, which returns the size if called without a buffer. Drops surrogates."""
    size = fill(None, 0)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    fill(buffer, size)
    return buffer.raw[: min(size - 2, _LONGEST_VALUE_BYTES)].decode("utf-16-le", "ignore")


def _read_outline(document: Any) -> list[OutlineEntry]:
    """The entries that lead to a page, in order. A damaged outline may name an entry twice, or be circular."""
    entries: list[OutlineEntry] = []
    seen: set[int | None] = {None}  # no entry
    ahead = [(pdfium.FPDFBookmark_GetFirstChild(document, None), 1)]
    while ahead and len(seen) <= _MOST_ENTRIES:
        bookmark, level = ahead.pop()
        address = ctypes.cast(bookmark, ctypes.c_void_p).value
        if address in seen:
            continue
        seen.add(address)
        destination = pdfium.FPDFBookmark_GetDest(document, bookmark)
        page = pdfium.FPDFDest_GetDestPageIndex(document, destination) if destination else -1
        if page >= 0:
            title = _read_value(partial(pdfium.FPDFBookmark_GetTitle, bookmark))
            entries.append(OutlineEntry(title, page, level))
        ahead.append((pdfium.FPDFBookmark_GetNextSibling(document, bookmark), level))
        if level < _DEEPEST_ENTRY:
            ahead.append((pdfium.FPDFBookmark_GetFirstChild(document, bookmark), level + 1))
    return entries
