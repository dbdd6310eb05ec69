"""The filter of an expression on terms selects the chunks that FTS5 finds or, for phrases, at least these."""

from __future__ import annotations

from typing import Any

import pytest

from kebab.store.fts5.chunk_columns import ChunkColumns
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.fts5.wanted_terms import IndexTerm, matching
from kebab.store.qdrant.filters import term_filter

TEXTS = ["red apple", "green apple", "red pear", "apple red", "pear", "red green apple pear"]
TOKENIZER = SqliteTokenizer()


def passes(condition: dict[str, Any], terms: set[str]) -> bool:
    """Whether terms pass a filter as Qdrant reads it."""
    if "key" in condition:
        return condition["match"]["value"] in terms
    return (
        all(passes(part, terms) for part in condition.get("must", ()))
        and (not condition.get("should") or any(passes(part, terms) for part in condition["should"]))
        and not any(passes(part, terms) for part in condition.get("must_not", ()))
    )


def name(term: IndexTerm) -> Any:
    """The name of a term instead of its number, to make failures readable."""
    return term.text


@pytest.mark.parametrize(
    ("expression", "is_exact"),
    [
        ('"apple"', True),
        ('"red" AND "apple"', True),
        ('"red" OR "pear"', True),
        ('"red" OR "green" AND "pear"', True),
        ('("red") NOT ("pear")', True),
        ('("red" AND "apple") NOT (("pear") OR ("green"))', True),
        ('("apple" OR "pear") AND ("green")', True),
        ('"red apple"', False),
        ('("apple") NOT ("red apple")', False),
        ('"red apple" OR "pear"', False),
        ('"say ""red"" apple" OR "pear"', False),
        ('"AND" OR "pear"', True),
    ],
)
def test_the_term_filter_selects_the_chunks_that_fts5_finds(expression: str, is_exact: bool) -> None:
    found = term_filter(expression, TOKENIZER.stems, name)
    assert found is not None
    assert found.is_exact is is_exact
    passing = {text for text in TEXTS if passes(found.condition, set(TOKENIZER.stems(text)))}
    expected = matching(expression, {text: ChunkColumns("", text, "", "") for text in TEXTS})
    assert passing == expected if is_exact else passing >= expected


def test_an_expression_without_words_gives_no_filter() -> None:
    assert term_filter('"…"', TOKENIZER.stems, name) is None
