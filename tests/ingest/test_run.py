"""Ingest writes documents in groups, and the report counts the written ones."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import apsw
import pytest

import kebab
from kebab.core.documents import Repository
from kebab.core.ports import IndexedDocument
from kebab.ingest import run as pipeline
from kebab.store.sqlite.documents import SqliteDocumentStore

Notes = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of documents in each transaction."""
    sizes: list[int] = []
    write = SqliteDocumentStore.write

    def counted(self: SqliteDocumentStore, *documents: IndexedDocument) -> int:
        sizes.append(len(documents))
        return write(self, *documents)

    monkeypatch.setattr(SqliteDocumentStore, "write", counted)
    return sizes


def test_small_files_share_a_transaction_and_a_large_one_ends_it(
    tmp_path: Path, write_notes: Notes, groups: list[int]
) -> None:
    small = {f"a{number}.md": f"note {number}" for number in range(20)}
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        report = kb.ingest(write_notes({**small, "b.md": "word " * 200_000, "c.md": "last"}))
    assert (report.added, report.scanned) == (22, 22)
    assert groups == [21, 1]


def test_documents_are_written_soon_after_they_are_read(
    tmp_path: Path, write_notes: Notes, groups: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "_GROUP_SECONDS", 0.0)
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(write_notes({"a.md": "one", "b.md": "two", "c.md": "three"}))
    assert groups == [1, 1, 1]


def test_the_readme_at_the_top_of_a_source_is_called_by_the_source(tmp_path: Path, write_notes: Notes) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(write_notes({"README.md": "## Usage\n\ntext\n", "a/README.md": "text\n"}), name="garden")
        assert {document.path: document.title for document in kb.documents()} == {
            "README.md": "garden",
            "a/README.md": "a",
        }


def test_a_text_keeps_the_title_it_was_given(tmp_path: Path) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest_text("Milk.", title="List 1.2 of the week")
        assert [document.title for document in kb.documents()] == ["List 1.2 of the week"]


def test_a_file_is_found_by_its_name_as_it_is_typed(tmp_path: Path, write_notes: Notes) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(
            write_notes(
                {
                    "servers.md": "# Machines\n\nold\n",
                    "a/servers.csv": "name,ip\n",
                    "plan.md": "---\naliases: [scheme]\ntags: [work]\n---\nold\n",
                    "toc.txt": "plan.md and servers.csv and servers.md\n",
                }
            )
        )
        for name, path in (("servers.csv", "a/servers.csv"), ("servers.md", "servers.md"), ("plan.md", "plan.md")):
            assert kb.search(name, mode="lexical").hits[0].doc_path == path
        assert {document.path: document.tags for document in kb.documents()} == {
            "a/servers.csv": (),
            "plan.md": ("work",),
            "servers.md": (),
            "toc.txt": (),
        }


@pytest.mark.parametrize("after", [0, 1, 7])
def test_documents_read_before_an_interruption_are_written_and_counted(
    tmp_path: Path, write_notes: Notes, after: int
) -> None:
    seen = []

    def progress(event: str, **details: Any) -> None:
        if event == "file":
            seen.append(details["path"])
            if len(seen) > after:
                raise KeyboardInterrupt

    folder = write_notes({f"{number}.md": f"note {number}" for number in range(10)})
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        with pytest.raises(KeyboardInterrupt):
            kb.ingest(folder, progress=progress)
        assert kb.last_ingest is not None
        assert kb.last_ingest.added == kb.count_documents() == after
        assert kb.ingest(folder).added == 10 - after


