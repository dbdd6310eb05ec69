"""Parses e-mail: sender, receivers, date, subject and text, each on its line of the file. Attachments are only named.

Headers are read with the older policy of the standard library: the newer one parses them recursively by a grammar,
which can take minutes for a hostile e-mail. The library does not report positions. It keeps headers and bodies
unchanged and in order, so their bytes are searched for in the file, one after the other.

Text that is not encoded keeps its lines. Quoted-printable breaks long lines: the text is cut there too, at the next
space. Base64 text keeps its own lines, which are placed on the lines of its part.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, a2b_qp
from bisect import bisect_right
from codecs import getincrementaldecoder
from collections.abc import Iterator
from datetime import UTC
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import parsedate_to_datetime
from itertools import accumulate, groupby
from typing import NamedTuple, TypeAlias

from kebab.core.documents import Block, ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.text import decode, line_starts, storable, whole_characters
from kebab.parsing.building import NEVER_INSIDE, FileParser, LinedText, document, title_of
from kebab.parsing.html import PageReader, decode_declared, decode_page

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_HEADER = re.compile(rb"([!-9;-~]+)[ \t]*:")
_LONGEST_HEADER = 2000
_FAR_APART = 100
"""After this many lines without text, mostly an attachment, a new chapter begins, so that no chunk spans the gap."""
_MOST_PARTS = 1000
_DEEPEST = 20
_BOUNDARY = re.compile(rb"boundary\s*=", re.IGNORECASE)
_LINE_END = (b"\n", b"\n\r")
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")

Letter: TypeAlias = "Message[str, str]"


class EmlParser(FileParser):
    version = "eml-3"

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
        written.go_to(written.last_line)
        return document(
            path,
            written.text,
            written.blocks,
            title_of(headers.get("Subject", ""), path),
            date=_date(headers.get("Date", "")),
            metadata={name.lower(): headers[name] for name in ("From", "To", "Cc", "Date") if name in headers},
            chapters=tuple(written.chapters),
        )


class _WrittenLetter(LinedText):
    """Builds the text and blocks of an e-mail. The text never has more lines than the file."""

    def __init__(self, last_line: int) -> None:
        super().__init__()
        self.last_line = last_line
        self.blocks: list[Block] = []
        self.chapters: list[int] = []

    def go_to(self, line: int) -> None:
        super().go_to(min(line, self.last_line))

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
        """Adds the text of an HTML part. Its source is first put on the lines of the file; the reader keeps lines."""
        source, first = LinedText(), max(part.first_line, self.line)
        room = max(0, self.last_line - first)
        for line in lines_of(part):
            source.go_to(min(line.line - part.first_line, room))
            source.write(line.text)
        page = PageReader(source.text).read()
        self._begin_block(part.first_line)
        start = self.write(page.text)
        self.blocks += [block._replace(start=start + block.start, end=start + block.end) for block in page.blocks]

    def add_attachment(self, part: Part) -> None:
        self._add("paragraph", [(part.header_line, f"Attachment: {_attachment_name(part.message)}")])

    def _add(self, kind: str, lines: list[tuple[int, str]]) -> None:
        if lines:
            self._begin_block(lines[0][0])
            starts = []
            for line, text in lines:
                self.go_to(line)
                starts.append(self.write(text))
            self.blocks.append(Block(kind, starts[0], self.length))

    def _begin_block(self, line: int) -> None:
        before = self.line
        self.go_to(line)
        if self.blocks and self.line - before > _FAR_APART:
            self.chapters.append(self.length)


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
    """Decodes the value of a header, in which the library keeps bytes beyond ASCII as surrogates."""
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


class Part(NamedTuple):
    message: Letter
    kind: str
    """plain, html or attachment."""
    header_line: int
    """The line of the header with its name or type, counted from 0."""
    first_line: int
    """The line on which its content begins."""
    content: bytes
    """The bytes in the file; empty for an attachment."""


def read_letter(data: bytes) -> Letter:
    if b"\0" in data or data.startswith(_BYTE_ORDER_MARKS):
        raise ParseError("This is binary, not an e-mail.", reason="binary", hint="Only text can be indexed.")
    if sum(1 for _ in _BOUNDARY.finditer(data)) > _MOST_PARTS:
        raise _unsafe()
    try:
        return message_from_bytes(data.removeprefix(b"\xef\xbb\xbf"))
    except RecursionError as error:
        raise _unsafe() from error


def _unsafe() -> ParseError:
    hint = "Nothing that a mail program wrote looks like this."
    return ParseError("The e-mail has too many parts inside each other.", reason="unsafe", hint=hint)


def parts_of(letter: Letter, data: bytes) -> Iterator[Part]:
    """Yields the parts in order. An e-mail inside an e-mail is an attachment."""
    places = _Places(data)
    waiting = [(letter, 0, False)]
    while waiting:
        message, depth, attached = waiting.pop()
        if depth > _DEEPEST:
            raise _unsafe()
        header_line = places.pass_headers(message)
        kind = message.get_content_type()
        inside = message.get_payload()
        if isinstance(inside, list):
            is_attachment = not kind.startswith("multipart/")
            if is_attachment and not attached:
                yield Part(message, "attachment", header_line, header_line, b"")
            below = [inner for inner in reversed(inside) if not isinstance(inner, str)]
            waiting += [(inner, depth + 1, attached or is_attachment) for inner in below]
            continue
        content = _as_in_file(message)
        first_line = places.pass_content(content)
        if attached:
            continue
        if depth and (message.get_content_disposition() == "attachment" or kind not in ("text/plain", "text/html")):
            yield Part(message, "attachment", header_line, first_line, b"")
        else:
            yield Part(message, "html" if kind == "text/html" else "plain", header_line, first_line, content)


def _as_in_file(message: Letter) -> bytes:
    """The bytes of the content as in the file. For content that is not encoded, the decoded payload has these bytes."""
    if _transfer_encoding(message) in ("quoted-printable", "base64"):
        payload = message.get_payload()
        return payload.encode("ascii", "replace") if isinstance(payload, str) else b""
    data = message.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _transfer_encoding(message: Letter) -> str:
    return str(message.get("Content-Transfer-Encoding", "")).strip().lower()


class _Places:
    """Finds headers and contents in the file, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = self._counted = self._line = 0

    def pass_headers(self, message: Letter) -> int:
        """Moves past the headers; returns the line of Content-Disposition, else of Content-Type, else their start."""
        begin, found_at = self._position, dict[str, int]()
        for name, value in message.raw_items():
            wanted = str(value).encode("ascii", "surrogateescape")
            found = self._data.find(wanted, self._position) if wanted else -1
            if found >= 0:
                found_at[name.lower()], self._position = found, found + len(wanted)
        return self._line_of(found_at.get("content-disposition", found_at.get("content-type", begin)))

    def pass_content(self, content: bytes) -> int:
        """Moves past the content and returns the line on which it begins."""
        place = self._find(content) if content else None
        if place is None:
            return self._line_of(self._position)
        self._position = place + len(content)
        return self._line_of(place)

    def _find(self, content: bytes) -> int | None:
        data, wanted = self._data, b"\n" + content
        feed = first = data.find(wanted, max(0, self._position - 1))
        while feed >= 0:
            if data[max(0, feed - 2) : feed].endswith(_LINE_END):
                return feed + 1
            feed = data.find(wanted, feed + 1)
        if not self._position and data.startswith(content):
            return 0
        return first + 1 if first >= 0 else None

    def _line_of(self, position: int) -> int:
        """The line of a position. Positions mostly increase, so each line feed is counted once."""
        if position < self._counted:
            return self._line - self._data.count(b"\n", position, self._counted)
        self._line += self._data.count(b"\n", self._counted, position)
        self._counted = position
        return self._line


