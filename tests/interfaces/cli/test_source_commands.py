"""kb source describe and kb source remove: their output and their JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

Kb = Callable[..., Any]
Notes = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def notes(kb: Kb, write_notes: Notes) -> Kb:
    assert kb("ingest", write_notes({"team/plans.md": "the roadmap", "other.md": "a roadmap of others"})).code == 0
    return kb


def test_a_note_is_shown_with_hits_lists_and_inspected_things(notes: Kb) -> None:
    assert (
        notes("source", "describe", "notes/team", "minutes of team-a").out
        == "notes/team is described: 1 chunk indexed again.\n"
    )
    notes("source", "describe", "notes", "회사 문서")
    ran = notes("search", "--match", "all", "team-a roadmap")
    assert "   context: 회사 문서 > minutes of team-a\n" in ran.out
    assert ran.out.endswith("returned: 1\n")
    (hit,) = notes("search", "--match", "all", "team-a roadmap", "--json").json()["hits"]
    assert hit["context"] == ["회사 문서", "minutes of team-a"]
    (source,) = notes("list", "sources", "--json").json()["items"]
    assert source["notes"] == [{"folder": None, "text": "회사 문서"}, {"folder": "team", "text": "minutes of team-a"}]
    heading, row = notes("list", "sources").out.splitlines()
    assert dict(zip(heading.split("\t"), row.split("\t"), strict=True))["notes"] == "회사 문서; team: minutes of team-a"
    assert "context: 회사 문서 > minutes of team-a\n" in notes("inspect", "chunk", hit["chunk_id"]).out
    assert notes("inspect", "chunk", hit["chunk_id"], "--json").json()["context"] == hit["context"]
    assert notes("inspect", "doc", "team/plans.md", "--json").json()["context"] == hit["context"]


def test_sources_without_notes_are_listed_without_them(notes: Kb) -> None:
    assert "context" not in notes("search", "roadmap").out
    assert [hit["context"] for hit in notes("search", "roadmap", "--json").json()["hits"]] == [[], []]


@pytest.mark.parametrize("arguments", [("--remove",), ("",)], ids=["--remove", "an empty text"])
def test_source_describe_removes_a_note(notes: Kb, arguments: tuple[str, ...]) -> None:
    notes("source", "describe", "notes", "minutes")
    assert (
        notes("source", "describe", "notes", *arguments).out
        == "The note on notes is taken away: 2 chunks indexed again.\n"
    )
    done = notes("source", "describe", "notes", *arguments, "--json").json()
    assert (done["schema_version"], done["command"], done["message"]) == (
        "done.v1",
        "source describe",
        "notes had no note.",
    )


@pytest.mark.parametrize("arguments", [("notes",), ("notes", "text", "--remove")])
def test_source_describe_takes_a_text_or_remove_but_not_both(notes: Kb, arguments: tuple[str, ...]) -> None:
    ran = notes("source", "describe", *arguments)
    assert (ran.code, ran.err.splitlines()[0]) == (2, "Error: kb source describe takes a TEXT, or --remove.")


def test_a_long_note_is_cut_on_its_line_and_whole_in_json(notes: Kb) -> None:
    text = "word " * 199 + "last"
    notes("source", "describe", "notes", text)
    (line, *_) = (line for line in notes("search", "roadmap").out.splitlines() if line.startswith("   context: "))
    assert (len(line) < 220, line[-1]) == (True, "…")
    assert notes("search", "roadmap", "--json").json()["hits"][0]["context"] == [text]


def test_a_note_cannot_send_control_characters_to_the_terminal(notes: Kb) -> None:
    notes("source", "describe", "notes", "a\x1b[31mred")
    assert "\x1b" not in notes("search", "roadmap").out
    assert "\x1b" not in notes("list", "sources").out


def test_an_explanation_says_that_a_note_matched(notes: Kb) -> None:
    notes("source", "describe", "notes/team", "minutes")
    assert (
        "   matched: text: roadmap; context: minut\n"
        in notes("search", "--match", "all", "minutes roadmap", "--explain").out
    )


def test_source_describe_without_a_database_is_an_error(kb: Kb) -> None:
    ran = kb("source", "describe", "notes", "text", "--json")
    assert (ran.code, ran.json()["code"]) == (2, "not_found")


def test_removing_an_unknown_source_fails_without_asking_for_confirmation(notes: Kb) -> None:
    ran = notes("source", "remove", "nope")
    assert (ran.code, ran.err) == (2, "Error: There is no source nope.\n  Sources: notes.\n")
    assert notes("source", "remove", "notes").err.startswith("Error: kb source remove drops everything")
