"""Terms of a chunk that are not words of its other columns."""

from __future__ import annotations

import pytest

from kebab.analysis.terms import cjk_column, terms_of_note


def test_the_words_of_notes_come_after_the_terms_of_the_chunk() -> None:
    assert cjk_column("bigrams", "제목", "text", note_terms="team a").split() == ["제목", "목", "team", "a"]
    assert cjk_column("bigrams", "plain", "text", note_terms="team a") == "team a"
    assert cjk_column("bigrams", "plain", "text") == ""


@pytest.mark.parametrize(
    ("note", "terms"),
    [
        ("minutes of team-a", ["minutes", "of", "team-a"]),
        ("회의록", ["회의", "의록", "록"]),
        ("A팀 minutes", ["A", "minutes", "A", "팀"]),
    ],
)
def test_a_note_is_cut_into_terms_as_any_text(note: str, terms: list[str]) -> None:
    assert terms_of_note("bigrams", note).split() == terms
