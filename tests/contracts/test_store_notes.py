"""What every store promises of notes on sources and folders: their words are words of every passage below, and of no
other.
"""

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


def test_the_words_of_a_note_are_words_of_every_chunk_below_it_and_of_no_other(noted: Corpus) -> None:
    assert noted.note("team", TEAM) == 3
    assert sorted(noted.search("team-a roadmap")) == BELOW
    assert noted.search("meetings passage") == ["team/plans.md"]
    assert noted.search("team-a roadmap", sources=("other",)) == []
    assert noted.note("team", TEAM) == 0, "the same again changes nothing"
    assert noted.is_healthy()


def test_a_note_taken_away_or_replaced_leaves_no_word_behind(noted: Corpus) -> None:
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


def test_notes_of_source_and_folders_add_up_the_outermost_first(noted: Corpus) -> None:
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


def test_a_document_that_comes_later_has_the_words_too(noted: Corpus) -> None:
    noted.note("team", TEAM)
    noted.write_all(
        noted.document("team/new.md", "the roadmap is new"), noted.document("team/plans.md", "the roadmap was edited")
    )
    assert set(noted.search("team-a roadmap")) == {"team/new.md", *BELOW}
    assert noted.write("team/new.md", "the roadmap is new") == 0


def test_ids_and_vectors_stay(noted: Corpus, toy: type[Toy]) -> None:
    embedder, before = toy.embedder("model"), noted.ids()
    noted.embed(embedder)
    noted.note("team", TEAM)
    assert noted.ids() == before
    assert noted.pending(embedder) == []


def test_a_half_typed_word_of_a_note_is_widened(noted: Corpus) -> None:
    noted.note("team", "the xylophonists")
    assert sorted(noted.search("roadmap xylopho*")) == BELOW
    with noted.writing() as writing:
        writing.rebuild_fts()
    assert sorted(noted.search("roadmap xylopho*")) == BELOW


def test_forgetting_a_source_forgets_its_notes(noted: Corpus) -> None:
    noted.note("team", TEAM)
    with noted.writing() as writing:
        writing.documents().remove_source("notes")
    noted.write("team/plans.md", "the roadmap comes back")
    assert noted.search("team-a") == []
    with noted.writing() as writing:
        assert list(writing.notes().notes("notes")) == []


def test_the_note_of_a_lone_file_goes_with_it_into_its_folder(corpus: Corpus) -> None:
    corpus.write_all(corpus.document("a.md", "alpha", source="a.md"), corpus.document("deep/b.md", "alpha"))
    corpus.note("", "the first letter", source="a.md")
    with corpus.writing() as writing:
        writing.documents().absorb_source("a.md", "notes", "deep/a.md")
    corpus.write("deep/a.md", "alpha")
    with corpus.writing() as writing:
        assert list(writing.notes().notes("notes")) == [ContextNote("deep/a.md", "the first letter")]
    assert corpus.search("letter alpha") == ["deep/a.md"]
