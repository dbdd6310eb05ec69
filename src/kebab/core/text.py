"""Decodes bytes, maps offsets to lines, estimates tokens, and reads untrusted JSON and TOML.

A line ends only at "\\n", as for grep, sed and git; in "\\r\\n" the "\\r" is part of the line. Decoding changes nothing
(no NFC, no newline translation), so that a slice of the text is a slice of the file.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate
from typing import Any
from unicodedata import is_normalized, normalize

from kebab.core.errors import ParseError

# UTF-32's little-endian mark begins with UTF-16's, so it is tried first.
_BYTE_ORDER_MARKS = (
    (BOM_UTF8, "utf-8-sig"),
    (BOM_UTF32_LE, "utf-32"),
    (BOM_UTF32_BE, "utf-32"),
    (BOM_UTF16_LE, "utf-16"),
    (BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_CJK_LETTERS = "[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff]"
"""A pattern that is compiled on first use, because that takes milliseconds and most searches do not need it."""
_CJK_BEGINNINGS = bytes((0xE1, *range(0xE3, 0xEE), 0xEF))
"""The first bytes of CJK letters in UTF-8."""
_MOST_TOML_STEPS = 2_000_000
_STEPS_PER_HEADER_PART = 20
_MOST_TOML_PARTS = 20
"""Keys with at most this many parts cost little and are not counted."""


def decode(data: bytes) -> tuple[str, str]:
    """The text and the name of its encoding; ParseError if the bytes are not clearly text."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            try:
                return data.decode(encoding), encoding.removesuffix("-sig")
            except UnicodeDecodeError as error:
                hint = "Save it as UTF-8 and ingest it again."
                raise ParseError(
                    f"The byte order mark says {encoding}, the bytes do not.", reason="encoding", hint=hint
                ) from error
    if b"\0" in data:
        raise _binary()
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text, encoding = _decode_korean_legacy(data), "cp949"
    else:
        encoding = "utf-8"
    head = text[:8192]
    if len(_CONTROL.findall(head)) > len(head) // 10:
        raise _binary()
    return text, encoding


def _binary() -> ParseError:
    return ParseError("This is binary, not text.", reason="binary", hint="Only text can be indexed.")


def _decode_korean_legacy(data: bytes) -> str:
    """Decodes CP949, or raises ParseError. CP949 accepts almost any bytes, so most of the result must be Hangul."""
    try:
        text = data.decode("cp949")
    except UnicodeDecodeError:
        text = ""
    foreign = len(re.findall("[^\x00-\x7f]", text[:65536]))
    if not foreign or len(re.findall("[가-힣]", text[:65536])) < 0.6 * foreign:
        raise ParseError(
            "The file is neither UTF-8, UTF-16 nor CP949.",
            reason="encoding",
            hint="Save it as UTF-8 and ingest it again.",
        )
    return text


def count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 1


def nfc(text: str) -> str:
    return text if is_normalized("NFC", text) else normalize("NFC", text)


def storable(text: str) -> str:
    """The text in NFC, with a question mark for every unpaired surrogate, which stores cannot save."""
    return nfc(whole_characters(text))


def whole_characters(text: str) -> str:
    """The text with a question mark for every unpaired surrogate, which most libraries refuse."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def json_values(text: str | bytes) -> Any:
    """Parses JSON from a client; raises ValueError or RecursionError. A JSON escape can be an unpaired surrogate, which
    can neither be stored nor sent back, so a question mark replaces it.
    """
    values = json.loads(text)
    written = json.dumps(values, ensure_ascii=False)
    whole = whole_characters(written)
    return values if whole == written else json.loads(whole)


def read_toml(source: str) -> dict[str, Any]:
    """Parses TOML; raises ValueError or RecursionError if it is invalid or would take too long."""
    import tomllib

    if _toml_steps(source) > _MOST_TOML_STEPS:
        raise ValueError("its keys have too many parts")
    return tomllib.loads(source)


def _toml_steps(source: str) -> int:
    """Estimates how many steps tomllib needs for long dotted keys.

    For every part of a key, tomllib walks down the table header and all earlier parts. A key is on one line, so the
    dots of a line are an upper bound for its parts.
    """
    keys = header = 0
    for line in source.split("\n"):
        dots = line.count(".")
        if dots > _MOST_TOML_PARTS:
            keys += dots * dots
            if line.lstrip(" \t").startswith("["):
                header = max(header, dots)
    return keys + _STEPS_PER_HEADER_PART * header * (source.count("\n") + source.count("."))


def one_line(text: str) -> str:
    """The text on one line, with single spaces and without control characters, for names in lists and headings."""
    printable = (
        text if text.isprintable() else "".join(character if character.isprintable() else " " for character in text)
    )
    return " ".join(printable.split())


def line_starts(lines: Iterable[str], start: int = 0) -> list[int]:
    """The offset where each line begins, and where one more would begin. The lines have no line feeds."""
    return list(
        accumulate(map((1).__add__, map(len, lines)), initial=start)
    )  # fast, because no Python code runs per line


class LineTable:
    """Converts between offsets and lines of a text. Lines count from 1, offsets count code points from 0."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = line_starts(text.split("\n"))
        self._starts.pop()
        if len(self._starts) > 1 and self._starts[-1] == len(text):
            self._starts.pop()  # a final newline ends the last line, it does not begin another

    def __len__(self) -> int:
        return len(self._starts)

    def line_of(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def start_of(self, line: int) -> int:
        """The offset where `line` begins; for the line after the last one, the end of the text."""
        return self._starts[line - 1] if line <= len(self._starts) else len(self._text)

    def lines_of(self, start: int, end: int) -> tuple[int, int]:
        """The first and last line that the half-open range touches."""
        return self.line_of(start), self.line_of(max(start, end - 1))

    def slice(self, first: int, last: int) -> str:
        """The text of these lines, with their line endings."""
        return self._text[self.start_of(first) : self.start_of(last + 1)]


def estimate_tokens(text: str, *, code: bool = False) -> int:
    """An estimate, rather too high than too low, of how many tokens an embedding model makes of a text.

    A CJK character counts as one token, another non-ASCII character as half of its bytes. Of ASCII, 3.3 characters are
    one token; in code, 2.5.
    """
    per_token = 2.5 if code else 3.3
    if text.isascii():
        return int(len(text) / per_token) + 1
    ascii_letters = len(text.encode("ascii", "ignore"))
    data = text.encode("utf-8", "surrogatepass")
    has_cjk = len(data.translate(None, _CJK_BEGINNINGS)) < len(
        data
    )  # dashes, quotes and arrows alone do not need the expensive pattern
    cjk = len(re.findall(_CJK_LETTERS, text)) if has_cjk else 0
    other_bytes = len(data) - ascii_letters - 3 * cjk
    return cjk + other_bytes // 2 + int(ascii_letters / per_token) + 1


@lru_cache(maxsize=256)  # the same title is cut for every heading of a document
def cut_to_tokens(text: str, most: int) -> str:
    while (tokens := estimate_tokens(text)) > most:
        text = text[: min(len(text) - 1, len(text) * most // tokens)]
    return text


def content_hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
