"""What kb search prints around a hit: its copies, its neighbours, and hits grouped by document."""

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
    "long.md": "# Long\n\n" + "".join(f"## Part {number}\n\ngnu {'word ' * 200}end{number}\n\n" for number in range(3)),
    "more.md": "# More\n\nA gnu.\n",
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


def test_the_first_copies_of_a_hit_are_named_on_one_line_and_the_rest_counted(search: Kb) -> None:
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


def test_with_duplicates_show_copies_are_printed_as_separate_hits(search: Kb) -> None:
    ran = search("okapi", "--duplicates", "show")
    assert "also in" not in ran.out
    assert "returned: 7" in ran.out


def test_every_bulk_line_may_choose_how_copies_are_shown(search: Kb) -> None:
    lines = [{"query": "okapi"}, {"query": "okapi", "duplicates": "show"}, {"query": "okapi", "duplicates": "all"}]
    ran = search("--bulk", input="".join(json.dumps(line) + "\n" for line in lines))
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert [answer.get("returned") for answer in answers] == [2, 7, None]
    assert answers[2]["code"] == "usage"
    assert "fold, show" in answers[2]["hint"]


def test_an_unknown_value_for_duplicates_is_a_usage_error(search: Kb) -> None:
    ran = search("okapi", "--duplicates", "hide")
    assert ran.code == 2
    assert "fold, show" in ran.err


def test_grouped_hits_are_printed_in_one_block_per_document(search: Kb) -> None:
    out = search("gnu", "--group").out
    assert out.count("doc: long.md (Long)\n") == 1
    assert out.count("doc: more.md (More)\n") == 1
    assert "   doc:" not in out
    assert out.count("   citation: long.md:") == 3
    block = out.split("doc: long.md (Long)\n")[1].split("doc: ")[0]
    assert block.count("   citation: ") == 3
    assert out.endswith("returned: 4\n")


def test_groups_in_the_json_list_ranks_and_the_hits_keep_their_order(search: Kb) -> None:
    grouped, plain = search("gnu", "--group", "--json").json(), search("gnu", "--json").json()
    assert plain["groups"] is None
    assert [hit["chunk_id"] for hit in grouped["hits"]] == [hit["chunk_id"] for hit in plain["hits"]]
    ranks = [group["ranks"] for group in grouped["groups"]]
    assert sorted(rank for of_one in ranks for rank in of_one) == [1, 2, 3, 4]
    for group in grouped["groups"]:
        assert {grouped["hits"][rank - 1]["doc_path"] for rank in group["ranks"]} == {group["doc_path"]}
    assert search("zeppelin", "--group", "--json").json()["groups"] == []


def test_neighbours_are_printed_around_the_hit(search: Kb) -> None:
    lines = search("end1", "--neighbours", "1").out.splitlines()
    (hit,) = [number for number, line in enumerate(lines) if line.startswith("1. [")]
    (before,) = [number for number, line in enumerate(lines) if line.startswith("   before: long.md:L")]
    (after,) = [number for number, line in enumerate(lines) if line.startswith("   after: long.md:L")]
    assert before < hit < after
    assert any("end0" in line for line in lines[before:hit])
    assert any("end2" in line for line in lines[after:])


def test_neighbours_in_the_json_have_citations_of_their_own(search: Kb) -> None:
    hit = search("end0", "--neighbours", "2", "--json").json()["hits"][0]
    assert hit["neighbours"]["before"] == []
    assert [one["citation"]["section"] for one in hit["neighbours"]["after"]] == ["Part 1", "Part 2"]
    assert search("end0", "--json").json()["hits"][0]["neighbours"] is None


@pytest.mark.parametrize("wrong", ["6", "-1"])
def test_too_many_neighbours_are_a_usage_error(search: Kb, wrong: str) -> None:
    ran = search("gnu", "--neighbours", wrong)
    assert ran.code == 2
    assert "0 to 5" in ran.err


def test_lines_of_a_bulk_may_ask_for_groups_and_neighbours(search: Kb) -> None:
    lines = [
        {"query": "end1", "neighbours": 1, "group": True},
        {"query": "end1", "neighbours": 9},
        {"query": "end1", "group": "x"},
    ]
    first, second, third = (
        json.loads(line)
        for line in search("--bulk", input="".join(json.dumps(line) + "\n" for line in lines)).out.splitlines()
    )
    assert len(first["groups"]) == 1
    assert [len(side) for side in first["hits"][0]["neighbours"].values()] == [1, 1]
    assert (second["code"], third["code"]) == ("usage", "usage")
