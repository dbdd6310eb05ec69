"""One test for each thing that people stumbled over while using the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import kebab

Write = Callable[[Mapping[str, str]], Path]


def test_hits_of_several_sources_name_their_source(kb: Any, write_notes: Write, tmp_path: Path) -> None:
    folder = write_notes({"a/plan.md": "penguin plan\n", "b/plan.md": "penguin plan\n"})
    kb("ingest", folder / "a", folder / "b")
    shown = kb("search", "penguin").out
    assert "   source: a\n" in shown
    assert "   source: b\n" in shown
    assert "source:" not in kb("search", "penguin", "--source", "a").out


def test_open_goes_to_where_the_passage_stands_now(kb: Any, write_notes: Write, tmp_path: Path) -> None:
    note = write_notes({"mint.md": "# Mint\n\nmint likes shade\n"}) / "mint.md"
    kb("ingest", note.parent)
    note.write_text("one\ntwo\nthree\n" + note.read_text())
    assert "at line 4" in kb("search", "mint", "--open", "1", env={"EDITOR": "true"}).err


def test_open_refuses_a_file_that_is_gone_and_makes_none(kb: Any, write_notes: Write) -> None:
    note = write_notes({"zoo.md": "penguin\n"}) / "zoo.md"
    kb("ingest", note.parent)
    note.unlink()
    ran = kb("search", "penguin", "--open", "1", "--json", env={"EDITOR": "touch"})
    assert (ran.code, ran.json()["code"]) == (2, "not_found")
    assert not note.exists()


def test_a_missing_source_does_not_swallow_the_report_of_the_others(kb: Any, write_notes: Write) -> None:
    folder = write_notes({"aaa/x.md": "walrus\n", "zzz/y.md": "walrus\n"})
    kb("ingest", folder / "aaa", folder / "zzz")
    (folder / "aaa").rename(folder / "elsewhere")
    (folder / "zzz" / "w.md").write_text("another walrus\n")
    ran = kb("ingest")
    assert ran.code == 2
    assert "added 1" in ran.out
    assert "aaa is not there" in ran.err
    assert kb("search", "walrus", "--json").json()["returned"] == 3  # nothing was swept


def test_a_source_can_be_forgotten(kb: Any, write_notes: Write) -> None:
    folder = write_notes({"a/x.md": "walrus\n", "b/y.md": "walrus\n"})
    kb("ingest", folder / "a", folder / "b")
    assert kb("source", "remove", "a", "--json").json()["code"] == "usage"  # it asks first
    assert kb("source", "remove", "a", "--yes").out == "The source a is forgotten: 1 document.\n"
    assert [hit["source"] for hit in kb("search", "walrus", "--json").json()["hits"]] == ["b"]
    assert kb("source", "remove", "a", "--yes", "--json").json()["code"] == "not_found"
    assert kb("doctor").code == 0


def test_falling_back_to_some_of_the_words_is_said(kb: Any, write_notes: Write) -> None:
    kb("ingest", write_notes({"a.md": "renewing by hand\n", "b.md": "hand luggage rules\n"}))
    assert "No passage has all the words" in kb("search", "hand walrus").err
    assert "No passage has all the words" not in kb("search", "hand luggage").err
    assert "No passage has all the words" not in kb("search", "walrus").err  # none of them: that is said otherwise


def test_a_tiny_score_is_not_shown_as_nothing(kb: Any, write_notes: Write) -> None:
    kb("ingest", write_notes({"a.md": "Hello there\n"}))
    assert "[<0.01]" in kb("search", "hello there").out


@pytest.mark.parametrize("written", ["2024/05/01", "2024.5.1", "2024-05", "2024-05-01"])
def test_dates_in_common_forms_are_understood(written: str, kb: Any, write_notes: Write) -> None:
    kb("ingest", write_notes({"a.md": f"---\ndate: {written}\n---\nwalrus\n"}))
    assert kb("inspect", "doc", "a.md", "--json").json()["date"] == "2024-05-01"


def test_a_date_that_is_not_understood_is_said(kb: Any, write_notes: Write) -> None:
    report = kb("ingest", write_notes({"a.md": "---\ndate: May 1, 2024\n---\nwalrus\n"}), "--json").json()
    assert [(entry["path"], "May 1, 2024" in entry["message"]) for entry in report["warnings"]] == [("a.md", True)]


def test_malformed_front_matter_names_its_line_in_the_file(kb: Any, write_notes: Write) -> None:
    report = kb("ingest", write_notes({"a.md": "---\ntitle: x\ntags: [a\n---\nwalrus\n"}), "--json").json()
    assert "line 3" in report["warnings"][0]["message"] or "line 4" in report["warnings"][0]["message"]
    assert "unicode string" not in report["warnings"][0]["message"]


def test_a_note_is_found_by_its_file_name(kb: Any, write_notes: Write) -> None:
    kb("ingest", write_notes({"recipes/kimchi.md": "# 김치 담그기\n\n배추\n", "2024-03-04-standup.md": "# Monday\n\ntext\n"}))
    assert kb("search", "kimchi", "--json").json()["hits"][0]["doc_path"] == "recipes/kimchi.md"
    assert kb("search", "standup", "--json").json()["hits"][0]["doc_path"] == "2024-03-04-standup.md"


def test_a_path_as_typed_in_the_shell_finds_its_document(kb: Any, write_notes: Write) -> None:
    folder = write_notes({"garden/tomato.md": "one\ntwo\n"})
    kb("ingest", folder)
    assert kb("fetch", "span", "notes/garden/tomato.md:L2-L2", cwd=folder.parent).out == "two\n"
    assert kb("fetch", "doc", folder / "garden" / "tomato.md").out == "one\ntwo\n"
    assert kb("search", "two", "--doc", folder / "garden" / "tomato.md", "--json").json()["returned"] == 1


def test_verify_says_when_it_lists_only_some(write_notes: Write, tmp_path: Path) -> None:
    notes = write_notes({f"{number}.md": f"passage {number}\n" for number in range(1005)})
    with kebab.open(tmp_path / "kb.sqlite") as base:
        base.ingest(notes)
        for file in notes.iterdir():
            file.unlink()
        report = base.verify()
    assert (report.gone, len(report.differences), report.truncated) == (1005, 1000, True)


def test_an_index_of_its_own_is_kept_out_of_git(kb: Any, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    kb("init", "--here", cwd=project)
    assert (project / ".kebab" / ".gitignore").read_text() == "*\n"


def test_two_processes_after_a_reset_cannot_both_be_the_writer(tmp_path: Path) -> None:
    from kebab.core.errors import Locked
    from kebab.store.sqlite.writer_lock import WriterLock

    database = tmp_path / "kb.sqlite"
    with WriterLock(database, wait_s=0, purpose="first"):
        database.with_name("kb.sqlite.lock").unlink()
        with WriterLock(database, wait_s=0, purpose="second"), pytest.raises(Locked), WriterLock(database, wait_s=0, purpose="third"):
            pass
