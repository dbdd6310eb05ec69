"""One test for each problem that users met."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import kebab

Write = Callable[[Mapping[str, str]], Path]


def test_hits_of_several_sources_name_their_source(kb: Any, write_notes: Write, tmp_path: Path) -> None:
    folder = write_notes({"a/plan.md": "penguin plan\n", "b/plan.md": "penguin plan\n"})
    kb("ingest", folder / "a", folder / "b")
    shown = kb("search", "penguin", "--duplicates", "show").out
    assert "   source: a\n" in shown
    assert "   source: b\n" in shown
    folded = kb("search", "penguin").out
    assert re.search(r"   source: (a|b)\n   also in: (?!\1)[ab]:plan\.md:L1-L1\n", folded), folded
    assert "source:" not in kb("search", "penguin", "--source", "a").out


def test_open_goes_to_where_the_passage_stands_now(kb: Any, write_notes: Write, tmp_path: Path) -> None:
    note = write_notes({"mint.md": "# Mint\n\nmint likes shade\n"}) / "mint.md"
    kb("ingest", note.parent)
    note.write_text("one\ntwo\nthree\n" + note.read_text())
    assert "at line 4" in kb("search", "mint", "--open", "1", env={"EDITOR": "true"}).err


def test_an_email_is_cited_by_the_lines_of_its_file(kb: Any, write_notes: Write) -> None:
    text = "Received: by nobody\nSubject: zoo\n\nHello,\n\nthe penguin has\nmoved.\n"
    folder = write_notes({"a.eml": text})
    kb("ingest", folder)
    (hit,) = kb("search", "penguin", "--json").json()["hits"]
    assert hit["citation"]["text"] == "a.eml:L2-L7"
    assert kb("fetch", "span", "a.eml#L6-L7").out == "the penguin has\nmoved.\n"
    assert "at line 2" in kb("search", "penguin", "--open", "1", env={"EDITOR": "true"}).err
    assert kb("verify").code == 0
    (folder / "a.eml").write_text("X-More: 1\n" + text)
    assert "a.eml#L2-L7 -> a.eml#L3-L8" in kb("verify").out


def test_open_refuses_a_file_that_is_gone_and_makes_none(kb: Any, write_notes: Write) -> None:
    note = write_notes({"zoo.md": "penguin\n"}) / "zoo.md"
    kb("ingest", note.parent)
    note.unlink()
    ran = kb("search", "penguin", "--open", "1", "--json", env={"EDITOR": "touch"})
    assert (ran.code, ran.json()["code"]) == (2, "not_found")
    assert not note.exists()


def test_a_missing_source_does_not_swallow_the_report_of_the_others(kb: Any, write_notes: Write) -> None:
    folder = write_notes({"aaa/x.md": "walrus\n", "zzz/y.md": "a walrus\n"})
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


def test_a_search_for_some_of_the_words_has_a_notice(kb: Any, write_notes: Write) -> None:
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


def test_an_unreadable_date_is_reported(kb: Any, write_notes: Write) -> None:
    report = kb("ingest", write_notes({"a.md": "---\ndate: May 1, 2024\n---\nwalrus\n"}), "--json").json()
    assert [(entry["path"], "May 1, 2024" in entry["message"]) for entry in report["warnings"]] == [("a.md", True)]


def test_malformed_front_matter_names_its_line_in_the_file(kb: Any, write_notes: Write) -> None:
    report = kb("ingest", write_notes({"a.md": "---\ntitle: x\ntags: [a\n---\nwalrus\n"}), "--json").json()
    assert "line 3" in report["warnings"][0]["message"] or "line 4" in report["warnings"][0]["message"]
    assert "unicode string" not in report["warnings"][0]["message"]


def test_a_note_is_found_by_its_file_name(kb: Any, write_notes: Write) -> None:
    kb(
        "ingest",
        write_notes({"recipes/kimchi.md": "# 김치 담그기\n\n배추\n", "2024-03-04-standup.md": "# Monday\n\ntext\n"}),
    )
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
    from kebab.store.sqlite.writer_lock import writer_lock

    database = tmp_path / "kb.sqlite"
    with writer_lock(database, wait_s=0, purpose="first"):
        database.with_name("kb.sqlite.lock").unlink()
        with (
            writer_lock(database, wait_s=0, purpose="second"),
            pytest.raises(Locked),
            writer_lock(database, wait_s=0, purpose="third"),
        ):
            pass


@pytest.mark.parametrize("content", [b"my thesis\n", b"SQLite format 3\0" + b"\0" * 100])
def test_reset_deletes_nothing_but_a_knowledge_base(content: bytes, kb: Any, tmp_path: Path) -> None:
    file = tmp_path / "thesis.txt"
    file.write_bytes(content)
    ran = kb("--db", file, "reset", "--yes", "--json")
    assert (ran.code, ran.json()["code"]) == (2, "corrupt")
    assert file.read_bytes() == content


def test_reset_deletes_a_damaged_knowledge_base(kb: Any, write_notes: Write, tmp_path: Path) -> None:
    database = tmp_path / "kb.sqlite"
    kb("--db", database, "ingest", write_notes({"a.md": "walrus\n"}))
    database.write_bytes(database.read_bytes()[:8192] + b"\xff" * 20_000)
    assert kb("--db", database, "reset", "--yes").code == 0
    assert not database.exists()


def test_no_control_character_of_a_note_reaches_the_terminal(kb: Any, write_notes: Write) -> None:
    evil = "# e \x1b]0;pwn\x07\n\nescword \x1b[2J \x9b31m walrus\n"
    kb("ingest", write_notes({"e.md": evil, "new\nline\x1b[2J.md": "escword\n"}))
    for command in (
        ("search", "escword"),
        ("search", "escword", "--full-text", "--explain"),
        ("list", "docs"),
        ("inspect", "doc", "e.md"),
    ):
        ran = kb(*command)
        assert ran.code == 0
        assert not set(ran.out + ran.err) & set("\x1b\x07\x9b")
        assert "\n line" not in ran.out
        assert "\nline\x1b" not in ran.out


def test_a_raw_expression_cannot_keep_the_program_busy(kb: Any, write_notes: Write) -> None:
    kb("ingest", write_notes({"a.md": "walrus\n"}))
    ran = kb("search", "'" + " OR ".join(["walrus"] * 1000) + "'", "--json")
    assert (ran.code, ran.json()["code"]) == (2, "invalid_query")


def test_a_known_word_after_hundreds_of_unknown_ones_is_still_found(kb: Any, write_notes: Write) -> None:
    kb("ingest", write_notes({"a.md": "walrus\n"}))
    pasted = " ".join(f"unknownword{number}" for number in range(2000)) + " walrus"
    assert kb("search", "--bulk", input='{"query": "' + pasted + '"}\n').json()["returned"] == 1


def test_a_korean_phrase_is_found_in_its_order_only(kb: Any, write_notes: Write) -> None:
    kb("ingest", write_notes({"a.md": "나이 제한이 있다\n"}))
    assert kb("search", '"나이 제한이"', "--json").json()["returned"] == 1
    assert kb("search", '"나이 제한"', "--json").json()["returned"] == 1  # the last word may go on
    assert kb("search", '"제한이 나이"', "--json").json()["returned"] == 0


def test_malformed_front_matter_is_neither_title_nor_heading(kb: Any, write_notes: Write) -> None:
    kb("ingest", write_notes({"a.md": "---\ntags: [unclosed\nfoo: bar\n---\n\nbody walrus\n"}))
    document = kb("inspect", "doc", "a.md", "--json").json()
    assert document["title"] == "a"
    assert kb("search", "unclosed", "--json").json()["returned"] == 1  # its text is still found


def test_title_and_headings_without_end_leave_room_for_the_passage(kb: Any, write_notes: Write, tmp_path: Path) -> None:
    from kebab.core.documents import context_of
    from kebab.core.text import estimate_tokens

    notes = write_notes({"a.md": "# " + "word " * 1500 + "\n\n" + "Some text follows here. " * 200})
    with kebab.open(tmp_path / "kb.sqlite") as base:
        base.ingest(notes)
        record, chunks = base.document("a.md")
        assert all(
            estimate_tokens(context_of(record.title, chunk.heading_path)) + estimate_tokens(chunk.text) <= 480
            for chunk in chunks
        )


@pytest.mark.parametrize("arguments", [("search", "x", "--tags", ","), ("search", "x", "--lang", ""), ("ingest", "")])
def test_an_empty_option_is_an_error_and_no_option_left_out(arguments: tuple[str, ...], kb: Any) -> None:
    assert (kb(*arguments, "--json").code, kb(*arguments, "--json").json()["code"]) == (2, "usage")


def test_of_two_unicode_forms_of_a_name_verify_reads_the_one_that_was_indexed(kb: Any, tmp_path: Path) -> None:
    (tmp_path / "\u1100\u1161.md").write_text("decomposed\n")
    (tmp_path / "\uac00.md").write_text("composed\n")
    kb("ingest", tmp_path, "--db", tmp_path.parent / f"{tmp_path.name}.sqlite")
    assert kb("verify", "--strict", "--db", tmp_path.parent / f"{tmp_path.name}.sqlite").code == 0


def test_a_backup_of_a_damaged_database_blames_the_right_file(kb: Any, write_notes: Write, tmp_path: Path) -> None:
    database = tmp_path / "kb.sqlite"
    kb("--db", database, "ingest", write_notes({f"{number}.md": f"walrus {number} " * 200 for number in range(50)}))
    database.write_bytes(database.read_bytes()[: 5 * 8192] + b"\xff" * 8192 * 3)
    ran = kb("--db", database, "backup", tmp_path / "copy.sqlite", "--json")
    assert ran.code == 2
    assert ran.json()["path"] == str(database), "not the copy, which is as it should be"
    assert "copy.sqlite" not in ran.json()["message"]
    assert not (tmp_path / "copy.sqlite").exists()


def test_a_language_without_documents_has_a_notice(kb: Any, write_notes: Write) -> None:
    kb("ingest", write_notes({"a.md": "walrus in English"}))
    notices = kb("search", "walrus", "--lang", "xx", "--json").json()["notices"]
    assert "unknown_lang" in [notice["code"] for notice in notices]
