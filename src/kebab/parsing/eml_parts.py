"""The parts of an e-mail that can be read, and where they stand in its file.

The standard library reads letters and does not say where anything stands. But it keeps headers and bodies byte for byte
and in order, so each is looked for in the file after the one before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from kebab.core.errors import ParseError

if TYPE_CHECKING:
    from email.message import Message

    Letter = Message[str, str]

_MOST_PARTS = 1000
_DEEPEST = 20
_BOUNDARY = re.compile(rb"boundary\s*=", re.IGNORECASE)
_LINE_END = (b"\n", b"\n\r")
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


class Part(NamedTuple):
    message: Letter
    kind: str
    """plain, html or attachment."""
    header_line: int
    """Of the header with its name or type; lines count from 0."""
    first_line: int
    """Where its content begins."""
    content: bytes
    """As it stands in the file; for an attachment nothing."""


def read_letter(data: bytes) -> Letter:
    from email import message_from_bytes

    if b"\0" in data or data.startswith(_BYTE_ORDER_MARKS):
        raise ParseError("This is binary, not an e-mail.", reason="binary", hint="Only text can be indexed.")
    if sum(1 for _ in _BOUNDARY.finditer(data)) > _MOST_PARTS:
        raise _unsafe()
    try:
        return message_from_bytes(data.removeprefix(b"\xef\xbb\xbf"))
    except RecursionError as error:
        raise _unsafe() from error


def _unsafe() -> ParseError:
    return ParseError(
        "The e-mail has too many parts inside each other.",
        reason="unsafe",
        hint="Nothing that a mail program wrote looks like this.",
    )


def parts_of(letter: Letter, data: bytes) -> Iterator[Part]:
    """In order. A letter inside a letter counts as attached."""
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
    """The content before it is decoded. Where it is not encoded, what the library calls decoded are the bytes of the
    file.
    """
    if transfer_encoding(message) in ("quoted-printable", "base64"):
        payload = message.get_payload()
        return payload.encode("ascii", "replace") if isinstance(payload, str) else b""
    data = message.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def transfer_encoding(message: Letter) -> str:
    return str(message.get("Content-Transfer-Encoding", "")).strip().lower()


class _Places:
    """How far the file has been gone through."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = self._counted = self._line = 0

    def pass_headers(self, message: Letter) -> int:
        """The line of the header that says what this is. What is found too early is still before the content."""
        begin, found_at = self._position, dict[str, int]()
        for name, value in message.raw_items():
            wanted = str(value).encode("ascii", "surrogateescape")
            found = self._data.find(wanted, self._position) if wanted else -1
            if found >= 0:
                found_at[name.lower()], self._position = found, found + len(wanted)
        return self._line_of(found_at.get("content-disposition", found_at.get("content-type", begin)))

    def pass_content(self, content: bytes) -> int:
        """The line on which it begins: after the blank line that ends the headers, or at least where a line begins."""
        place = self._find(content, after_blank_line=True) if content else None
        if place is None and content:
            place = self._find(content, after_blank_line=False)
        if place is None:
            return self._line_of(self._position)
        self._position = place + len(content)
        return self._line_of(place)

    def _find(self, content: bytes, *, after_blank_line: bool) -> int | None:
        data, wanted = self._data, b"\n" + content
        if not self._position and not after_blank_line and data.startswith(content):
            return 0
        feed = data.find(wanted, max(0, self._position - 1))
        while feed >= 0:
            if not after_blank_line or data[max(0, feed - 2) : feed].endswith(_LINE_END):
                return feed + 1
            feed = data.find(wanted, feed + 1)
        return None

    def _line_of(self, position: int) -> int:
        """Asked for places further and further on, so that each line feed is counted once."""
        if position < self._counted:
            return self._line - self._data.count(b"\n", position, self._counted)
        self._line += self._data.count(b"\n", self._counted, position)
        self._counted = position
        return self._line
