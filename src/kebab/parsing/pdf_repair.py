"""Corrects the text of PDF pages: joins broken words, replaces ligatures and removes invisible characters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from kebab.core.documents import PAGE_BREAK

JOINED_WORD = "\ufffe"
"""PDFium writes this for a hyphen at the end of a line, and leaves out the line end."""

_LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
_LIGATURE = re.compile(f"[{''.join(_LIGATURES)}]")
# Controls except tab, line feed and form feed, the byte order mark, and code points that are no characters.
_INVISIBLE = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\ufeff\uffff\ufdd0-\ufdef\ud800-\udfff]")
_LINE_ENDS = ("\r\n", "\r", "\u2028", "\u2029")

_BROKEN_WORD = re.compile(
    f"[-\u2010\xad{JOINED_WORD}](?<=[^\\W\\d_].)(?:(?<={JOINED_WORD})[ \n]?|(?<!{JOINED_WORD})\n *)(?=[^\\W\\d_])"
)
_WORD_BEFORE = re.compile(r"[^\W_]+\Z")
_WORD_AFTER = re.compile(r"[^\W_]+")
_LONGEST_PART = 40
_WORD_WITH_HYPHENS = re.compile(f"[\\w{JOINED_WORD}-]+")
_HYPHEN_LEFT_OVER = re.compile(f"[{JOINED_WORD}\xad]")


def mended_pages(pages: Iterable[str]) -> str:
    """Corrects the pages and returns them as one text, separated by form feeds."""
    text = PAGE_BREAK.join([page.replace(PAGE_BREAK, " ") for page in pages])
    text = _INVISIBLE.sub("", text)
    for line_end in _LINE_ENDS:
        text = text.replace(line_end, "\n")
    if not text.isascii():
        text = _LIGATURE.sub(lambda found: _LIGATURES[found[0]], text)
    pages = text.split(PAGE_BREAK)
    text = PAGE_BREAK.join(["\n".join([line.rstrip() for line in page.split("\n")]) for page in pages])
    if _BROKEN_WORD.search(text):
        text = _BROKEN_WORD.sub(_KnownWords(text).mend, text)
    return text if text.isascii() else _HYPHEN_LEFT_OVER.sub("-", text)  # a soft hyphen that is drawn is a hyphen


def mended_line(text: str) -> str:
    """Corrects a title, a label or a name and returns it on one line."""
    return " ".join(mended_pages([text]).split())


class _KnownWords:
    """Decides by the words of a document whether a hyphen is spelling (self-|employed) or breaks a word (exam-|ple)."""

    def __init__(self, text: str) -> None:
        # Broken words are marked, so that their parts do not count as words.
        words = set(_WORD_WITH_HYPHENS.findall(_BROKEN_WORD.sub(JOINED_WORD, text).casefold()))
        self._words = words
        self._compounds = {pair for word in words if "-" in word for pair in _pairs(word)}
        verdicts = [self._is_spelling(found) for found in _BROKEN_WORD.finditer(text)]
        # Many programs never break words: an unknown word is treated like the others of the document.
        self._usually_spelling = verdicts.count(True) > verdicts.count(False)

    def mend(self, found: re.Match[str]) -> str:
        """Returns the text that replaces a hyphen at the end of a line."""
        spelling = self._is_spelling(found)
        is_lower = found.string[found.end()].islower()
        if spelling is None:
            spelling = not is_lower or self._usually_spelling  # Anglo-|Saxon
        if not spelling:
            return ""
        return "-" if is_lower or found[0].startswith(JOINED_WORD) else found[0]

    def _is_spelling(self, found: re.Match[str]) -> bool | None:
        """Whether the hyphen is part of the word; None if the rest of the document does not tell."""
        before = _WORD_BEFORE.search(found.string, max(0, found.start() - _LONGEST_PART), found.start())
        after = _WORD_AFTER.match(found.string, found.end(), found.end() + _LONGEST_PART)
        if before is None or after is None:
            return None
        first, second = before[0].casefold(), after[0].casefold()
        if f"{first}-{second}" in self._compounds:
            return True
        if (len(first) == 1 or before[0].isupper()) and after[0][0].islower():  # e-|mail, FDA-|approved
            return True
        if first + second in self._words:
            return False
        return True if first in self._words and second in self._words else None


def _pairs(compound: str) -> Iterator[str]:
    """The neighbouring pairs of a compound: out-of-network → out-of, of-network."""
    parts = compound.split("-")
    return (f"{first}-{second}" for first, second in pairwise(parts) if first and second)
