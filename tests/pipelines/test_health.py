"""What kb doctor says about vectors: whether all is well, and the command when it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import kebab
from kebab.core.records import Check

if TYPE_CHECKING:
    from tests.conftest import Toy

Notes = Callable[[Mapping[str, str]], Path]


def vectors(kb: kebab.KnowledgeBase) -> Check:
    (check,) = (check for check in kb.health() if check.name == "vectors")
    return check


def test_vectors_that_are_turned_off_are_no_fault(tmp_path: Path, write_notes: Notes) -> None:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(write_notes({"a.md": "text"}))
        assert vectors(kb).ok
        assert "turned off" in vectors(kb).message


def test_missing_vectors_are_counted_and_made_by_the_command_that_is_named(tmp_path: Path, write_notes: Notes, toy: type[Toy]) -> None:
    """R108."""
    with toy.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(write_notes({"a.md": "text"}))
        assert (vectors(kb).ok, vectors(kb).message) == (True, "every chunk has a vector of words")
        kb.ingest(write_notes({"b.md": "more text"}), embed=False)
        check = vectors(kb)
        assert (check.ok, check.message, check.hint) == (False, "1 of 2 chunks have a vector of words", "kb ingest")
        kb.ingest()
        assert vectors(kb).ok


def test_vectors_of_another_model_are_named_with_the_command_that_makes_them_anew(
    tmp_path: Path, write_notes: Notes, toy: type[Toy]
) -> None:
    """R108, R118."""
    with toy.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(write_notes({"a.md": "text"}))
    with toy.open(tmp_path / "kb.sqlite", toy.models(toy.embedder("other"))) as kb:
        check = vectors(kb)
        assert (check.ok, check.hint) == (False, "kb index --rebuild-vectors")
        assert "words@1:32" in check.message
        kb.rebuild_vectors()
        assert vectors(kb).ok
