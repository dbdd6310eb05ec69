"""The words of a text that say what it is about, each with what it is compared by."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kebab.analysis import cjk, korean
from kebab.analysis.stop_words import is_stop_word
from kebab.core.ports import Tokenizer

_WORD = re.compile(r"\w+")


class ContentWord(NamedTuple):
    text: str
    """As it is looked for: in small letters without diacritics, or Korean without its particle."""
    key: str
    """The same for all forms of a word."""
    script: str = "other"
    """hangul, kana, han or other"""


def content_words(text: str, tokenizer: Tokenizer) -> Iterator[ContentWord]:
    """In order within a script, every mention; of text in NFC. Words of one letter and stop words are left out."""
    words = tokenizer.words(cjk.without_cjk(text))
    for word, stem in zip(words, tokenizer.stems("\n".join(words)), strict=True):
        if len(word) > 1 and not is_stop_word(word):
            yield ContentWord(word, stem)
    if cjk.has_cjk(text):
        yield from (word for word in _cjk_words(text) if len(word.text) > 1 and not is_stop_word(word.text))


def _cjk_words(text: str) -> Iterator[ContentWord]:
    """Korean words without their particle; of scripts that are written without spaces, every pair of characters."""
    for word in _WORD.findall(text):
        for run in cjk.runs(word):
            if run.script == "hangul":
                stripped = korean.strip_particle(run.text)
                yield ContentWord(stripped, stripped, run.script)
            elif run.script != "other":
                yield from (ContentWord(pair, pair, run.script) for pair in cjk.pairs(run.text))
