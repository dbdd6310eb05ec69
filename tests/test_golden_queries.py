"""The golden queries over samples/notes (R071): sound judgements, and a lexical quality that must not fall."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import kebab
from kebab.core.citations import parse
from kebab.core.spans import LineSpan
from kebab.core.text import LineTable

SAMPLES = Path(__file__).parent.parent / "samples"
GOLDEN: list[dict[str, Any]] = yaml.safe_load((SAMPLES / "golden.yaml").read_text(encoding="utf-8"))
ANSWERABLE = [entry for entry in GOLDEN if not entry.get("unanswerable")]

# What was measured, less a small margin; raise them when search gets better.
LEAST_HIT_AT_10 = 0.98
LEAST_HIT_AT_1 = 0.95
LEAST_SPAN_RECALL_AT_10 = 0.98


def test_the_set_is_large_enough_and_its_ids_are_unique() -> None:
    """R071."""
    assert len(GOLDEN) >= 50
    assert len({entry["id"] for entry in GOLDEN}) == len(GOLDEN)
    assert any("가" <= character <= "힣" for entry in GOLDEN for character in entry["query"])
    assert len(GOLDEN) > len(ANSWERABLE)


@pytest.mark.parametrize("entry", GOLDEN, ids=lambda entry: entry["id"])
def test_every_expected_document_exists_and_every_span_holds_what_it_must(entry: dict[str, Any]) -> None:
    """R071."""
    assert set(entry) <= {"id", "query", "expected_docs", "expected_spans", "must_contain", "group", "unanswerable"}
    assert bool(entry.get("unanswerable")) == (not entry["expected_docs"])
    assert all((SAMPLES / "notes" / path).is_file() for path in entry["expected_docs"])
    for written in entry["expected_spans"]:
        path, span = parse(written)
        assert isinstance(span, LineSpan)
        assert path in entry["expected_docs"]
        lines = LineTable((SAMPLES / "notes" / path).read_bytes().decode())
        assert 1 <= span.start <= span.end <= len(lines)
        shown = lines.slice(span.start, span.end).split("\n")
        assert all(any(needle in line for line in shown) for needle in entry["must_contain"])


def test_lexical_search_answers_the_golden_queries(sample_kb: kebab.KnowledgeBase, record_property: Any) -> None:
    """R060, R071: hit@10, hit@1 and the share of expected spans that a hit of the top ten covers at least in part."""
    hits_at_10 = hits_at_1 = spans = spans_found = 0
    missed = []
    for entry in ANSWERABLE:
        found = sample_kb.search(entry["query"], k=10, mode="lexical").hits
        right = [hit.doc_path in entry["expected_docs"] for hit in found]
        hits_at_10 += any(right)
        hits_at_1 += right[:1] == [True]
        if not any(right):
            missed.append(entry["id"])
        for written in entry["expected_spans"]:
            path, span = parse(written)
            assert isinstance(span, LineSpan)
            cited = [hit.citation.lines for hit in found if hit.doc_path == path]
            spans += 1
            spans_found += any(lines is not None and lines[0] <= span.end and span.start <= lines[1] for lines in cited)
    measured = {"hit@10": hits_at_10 / len(ANSWERABLE), "hit@1": hits_at_1 / len(ANSWERABLE), "span recall@10": spans_found / spans}
    for name, value in measured.items():
        record_property(name, round(value, 4))
    assert measured["hit@10"] >= LEAST_HIT_AT_10, missed
    assert measured["hit@1"] >= LEAST_HIT_AT_1, measured
    assert measured["span recall@10"] >= LEAST_SPAN_RECALL_AT_10, measured
