"""E-mail: sender, receivers, date, subject and text, each on its line of the file. Attachments are named, not opened.

Headers are read with the older policy of the standard library: the newer one parses them recursively by a grammar,
which a hostile letter can keep busy for minutes.
"""

from __future__ import annotations

import re
from datetime import UTC
from email.errors import MessageError
from email.header import decode_header, make_header
from email.utils import parsedate_to_datetime
from itertools import groupby

from kebab.core.documents import Block, ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.text import decode, storable
from kebab.parsing.building import FileParser, LinedText, document, title_of
from kebab.parsing.eml_parts import Letter, Part, TextLine, lines_of, parts_of, read_letter
from kebab.parsing.html import PageReader

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_HEADER = re.compile(rb"([!-9;-~]+)[ \t]*:")
_LONGEST_HEADER = 2000
_FAR_APART = 100
"""After so many lines without text, mostly those of an attachment, another passage begins."""


class EmlParser(FileParser):
    version = "eml-2"

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
        return document(
            path,
            written.finished(),
            written.blocks,
            title_of(headers.get("Subject", ""), (), path),
            date=_date(headers.get("Date", "")),
            metadata={name.lower(): headers[name] for name in ("From", "To", "Cc", "Date") if name in headers},
            chapters=tuple(written.chapters),
        )


class _WrittenLetter:
    """The text of the letter with its blocks; it has no more lines than the file."""

    def __init__(self, last_line: int) -> None:
        self._text = LinedText()
        self._last_line = last_line
        self.blocks: list[Block] = []
        self.chapters: list[int] = []

    def finished(self) -> str:
        self._text.go_to(self._last_line)
        return self._text.text

    def add_headers(self, headers: dict[str, str], lines: dict[str, int]) -> None:
        """Adds the headers as one block, in the order of the file."""
        places = sorted((lines.get(name.lower(), 0), f"{name}: {value}") for name, value in headers.items())
        self._add("paragraph", places)

    def add_plain(self, lines: list[TextLine]) -> None:
        """Adds text in which blank lines separate paragraphs."""
        for is_text, group in groupby(lines, key=lambda line: bool(line.text)):
            if is_text:
                paragraph = [(line.line, line.text) for line in group]
                self._add("quote" if paragraph[0][1].lstrip().startswith(">") else "paragraph", paragraph)

    def add_html(self, part: Part) -> None:
        """Adds a page. Its source is put on the lines of the file first: markup is dropped, line feeds stay."""
        source, first = LinedText(), max(part.first_line, self._text.line)
        room = max(0, self._last_line - first)
        for line in lines_of(part):
            source.go_to(min(line.line - part.first_line, room))
            source.write(line.text)
        page = PageReader(source.text).read()
        self._go_to(part.first_line)
        start = self._text.write(page.text)
        self.blocks += [block._replace(start=start + block.start, end=start + block.end) for block in page.blocks]

    def add_attachment(self, part: Part) -> None:
        self._add("paragraph", [(part.header_line, f"Attachment: {_attachment_name(part.message)}")])

    def _add(self, kind: str, lines: list[tuple[int, str]]) -> None:
        if lines:
            self._go_to(lines[0][0])
            starts = []
            for line, text in lines:
                self._text.go_to(min(line, self._last_line))
                starts.append(self._text.write(text))
            self.blocks.append(Block(kind, starts[0], self._text.length))

    def _go_to(self, line: int) -> None:
        """Goes to the line on which a block begins."""
        before = self._text.line
        self._text.go_to(min(line, self._last_line))
        if self.blocks and self._text.line - before > _FAR_APART:
            self.chapters.append(self._text.length)


def _header_lines(data: bytes) -> dict[str, int]:
    """The line of each header, counted from 0; the first one of a repeated header."""
    found: dict[str, int] = {}
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n")):
        if not line.strip():
            break
        if match := _HEADER.match(line):
            found.setdefault(match[1].decode("ascii").lower(), number)
    return found


def _header(letter: Letter, name: str) -> str:
    """The header on one line, decoded if possible."""
    raw = next((_as_written(value) for key, value in letter.raw_items() if key.lower() == name.lower()), "")
    return storable(" ".join(_decoded(raw).replace("\0", " ").split()))


def _decoded(raw: str) -> str:
    raw = raw[:_LONGEST_HEADER]
    try:
        return str(make_header(decode_header(raw)))
    except (MessageError, ValueError, LookupError):
        return raw


def _as_written(value: object) -> str:
    """The value of a header. The library keeps bytes beyond ASCII, UTF-8 in newer letters, as surrogates."""
    data = str(value).encode("ascii", "surrogateescape")
    try:
        return decode(data)[0]
    except ParseError:
        return data.decode("utf-8", "replace")


def _date(value: str) -> str | None:
    try:
        moment = parsedate_to_datetime(value)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


def _attachment_name(part: Letter) -> str:
    kind = part.get_content_type()
    return storable(" ".join(_decoded(part.get_filename() or kind).split())) or kind
