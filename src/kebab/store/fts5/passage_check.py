"""Asks SQLite which of a few passages match an expression, for stores that cannot check word order themselves."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import cast

import apsw

from kebab.store.fts5.chunk_columns import ChunkColumns
from kebab.store.fts5.tokenizer import TOKENIZE


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
                [(number, *map(_storable, passages[key])) for number, key in enumerate(keys)],
            )
        found = connection.execute("SELECT rowid FROM passages WHERE passages MATCH ?", (expression,))
        return {keys[cast("int", number)] for (number,) in found}


def _storable(text: str) -> str:
    """The text with lone surrogates replaced, because SQLite refuses them."""
    return text.encode("utf-8", "replace").decode()
