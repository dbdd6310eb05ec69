"""What a typed query means, before any store puts it into its own language.

A bag is words side by side: `all` wants every one of them, `any` wants one. Explicit AND, OR and NOT keep their meaning
in both. `Raw` is an expression in the store's own syntax, passed through untouched.
"""

from __future__ import annotations

from typing import NamedTuple


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


def excludes(tree: QueryTree) -> bool:
    """Whether it excludes words or is written in the store's own language: meaning alone cannot answer that."""
    if isinstance(tree, And | Or):
        return excludes(tree.left) or excludes(tree.right)
    return isinstance(tree, Not | Raw)


def insists(tree: QueryTree) -> bool:
    """Whether it was written with syntax that says what must be there: AND, OR, a phrase."""
    return not isinstance(tree, Bag) or any(isinstance(operand, Phrase) for operand in tree.operands)


def words_of(tree: QueryTree) -> list[str]:
    """What is wanted, without syntax."""
    if isinstance(tree, And | Or):
        return [*words_of(tree.left), *words_of(tree.right)]
    if isinstance(tree, Not):
        return words_of(tree.keep)
    return [] if isinstance(tree, Raw) else [operand.text for operand in tree.operands]
