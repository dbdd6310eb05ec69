"""An expression as the terms it looks for, in the very form in which an index holds them. For a store that ranks by
terms.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kebab.core.ports import Tokenizer
from kebab.store.fts5.match_expression import MatchExpression


class IndexTerm(NamedTuple):
    text: str
    """A stem, folded; or a CJK term as `analysis` makes them."""
    in_cjk: bool
    """Whether it counts in the column `cjk` only, and otherwise in every column."""
    is_beginning: bool
    """Whether it stands for all terms that begin so."""


class WantedTerms(NamedTuple):
    phrases: tuple[tuple[IndexTerm, ...], ...]
    """Terms that stand side by side, nearly always one. Each as often as the query names it: so often it counts in
    bm25.
    """
    is_plain: bool
    """Whether a passage with any one of the terms matches. Otherwise each of them must be checked (`passage_check`);
    even then every match has at least one of the terms.
    """

    def flat(self) -> Iterator[IndexTerm]:
        for phrase in self.phrases:
            yield from phrase


def wanted_terms(expression: MatchExpression, tokenizer: Tokenizer) -> WantedTerms:
    """What must not occur is not among them."""
    found: list[tuple[IndexTerm, ...]] = []
    for atom in expression.atoms:
        stems = tokenizer.stems(atom.text)
        last = len(stems) - 1
        found.append(
            tuple(IndexTerm(stem, atom.in_cjk, atom.is_beginning and place == last) for place, stem in enumerate(stems))
        )
    phrases = tuple(filter(None, found))
    return WantedTerms(phrases, expression.any_will_do and all(len(phrase) == 1 for phrase in phrases))
