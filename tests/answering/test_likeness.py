"""Words that a model finds similar: how the checker uses them, and how it works without the model."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import pytest

from kebab.answering.citation_check import CitationChecker
from kebab.answering.sentences import sentences
from kebab.answering.source_reading import Source
from kebab.core.errors import ModelMissing
from kebab.core.ports import WordsAlike
from kebab.store.fts5.tokenizer import SqliteTokenizer

NOTE = "Long queries are scrapped after 5 minutes. The seminar is held on Mondays. Ravi owns the unpaid invoices."


def verdict(claim: str, alike: WordsAlike | None) -> str:
    sources = [Source(1, NOTE, "", tuple(sentences(NOTE)))]
    return CitationChecker(sources, SqliteTokenizer(apsw.Connection(":memory:")), alike).check(claim, [1]).verdict


def all_alike(words: Sequence[str], others: Sequence[str]) -> list[list[float]]:
    return [[0.99] * len(others) for _ in words]


def test_a_verb_that_the_model_finds_similar_supports_a_claim() -> None:
    assert verdict("Long queries are binned after 5 minutes.", None) == "unsupported"
    assert verdict("Long queries are binned after 5 minutes.", all_alike) == "supported"


@pytest.mark.parametrize(
    "claim",
    [
        "The seminar is held on Fridays.",
        "Ravi owns the paid invoices.",
        "Priya owns the unpaid invoices.",
        "Long queries are scrapped after 6 minutes.",
        "Long queries are scrapped within 5 minutes.",
        "Long queries are not scrapped after 5 minutes.",
    ],
)
def test_words_that_exclude_each_other_are_never_similar_whatever_the_model_says(claim: str) -> None:
    assert verdict(claim, all_alike) == "unsupported"


def test_without_a_loadable_model_words_are_compared_by_tables() -> None:
    def broken(words: Sequence[str], others: Sequence[str]) -> list[list[float]]:
        raise ModelMissing(f"It is gone, with {len(words)} and {len(others)} words.")

    assert verdict("Long queries are binned after 5 minutes.", broken) == "unsupported"
    assert verdict("After 5 minutes long queries are scrapped.", broken) == "supported"
