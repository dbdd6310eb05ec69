"""The checks of kb doctor about vectors and models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import kebab
from kebab.core.errors import ModelCorrupt
from kebab.core.records import Check
from kebab.embedding import granite
from kebab.upkeep.checks import model_check

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


def test_missing_vectors_are_counted_and_made_by_the_command_that_is_named(
    tmp_path: Path, write_notes: Notes, toy: type[Toy]
) -> None:
    with toy.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(write_notes({"a.md": "text"}))
        assert (vectors(kb).ok, vectors(kb).message) == (True, "every chunk that the model takes has a vector of words")
        kb.ingest(write_notes({"b.md": "more text"}), embed=False)
        check = vectors(kb)
        assert (check.ok, check.message, check.hint) == (
            True,
            "1 of 2 chunks have a vector of words",
            "The rest is found by words only. Go on with: kb ingest",
        )
        kb.ingest()
        assert (vectors(kb).ok, vectors(kb).hint) == (True, None)


def test_vectors_of_another_model_are_reported_with_the_command_that_rebuilds_them(
    tmp_path: Path, write_notes: Notes, toy: type[Toy]
) -> None:
    with toy.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(write_notes({"a.md": "text"}))
    with toy.open(tmp_path / "kb.sqlite", toy.models(toy.embedder("other"))) as kb:
        check = vectors(kb)
        assert (check.ok, check.hint) == (False, "kb index --rebuild-vectors")
        assert "words@1:32" in check.message
        kb.rebuild_vectors()
        assert vectors(kb).ok


def test_changed_or_missing_weights_are_a_fault(tmp_path: Path) -> None:
    """Also if a good model is still in the cache, because the next one would be made from these weights."""
    fault = ModelCorrupt("The weights are not the ones that were published.", hint="pip install --force-reinstall it")
    check = model_check(fault, [])
    assert (check.ok, check.message, check.hint) == (False, fault.message, fault.hint)
    assert model_check(None, []).ok
    assert str(tmp_path) in str(model_check(None, [tmp_path]).hint)


def test_doctor_looks_at_the_installed_weights(
    tmp_path: Path, write_notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(granite, "PACK_SHA256", "0" * 64)  # what is installed is then not what is expected
    with kebab.open(tmp_path / "kb.sqlite", embedding_model="bundled") as kb:
        kb.ingest(write_notes({"a.md": "text"}), embed=False)
        (check,) = (check for check in kb.health() if check.name == "models")
    assert not check.ok
    assert "not the ones that were published" in check.message
