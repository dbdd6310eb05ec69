"""Lists the terms that a match expression looks for, as an index stores them. For stores that rank by terms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kebab.core.ports import Tokenizer
from kebab.store.fts5.match_expression import MatchExpression


class IndexTerm(NamedTuple):
    text: str
    """A stem in lower case without diacritics, or a CJK term made by `analysis`."""
    in_cjk: bool
    """True: counts in the column `cjk` only. False: in every column."""
    is_beginning: bool
    """Whether it stands for all terms that begin with it."""


class WantedTerms(NamedTuple):
    phrases: tuple[tuple[IndexTerm, ...], ...]
    """Sequences of adjacent terms, nearly always of one term. A sequence that the query repeats is repeated here,
    because BM25 counts it each time.
    """
    is_plain: bool
    """Whether any passage with one of the terms matches. If not, each passage must be checked with `passage_check`;
    every match still has at least one of the terms.
    """

    def flat(self) -> Iterator[IndexTerm]:
        for phrase in self.phrases:
            yield from phrase


def wanted_terms(expression: MatchExpression, tokenizer: Tokenizer) -> WantedTerms:
    """Returns the terms of an expression, without those after NOT."""
    found: list[tuple[IndexTerm, ...]] = []
    for atom in expression.atoms:
        stems = tokenizer.stems(atom.text)
        last = len(stems) - 1
        found.append(
            tuple(IndexTerm(stem, atom.in_cjk, atom.is_beginning and place == last) for place, stem in enumerate(stems))
        )
    phrases = tuple(filter(None, found))
    return WantedTerms(phrases, expression.any_will_do and all(len(phrase) == 1 for phrase in phrases))
