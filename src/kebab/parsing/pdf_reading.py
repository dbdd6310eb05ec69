"""What PDFium finds in the bytes of a PDF: the text of its pages, their labels, the outline, and who made it.

The C functions are called directly. pypdfium2's classes recurse once per character that has no text, take the error of an earlier file
for that of a file without pages, and write to the log. Here nothing raises but what is raised below: each handle is checked, each closed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, NamedTuple

from kebab.core.errors import ParseError

_MOST_PAGES = 50_000
_MOST_CHARACTERS = 50_000_000
"""A page's content may be shared by all pages: a few kilobytes can stand for any amount of text."""
_MOST_ENTRIES = 4000
_DEEPEST_ENTRY = 8
_LONGEST_VALUE_BYTES = 16_384
_INFO_KEYS = ("Title", "Author", "Subject", "Keywords", "CreationDate", "ModDate")

_ONE_AT_A_TIME = Lock()
"""PDFium is not safe for threads, not even with a document for each of them."""


class OutlineEntry(NamedTuple):
    title: str
    page: int
    """Counted from 0."""
    level: int
    """Counted from 1."""


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
        pages, damaged_pages = _read_pages(pdfium, document, count)
        return PdfContents(
            pages,
            [_read_label(pdfium, document, number) for number in range(count)],
            _read_outline(pdfium, document),
            {key: _read_info(pdfium, document, key) for key in _INFO_KEYS},
            damaged_pages,
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
                "This PDF is encrypted in a way that is not known.", reason="encrypted", hint="Save a copy without encryption."
            )
        raise _damaged()
    try:
        yield document
    finally:
        pdfium.FPDF_CloseDocument(document)


def _damaged() -> ParseError:
    return ParseError("This is not a PDF, or a damaged one.", reason="damaged", hint="If it opens in a PDF reader, save a copy there.")


def _unsafe(what: str) -> ParseError:
    return ParseError(f"{what}, more than a PDF may have here.", reason="unsafe", hint="Split it into several files if it is genuine.")


def _read_pages(pdfium: Any, document: Any, count: int) -> tuple[list[str], int]:
    """The texts of the pages, and how many of them could not be read."""
    pages, damaged, room = [], 0, _MOST_CHARACTERS
    for number in range(count):
        text = _read_page(pdfium, document, number, room)
        room -= len(text or "")
        damaged += text is None
        pages.append(text or "")
    return pages, damaged


def _read_page(pdfium: Any, document: Any, number: int, room: int) -> str | None:
    """Each page is closed before the next one is opened: PDFium holds all that is drawn on an open page."""
    page = pdfium.FPDF_LoadPage(document, number)
    if not page:
        return None
    try:
        text_page = pdfium.FPDFText_LoadPage(page)
        if not text_page:
            return None
        try:
            return _read_characters(pdfium, text_page, room)
        finally:
            pdfium.FPDFText_ClosePage(text_page)
    finally:
        pdfium.FPDF_ClosePage(page)


def _read_characters(pdfium: Any, text_page: Any, room: int) -> str:
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


def _read_label(pdfium: Any, document: Any, number: int) -> str:
    return _read_value(lambda buffer, size: pdfium.FPDF_GetPageLabel(document, number, buffer, size))


def _read_info(pdfium: Any, document: Any, key: str) -> str:
    name = key.encode() + b"\0"
    return _read_value(lambda buffer, size: pdfium.FPDF_GetMetaText(document, name, buffer, size))


def _read_value(fill: Callable[[Any, int], int]) -> str:
    """PDFium's way of giving a text: asked without a buffer it says how many bytes it needs, a NUL included. Halves of characters go."""
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
