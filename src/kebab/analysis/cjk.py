"""Terms of Chinese, Japanese and Korean text, which the word tokenizer does not cut into words.

unicode61 makes one token of "문서를", so a search for 문서 would miss it. A separate column therefore holds, for every
run of one script, its overlapping pairs of characters and its last character: 문서를 → 문서 서를 를. A word is found
inside a longer one as the phrase of its pairs. The column also holds Latin runs that touch CJK letters, such as the
Latin part of kubernetes는, because the tokenizer does not separate them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kebab.core.text import nfc

_HANGUL = "\uac00-\ud7a3\u1100-\u11ff\u3130-\u318f"
_KANA = "\u3040-\u30ff\u31f0-\u31ff"
_HAN = "\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\u3005\U00020000-\U0003ffff"
# Compiled on first use: large character classes take milliseconds, and an English query needs none of them. _HANGUL
# includes the jamo that macOS decomposes syllables into, so the test for CJK works before NFC.
_ANY_CJK = f"[{_HANGUL}{_KANA}{_HAN}]"
_RUN = f"(?P<hangul>[{_HANGUL}]+)|(?P<kana>[{_KANA}]+)|(?P<han>[{_HAN}]+)|(?P<other>[^{_HANGUL}{_KANA}{_HAN}]+)"
_WORD = re.compile(r"\w+")
_BEFORE = 3
"""How many plain words before a word with CJK letters are included, so that phrases of them are found."""


class Run(NamedTuple):
    script: str
    """hangul, kana, han or other"""
    text: str


def has_cjk(text: str) -> bool:
    return not text.isascii() and re.search(_ANY_CJK, text) is not None


def without_cjk(text: str) -> str:
    """The text with a space in place of every CJK letter; all other characters keep their offset."""
    return re.sub(_ANY_CJK, " ", text) if has_cjk(text) else text


def without_hangul(text: str) -> str:
    """The text with a space in place of every Korean letter."""
    return re.sub(f"[{_HANGUL}]", " ", text) if has_cjk(text) else text


def runs(word: str) -> list[Run]:
    """The word in NFC, cut into runs where the script changes."""
    if word.isascii():
        return [Run("other", word)] if word else []
    return [Run(match.lastgroup or "other", match[0]) for match in re.finditer(_RUN, nfc(word))]


def pairs(run: str) -> list[str]:
    """The overlapping pairs of characters of a run, or its only character."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def column_terms(text: str) -> Iterator[str]:
    """The terms of this text for the `cjk` column; none for text without CJK letters.

    The plain words right before a Latin word that touches CJK letters are included, so that the phrase "kubectl apply"
    is also found in "kubectl apply를".
    """
    if not has_cjk(text):
        return
    before: list[str] = []
    for word in _WORD.findall(nfc(text)):
        if not has_cjk(word):
            before.append(word)
            continue
        parts = runs(word)
        if parts[0].script == "other":
            yield from before[-_BEFORE:]
        before.clear()
        for run in parts:
            if run.script == "other":
                yield run.text
            else:
                yield from pairs(run.text)
                if len(run.text) > 1:
                    yield run.text[-1]
