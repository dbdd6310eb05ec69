"""Notes on sources: which place they are about, which texts are allowed, and the errors."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

import kebab
from kebab.core.errors import Locked, NotFound, UsageError
from kebab.ingest.sources import MOST_CHARACTERS

Notes = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def kb(tmp_path: Path, write_notes: Notes) -> Iterator[kebab.KnowledgeBase]:
    root = write_notes(
        {"team/plans.md": "the roadmap", "team/한글/a.md": "roadmap too", "other.md": "roadmap of others"}
    )
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(root)
        yield kb


def found(kb: kebab.KnowledgeBase, query: str) -> list[str]:
    return sorted(hit.doc_path for hit in kb.search(query, mode="lexical", match="all"))


@pytest.mark.parametrize("place", ["notes/team", "notes/team/", "notes//team", "notes/./team"])
def test_a_folder_is_named_after_its_source(kb: kebab.KnowledgeBase, place: str) -> None:
    done = kb.describe_source(place, "minutes of team-a")
    assert (done.place, done.before, done.chunks) == ("notes/team", None, 2)
    assert found(kb, "team-a roadmap") == ["team/plans.md", "team/한글/a.md"]


def test_hits_have_only_the_notes_above_them(kb: kebab.KnowledgeBase) -> None:
    kb.describe_source("notes/team", "minutes")
    kb.describe_source("notes/team/한글", "korean")
    assert {hit.doc_path: hit.context for hit in kb.search("roadmap", mode="lexical")} == {
        "team/plans.md": ("minutes",),
        "team/한글/a.md": ("minutes", "korean"),
        "other.md": (),
    }


def test_a_name_decomposed_as_macos_does_is_the_same_folder(kb: kebab.KnowledgeBase) -> None:
    import unicodedata

    assert kb.describe_source(unicodedata.normalize("NFD", "notes/team/한글"), "한글").place == "notes/team/한글"


def test_a_source_whose_name_has_a_slash_is_found_before_a_folder(tmp_path: Path, kb: kebab.KnowledgeBase) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.md").write_text("the roadmap")
    kb.ingest(tmp_path / "more", name="notes/team")
    done = kb.describe_source("notes/team", "the source")
    assert (done.source, done.folder) == ("notes/team", "")


def test_an_unknown_source_is_an_error_that_names_the_known_ones(kb: kebab.KnowledgeBase) -> None:
    with pytest.raises(NotFound, match=r"There is no source note\.") as caught:
        kb.describe_source("note/team", "x")
    assert caught.value.hint == "Sources: notes."


def test_a_folder_without_documents_is_refused_and_the_others_are_named(kb: kebab.KnowledgeBase) -> None:
    with pytest.raises(NotFound, match="no document in tem") as caught:
        kb.describe_source("notes/tem", "x")
    assert caught.value.hint == "Folders there: team."
    assert kb.sources()[0].notes == ()


def test_the_note_of_an_emptied_folder_can_be_removed(kb: kebab.KnowledgeBase, tmp_path: Path) -> None:
    kb.describe_source("notes/team", "minutes")
    for file in (tmp_path / "notes" / "team").rglob("*.md"):
        file.unlink()
    kb.ingest()
    assert [note.folder for note in kb.sources()[0].notes] == ["team"]
    assert kb.describe_source("notes/team", "").before == "minutes"
    assert kb.sources()[0].notes == ()


def test_an_empty_text_removes_the_note_and_reports_if_there_was_none(kb: kebab.KnowledgeBase) -> None:
    kb.describe_source("notes", "minutes")
    assert kb.describe_source("notes", " \n ")[2:] == (None, "minutes", 3)
    assert kb.describe_source("notes", "")[2:] == (None, None, 0)
    assert found(kb, "minutes roadmap") == []


def test_a_note_is_one_line_of_bounded_length(kb: kebab.KnowledgeBase) -> None:
    assert kb.describe_source("notes", "two\n\tlines\x1fhere").text == "two lines here"
    assert kb.describe_source("notes", "x" * MOST_CHARACTERS).text
    with pytest.raises(UsageError, match="at most 1,000 characters; this one has 1,001"):
        kb.describe_source("notes", "x" * (MOST_CHARACTERS + 1))


def test_describing_a_source_waits_for_the_lock(kb: kebab.KnowledgeBase) -> None:
    with (
        kebab.open(kb.path, store_lock_wait_s=0.1) as second,
        kb.session.store.writing("a test"),
        pytest.raises(Locked, match="a test"),
    ):
        second.describe_source("notes", "minutes")


def test_a_note_counts_towards_a_budget_of_tokens(kb: kebab.KnowledgeBase) -> None:
    assert len(kb.search("roadmap", mode="lexical", max_tokens=40).hits) == 3
    kb.describe_source("notes", "word " * 100)
    assert len(kb.search("roadmap", mode="lexical", max_tokens=40).hits) == 1


def test_a_changed_analysis_is_settled_first(kb: kebab.KnowledgeBase, tmp_path: Path) -> None:
    from kebab.store.index_versions import fts_config
    from kebab.store.sqlite.database import Database

    with closing(Database(kb.path).writer()) as connection:
        connection.remember("fts_config", json.dumps({**fts_config("bigrams"), "analysis": 0}))
    kb.describe_source("notes/team", "minutes")
    assert kb.search("minutes roadmap", mode="lexical").notices == ()
