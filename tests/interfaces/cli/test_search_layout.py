"""What kb search shows around a hit: where else it stands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Kb = Callable[..., Any]

NOTES = {
    **{f"copy{number}.md": "# Okapi\n\nThe okapi lives in the forest.\n" for number in range(6)},
    "other.md": "# Zoo\n\nThe okapi was in the zoo.\n",
}


@pytest.fixture(scope="module")
def copies_db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import kebab

    folder = tmp_path_factory.mktemp("search-layout")
    (folder / "notes").mkdir()
    for path, text in NOTES.items():
        (folder / "notes" / path).write_text(text, encoding="utf-8")
    with kebab.open(folder / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(folder / "notes", embed=False)
    return folder / "kb.sqlite"


@pytest.fixture
def search(kb: Kb, copies_db: Path) -> Kb:
    def run(*arguments: str, **options: Any) -> Any:
        return kb("--db", copies_db, "search", "--mode", "lexical", *arguments, **options)

    return run


def test_copies_are_named_on_one_line_and_the_rest_counted(search: Kb) -> None:
    ran = search("okapi forest", "--match", "all")
    assert ran.code == 0, ran.err
    named = [line for line in ran.out.splitlines() if "also in:" in line]
    assert len(named) == 1
    assert named[0].startswith("   also in: copy")
    assert named[0].count(".md:L1-L3") == 3
    assert named[0].endswith(" (+2)")
    assert "returned: 1" in ran.out


def test_copies_are_in_the_json_with_their_citations(search: Kb) -> None:
    hits = search("okapi", "--json").json()["hits"]
    assert [len(hit["duplicates"]) for hit in hits] == [5, 0]
    for copy in hits[0]["duplicates"]:
        assert set(copy) == {"chunk_id", "doc_id", "doc_path", "source", "citation"}
        assert copy["citation"]["uri"] == f"{copy['doc_path']}#L1-L3"


def test_copies_may_be_shown_one_by_one(search: Kb) -> None:
    ran = search("okapi", "--duplicates", "show")
    assert "also in" not in ran.out
    assert "returned: 7" in ran.out


def test_every_line_of_a_bulk_may_decide_for_itself(search: Kb) -> None:
    lines = [{"query": "okapi"}, {"query": "okapi", "duplicates": "show"}, {"query": "okapi", "duplicates": "all"}]
    ran = search("--bulk", input="".join(json.dumps(line) + "\n" for line in lines))
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert [answer.get("returned") for answer in answers] == [2, 7, None]
    assert answers[2]["code"] == "usage"
    assert "fold, show" in answers[2]["hint"]


def test_another_way_is_a_usage_error(search: Kb) -> None:
    ran = search("okapi", "--duplicates", "hide")
    assert ran.code == 2
    assert "fold, show" in ran.err
