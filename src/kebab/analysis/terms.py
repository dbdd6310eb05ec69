"""Terms that the word tokenizer does not find: CJK terms, words inside identifiers, and words that carry meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from kebab.analysis import cjk, korean
from kebab.analysis.language import is_stop_word
from kebab.core.ports import Tokenizer

_WORD = re.compile(r"\w+")
_CODE_WORD = re.compile(r"[^\W_]+")
_LONGEST_IDENTIFIER = 80  # longer runs are encoded data
_CASED_SCRIPTS = range(0xC0, 0x590)
"""Accented Latin, Greek, Cyrillic and Armenian: the scripts beyond ASCII with capital letters."""


def cjk_column(korean_analysis: str, *texts: str, is_code: bool = False, note_terms: str = "") -> str:
    """The value of a chunk's column `cjk`: the CJK terms of its texts, the words inside identifiers if it is code, and
    the terms of notes on its source and folders.
    """
    terms = _cjk_terms(korean_analysis, *texts)
    if is_code:
        terms += inner_words("\n".join(texts))
    if note_terms:
        terms.append(note_terms)
    return " ".join(terms)


def terms_of_note(korean_analysis: str, note: str) -> str:
    """The terms of a note: its text without CJK letters, then its CJK terms."""
    return " ".join([cjk.without_cjk(note), *_cjk_terms(korean_analysis, note)])


def _cjk_terms(korean_analysis: str, *texts: str) -> list[str]:
    if not any(map(cjk.has_cjk, texts)):
        return []
    text = "\n".join(texts)
    return list(korean.morphemes(text) if korean_analysis == "morphemes" else cjk.column_terms(text))


class ContentWord(NamedTuple):
    text: str
    """The form to search for: lower case without diacritics, or Korean without its particle."""
    key: str
    """Identical for all forms of a word."""
    script: str = "other"
    """hangul, kana, han or other"""


def content_words(text: str, tokenizer: Tokenizer) -> Iterator[ContentWord]:
    """Every occurrence of a word that carries meaning: first plain words, then CJK words, each in text order. Expects
    NFC. Leaves out stop words and single letters.
    """
    words = tokenizer.words(cjk.without_cjk(text))
    for word, stem in zip(words, tokenizer.stems("\n".join(words)), strict=True):
        if len(word) > 1 and not is_stop_word(word):
            yield ContentWord(word, stem)
    if cjk.has_cjk(text):
        yield from (word for word in _cjk_words(text) if len(word.text) > 1 and not is_stop_word(word.text))


def _cjk_words(text: str) -> Iterator[ContentWord]:
    """Korean words without their particle, and all pairs of characters of Chinese and Japanese text."""
    for word in _WORD.findall(text):
        for run in cjk.runs(word):
            if run.script == "hangul":
                stripped = korean.strip_particle(run.text)
                yield ContentWord(stripped, stripped, run.script)
            elif run.script != "other":
                yield from (ContentWord(pair, pair, run.script) for pair in cjk.pairs(run.text))


def inner_words(text: str) -> Iterator[str]:
    """The words inside identifiers, in order: parse, HTTP and Header of `parseHTTPHeader`.

    The tokenizer cuts at underscores, dots and dashes by itself. It does not cut at capitals, or between letters and
    digits.
    """
    for word in _CODE_WORD.findall(text):
        yield from _pieces(word)


@lru_cache(maxsize=1 << 15)  # code repeats the same identifiers
def _pieces(word: str) -> tuple[str, ...]:
    """The words inside one identifier; empty if there is only one."""
    if len(word) > _LONGEST_IDENTIFIER:
        return ()
    hump, piece = _identifier_patterns(word.isascii())
    pieces = tuple(piece.findall(word)) if hump.search(word) else ()
    return pieces if len(pieces) > 1 else ()


@cache
def _identifier_patterns(ascii_only: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Two patterns: one that an identifier of several words contains, and one that matches each of its words."""
    letters = [] if ascii_only else [chr(code) for code in _CASED_SCRIPTS]
    upper = "A-Z" + "".join(filter(str.isupper, letters))
    lower = "a-z" + "".join(filter(str.islower, letters))
    letter = upper + lower
    hump = rf"[{lower}\d][{upper}]|[{upper}]{{2}}[{lower}]|[{letter}]{{2}}\d+[{letter}]"
    plural = rf"[{upper}]{{2,}}s(?![{lower}])"  # "URLs" and "IDs" are one piece
    piece = rf"{plural}|[{upper}]+(?![{lower}])|[{upper}]?[{lower}]+|\d+|[^\W\d_{letter}]+"
    return re.compile(hump), re.compile(piece)
