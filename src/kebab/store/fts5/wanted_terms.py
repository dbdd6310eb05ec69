"""For stores that rank by terms: the terms that a match expression looks for, and a check of the passages found.

SQLite checks a few passages, because such a store cannot check word order itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import NamedTuple, cast

import apsw

from kebab.core.ports import Tokenizer
from kebab.core.text import whole_characters
from kebab.store.fts5.chunk_columns import ChunkColumns
from kebab.store.fts5.match_expression import MatchExpression
from kebab.store.fts5.tokenizer import TOKENIZE


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
    """Whether any passage with one of the terms matches. If not, each passage must be checked with `matching`;
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


def matching(expression: str, passages: Mapping[str, ChunkColumns]) -> set[str]:
    """Returns the keys of the passages that match. `expression` is the text of a `MatchExpression` that is not raw."""
    if not passages or not expression.strip():
        return set()
    keys = list(passages)
    with closing(apsw.Connection(":memory:")) as connection:
        columns = ", ".join(ChunkColumns._fields)
        connection.execute(f"CREATE VIRTUAL TABLE passages USING fts5({columns}, content='', tokenize='{TOKENIZE}')")
        with connection:  # one flush of the index, not one for each row
            marks = ", ".join("?" * (1 + len(ChunkColumns._fields)))
            connection.executemany(
                f"INSERT INTO passages (rowid, {columns}) VALUES ({marks})",
                [(number, *map(whole_characters, passages[key])) for number, key in enumerate(keys)],
            )
        found = connection.execute("SELECT rowid FROM passages WHERE passages MATCH ?", (expression,))
        return {keys[cast("int", number)] for (number,) in found}
