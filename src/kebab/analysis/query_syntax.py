"""The text of a query → QueryTree. Every string has a meaning, and none raises.

    install git            a bag of words
    "exact phrase"         a phrase
    install*               a prefix
    git AND (hub)          AND, OR, NOT (or AND NOT) in capitals between operands; NOT binds tightest, then AND, then OR
    'raw FTS5'             a query in single quotes goes to the store unchanged
Everything else that looks like syntax is text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from kebab.core.query_tree import And, Bag, Not, Operand, Or, Phrase, Prefix, QueryTree, Raw, Word

_MAX_WITH_OPERATORS = 512
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_TOKEN = re.compile(r'"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)')
_SAYS_SOMETHING = re.compile(r"\w")


@lru_cache(maxsize=16)
def parse(text: str) -> QueryTree:
    """The tree of a query. Cached, because several steps of one search parse the same text."""
    text = text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ").strip()
    return Raw(text[1:-1]) if is_raw(text) else _fold(_tokens(text))


def is_raw(text: str) -> bool:
    """Whether it is wrapped in single quotes."""
    text = text.strip()
    return len(text) > 2 and text[0] == text[-1] == "'"


def _tokens(text: str) -> list[Operand | str]:
    """Operands, and the operators that stand between two of them."""
    tokens: list[Operand | str] = []
    matches = [match for match in _TOKEN.finditer(text) if _SAYS_SOMETHING.search(match[0])]
    for position, match in enumerate(matches):
        word = match["word"]
        if word is None:
            tokens.append(Phrase(match["phrase"]))
        elif word in _OPERATORS and tokens and not isinstance(tokens[-1], str) and position + 1 < len(matches):
            tokens.append(word)
        elif word == "NOT" and tokens[-1:] == ["AND"] and position + 1 < len(matches):
            tokens[-1] = word  # AND NOT is how others write NOT
        elif word.endswith("*"):
            tokens.append(Prefix(word.rstrip("*")))
        else:
            tokens.append(Word(word))
    if any(isinstance(token, str) for token in tokens):
        tokens = tokens[:_MAX_WITH_OPERATORS]
    if tokens and isinstance(tokens[-1], str):  # its right side was cut off
        tokens.pop()
    return tokens


def _fold(tokens: list[Operand | str]) -> QueryTree:
    return _split(tokens, "OR", Or, lambda ands: _split(ands, "AND", And, lambda nots: _split(nots, "NOT", Not, _bag)))


def _split(
    tokens: list[Operand | str],
    operator: str,
    combine: Callable[[QueryTree, QueryTree], QueryTree],
    below: Callable[[list[Operand | str]], QueryTree],
) -> QueryTree:
    groups: list[list[Operand | str]] = [[]]
    for token in tokens:
        if token == operator:
            groups.append([])
        else:
            groups[-1].append(token)
    tree = below(groups[0])
    for group in groups[1:]:
        tree = combine(tree, below(group))
    return tree


def _bag(tokens: list[Operand | str]) -> QueryTree:
    return Bag(tuple(token for token in tokens if not isinstance(token, str)))
