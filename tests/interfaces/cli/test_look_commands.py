"""kb list, inspect, fetch and verify, with ids, beginnings of ids, paths and SOURCE:path."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Kb = Callable[..., Any]


def test_list_docs_counts_filters_and_pages(sample: Kb, sample_notes: Path) -> None:
    everything = sample("list", "docs", "--json").json()
    files = sorted(path.relative_to(sample_notes).as_posix() for path in sample_notes.rglob("*") if path.is_file())
    assert [item["doc_path"] for item in everything["items"]] == files
    assert everything["total"] == len(files)
    page = sample("list", "docs", "--limit", "2", "--offset", "1", "--json").json()
    assert [item["doc_path"] for item in page["items"]] == files[1:3]
    assert page["total"] == len(files)
    korean = sample("list", "docs", "--lang", "ko", "--type", "markdown", "--path", "한국어/*", "--json").json()
    assert {item["lang"] for item in korean["items"]} == {"ko"}
    assert korean["total"] == len(korean["items"]) > 0


def test_an_empty_list_names_the_filter_that_no_document_matches(sample: Kb) -> None:
    ran = sample("list", "docs", "--path", "foo/*")
    assert (ran.code, ran.err) == (0, "note: No document matches --path 'foo/*'.\n0 of 0 documents\n")
    assert "Formats here:" in sample("list", "docs", "--format", "xyz").err


def test_list_in_a_pipe_is_tab_separated_with_a_heading(sample: Kb) -> None:
    heading, *rows = sample("list", "docs").out.splitlines()
    assert heading.split("\t") == ["id", "source", "path", "title", "type", "lang", "chunks", "tags"]
    assert all(row.count("\t") == heading.count("\t") for row in rows)
    assert len(rows) == 23


def test_list_sources_and_list_tags_show_names_and_counts(sample: Kb, sample_notes: Path) -> None:
    (source,) = sample("list", "sources", "--json").json()["items"]
    assert (source["name"], source["kind"], source["root"]) == ("notes", "folder", str(sample_notes))
    assert source["documents"] == 23
    tags = sample("list", "tags", "--json").json()["items"]
    assert {"tag": "git", "documents": 2} in tags or any(tag["tag"] == "git" for tag in tags)
    counts = [tag["documents"] for tag in tags]
    assert counts == sorted(counts, reverse=True)


def test_list_sources_shows_the_repository_of_a_folder(kb: Kb, write_notes: Callable[..., Path]) -> None:
    commit = "0123456789" * 4
    root = write_notes({"a.md": "alpha", ".git/HEAD": "ref: refs/heads/main", ".git/refs/heads/main": commit})
    assert kb("ingest", root).code == 0
    (source,) = kb("list", "sources", "--json").json()["items"]
    assert source["repository"] == {"name": "notes", "branch": "main", "commit": commit}
    heading, row = kb("list", "sources").out.splitlines()
    assert dict(zip(heading.split("\t"), row.split("\t"), strict=True))["repository"] == "notes main 0123456789"
    (root / ".git" / "HEAD").write_text(commit)
    kb("ingest")
    assert kb("list", "sources").out.splitlines()[1].split("\t")[-2] == "notes 0123456789"
    shutil.rmtree(root / ".git")
    kb("ingest")
    assert kb("list", "sources", "--json").json()["items"][0]["repository"] is None


def test_lists_of_an_empty_corpus_are_empty(kb: Kb) -> None:
    for what in ("docs", "sources", "tags"):
        listed = kb("list", what, "--json")
        assert (listed.code, listed.json()["items"], listed.json()["total"]) == (0, [], 0)


def test_a_document_can_be_named_by_id_beginning_of_an_id_path_or_source_path(sample: Kb) -> None:
    doc_id = sample("inspect", "doc", "git/setup.md", "--json").json()["doc_id"]
    for key in (doc_id, doc_id[:8], "git/setup.md", "notes:git/setup.md"):
        shown = sample("inspect", "doc", key, "--json").json()
        assert (shown["doc_id"], shown["doc_path"], shown["title"]) == (
            doc_id,
            "git/setup.md",
            "Git installation and first-time setup",
        )
    assert shown["metadata"]["aliases"] == ["new laptop git", "git install"]
    assert [chunk["ordinal"] for chunk in shown["chunks"]] == list(range(shown["chunk_count"]))


def test_a_note_can_be_named_as_in_links_of_other_notes(kb: Kb, write_notes: Callable[..., Path]) -> None:
    """As in Obsidian: by its name in any folder, with or without heading, alias and brackets."""
    root = write_notes(
        {
            "People/Jane Roe.md": "She knows.\n",
            "Jane Roe.txt": "Not a note.\n",
            "a/Same.md": "One.\n",
            "b/Same.md": "Two.\n",
        }
    )
    assert kb("ingest", root).code == 0
    for key in (
        "Jane Roe",
        "people/jane roe",
        "[[Jane Roe]]",
        "[[People/Jane Roe#Work|our specialist]]",
        "![[Jane Roe]]",
    ):
        assert kb("fetch", "doc", key).out == "She knows.\n"
    assert kb("search", "knows", "--doc", "Jane Roe", "--json").json()["returned"] == 1
    assert kb("fetch", "doc", "Same", "--json").json()["code"] == "ambiguous"
    assert kb("fetch", "doc", "ane Roe", "--json").json()["code"] == "not_found"


def test_inspecting_a_chunk_shows_its_place_and_text(sample: Kb) -> None:
    chunk = sample("inspect", "doc", "git/setup.md", "--json").json()["chunks"][0]
    shown = sample("inspect", "chunk", chunk["chunk_id"][:10], "--json").json()
    assert (shown["chunk_id"], shown["citation"]) == (chunk["chunk_id"], chunk["citation"])
    assert shown["end_offset"] - shown["start_offset"] == len(shown["text"])
    human = sample("inspect", "chunk", chunk["chunk_id"]).out
    assert shown["text"] in human
    assert chunk["citation"]["text"] in human
    assert "chunk_count: " in sample("inspect", "doc", "git/setup.md").out


def test_fetch_prints_exactly_what_was_indexed(sample: Kb, sample_notes: Path) -> None:
    text = (sample_notes / "git" / "setup.md").read_text(encoding="utf-8")
    assert sample("fetch", "doc", "git/setup.md").out == text
    lines = "".join(text.splitlines(keepends=True)[9:12])
    for citation in ("git/setup.md#L10-L12", "git/setup.md:L10-L12", "notes:git/setup.md#L10-L12"):
        assert sample("fetch", "span", citation).out == lines
    assert sample("fetch", "span", "git/setup.md#L10").out == text.splitlines(keepends=True)[9]


def test_every_citation_of_a_search_can_be_fetched_and_holds_its_text(sample: Kb) -> None:
    hits = sample("search", "sqlite 데이터베이스 backup", "--full-text", "-k", "4", "--json").json()["hits"]
    assert hits
    for hit in hits:
        for form in ("uri", "text"):
            assert hit["text"] in sample("fetch", "span", hit["citation"][form]).out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["fetch", "span", "git/setup.md"], "usage"),
        (["fetch", "span", "git/setup.md#L1-L9999"], "not_found"),
        (["fetch", "span", "git/setup.md#L0-L1"], "not_found"),
        (["fetch", "span", "git/setup.md#L9-L3"], "not_found"),
        (["fetch", "span", "git/setup.md#page=2"], "not_found"),
        (["fetch", "span", "none.md#L1-L2"], "not_found"),
        (["fetch", "doc", "none.md"], "not_found"),
        (["fetch", "chunk", "ffffffffffffffffffff"], "not_found"),
        (["inspect", "chunk", "x"], "not_found"),
        (["list", "docs", "--type", "movie"], "usage"),
        (["list", "docs", "--after", "someday"], "usage"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else value,
)
def test_a_missing_document_is_an_error_with_a_hint(sample: Kb, arguments: list[str], code: str) -> None:
    ran = sample(*arguments, "--json")
    assert (ran.code, ran.json()["code"]) == (2, code)
    assert ran.json()["hint"]


def test_a_path_in_two_sources_is_ambiguous_until_the_source_is_named(kb: Kb, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.md").write_text(f"text of {name}\n", encoding="utf-8")
        assert kb("ingest", tmp_path / name).code == 0
    ran = kb("fetch", "span", "same.md#L1-L1", "--json")
    assert (ran.code, ran.json()["code"]) == (2, "ambiguous")
    assert "one:same.md" in ran.json()["message"]
    assert "two:same.md" in ran.json()["message"]
    assert kb("fetch", "span", "two:same.md#L1-L1").out == "text of two\n"


def test_verify_reports_passages_as_ok_moved_changed_or_gone(kb: Kb, sample_notes: Path, tmp_path: Path) -> None:
    notes = tmp_path / "copy"
    shutil.copytree(sample_notes, notes)
    assert kb("ingest", notes).code == 0
    assert kb("verify", "--strict").code == 0
    moved, changed, gone = notes / "git" / "undo.md", notes / "ops" / "backups.md", notes / "cooking" / "sourdough.md"
    body = moved.read_text(encoding="utf-8")
    moved.write_text("A line above everything.\n\n" + body, encoding="utf-8")
    changed.write_text("# Something else\n", encoding="utf-8")
    gone.unlink()
    report = kb("verify", "--json").json()
    status = {difference["citation"].partition("#")[0]: difference["status"] for difference in report["differences"]}
    assert status == {"git/undo.md": "moved", "ops/backups.md": "changed", "cooking/sourdough.md": "gone"}
    for difference in report["differences"]:
        assert (difference["now_at"] is not None) == (difference["status"] == "moved")
    assert report["ok"] > 0
    strict = kb("verify", "--strict")
    assert strict.code == 1
    assert "moved: copy:git/undo.md#L" in strict.out
    assert f"{report['documents']} documents; passages: ok {report['ok']}, moved " in strict.out
    assert kb("verify").code == 0
    assert kb("ingest", notes).code == 0
    assert kb("verify", "--strict").code == 0
