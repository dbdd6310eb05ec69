"""What a person or an agent types into library search → a query. The operators `*`, "…", AND, OR and NOT are kept."""

from __future__ import annotations

from kebab.analysis.language import is_stop_word
from kebab.core.search import MAX_QUERY_CHARS

_PARENTHESES = str.maketrans("()", "  ")
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_LEAST_PREFIX = 3


def preprocess(query: str) -> str:
    """One space between words, no parentheses, and the last word as a prefix, because it may be half typed."""
    words = query[:MAX_QUERY_CHARS].translate(_PARENTHESES).split()
    if words and _may_be_half_typed(words):
        words[-1] += "*"
    return " ".join(words)


def _may_be_half_typed(words: list[str]) -> bool:
    last = words[-1]
    inside_quotes = sum(word.count('"') for word in words) % 2 == 1 or last.endswith('"')
    is_word = len(last) >= _LEAST_PREFIX and last[-1].isalnum() and sum(map(str.isalnum, last)) >= _LEAST_PREFIX
    return is_word and last not in _OPERATORS and not is_stop_word(last) and not inside_quotes
