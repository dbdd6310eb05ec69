"""Hits whose file has changed say so, and a search may say how many files wait for an ingest."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import kebab
from kebab.pipelines.freshness import pending_notice

Notes = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def notes(write_notes: Notes) -> Path:
    folder = write_notes({"a.md": "okapi one", "b.md": "okapi two", "sub/c.md": "okapi three", "skipped.bin": "\x00\x01" * 50})
    for path in folder.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))  # old enough that its time says something
    os.utime(folder, (1_700_000_000, 1_700_000_000))
    return folder


@pytest.fixture
def kb(tmp_path: Path, notes: Path) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(tmp_path / "kb.sqlite", search_freshness="check") as opened:
        opened.ingest(notes)
        yield opened


def stale(kb: kebab.KnowledgeBase) -> list[str]:
    return sorted(hit.doc_path for hit in kb.search("okapi") if hit.stale)


def pending(kb: kebab.KnowledgeBase) -> list[str]:
    return [notice.message.split(":")[0] for notice in kb.search("okapi").notices if notice.code == "pending"]


def test_nothing_is_stale_right_after_an_ingest(kb: kebab.KnowledgeBase) -> None:
    assert (stale(kb), pending(kb)) == ([], [])


def test_a_changed_a_grown_and_a_deleted_file_are_stale_and_pending(kb: kebab.KnowledgeBase, notes: Path) -> None:
    (notes / "a.md").write_text("okapi now")
    (notes / "b.md").unlink()
    assert stale(kb) == ["a.md", "b.md"]
    assert pending(kb) == ["2 files pending"]
    kb.ingest()
    assert (stale(kb), pending(kb)) == ([], [])


def test_a_new_file_is_pending_and_what_was_skipped_before_is_not(kb: kebab.KnowledgeBase, notes: Path) -> None:
    time.sleep(2.1)  # the time of the last ingest is kept in whole seconds
    (notes / "sub" / "new.md").write_text("okapi four")
    assert (stale(kb), pending(kb)) == ([], ["1 file pending"])


def test_a_time_that_is_up_is_said(kb: kebab.KnowledgeBase, notes: Path) -> None:
    for number in range(100):
        (notes / f"{number:03}.md").write_text(f"note {number}")
    kb.ingest()
    (notes / "000.md").write_text("changed, and longer")
    with kb._store.reading() as reading:
        assert reading is not None
        files = reading.files()
    assert pending_notice(files, -1.0) == ()
    (notice,) = pending_notice(files, 10_000.0)
    assert notice.message.startswith("1 file pending")


def test_whoever_does_not_want_to_know_is_not_told(tmp_path: Path, notes: Path) -> None:
    for freshness, expected in (("off", []), ("hits", ["a.md"])):
        with kebab.open(tmp_path / f"{freshness}.sqlite", search_freshness=freshness) as kb:
            kb.ingest(notes)
            (notes / "a.md").write_text(f"okapi {freshness} longer")
            assert (stale(kb), pending(kb)) == (expected, [])
