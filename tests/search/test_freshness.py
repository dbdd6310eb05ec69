"""Hits of changed files are marked as stale, and a notice says how many files wait for an ingest."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import kebab
from kebab.search.pipeline import pending_notice

Notes = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def notes(write_notes: Notes) -> Path:
    folder = write_notes(
        {"a.md": "okapi one", "b.md": "okapi two", "sub/c.md": "okapi three", "skipped.bin": "\x00\x01" * 50}
    )
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


def test_a_new_file_is_pending_and_a_skipped_file_is_not(kb: kebab.KnowledgeBase, notes: Path) -> None:
    time.sleep(2.1)  # the time of the last ingest is kept in whole seconds
    (notes / "sub" / "new.md").write_text("okapi four")
    assert (stale(kb), pending(kb)) == ([], ["1 file pending"])


def test_a_count_of_pending_files_that_ran_out_of_time_says_at_least(kb: kebab.KnowledgeBase, notes: Path) -> None:
    for number in range(100):
        (notes / f"{number:03}.md").write_text(f"note {number}")
    kb.ingest()
    (notes / "000.md").write_text("changed, and longer")
    with kb.session.store.reading() as reading:
        assert reading is not None
        files = reading.files()

    def told(milliseconds: float) -> list[str]:
        settings = kb.settings._replace(search=kb.settings.search._replace(freshness_ms=milliseconds))
        notices = pending_notice(files, kb.sources(), settings, ())
        return [notice.message.partition(":")[0] for notice in notices]

    assert told(-1.0) == []
    assert told(10_000.0) == ["1 file pending"]


def test_files_that_an_ingest_ignores_are_not_pending(tmp_path: Path, write_notes: Notes) -> None:
    """Regression: ignored files were counted."""
    notes = write_notes(
        {"a.md": "okapi", ".gitignore": "*.log\nbuild/\n", "sub/b.md": "okapi", "sub/.kebabignore": "draft*\n"}
    )
    other = notes / "nested"
    with kebab.open(notes / "kb.sqlite", search_freshness="check", ingest_max_file_mb=1) as kb:
        kb.ingest(notes)
        other.mkdir()
        (other / "c.md").write_text("okapi")
        kb.ingest(other)
        time.sleep(2.1)  # as above
        (notes / "sub" / "run.log").write_text("ignored")
        (notes / "sub" / "draft 1.md").write_text("ignored")
        (notes / ".hidden.md").write_text("hidden")
        (notes / "large.md").write_text("x" * 1_100_000)
        (notes / "link.md").symlink_to(notes / "a.md")
        (notes / "build" / "deep").mkdir(parents=True)
        (notes / "build" / "deep" / "out.md").write_text("ignored")
        assert pending(kb) == []
        (other / "d.md").write_text("of the nested source, and of it only")
        assert pending(kb) == ["1 file pending"]
        kb.ingest()
        assert pending(kb) == []


def test_files_in_new_folders_and_in_unknown_folders_are_pending(tmp_path: Path, write_notes: Notes) -> None:
    """Regression: only folders that held a known file were looked at."""
    notes = write_notes({"deep/er/a.md": "okapi", "pictures/p.bin": "\x00\x01" * 50})
    with kebab.open(tmp_path / "kb.sqlite", search_freshness="check") as kb:
        kb.ingest(notes)
        time.sleep(2.1)  # as above
        for path in ("new/one.md", "new/below/two.md", "deep/three.md", "four.md", "pictures/five.md"):
            (notes / path).parent.mkdir(exist_ok=True)
            (notes / path).write_text("okapi")
        assert pending(kb) == ["5 files pending"]
        kb.ingest()
        assert pending(kb) == []


def test_with_freshness_off_nothing_is_marked_stale_and_no_notice_is_given(tmp_path: Path, notes: Path) -> None:
    for freshness, expected in (("off", []), ("hits", ["a.md"])):
        with kebab.open(tmp_path / f"{freshness}.sqlite", search_freshness=freshness) as kb:
            kb.ingest(notes)
            (notes / "a.md").write_text(f"okapi {freshness} longer")
            assert (stale(kb), pending(kb)) == (expected, [])
