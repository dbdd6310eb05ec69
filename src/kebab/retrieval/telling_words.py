"""The words of a text that tell what it is about: frequent in it, rare elsewhere."""

from __future__ import annotations

import re
from collections import Counter
from math import log

from kebab.analysis import cjk, korean
from kebab.analysis.stop_words import is_stop_word
from kebab.core.ports import LexicalIndex, Tokenizer
from kebab.core.query_tree import Bag, Phrase
from kebab.core.search import SearchFilters
from kebab.core.text import nfc

MOST_WORDS = 20
"""With more of them, what is found is no more alike."""
_MOST_WEIGHED = 200
"""Each one is counted in the whole corpus; of a long document only its most frequent words are."""
_WORD = re.compile(r"\w+")


def telling_words(text: str, index: LexicalIndex) -> list[str]:
    """The most telling first. A word that no other passage has finds nothing, and is left out."""
    frequencies = _frequencies(nfc(text), index.tokenizer)
    total = index.size()
    weighed = []
    for word, frequency in sorted(frequencies.items(), key=lambda item: (-item[1], item[0]))[:_MOST_WEIGHED]:
        passages = index.count(Bag((Phrase(word),)), match="all", drop_stop_words=False, filters=SearchFilters())
        if passages > 1:
            weighed.append((-(1 + log(frequency)) * log(1 + total / passages), word))
    return [word for _, word in sorted(weighed)[:MOST_WORDS]]


def _frequencies(text: str, tokenizer: Tokenizer) -> dict[str, int]:
    """How often each word occurs; forms of one stem are one word, shown as the first of them."""
    words = tokenizer.words(cjk.without_cjk(text))
    shown: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for word, stem in zip(words, tokenizer.stems("\n".join(words)), strict=True):
        if len(word) > 1 and not is_stop_word(word):
            counts[shown.setdefault(stem, word)] += 1
    if cjk.has_cjk(text):
        counts.update(word for word in _cjk_words(text) if len(word) > 1 and not is_stop_word(word))
    return counts


def _cjk_words(text: str) -> list[str]:
    """Korean words without their particle; of scripts that are written without spaces, every pair of characters."""
    found: list[str] = []
    for word in _WORD.findall(text):
        for run in cjk.runs(word):
            if run.script == "hangul":
                found.append(korean.strip_particle(run.text))
            elif run.script != "other":
                found += cjk.pairs(run.text)
    return found
