"""kb ingest: its report, its progress events, of which exactly one ends the run, and text from stdin."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kebab.interfaces.cli.ingest import _Remarks

Kb = Callable[..., Any]

FILES = {
    "a.md": "# A\n\nquagga\n",
    "sub/b.txt": "okapi\n",
    "broken.md": "---\nx: [\n---\n# Broken\n",
    "binary.dat": "\0\1\2",
    "empty.md": "\n\n",
    ".hidden.md": "secret\n",
    ".gitignore": "ignored.md\n",
    "ignored.md": "ignored\n",
}


def test_the_report_counts_everything_and_names_examples(kb: Kb, write_notes: Callable[..., Path]) -> None:
    ran = kb("ingest", write_notes(FILES), "--json")
    report = ran.json()
    assert ran.code == 0
    assert (report["sources"], report["added"], report["updated"], report["unchanged"], report["removed"]) == (
        ["notes"],
        3,
        0,
        0,
        0,
    )
    skipped = {item["reason"]: (item["count"], item["examples"]) for item in report["skipped"]}
    assert skipped["binary"] == (1, ["binary.dat"])
    assert skipped["empty"] == (1, ["empty.md"])
    assert skipped["ignored"] == (1, ["ignored.md"])
    assert skipped["hidden"] == (1, [".hidden.md"])
    assert [(item["path"], item["code"]) for item in report["warnings"]] == [("broken.md", "parse")]
    assert report["failed"] == []
    assert report["interrupted"] is False


def test_ingest_is_idempotent_and_remembers_its_sources(kb: Kb, write_notes: Callable[..., Path]) -> None:
    notes = write_notes(FILES)
    kb("ingest", notes)
    again = kb("ingest", "--json").json()
    assert (again["added"], again["updated"], again["unchanged"], again["removed"], again["chunks"]) == (0, 0, 3, 0, 0)
    (notes / "a.md").write_text("# A\n\nzebra now\n", encoding="utf-8")
    (notes / "sub" / "b.txt").unlink()
    third = kb("ingest", notes, "--json").json()
    assert (third["added"], third["updated"], third["unchanged"], third["removed"]) == (0, 1, 1, 1)
    assert kb("search", "zebra", "--json").json()["returned"] == 1
    assert kb("search", "quagga okapi", "--json").json()["returned"] == 0


def test_progress_as_json_ends_with_exactly_one_terminal_event(
    kb: Kb, write_notes: Callable[..., Path], tmp_path: Path
) -> None:
    notes = write_notes(FILES)
    for arguments, terminal in (((notes,), "done"), ((tmp_path / "missing",), "failed"), ((), "done")):
        ran = kb("ingest", *arguments, "--progress", "json", "--json")
        events = [json.loads(line)["event"] for line in ran.err.splitlines() if line.startswith("{")]
        ends = [event for event in events if event in ("done", "failed", "interrupted")]
        assert ends == [terminal]
        assert events[-1] == terminal
        assert (ran.code == 0) == (terminal == "done")
        assert len(ran.out.splitlines()) == 1


def test_unread_files_are_counted_in_the_report(kb: Kb, write_notes: Callable[..., Path]) -> None:
    ran = kb("ingest", write_notes({"a.md": "text", "empty.md": ""}))
    assert "2 files" in ran.out
    assert (
        "  added 1, updated 0, unchanged 0, removed 0, not indexed 1 (see below)\n  skipped 1 (no text in it): empty.md\n"
        in ran.out
    )


def test_the_counts_of_the_report_add_up_to_its_lines(kb: Kb, write_notes: Callable[..., Path]) -> None:
    """Regression: files excluded by name were in the lines below the counts, but in no count."""
    out = kb("ingest", write_notes({"a.md": "text", "empty.md": "", ".hidden.md": "text"})).out
    assert "not indexed 1, not looked at 1 (see below)" in out
    assert out.count("  skipped 1 (") == 2


def test_no_embed_and_progress_none_are_accepted(kb: Kb, write_notes: Callable[..., Path]) -> None:
    ran = kb("ingest", write_notes(FILES), "--no-embed", "--progress", "none")
    assert ran.code == 0
    assert "added 3" in ran.out
    assert ran.err == ""


def test_the_name_of_a_new_source_is_kept_and_can_be_filtered_by(kb: Kb, write_notes: Callable[..., Path]) -> None:
    notes = write_notes(FILES)
    assert kb("ingest", notes, "--name", "mine").code == 0
    assert kb("search", "quagga", "--source", "mine", "--json").json()["returned"] == 1
    renamed = kb("ingest", notes, "--name", "other", "--json")
    assert (renamed.code, renamed.json()["code"]) == (2, "source_error")


def test_stdin_becomes_a_document_that_can_be_replaced(kb: Kb) -> None:
    assert kb("ingest", "-", "--title", "Shopping list", "--json", input="milk and quagga").json()["added"] == 1
    assert kb("ingest", "-", "--title", "Shopping list", "--json", input="milk and quagga").json()["unchanged"] == 1
    assert kb("ingest", "-", "--title", "Shopping list", "--json", input="bread").json()["updated"] == 1
    hit = kb("search", "bread", "--json").json()["hits"][0]
    assert (hit["doc_path"], hit["title"], hit["source"], hit["doc_type"]) == (
        "Shopping list",
        "Shopping list",
        "stdin",
        "note",
    )
    assert kb("search", "quagga", "--json").json()["returned"] == 0


def test_stdin_in_korean_legacy_encoding_is_read(kb: Kb) -> None:
    assert kb("ingest", "-", "--title", "T", input="한글 문서를 찾는다".encode("cp949")).code == 0
    assert kb("search", "문서", "--json").json()["returned"] == 1


@pytest.mark.parametrize(
    ("arguments", "data", "code"),
    [
        (["-"], "x", "usage"),
        (["-", "other", "--title", "T"], "x", "usage"),
        (["--title", "T", "."], "", "usage"),
        (["-", "--title", "  "], "x", "usage"),
        (["-", "--title", "T"], b"\0\1", "parse_error"),
        ([], "", "usage"),
        (["/no/such/folder"], "", "source_error"),
        ([".", "--progress", "loud"], "", "usage"),
    ],
    ids=["no-title", "mixed", "title-without-stdin", "blank-title", "binary", "nothing-yet", "missing", "bad-progress"],
)
def test_mistakes_are_clear_errors(kb: Kb, arguments: list[str], data: str | bytes, code: str) -> None:
    ran = kb("ingest", *arguments, "--json", input=data)
    assert (ran.code, ran.json()["code"]) == (2, code)
    assert ran.json()["message"]
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    "value",
    [".inf", ":".join(["59"] * 4000), "-.inf", ".nan", "9" * 5000, '"\\uD800"'],
    ids=["inf", "sexagesimal", "minus", "nan", "digits", "surrogate"],
)
def test_strange_values_in_front_matter_do_not_affect_the_document(
    kb: Kb, write_notes: Callable[..., Path], value: str
) -> None:
    notes = write_notes({"strange.md": f"---\ntitle: T\nvalue: {value}\n---\nquagga\n", "z.md": "another quagga\n"})
    ran = kb("ingest", notes, "--json")
    assert ran.code == 0, ran.err[-300:]
    assert kb("search", "quagga", "--json").json()["returned"] == 2
    listed = kb("list", "docs", "--json")
    assert (listed.code, listed.json()["total"]) == (0, 2)


def test_the_human_report_says_what_was_skipped_and_why(kb: Kb, write_notes: Callable[..., Path]) -> None:
    out = kb("ingest", write_notes(FILES)).out
    assert "added 3, updated 0, unchanged 0, removed 0" in out
    assert "skipped 1 (excluded by .gitignore or .kebabignore): ignored.md" in out
    assert kb("ingest", "--quiet").out == ""


def test_without_a_terminal_one_line_is_printed_before_many_vectors_are_made(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An ingest makes all missing vectors, and a log without new lines looks like a failure."""
    with _Remarks() as progress:
        progress("file", path="a.md", done=1, total=4000)
        assert capsys.readouterr().err == ""
        for done in (64, 128):
            progress("embedding", path="model", done=done, total=27_748)
    said = capsys.readouterr().err
    assert said.startswith("At least 27,748 vectors are to be made now")
    assert said.count("\n") == 1
    with _Remarks() as progress:
        progress("embedding", path="model", done=1, total=97)
    assert capsys.readouterr().err == ""
