"""Candidate queries come from the user's own headings, and make a golden set that can be run."""

from __future__ import annotations

from pathlib import Path

import yaml

import kebab
from kebab.core.search import SearchFilters
from kebab.evaluation.files import load_golden_set
from kebab.evaluation.runner import RunOptions, run
from kebab.evaluation.suggestions import as_yaml, suggest


def test_suggestions_form_a_golden_set_whose_lines_contain_their_headings(
    sample_kb: kebab.KnowledgeBase, tmp_path: Path
) -> None:
    suggestions = suggest(sample_kb, count=40)
    assert len(suggestions) == 40
    assert len({suggestion.id for suggestion in suggestions}) == 40
    for suggestion in suggestions:
        (span,) = suggestion.expected_spans
        first = sample_kb.fetch_span(span).text.splitlines()
        assert suggestion.query.rpartition(": ")[2].split()[0] in first[0]
        assert len(first) > 1, "a heading with nothing below it answers nothing"
    path = tmp_path / "golden.yaml"
    path.write_text(as_yaml(suggestions), encoding="utf-8")
    report = run(sample_kb, load_golden_set(path), RunOptions(search={"mode": "lexical"}))
    assert report.metrics["hit@10"] == 1.0
    assert report.metrics["citation_line_recall@10"] > 0.9


def test_every_document_gives_one_suggestion_before_any_gives_two(sample_kb: kebab.KnowledgeBase) -> None:
    documents = [suggestion.expected_docs[0] for suggestion in suggest(sample_kb, count=15)]
    assert len(set(documents)) == 15
    assert any("가" <= character <= "힣" for character in "".join(documents))


def test_filters_choose_the_documents_of_suggestions(sample_kb: kebab.KnowledgeBase) -> None:
    suggestions = suggest(sample_kb, SearchFilters(path_glob="rust/*.md"), count=100)
    assert {suggestion.expected_docs[0] for suggestion in suggestions} == {
        "rust/error-handling.md",
        "rust/workspace.md",
    }


def test_a_general_heading_is_given_with_the_heading_above_it(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "page.md").write_text(
            f"# Page {name}\n\n## How to begin here\n\nText of {name}.\n\n## Usage\n\nMore.\n\n## Empty\n"
        )
    with kebab.open(tmp_path / "db.sqlite") as knowledge_base:
        knowledge_base.ingest(tmp_path / "one", tmp_path / "two")
        suggestions = suggest(knowledge_base)
    assert [(suggestion.query, suggestion.expected_spans) for suggestion in suggestions] == [
        ("Page one: How to begin here", ["one:page.md#L3-L5"]),
        ("Page two: How to begin here", ["two:page.md#L3-L5"]),
        ("Page one: Usage", ["one:page.md#L7-L9"]),
        ("Page two: Usage", ["two:page.md#L7-L9"]),
    ]


def test_documents_without_headings_give_no_suggestions(tmp_path: Path) -> None:
    with kebab.open(tmp_path / "db.sqlite") as knowledge_base:
        knowledge_base.ingest_text("no heading at all", title="plain")
        assert suggest(knowledge_base) == []
    assert yaml.safe_load(as_yaml([])) is None
