"""R162 to R167: the text formats, to the letter. The golden files are what agents were taught to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from kebab.library.formatters import libraries_text, snippet_text, snippets_text

if TYPE_CHECKING:
    from tests.library.conftest import MakeLibrary, MakeSnippet

GOLDEN = Path(__file__).parents[1] / "fixtures" / "library"


def golden(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="utf-8").removesuffix("\n")


def test_r162_libraries_are_numbered_entries_with_a_blank_line_between(library: MakeLibrary) -> None:
    """R162"""
    listed = [library(), library("Bare", description="", tags=(), snippets=0, trust_score=None)]
    assert libraries_text(listed) == golden("libraries.txt")


def test_r163_no_libraries_are_a_sentence() -> None:
    """R163"""
    assert libraries_text([]) == golden("no-libraries.txt") == "No libraries found matching your search."


def test_r164_to_r167_rules_code_and_prose_are_parted_by_a_line(snippet: MakeSnippet) -> None:
    """R164, R165, R166, R167"""
    found = [
        snippet("dial = make_dial(limit=20)"),
        snippet("Any CSS colour is accepted.", "info", title="Colours"),
        snippet("make dial", title="", breadcrumb="", language=""),
        snippet("Nothing above this.", "info", title="", breadcrumb=""),
    ]
    assert snippets_text(found, ["Always close a gauge", "Never open two"]) == golden("snippets.md")


def test_r164_without_rules_there_is_no_part_for_them_and_rules_may_stand_alone(snippet: MakeSnippet) -> None:
    """R164"""
    assert snippets_text([snippet("x = 1")]).startswith("### Create a dial\n")
    assert snippets_text([], ["Always close a gauge"]) == "## Library Rules\n- Always close a gauge"
    assert snippets_text([]) == ""


@given(st.text(alphabet="`a\n ", max_size=40))
def test_code_cannot_end_its_own_fence(snippet: MakeSnippet, content: str) -> None:
    """Documentation about Markdown has fences in its examples."""
    lines = snippet_text(snippet(content, title="", breadcrumb="", language="")).split("\n")
    assert lines[0] == lines[-1]
    assert not any(line.startswith(lines[0]) for line in lines[1:-1])
