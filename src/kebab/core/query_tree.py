"""Parses a typed query into a tree, which each store translates to its own syntax. Accepts every string.

    install git            a bag of words
    "exact phrase"         a phrase
    install*               a prefix
    git AND (hub)          AND, OR, NOT (or AND NOT) in capitals between operands; NOT binds tightest, then AND, then OR
    'raw FTS5'             a query in single quotes goes to the store unchanged

Everything else that looks like syntax is text.

A bag is a list of words: with match `all` a passage must have all of them, with `any` at least one. Explicit AND, OR
and NOT mean the same in both. `Raw` is an expression in the store's own syntax, which is not changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from kebab.core.text import whole_characters

_MAX_WITH_OPERATORS = 512
_OPERATORS = frozenset({"AND", "OR", "NOT"})
_TOKEN = re.compile(r'"(?P<phrase>[^"]*)"|(?P<word>[^\s"]+)')
_SAYS_SOMETHING = re.compile(r"\w")


class Word(NamedTuple):
    text: str


class Prefix(NamedTuple):
    text: str


class Phrase(NamedTuple):
    text: str


Operand = Word | Prefix | Phrase


class Bag(NamedTuple):
    operands: tuple[Operand, ...] = ()


class And(NamedTuple):
    left: QueryTree
    right: QueryTree


class Or(NamedTuple):
    left: QueryTree
    right: QueryTree


class Not(NamedTuple):
    keep: QueryTree
    drop: QueryTree


class Raw(NamedTuple):
    expression: str


QueryTree = Bag | And | Or | Not | Raw


@lru_cache(maxsize=16)
def parse(text: str) -> QueryTree:
    """Parses a query. Cached, because several steps of one search parse the same text."""
    text = whole_characters(text).replace("\0", " ").strip()
    return Raw(text[1:-1]) if is_raw(text) else _fold(_tokens(text))


def is_raw(text: str) -> bool:
    """Whether the query is wrapped in single quotes."""
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
            tokens[-1] = word  # AND NOT means the same as NOT
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


def excludes(tree: QueryTree) -> bool:
    """Whether the query excludes words or is raw: vector search cannot answer such a query."""
    if isinstance(tree, And | Or):
        return excludes(tree.left) or excludes(tree.right)
    return isinstance(tree, Not | Raw)


def insists(tree: QueryTree) -> bool:
    """Whether the query has an operator or a phrase, so that hits must contain its words."""
    return not isinstance(tree, Bag) or any(isinstance(operand, Phrase) for operand in tree.operands)


def meaning_of(tree: QueryTree, text: str) -> str:
    """The text that models read: the query as typed, or only its words if it has syntax."""
    return text if isinstance(tree, Bag) and '"' not in text and "*" not in text else " ".join(words_of(tree))


def plain_words(tree: QueryTree) -> list[str]:
    """The words of a query without any syntax; none for other queries."""
    if not isinstance(tree, Bag) or not all(isinstance(operand, Word) for operand in tree.operands):
        return []
    return [operand.text for operand in tree.operands]


def demands_all(tree: QueryTree) -> bool:
    """Whether a passage must have all words of the query if all operands of a bag must match."""
    match tree:
        case And(left, right):
            return demands_all(left) and demands_all(right)
        case Not(keep, _):
            return demands_all(keep)
        case _:
            return isinstance(tree, Bag)


def words_of(tree: QueryTree) -> list[str]:
    """The words to search for, without syntax and without excluded words."""
    if isinstance(tree, And | Or):
        return [*words_of(tree.left), *words_of(tree.right)]
    if isinstance(tree, Not):
        return words_of(tree.keep)
    return [] if isinstance(tree, Raw) else [operand.text for operand in tree.operands]
