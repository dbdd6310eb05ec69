"""The citation checker against 291 hand-made pairs of claim and evidence, English and Korean, of every verdict.

What it promises is precision and recall on "supported": an unsupported claim must not pass, and a supported one must not be held back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
import yaml

from kebab.answering.citation_check import CitationChecker
from kebab.answering.sentences import sentences
from kebab.answering.source_reading import Source
from kebab.core.answers import VERDICTS
from kebab.store.fts5.tokenizer import SqliteTokenizer

TABLE = yaml.safe_load((Path(__file__).parents[1] / "fixtures/answers/citation_pairs.yaml").read_text("utf-8"))
PARTS: dict[str, dict[str, Any]] = {
    "first": TABLE,
    **{name: TABLE[name] for name in ("second", "unseen", "adversarial", "side_by_side", "held_out")},
}
"""All but the last shaped the checker; the last was written before it and looked at twice, as its comment says."""

Judged = list[tuple[dict[str, Any], str]]


def verdict_of(pair: dict[str, Any], evidence: dict[str, str], tokenizer: SqliteTokenizer) -> str:
    texts = [evidence[name] for name in pair["sources"]]
    sources = [Source(marker, text, "", tuple(sentences(text))) for marker, text in enumerate(texts, start=1)]
    return CitationChecker(sources, tokenizer).check(pair["claim"], pair["cites"]).verdict


@pytest.fixture(scope="module")
def judged() -> dict[str, Judged]:
    tokenizer = SqliteTokenizer(apsw.Connection(":memory:"))
    return {name: [(pair, verdict_of(pair, part["evidence"], tokenizer)) for pair in part["pairs"]] for name, part in PARTS.items()}


def share(judged: Judged, verdict: str) -> tuple[float, float]:
    """Precision and recall of one verdict."""
    right = sum(pair["verdict"] == given == verdict for pair, given in judged)
    given = sum(given == verdict for _, given in judged)
    expected = sum(pair["verdict"] == verdict for pair, _ in judged)
    return right / given, right / expected


def wrong(judged: Judged) -> list[tuple[str, str, str]]:
    return [(pair["verdict"], given, pair["claim"]) for pair, given in judged if pair["verdict"] != given]


def test_the_table_has_every_verdict_in_both_languages() -> None:
    pairs = TABLE["pairs"]
    assert len(pairs) >= 60
    for korean in (False, True):
        counted = Counter(pair["verdict"] for pair in pairs if any(not name.isascii() for name in pair["sources"]) is korean)
        assert set(counted) == set(VERDICTS)


@pytest.mark.parametrize("part", PARTS)
def test_supported_is_right_and_complete(judged: dict[str, Judged], part: str, record_property: Callable[[str, object], None]) -> None:
    precision, recall = share(judged[part], "supported")
    record_property(f"{part}: precision, recall", (round(precision, 3), round(recall, 3)))
    assert precision >= 0.95, wrong(judged[part])
    assert recall >= 0.90, wrong(judged[part])


@pytest.mark.parametrize("verdict", [verdict for verdict in VERDICTS if verdict != "supported"])
def test_the_other_verdicts_tell_what_is_wrong(judged: dict[str, Judged], verdict: str) -> None:
    every = [pair for part in judged.values() for pair in part]
    assert min(share(every, verdict)) >= 0.9, wrong(every)
