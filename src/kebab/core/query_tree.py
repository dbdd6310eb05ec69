"""What a typed query means, before any store puts it into its own language.

A bag is words side by side: `all` wants every one of them, `any` wants one. Explicit AND, OR and NOT keep their meaning
in both. `Raw` is an expression in the store's own syntax, passed through untouched.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    text: str


@dataclass(frozen=True)
class Prefix:
    text: str


@dataclass(frozen=True)
class Phrase:
    text: str


Operand = Word | Prefix | Phrase


@dataclass(frozen=True)
class Bag:
    operands: tuple[Operand, ...] = ()


@dataclass(frozen=True)
class And:
    left: QueryTree
    right: QueryTree


@dataclass(frozen=True)
class Or:
    left: QueryTree
    right: QueryTree


@dataclass(frozen=True)
class Not:
    keep: QueryTree
    drop: QueryTree


@dataclass(frozen=True)
class Raw:
    expression: str


QueryTree = Bag | And | Or | Not | Raw
