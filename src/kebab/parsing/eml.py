"""E-mail: who wrote when to whom, and the text, on the lines of the file where they stand. Attachments are named, not
opened.

Headers are read with the older policy of the standard library: the newer one parses them by a grammar, in Python and by
recursion, which letters made to harm can keep busy for minutes.
"""

from __future__ import annotations

import re
from datetime import UTC
from itertools import groupby
from typing import TYPE_CHECKING

from kebab.analysis.language import language_of
from kebab.core.documents import Block, ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.text import decode, storable
from kebab.parsing.eml_parts import Part, parts_of, read_letter
from kebab.parsing.eml_text import TextLine, lines_of
from kebab.parsing.file_types import classify
from kebab.parsing.html_text import read_page
from kebab.parsing.lined_text import LinedText, Placed
from kebab.parsing.titles import title_of

if TYPE_CHECKING:
    from kebab.parsing.eml_parts import Letter

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_HEADER = re.compile(rb"([!-9;-~]+)[ \t]*:")
_LONGEST_HEADER = 2000
_FAR_APART = 100
"""So many lines without text, those of an attachment mostly: what follows is no part of the same passage."""


class EmlParser:
    version = "eml-2"
    keeps_lines = True
    isolated = True

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        letter = read_letter(data)
        headers = {name: value for name in _SHOWN if (value := _header(letter, name))}
        parts = list(parts_of(letter, data))
        written = _WrittenLetter(data.count(b"\n"))
        written.add_headers(headers, _header_lines(data))
        plain = {number: list(lines_of(part)) for number, part in enumerate(parts) if part.kind == "plain"}
        has_plain = any(line.text for lines in plain.values() for line in lines)
        for number, part in enumerate(parts):
            if part.kind == "attachment":
                written.add_attachment(part)
            elif part.kind == "plain":
                written.add_plain(plain[number])
            elif not has_plain:
                written.add_html(part)
        text = written.finished()
        doc_type, format_ = classify(path)
        return ParsedDocument(
            text=text,
            title=title_of(headers.get("Subject", ""), (), path),
            blocks=tuple(written.blocks),
            doc_type=doc_type,
            format=format_,
            lang=language_of(text),
            date=_date(headers.get("Date", "")),
            metadata={name.lower(): headers[name] for name in ("From", "To", "Cc", "Date") if name in headers},
            chapters=tuple(written.chapters),
        )


class _WrittenLetter:
    """The text as it grows, with its blocks; no line beyond the last one of the file."""

    def __init__(self, last_line: int) -> None:
        self._text = LinedText()
        self._last_line = last_line
        self.blocks: list[Block] = []
        self.chapters: list[int] = []

    def finished(self) -> str:
        self._text.go_to(self._last_line)
        return self._text.text

    def add_headers(self, headers: dict[str, str], lines: dict[str, int]) -> None:
        """All in one block, in the order of the file."""
        places = sorted((lines.get(name.lower(), 0), f"{name}: {value}") for name, value in headers.items())
        self._add("paragraph", places)

    def add_plain(self, lines: list[TextLine]) -> None:
        """Blank lines part paragraphs."""
        for is_text, group in groupby(lines, key=lambda line: bool(line.text)):
            if is_text:
                paragraph = [(line.line, line.text) for line in group]
                self._add("quote" if paragraph[0][1].lstrip().startswith(">") else "paragraph", paragraph)

    def add_html(self, part: Part) -> None:
        """Its source is put onto the lines of the file first; markup goes, line feeds stay."""
        source, first = LinedText(), max(part.first_line, self._text.line)
        room = max(0, self._last_line - first)
        for line in lines_of(part):
            source.go_to(min(line.line - part.first_line, room))
            source.write(line.text)
        page = read_page(source.text)
        self._go_to(part.first_line)
        start = self._text.write(page.text).start
        self.blocks += [block._replace(start=start + block.start, end=start + block.end) for block in page.blocks]

    def add_attachment(self, part: Part) -> None:
        self._add("paragraph", [(part.header_line, f"Attachment: {_attachment_name(part.message)}")])

    def _add(self, kind: str, lines: list[tuple[int, str]]) -> None:
        if lines:
            self._go_to(lines[0][0])
            places = [self._write(*line) for line in lines]
            self.blocks.append(Block(kind, places[0].start, places[-1].end))

    def _write(self, line: int, text: str) -> Placed:
        self._text.go_to(min(line, self._last_line))
        return self._text.write(text)

    def _go_to(self, line: int) -> None:
        """To where another block begins."""
        before = self._text.line
        self._text.go_to(min(line, self._last_line))
        if self.blocks and self._text.line - before > _FAR_APART:
            self.chapters.append(self._text.length)


def _header_lines(data: bytes) -> dict[str, int]:
    """Where each header of the letter begins, counted from 0; of those that are repeated, the first."""
    found: dict[str, int] = {}
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n")):
        if not line.strip():
            break
        if match := _HEADER.match(line):
            found.setdefault(match[1].decode("ascii").lower(), number)
    return found


def _header(letter: Letter, name: str) -> str:
    """On one line and decoded; as it stands where it cannot be decoded."""
    from email.errors import MessageError
    from email.header import decode_header, make_header

    raw = next((_as_written(value) for key, value in letter.raw_items() if key.lower() == name.lower()), "")[
        :_LONGEST_HEADER
    ]
    try:
        value = str(make_header(decode_header(raw)))
    except (MessageError, ValueError, LookupError):
        value = raw
    return storable(" ".join(value.replace("\0", " ").split()))


def _as_written(value: object) -> str:
    """Bytes beyond ASCII stand in newer letters as they are, in UTF-8; the library keeps them as halves of characters."""
    data = str(value).encode("ascii", "surrogateescape")
    try:
        return decode(data)[0]
    except ParseError:
        return data.decode("utf-8", "replace")


def _date(value: str) -> str | None:
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


def _attachment_name(part: Letter) -> str:
    from email.header import decode_header, make_header

    kind = part.get_content_type()
    name = part.get_filename() or kind
    try:
        name = str(make_header(decode_header(name[:_LONGEST_HEADER])))
    except (ValueError, LookupError):
        name = name[:_LONGEST_HEADER]
    return storable(" ".join(name.split())) or kind
