"""The citation checker against 78 hand-made pairs of claim and evidence, English and Korean, of every verdict.

What it promises is precision and recall on "supported": an unsupported claim must not pass, and a supported one must not be held back.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import apsw
import pytest
import yaml

from kebab.answering.citation_check import CitationChecker, Source
from kebab.answering.sentences import sentences
from kebab.core.answers import VERDICTS
from kebab.store.sqlite.tokenizer import SqliteTokenizer

TABLE = yaml.safe_load((Path(__file__).parents[1] / "fixtures/answers/citation_pairs.yaml").read_text("utf-8"))
PAIRS: list[dict[str, Any]] = TABLE["pairs"]


def verdict_of(pair: dict[str, Any], tokenizer: SqliteTokenizer) -> str:
    texts = [TABLE["evidence"][name] for name in pair["sources"]]
    sources = [Source(marker, text, "", tuple(sentences(text))) for marker, text in enumerate(texts, start=1)]
    return CitationChecker(sources, tokenizer).check(pair["claim"], pair["cites"]).verdict


@pytest.fixture(scope="module")
def judged() -> list[tuple[dict[str, Any], str]]:
    tokenizer = SqliteTokenizer(apsw.Connection(":memory:"))
    return [(pair, verdict_of(pair, tokenizer)) for pair in PAIRS]


def share(judged: list[tuple[dict[str, Any], str]], verdict: str) -> tuple[float, float]:
    """Precision and recall of one verdict."""
    right = sum(pair["verdict"] == given == verdict for pair, given in judged)
    given = sum(given == verdict for _, given in judged)
    expected = sum(pair["verdict"] == verdict for pair, _ in judged)
    return right / given, right / expected


def test_the_table_has_every_verdict_in_both_languages() -> None:
    assert len(PAIRS) >= 60
    for korean in (False, True):
        counted = Counter(pair["verdict"] for pair in PAIRS if any(not name.isascii() for name in pair["sources"]) is korean)
        assert set(counted) == set(VERDICTS)


def test_supported_is_right_and_complete(judged: list[tuple[dict[str, Any], str]]) -> None:
    wrong = [(pair["verdict"], given, pair["claim"]) for pair, given in judged if pair["verdict"] != given]
    precision, recall = share(judged, "supported")
    assert precision >= 0.95, wrong
    assert recall >= 0.95, wrong


@pytest.mark.parametrize("verdict", [verdict for verdict in VERDICTS if verdict != "supported"])
def test_the_other_verdicts_tell_what_is_wrong(judged: list[tuple[dict[str, Any], str]], verdict: str) -> None:
    precision, recall = share(judged, verdict)
    assert min(precision, recall) >= 0.8, [(pair["verdict"], given, pair["claim"]) for pair, given in judged if pair["verdict"] != given]