class TextLine(NamedTuple):
    """A line of decoded text, or the part of it that comes from one line of the file."""

    text: str
    line: int
    """The line of the file, counted from 0."""


def lines_of(part: Part) -> Iterator[TextLine]:
    """Yields the decoded lines of a part, also blank ones. Several may be on one line of the file."""
    pieces = _decoded_pieces(part)
    text = "".join(pieces)
    starts = list(accumulate(map(len, pieces), initial=0))[:-1]  # where each line of the file begins in the text
    lines = text.split("\n")
    keeps_whole = _transfer_encoding(part.message) == "base64" and part.kind == "plain"
    crowded = len(lines) > len(pieces)
    last, line = len(pieces) - 1, -1 if keeps_whole else 0
    for start, written in zip(line_starts(lines), lines, strict=False):
        if crowded and not written.strip():
            yield TextLine("", part.first_line + max(line, 0))
            continue
        cuts = [start] if keeps_whole else [start, *_cuts(text, start, start + len(written), starts)]
        for number, cut in enumerate(cuts):
            line = max(bisect_right(starts, cut) - 1, min(line + 1, last) if keeps_whole else line)
            end = cuts[number + 1] if number + 1 < len(cuts) else start + len(written)
            yield TextLine(text[cut:end].rstrip(), part.first_line + line)


def _cuts(text: str, start: int, end: int, starts: list[int]) -> Iterator[int]:
    """Yields where to cut a line of text that the file breaks: at the first word on each new line of the file."""
    cut = start
    for place in starts[bisect_right(starts, start) : bisect_right(starts, end - 1)]:
        if place <= cut:
            continue
        space = place if text[place - 1].isspace() else text.find(" ", place, end) + 1
        if not space or not text[space:end].strip():
            return
        yield (cut := space)


def _decoded_pieces(part: Part) -> list[str]:
    """The decoded text of each line of the file. A character split between two lines belongs to the second."""
    data = part.message.get_payload(decode=True)
    data = data if isinstance(data, bytes) else b""
    decoder = getincrementaldecoder(_encoding(part, data))("replace")
    rows = _decoded_rows(part, data)
    pieces = [decoder.decode(row) for row in rows]
    pieces[-1] += decoder.decode(b"", final=True)
    pieces[0] = pieces[0].removeprefix("\ufeff")
    return [whole_characters(piece.translate(NEVER_INSIDE)) for piece in pieces]


def _encoding(part: Part, data: bytes) -> str:
    declared = str(part.message.get_content_charset("") or "")
    try:
        return (decode_page(data) if part.kind == "html" and not declared else decode_declared(data, declared))[1]
    except ParseError:
        return "utf-8"  # some wrong characters are better than no text


def _decoded_rows(part: Part, data: bytes) -> list[bytes]:
    """The decoded bytes of each line of the file; all on the first line if they cannot be assigned to lines."""
    lines = part.content.split(b"\n")
    rows = [line + b"\n" for line in lines[:-1]] + lines[-1:]
    match _transfer_encoding(part.message):
        case "quoted-printable":
            rows = [a2b_qp(row) for row in rows]
        case "base64":
            rows = _decoded_base64(rows)
    return rows if b"".join(rows) == data else [data] + [b""] * (len(lines) - 1)


def _decoded_base64(rows: list[bytes]) -> list[bytes]:
    """Decodes base64 line by line: four characters belong to the line on which they end. Empty for malformed base64."""
    decoded, rest = [], b""
    try:
        for row in rows:
            rest += b"".join(row.split())
            whole = len(rest) // 4 * 4
            decoded.append(a2b_base64(rest[:whole]))
            rest = rest[whole:]
    except Error:
        return []
    return decoded
