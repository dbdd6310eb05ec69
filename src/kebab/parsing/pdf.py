"""Parses PDF: `pdf_reading` reads the pages, `pdf_repair` corrects their text, `pdf_blocks` finds the headings."""

from __future__ import annotations

import re
from typing import Any

from kebab.core.documents import PAGE_BREAK, Block, ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.paths import file_stem
from kebab.core.text import nfc
from kebab.parsing.building import FileParser, document
from kebab.parsing.markdown import date_of
from kebab.parsing.pdf_blocks import NUMBERING, find_blocks
from kebab.parsing.pdf_repair import mended_line, mended_pages

_LONGEST_TITLE = 300
_LONGEST_VALUE = 2000
# Titles that programs write on their own: the name of a file, or of an empty document.
_NO_TITLE = re.compile(
    r"(untitled|document|presentation|powerpoint presentation|slide|제목 ?없음|문서|프레젠테이션)[\W\d]*"
    r"|microsoft \w+ - .*"
    r"|.*\.(docx?|dotx?|pptx?|xlsx?|hwpx?|odt|odp|rtf|txt|tex|dvi|e?ps|pdf|indd|qxd|p65|fm|pages|key|html?|xml|md|ai"
    r"|cdr|vsdx?|wpd)",
    re.IGNORECASE,
)
_DATE = re.compile(r"(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-]\d\d)'?(\d\d)?)?")


class PdfParser(FileParser):
    version = "pdf-5"
    keeps_lines = False

    def __init__(self, password: str = "") -> None:
        """The password is tried on files that need one."""
        self._password = password

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        from kebab.parsing.pdf_reading import read_pdf  # loads PDFium, which only the process that parses needs

        contents = read_pdf(data, self._password)
        text = mended_pages(contents.pages)
        pages = text.split(PAGE_BREAK)
        empty = sum(not page.strip() for page in pages)
        if empty == len(pages):
            hint = "It was probably scanned; run it through an OCR program, such as ocrmypdf, and ingest the result."
            raise ParseError("No page of this PDF has any text.", reason="no_text", hint=hint)
        blocks = find_blocks(text, contents.outline)
        return document(
            path,
            text,
            blocks,
            _given_title(contents.info) or _first_heading(blocks) or _name_in_words(path),
            metadata=_metadata(contents.info, len(pages)),
            warnings=_warnings(len(pages), empty, contents.damaged_pages),
            paged=True,
            page_labels=tuple(_label(label, number) for number, label in enumerate(contents.labels, 1)),
        )


def _name_in_words(path: str) -> str:
    """The file name as a title: Northwind_Standard_Benefits.pdf → Northwind Standard Benefits."""
    stem = file_stem(path)
    return " ".join(nfc(stem).replace("_", " ").split()) or stem


def _given_title(info: dict[str, str]) -> str:
    title = nfc(mended_line(info.get("Title", "")))[:_LONGEST_TITLE].rstrip()
    is_title = any(map(str.isalpha, title)) and not _NO_TITLE.fullmatch(title) and "\ufffd" not in title
    return title if is_title else ""


def _first_heading(blocks: list[Block]) -> str:
    """The first heading as a title, or "" if it has a number, as in "1 Introduction". A heading of one word, such as a
    company name, is joined with a heading of a lower level right below it.
    """
    headings = [(number, block.title) for number, block in enumerate(blocks) if block.kind == "heading"][:2]
    if not headings or NUMBERING.match(headings[0][1]):
        return ""
    (number, title), *below = headings
    is_completed = below and below[0][0] == number + 1 and blocks[number + 1].level > blocks[number].level
    return f"{title} {below[0][1]}" if is_completed and " " not in title else title


def _label(label: str, number: int) -> str | None:
    label = mended_line(label)
    return label if label and label != str(number) else None


def _metadata(info: dict[str, str], page_count: int) -> dict[str, Any]:
    texts = {key: nfc(mended_line(info.get(key, "")))[:_LONGEST_VALUE] for key in ("Author", "Subject", "Keywords")}
    dates = {"created": _iso_date(info.get("CreationDate", "")), "modified": _iso_date(info.get("ModDate", ""))}
    values = {key.lower(): value for key, value in (texts | dates).items() if value}
    return {"page_count": page_count, **values}


def _iso_date(value: str) -> str | None:
    """Converts a PDF date to UTC without a zone: D:20230306135820-08'00' → 2023-03-06T21:58:20."""
    found = _DATE.match(value)
    if found is None:
        return None
    year, month, day, hour, minute, second, utc, zone_hours, zone_minutes = found.groups()
    written = f"{year}-{month or '01'}-{day or '01'}"
    if hour:
        zone = "+00:00" if utc else f"{zone_hours}:{zone_minutes or '00'}" if zone_hours else ""
        written += f"T{hour}:{minute or '00'}:{second or '00'}{zone}"
    return date_of({"created": written})[0]


def _warnings(pages: int, empty: int, damaged: int) -> tuple[str, ...]:
    problems = {"could not be read (damaged?)": damaged, "have no text (scanned?)": empty - damaged}
    return tuple(f"{count} of {pages} pages {problem}" for problem, count in problems.items() if count > 0)
