"""Notes on sources and folders: stored with the terms of every chunk below them, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kebab.core.errors import Corrupt
from kebab.core.records import ContextNote
from kebab.store.sqlite import maintenance
from kebab.store.sqlite.catalog import SqliteCatalog
from kebab.store.sqlite.chunk_contexts import SqliteChunkReader
from kebab.store.sqlite.context_notes import SqliteNoteStore

if TYPE_CHECKING:
    from tests.conftest import Toy
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
    return SqliteNoteStore(shelf.connection, shelf.path, korean_analysis=shelf.korean)


def terms(shelf: Shelf) -> dict[str, str]:
    """Of every chunk, by its text."""
    return dict(shelf.rows("SELECT text, cjk FROM chunks"))


def test_the_words_of_a_note_are_words_of_every_chunk_below_it_and_of_no_other(corpus: Shelf) -> None:
    assert notes_of(corpus).put("notes", TEAM) == 3
    assert corpus.search("team-a roadmap") == ["team/plans.md", "team/deep/more.md"]
    assert corpus.search("meetings passage") == ["team/plans.md"]
    assert corpus.search("team-a roadmap", sources=("other",)) == []
    corpus.check_text_index()


def test_a_note_taken_away_leaves_no_word_behind(corpus: Shelf) -> None:
    before = terms(corpus)
    notes_of(corpus).put("notes", TEAM)
    assert notes_of(corpus).remove("notes", TEAM) == 3
    assert terms(corpus) == before
    assert corpus.search("team-a roadmap") == []
    corpus.check_text_index()


def test_another_note_takes_the_place_of_the_first(corpus: Shelf) -> None:
    notes_of(corpus).put("notes", TEAM)
    notes_of(corpus).put("notes", ContextNote("team", "what the gardeners wrote"))
    assert corpus.search("team-a roadmap") == []
    assert corpus.search("gardener roadmap") == ["team/plans.md", "team/deep/more.md"]
    assert notes_of(corpus).notes("notes") == [ContextNote("team", "what the gardeners wrote")]


def test_the_same_note_again_changes_nothing(corpus: Shelf) -> None:
    notes_of(corpus).put("notes", TEAM)
    assert notes_of(corpus).put("notes", TEAM) == 0


def test_notes_of_source_and_folders_add_up_the_outermost_first(corpus: Shelf) -> None:
    for note in (ContextNote("team/deep", "innermost"), ContextNote("", "everything I have"), TEAM, ContextNote("teams.md", "one file")):
        notes_of(corpus).put("notes", note)
    found = SqliteChunkReader(corpus.connection).contexts([chunk for (chunk,) in corpus.rows("SELECT chunk_id FROM chunks")])
    assert {(context.source, context.doc_path): context.notes for context in found.values()} == {
        ("notes", "team/plans.md"): ("everything I have", TEAM.text),
        ("notes", "team/deep/more.md"): ("everything I have", TEAM.text, "innermost"),
        ("notes", "teams.md"): ("everything I have", "one file"),
        ("other", "team/plans.md"): (),
    }
    assert corpus.search("innermost everything team-a") == ["team/deep/more.md"]
    (notes, other) = ((source.name, source.notes) for source in reversed(SqliteCatalog(corpus.connection).sources()))
    assert other == (
        "notes",
        (ContextNote("", "everything I have"), TEAM, ContextNote("teams.md", "one file"), ContextNote("team/deep", "innermost")),
    )
    assert notes == ("other", ())


def test_korean_notes_are_found_inside_longer_words_and_without_particles(corpus: Shelf) -> None:
    notes_of(corpus).put("notes", ContextNote("team", "개발팀의 회의록과 kubernetes는 여기"))
    for query in ("회의록 roadmap", "회의 roadmap", "개발팀이 roadmap", '"개발팀의 회의록" roadmap', "kubernetes roadmap"):
        assert corpus.search(query) == ["team/plans.md", "team/deep/more.md"], query
    assert corpus.search("회식 roadmap") == []


def test_a_document_that_comes_later_has_the_words_too(corpus: Shelf) -> None:
    notes_of(corpus).put("notes", TEAM)
    corpus.write("team/new.md", "the roadmap is new")
    corpus.write("team/plans.md", "the roadmap was edited")
    assert set(corpus.search("team-a roadmap")) == {"team/new.md", "team/plans.md", "team/deep/more.md"}
    assert corpus.write("team/new.md", "the roadmap is new") == 0


def test_ids_rows_and_vectors_stay(corpus: Shelf, toy: type[Toy]) -> None:
    embedder = toy.embedder("model")
    corpus.give(embedder, {row: embedder.embed([text], "passage")[0] for text, row in corpus.chunk_rows().items()})
    rows = "SELECT c.id, c.chunk_id, d.id, d.doc_id, v.vector_id FROM chunks c JOIN documents d ON d.id = c.document_id JOIN chunks_vec v ON v.chunk = c.id"
    before = corpus.rows(rows)
    notes_of(corpus).put("notes", TEAM)
    assert corpus.rows(rows) == before


def test_a_half_typed_word_of_a_note_is_widened(corpus: Shelf) -> None:
    notes_of(corpus).put("notes", ContextNote("team", "the xylophonists"))
    assert corpus.search("roadmap xylopho*") == ["team/plans.md", "team/deep/more.md"]
    maintenance.rebuild_fts(corpus.connection, corpus.path, "bigrams")
    assert corpus.search("roadmap xylopho*") == ["team/plans.md", "team/deep/more.md"]


def test_forgetting_a_source_forgets_its_notes(corpus: Shelf) -> None:
    notes_of(corpus).put("notes", TEAM)
    corpus.store.remove_source("notes")
    assert corpus.value("SELECT count(*) FROM context_notes") == 0


def test_the_note_of_a_lone_file_goes_with_it_into_its_folder(shelf: Shelf) -> None:
    shelf.write("a.md", "alpha", source="a.md")
    notes_of(shelf).put("a.md", ContextNote("", "the first letter"))
    shelf.add_source("notes")
    shelf.store.absorb_source("a.md", "notes", "deep/a.md")
    shelf.write("deep/a.md", "alpha")
    shelf.write("deep/b.md", "alpha")
    assert notes_of(shelf).notes("notes") == [ContextNote("deep/a.md", "the first letter")]
    assert shelf.search("letter alpha") == ["deep/a.md"]


def test_what_fails_half_way_leaves_neither_note_nor_terms(corpus: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
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
STEPS = st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(["", "team-a writes", "회의록 of A팀", "한국어 문서"])), max_size=6)


@settings(max_examples=25)
@given(steps=STEPS)
def test_however_notes_came_and_went_a_rebuild_gives_the_same(shared_shelf: Shelf, steps: list[tuple[str, str]]) -> None:
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
    maintenance.rebuild_fts(shelf.connection, shelf.path, "bigrams")
    assert terms(shelf) == step_by_step
    shelf.check_text_index()
