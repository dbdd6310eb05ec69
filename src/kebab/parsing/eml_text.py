"""The content of a part of an e-mail as text, on the lines of the file that hold it.

A line that is not encoded is a line of the file. Quoted-printable breaks long lines: the text is broken there too, at
the next space. Base64 shows nobody a line; what it holds keeps its own lines, within those of the part.
"""

from __future__ import annotations

from binascii import Error, a2b_base64, a2b_qp
from bisect import bisect_right
from codecs import getincrementaldecoder
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from kebab.core.documents import PAGE_BREAK
from kebab.core.errors import ParseError
from kebab.core.text import line_starts, whole_characters
from kebab.parsing.eml_parts import Part, transfer_encoding
from kebab.parsing.html import decode_declared, decode_page

_NEVER_INSIDE = str.maketrans({PAGE_BREAK: " ", "\0": " "})


class TextLine(NamedTuple):
    """A line of the text, or as much of one as stands on a line of the file."""

    text: str
    line: int
    """Of the file, counted from 0."""


def lines_of(part: Part) -> Iterator[TextLine]:
    """The lines of the content, blank ones too; as many as the file has for it, unless several of them share one there."""
    pieces = _decoded_pieces(part)
    text = "".join(pieces)
    # Where in the text each line of the file begins.
    starts = list(accumulate(map(len, pieces), initial=0))[:-1]
    lines = text.split("\n")
    keeps_whole = transfer_encoding(part.message) == "base64" and part.kind == "plain"
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
    """Where a line of the text goes on in another line of the file: at the first word that begins there."""
    cut = start
    for place in starts[bisect_right(starts, start) : bisect_right(starts, end - 1)]:
        if place <= cut:
            continue
        space = place if text[place - 1].isspace() else text.find(" ", place, end) + 1
        if not space or not text[space:end].strip():
            return
        yield (cut := space)


def _decoded_pieces(part: Part) -> list[str]:
    """What each line of the file holds; characters of several bytes may begin on one line and end on the next."""
    data = part.message.get_payload(decode=True)
    data = data if isinstance(data, bytes) else b""
    decoder = getincrementaldecoder(_encoding(part, data))("replace")
    rows = _decoded_rows(part, data)
    pieces = [decoder.decode(row) for row in rows]
    pieces[-1] += decoder.decode(b"", final=True)
    pieces[0] = pieces[0].removeprefix("\ufeff")
    return [whole_characters(piece.translate(_NEVER_INSIDE)) for piece in pieces]


def _encoding(part: Part, data: bytes) -> str:
    declared = str(part.message.get_content_charset("") or "")
    try:
        return (decode_page(data) if part.kind == "html" and not declared else decode_declared(data, declared))[1]
    except ParseError:
        return "utf-8"  # the rest of the letter is worth more than the one character


def _decoded_rows(part: Part, data: bytes) -> list[bytes]:
    """The content line by line of the file. Where that cannot be told, all of it on the first line."""
    lines = part.content.split(b"\n")
    rows = [line + b"\n" for line in lines[:-1]] + lines[-1:]
    match transfer_encoding(part.message):
        case "quoted-printable":
            rows = [a2b_qp(row) for row in rows]
        case "base64":
            rows = _decoded_base64(rows)
    return rows if b"".join(rows) == data else [data] + [b""] * (len(lines) - 1)


def _decoded_base64(rows: list[bytes]) -> list[bytes]:
    """Four characters hold three bytes; those that end on another line belong to that."""
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
