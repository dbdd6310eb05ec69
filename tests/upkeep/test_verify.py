"""kb verify compares every stored passage with its file: ok, moved, changed or gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from unicodedata import normalize

import apsw
import pytest

import kebab

PARTS = "".join(f"# Part {number}\n\n" + f"Words of part {number}. " * 60 + "\n\n" for number in range(4))


@pytest.fixture
def notes(write_notes: Callable[..., Path]) -> Path:
    return write_notes({"a.md": PARTS, "b.txt": "single passage\n"})


@pytest.fixture
def kb(tmp_path: Path, notes: Path) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(tmp_path / "kb.sqlite") as opened:
        opened.ingest(notes)
        yield opened


def counts(kb: kebab.KnowledgeBase) -> tuple[int, int, int, int, int]:
    report = kb.verify()
    return report.ok, report.moved, report.changed, report.gone, report.corrupt


def test_verify_finds_all_passages_of_an_untouched_corpus(kb: kebab.KnowledgeBase) -> None:
    report = kb.verify()
    assert report.whole
    assert (report.documents, report.ok, report.differences) == (2, 5, [])


def test_verify_finds_all_passages_of_a_touched_file_with_the_same_text(kb: kebab.KnowledgeBase, notes: Path) -> None:
    (notes / "a.md").write_bytes((notes / "a.md").read_bytes())
    assert counts(kb) == (5, 0, 0, 0, 0)


def test_a_passage_at_other_lines_is_moved_and_its_new_lines_are_named(kb: kebab.KnowledgeBase, notes: Path) -> None:
    (notes / "a.md").write_text("new first line\n\n" + PARTS, encoding="utf-8")
    report = kb.verify()
    assert (report.ok, report.moved) == (1, 4)
    for difference in report.differences:
        chunk = kb.chunk(difference.chunk_id)
        assert difference.now_at is not None
        first, last = (int(part.lstrip("L")) for part in difference.now_at.partition("#")[2].split("-"))
        lines = (notes / "a.md").read_text(encoding="utf-8").split("\n")[first - 1 : last]
        assert "\n".join(lines).rstrip() == chunk.text


def test_only_passages_with_another_text_are_reported_as_changed(kb: kebab.KnowledgeBase, notes: Path) -> None:
    (notes / "a.md").write_text(PARTS.replace("part 3.", "part 9.", 1), encoding="utf-8")
    assert counts(kb) == (4, 0, 1, 0, 0)


def test_passages_of_a_deleted_file_or_missing_root_are_reported_as_gone(kb: kebab.KnowledgeBase, notes: Path) -> None:
    (notes / "b.txt").unlink()
    assert counts(kb) == (4, 0, 0, 1, 0)
    notes.rename(notes.with_name("elsewhere"))
    assert counts(kb) == (0, 0, 0, 5, 0)


def test_passages_of_a_file_that_became_binary_are_reported_as_changed(kb: kebab.KnowledgeBase, notes: Path) -> None:
    (notes / "b.txt").write_bytes(b"\0\1")
    assert counts(kb) == (4, 0, 1, 0, 0)


def test_a_text_without_a_file_is_compared_with_itself(kb: kebab.KnowledgeBase) -> None:
    kb.ingest_text("from stdin", title="T")
    assert counts(kb) == (6, 0, 0, 0, 0)


def test_a_stored_passage_that_is_not_in_the_stored_text_is_corrupt(kb: kebab.KnowledgeBase) -> None:
    connection = apsw.Connection(str(kb.path))
    connection.execute(
        "UPDATE chunks SET text = 'tampered' WHERE doc_id = (SELECT doc_id FROM documents WHERE path = 'b.txt')"
    )
    connection.close()
    assert counts(kb) == (4, 0, 0, 0, 1)
    (fault,) = (check for check in kb.verify().checks if not check.ok)
    assert "1 passages are not in the stored texts" in fault.message
    assert "kb source remove" in (fault.hint or "")


def test_a_decomposed_name_on_disk_is_found(kb: kebab.KnowledgeBase, notes: Path) -> None:
    folder = notes / normalize("NFD", "한글")
    folder.mkdir()
    (folder / normalize("NFD", "문서.md")).write_text("본문\n", encoding="utf-8")
    kb.ingest(notes)
    assert counts(kb) == (6, 0, 0, 0, 0)
    (record,) = [document for document in kb.documents() if document.path.endswith("문서.md")]
    assert kb.file_of("notes", record.path).read_text(encoding="utf-8") == "본문\n"


def test_verify_of_an_empty_corpus_finds_no_fault() -> None:
    with kebab.open() as empty:
        assert empty.verify().whole


def test_the_passages_of_a_renamed_file_are_moved_and_its_new_path_is_named(
    kb: kebab.KnowledgeBase, notes: Path
) -> None:
    """Regression: they were reported as gone."""
    (notes / "archive").mkdir()
    (notes / "a.md").rename(notes / "archive" / "old.md")
    (notes / "b.txt").rename(notes / "a.md")  # a path that is indexed, with another content
    report = kb.verify()
    assert (report.ok, report.moved, report.changed, report.gone) == (0, 1, 4, 0)
    (notes / "a.md").rename(notes / "b.txt")
    report = kb.verify()
    assert (report.ok, report.moved, report.gone) == (1, 4, 0)
    for difference in report.differences:
        assert difference.now_at == difference.citation.replace("a.md#", "archive/old.md#")


def test_an_older_copy_is_not_taken_for_the_moved_file(kb: kebab.KnowledgeBase, notes: Path) -> None:
    (notes / "copy.txt").write_bytes((notes / "b.txt").read_bytes())
    kb.ingest(notes)
    (notes / "b.txt").unlink()
    assert counts(kb) == (5, 0, 0, 1, 0)
