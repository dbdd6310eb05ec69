"""Notes on sources and folders are stored together with the terms of every chunk below them. Their effect is tested in
the contract of every store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab.core.errors import Corrupt
from kebab.core.records import ContextNote
from kebab.store.sqlite.documents import SqliteNoteStore, SqliteWriting

if TYPE_CHECKING:
    from tests.store.conftest import Shelf

TEAM = ContextNote("team", "meeting notes of team-a")


@pytest.fixture
def corpus(shelf: Shelf) -> Shelf:
    shelf.write("team/plans.md", "the roadmap of this year", "another passage")
    shelf.write("team/deep/more.md", "a roadmap of the next one")
    shelf.write("teams.md", "a roadmap of nobody")
    shelf.write("team/plans.md", "a roadmap elsewhere", source="other")
    return shelf


def notes_of(shelf: Shelf) -> SqliteNoteStore:
    return SqliteNoteStore(shelf.connection, korean_analysis=shelf.korean)


def terms(shelf: Shelf) -> dict[str, str]:
    """The note terms of every chunk, by its text."""
    return dict(shelf.rows("SELECT text, cjk FROM chunks"))


def test_a_failed_note_leaves_neither_note_nor_terms(corpus: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    before = terms(corpus)
    really = SqliteNoteStore._changed_terms

    def stumbling(self: SqliteNoteStore, *arguments: Any) -> Any:
        yield from list(really(self, *arguments))[:1]
        raise apsw.CorruptError("in the middle")

    monkeypatch.setattr(SqliteNoteStore, "_changed_terms", stumbling)
    with pytest.raises(Corrupt):
        notes_of(corpus).put("notes", TEAM)
    monkeypatch.undo()
    assert terms(corpus) == before
    assert notes_of(corpus).notes("notes") == []
    assert notes_of(corpus).put("notes", TEAM) == 3
    corpus.check_text_index()


PLACES = ["", "team", "team/deep", "team/plans.md", "teams.md", "elsewhere"]
STEPS = st.lists(
    st.tuples(st.sampled_from(PLACES), st.sampled_from(["", "team-a writes", "회의록 of A팀", "한국어 문서"])),
    max_size=6,
)


@settings(max_examples=25)
@given(steps=STEPS)
def test_a_rebuild_gives_the_same_terms_as_any_sequence_of_notes(
    shared_shelf: Shelf, steps: list[tuple[str, str]]
) -> None:
    shelf = shared_shelf
    shelf.write("team/plans.md", "the roadmap of this year", "한국어 문단")
    shelf.write("team/deep/more.md", "a roadmap of the next one")
    store = notes_of(shelf)
    for number, (folder, text) in enumerate(steps):
        note = ContextNote(folder, text)
        if text:
            store.put("notes", note)
        else:
            store.remove("notes", note)
        shelf.write("teams.md", f"a roadmap of nobody {number}")
    step_by_step = terms(shelf)
    shelf.check_text_index()
    SqliteWriting(shelf.connection, "bigrams").rebuild_fts()
    assert terms(shelf) == step_by_step
    shelf.check_text_index()
