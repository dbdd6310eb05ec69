"""The words of a text that tell what it is about: frequent in it, rare elsewhere."""

from __future__ import annotations

from collections import Counter
from math import log
from typing import TYPE_CHECKING

from kebab.analysis.terms import content_words
from kebab.core.ports import Tokenizer
from kebab.core.query_tree import Bag, Phrase
from kebab.core.search import SearchFilters
from kebab.core.text import nfc

if TYPE_CHECKING:
    from kebab.core.store_ports import LexicalIndex

MOST_WORDS = 20
"""With more of them, what is found is no more alike."""
_MOST_WEIGHED = 200
"""Each one is counted in the whole corpus; of a long document only its most frequent words are."""


def key_terms(text: str, index: LexicalIndex) -> list[str]:
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
    shown: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for word in content_words(text, tokenizer):
        counts[shown.setdefault(word.key, word.text)] += 1
    return counts