def test_a_group_that_cannot_be_written_is_not_counted(
    tmp_path: Path, write_notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_notes({"a.md": "one", "b.md": "two"})
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        with monkeypatch.context() as patched:
            patched.setattr(
                SqliteDocumentStore, "_insert_chunks", lambda *_: (_ for _ in ()).throw(apsw.FullError("no room"))
            )
            with pytest.raises(kebab.KebabError) as caught:
                kb.ingest(folder)
        assert caught.value.code == "disk_full"
        assert kb.last_ingest is not None
        assert (kb.last_ingest.added, kb.last_ingest.chunks, kb.count_documents()) == (0, 0, 0)
        assert kb.ingest(folder).added == 2


# --- the repository of a source


def git_files(
    root: Path,
    *,
    branch: str = "main",
    commit: str = "ab" * 20,
    url: str = "https://user:s3cret@example.org/team/product.git",
) -> None:
    (root / ".git" / "refs" / "heads").mkdir(parents=True, exist_ok=True)
    (root / ".git" / "HEAD").write_text(f"ref: refs/heads/{branch}")
    (root / ".git" / "refs" / "heads" / branch).write_text(commit)
    (root / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {url}\n')


def test_every_ingest_records_the_checked_out_commit(tmp_path: Path, write_notes: Notes) -> None:
    root = write_notes({"docs/a.md": "alpha"})
    git_files(root)
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(root / "docs")
        assert kb.sources()[0].repository == Repository("product", "main", "ab" * 20)
        git_files(root, branch="side", commit="cd" * 20)
        kb.ingest()
        assert kb.sources()[0].repository == Repository("product", "side", "cd" * 20)
    assert b"s3cret" not in (tmp_path / "kb.sqlite").read_bytes()


def test_a_lone_file_has_the_repository_of_its_folder_and_stdin_none(tmp_path: Path, write_notes: Notes) -> None:
    root = write_notes({"a.md": "alpha"})
    git_files(root)
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(root / "a.md")
        kb.ingest_text("beta", title="b")
        assert {source.name: source.repository and source.repository.name for source in kb.sources()} == {
            "a.md": "product",
            "stdin": None,
        }


def test_a_broken_repository_does_not_stop_the_ingest(tmp_path: Path, write_notes: Notes) -> None:
    root = write_notes({"a.md": "alpha", ".git": "gitdir: nowhere"})
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        assert kb.ingest(root).added == 1
        assert kb.sources()[0].repository is None


def test_every_scanned_file_is_accounted_for(tmp_path: Path, write_notes: Notes) -> None:
    """Files without text are scanned too; files excluded by name are not."""
    root = write_notes({"a.md": "text", "empty.md": "", "binary.bin": "\0\1\2", ".hidden": "no"})
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        for added, unchanged in ((1, 0), (0, 1)):
            report = kb.ingest(root)
            assert (report.scanned, report.added, report.unchanged, report.unread) == (3, added, unchanged, 2)
        nothing = kb.ingest_text(" ", title="blank")
        assert (nothing.scanned, nothing.unread) == (1, 1)


@pytest.mark.parametrize("first", [1_600_000_000, None], ids=["old", "young"])
def test_a_touched_file_has_the_date_a_fresh_ingest_gives_it(
    tmp_path: Path, write_notes: Notes, first: int | None
) -> None:
    """Regression: it kept the date of the time before. A date in the text stays."""
    notes = write_notes(
        {
            "plain.md": "alpha",
            "code.py": "def alpha():\n    return 1\n",
            "dated.md": "---\ndate: 2024-05-31\n---\nbravo",
            "timed.md": "---\nupdated: 2024-05-31T12:00:00\n---\ncharlie",
            "2023-02-01.md": "delta",
            "letter.eml": "From: a@example.org\nDate: Fri, 31 May 2024 12:00:00 +0000\nSubject: S\n\nText\n",
        }
    )

    def dates(database: str) -> dict[str, str]:
        with kebab.open(tmp_path / database) as kb:
            report = kb.ingest(notes, embed=False)
            assert report.updated == 0
            return {document.path: document.date for document in kb.documents()}

    for moment in (first, 1_700_000_000, 1_710_000_000):
        if moment is not None:
            for file in notes.iterdir():
                os.utime(file, (moment, moment))
        followed = dates("followed.sqlite")
    assert followed == dates("fresh.sqlite")
    assert followed["plain.md"] == "2024-03-09T16:00:00"


@pytest.mark.parametrize("named", ["drafts/secret.md", ".obsidian/app.md", "lone.log"])
def test_a_named_file_that_is_left_out_is_reported(tmp_path: Path, write_notes: Notes, named: str) -> None:
    """Regression: a file inside an ignored or hidden folder was not reported."""
    root = write_notes(
        {
            ".kebabignore": "drafts/\n*.log\n",
            "a.md": "text",
            "drafts/secret.md": "text",
            ".obsidian/app.md": "text",
            "lone.log": "text",
        }
    )
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(root)
        report = kb.ingest(root / named)
        assert [(skipped.count, skipped.examples) for skipped in report.skipped.values()] == [(1, (named,))]
