"""What every store must do with notes on sources and folders: their words find every passage below and no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kebab.core.records import ContextNote

if TYPE_CHECKING:
    from tests.conftest import Toy
    from tests.contracts.stores import Corpus

TEAM = "meeting notes of team-a"
BELOW = ["team/deep/more.md", "team/plans.md"]


@pytest.fixture
def noted(corpus: Corpus) -> Corpus:
    corpus.write_all(
        corpus.document("team/plans.md", "the roadmap of this year", "another passage"),
        corpus.document("team/deep/more.md", "a roadmap of the next one"),
        corpus.document("teams.md", "a roadmap of nobody"),
        corpus.document("team/plans.md", "a roadmap elsewhere", source="other"),
    )
    return corpus


def test_words_of_a_note_find_every_chunk_below_it_and_no_other(noted: Corpus) -> None:
    assert noted.note("team", TEAM) == 3
    assert sorted(noted.search("team-a roadmap")) == BELOW
    assert noted.search("meetings passage") == ["team/plans.md"]
    assert noted.search("team-a roadmap", sources=("other",)) == []
    assert noted.note("team", TEAM) == 0, "the same again changes nothing"
    assert noted.is_healthy()


def test_words_of_a_removed_or_replaced_note_find_nothing(noted: Corpus) -> None:
    noted.note("team", TEAM)
    noted.note("team", "what the gardeners wrote")
    assert noted.search("team-a roadmap") == []
    assert sorted(noted.search("gardener roadmap")) == BELOW
    with noted.writing() as writing:
        notes = writing.notes()
        assert list(notes.notes("notes")) == [ContextNote("team", "what the gardeners wrote")]
        assert sorted(notes.source_names()) == ["notes", "other"]
    assert noted.note("team", "") == 3
    assert noted.search("gardener roadmap") == []
    assert noted.is_healthy()


def test_a_chunk_has_the_notes_of_its_source_and_folders_the_outermost_first(noted: Corpus) -> None:
    for folder, text in (
        ("team/deep", "innermost"),
        ("", "everything I have"),
        ("team", TEAM),
        ("teams.md", "one file"),
    ):
        noted.note(folder, text)
    expected = {
        ("notes", "team/plans.md"): ("everything I have", TEAM),
        ("notes", "team/deep/more.md"): ("everything I have", TEAM, "innermost"),
        ("notes", "teams.md"): ("everything I have", "one file"),
        ("other", "team/plans.md"): (),
    }
    chunks = noted.chunks()
    assert {(chunk.source, chunk.doc_path): chunk.context for chunk in chunks} == expected
    with noted.reading() as reading:
        found = reading.chunks().contexts([chunk.chunk_id for chunk in chunks])
        assert {(context.source, context.doc_path): context.notes for context in found.values()} == expected
        assert reading.catalog.find_document("team/deep/more.md").context == expected["notes", "team/deep/more.md"]
        assert {source.name: source.notes for source in reading.catalog.sources()} == {
            "notes": (
                ContextNote("", "everything I have"),
                ContextNote("team", TEAM),
                ContextNote("teams.md", "one file"),
                ContextNote("team/deep", "innermost"),
            ),
            "other": (),
        }
    assert noted.search("innermost everything team-a") == ["team/deep/more.md"]


def test_korean_notes_are_found_inside_longer_words_and_without_particles(noted: Corpus) -> None:
    noted.note("team", "개발팀의 회의록과 kubernetes는 여기")
    for query in (
        "회의록 roadmap",
        "회의 roadmap",
        "개발팀이 roadmap",
        '"개발팀의 회의록" roadmap',
        "kubernetes roadmap",
    ):
        assert sorted(noted.search(query)) == BELOW, query
    assert noted.search("회식 roadmap") == []


def test_words_of_a_note_find_documents_that_are_added_later(noted: Corpus) -> None:
    noted.note("team", TEAM)
    noted.write_all(
        noted.document("team/new.md", "the roadmap is new"), noted.document("team/plans.md", "the roadmap was edited")
    )
    assert set(noted.search("team-a roadmap")) == {"team/new.md", *BELOW}
    assert noted.write("team/new.md", "the roadmap is new") == 0


def test_adding_a_note_keeps_ids_and_vectors(noted: Corpus, toy: type[Toy]) -> None:
    embedder, before = toy.embedder("model"), noted.ids()
    noted.embed(embedder)
    noted.note("team", TEAM)
    assert noted.ids() == before
    assert noted.pending(embedder) == []


def test_a_prefix_of_a_word_of_a_note_finds_its_chunks(noted: Corpus) -> None:
    noted.note("team", "the xylophonists")
    assert sorted(noted.search("roadmap xylopho*")) == BELOW
    with noted.writing() as writing:
        writing.rebuild_fts()
    assert sorted(noted.search("roadmap xylopho*")) == BELOW


def test_removing_a_source_removes_its_notes(noted: Corpus) -> None:
    noted.note("team", TEAM)
    with noted.writing() as writing:
        writing.documents().remove_source("notes")
    noted.write("team/plans.md", "the roadmap comes back")
    assert noted.search("team-a") == []
    with noted.writing() as writing:
        assert list(writing.notes().notes("notes")) == []


def test_the_note_of_a_single_file_source_is_kept_when_its_folder_becomes_the_source(corpus: Corpus) -> None:
    corpus.write_all(corpus.document("a.md", "alpha", source="a.md"), corpus.document("deep/b.md", "alpha"))
    corpus.note("", "the first letter", source="a.md")
    with corpus.writing() as writing:
        writing.documents().absorb_source("a.md", "notes", "deep/a.md")
    corpus.write("deep/a.md", "alpha")
    with corpus.writing() as writing:
        assert list(writing.notes().notes("notes")) == [ContextNote("deep/a.md", "the first letter")]
    assert corpus.search("letter alpha") == ["deep/a.md"]
