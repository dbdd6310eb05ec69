"""E-mail: who wrote when to whom, and the text. Attachments are named, not opened.

Headers are read with the older policy of the standard library: the newer one parses them by a grammar, in Python and by recursion,
which letters made to harm can keep busy for minutes.
"""

from __future__ import annotations

import re
from datetime import UTC
from typing import TYPE_CHECKING, NamedTuple

from kebab.analysis.language import language_of
from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.text import storable
from kebab.parsing.extracted_text import ExtractedText
from kebab.parsing.file_types import classify
from kebab.parsing.html import decode_declared, decode_page
from kebab.parsing.html_text import read_page
from kebab.parsing.titles import title_of

_SHOWN = ("From", "To", "Cc", "Date", "Subject")
_LONGEST_HEADER = 2000
_MOST_PARTS = 1000
_DEEPEST = 20
_BOUNDARY = re.compile(rb"boundary\s*=", re.IGNORECASE)
_PARAGRAPH_BREAK = re.compile(r"\n(?:[ \t\r]*\n)+")

if TYPE_CHECKING:
    from email.message import Message

    _Letter = Message[str, str]


class _Content(NamedTuple):
    plain: list[str]
    html: list[str]
    attachments: list[str]


class EmlParser:
    version = "eml-1"
    keeps_lines = False
    isolated = True

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        letter = _read(data)
        headers = {name: value for name in _SHOWN if (value := _header(letter, name))}
        content = _content(letter)
        extracted = ExtractedText()
        extracted.add("paragraph", "\n".join(f"{name}: {value}" for name, value in headers.items()))
        extracted.blank_line()
        _add_body(extracted, content)
        if content.attachments:
            extracted.blank_line()
            extracted.add("paragraph", "Attachments: " + ", ".join(content.attachments))
        doc_type, format_ = classify(path)
        return ParsedDocument(
            text=extracted.text,
            title=title_of(headers.get("Subject", ""), (), path),
            blocks=extracted.blocks,
            doc_type=doc_type,
            format=format_,
            lang=language_of(extracted.text),
            date=_date(headers.get("Date", "")),
            metadata={name.lower(): headers[name] for name in ("From", "To", "Cc", "Date") if name in headers},
        )


def _read(data: bytes) -> _Letter:
    from email import message_from_bytes

    if b"\0" in data:
        raise ParseError("This is binary, not an e-mail.", reason="binary", hint="Only text can be indexed.")
    if sum(1 for _ in _BOUNDARY.finditer(data)) > _MOST_PARTS:
        raise _unsafe()
    try:
        return message_from_bytes(data.removeprefix(b"\xef\xbb\xbf"))
    except RecursionError as error:
        raise _unsafe() from error


def _unsafe() -> ParseError:
    return ParseError(
        "The e-mail has too many parts inside each other.", reason="unsafe", hint="Nothing that a mail program wrote looks like this."
    )


def _header(letter: _Letter, name: str) -> str:
    """On one line and decoded; as it stands where it cannot be decoded."""
    from email.errors import MessageError
    from email.header import decode_header, make_header

    raw = str(letter.get(name, ""))[:_LONGEST_HEADER]
    try:
        value = str(make_header(decode_header(raw)))
    except (MessageError, ValueError, LookupError):
        value = raw
    return storable(" ".join(value.replace("\0", " ").split()))


def _date(value: str) -> str | None:
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")


def _content(letter: _Letter) -> _Content:
    """The parts that can be read, in order. A letter inside a letter counts as attached."""
    content = _Content([], [], [])
    waiting = [(letter, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > _DEEPEST:
            raise _unsafe()
        kind = part.get_content_type()
        inside = part.get_payload()
        if kind.startswith("multipart/") and isinstance(inside, list):
            waiting += [(inner, depth + 1) for inner in reversed(inside) if not isinstance(inner, str)]
        elif depth and (part.get_content_disposition() == "attachment" or kind not in ("text/plain", "text/html")):
            content.attachments.append(_attachment_name(part, kind))
        elif kind == "text/html":
            content.html.append(_text(part))
        else:
            content.plain.append(_text(part))
    return content


def _attachment_name(part: _Letter, kind: str) -> str:
    from email.header import decode_header, make_header

    name = part.get_filename() or kind
    try:
        name = str(make_header(decode_header(name[:_LONGEST_HEADER])))
    except (ValueError, LookupError):
        name = name[:_LONGEST_HEADER]
    return storable(" ".join(name.split())) or kind


def _text(part: _Letter) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    declared = str(part.get_content_charset("") or "")
    try:
        if part.get_content_type() == "text/html" and not declared:
            return decode_page(data)[0]
        return decode_declared(data, declared)[0]
    except ParseError:
        return data.decode("utf-8", "replace")  # the rest of the letter is worth more than the one character


def _add_body(extracted: ExtractedText, content: _Content) -> None:
    if any(text.strip() for text in content.plain):
        for text in content.plain:
            for paragraph in _PARAGRAPH_BREAK.split(text.replace("\r\n", "\n")):
                extracted.add("quote" if paragraph.lstrip().startswith(">") else "paragraph", paragraph)
                extracted.blank_line()
        return
    for page in content.html:
        extracted.add_page(read_page(page))
