"""Texts too long for one request are stored in parts, and are either complete or read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.qdrant_server import QdrantNode

import kebab
from kebab.core.errors import StoreError
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Collection

TEXT = (
    "# Numbers\n\n"
    + "\n\n".join(f"The number {number} is followed by {number * number}." for number in range(600))
    + "\n"
)


@pytest.fixture(autouse=True)
def _small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "PART_LENGTH", 1000)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "long.md").write_text(TEXT)
    (tmp_path / "notes" / "short.md").write_text("# Short\n\nA few words.\n")
    return tmp_path / "notes"


def test_a_long_text_is_stored_in_parts_and_read_as_one(one_node: QdrantNode, folder: Path, tmp_path: Path) -> None:
    """Regression: a document too long for one request ended the whole ingest."""
    with (
        kebab.open(one_node.address(f"long{uuid4().hex[:6]}"), embedding_model="none") as kb,
        kebab.open(tmp_path / "copy.sqlite") as copy,
    ):
        kb.ingest(folder)
        documents = kb.session.store._schema.documents  # type: ignore[attr-defined]
        (point,) = documents.scroll({"must": [{"key": "within", "match": {"value": "long.md"}}]})
        assert len(point["payload"][point["payload"]["body"]["in"]]) > 3
        assert kb.fetch_document("long.md").text == TEXT
        assert kb.verify().whole
        kb.migration_to(copy).run()
        assert copy.fetch_document("long.md").text == TEXT
        (folder / "long.md").write_text("# Numbers\n\nNone are left.\n")
        assert kb.ingest().updated == 1
        assert kb.fetch_document("long.md").text == "# Numbers\n\nNone are left.\n"
        assert kb.verify().whole
        kb.reset()


def failing_after(parts: int) -> Callable[..., None]:
    """A replacement for `Collection.set_payload` that fails after this many parts."""
    set_payload = Collection.set_payload
    left = parts

    def set_some(self: Collection, *arguments: Any, within: str | None = None, **more: Any) -> None:
        nonlocal left
        if within is not None:
            left -= 1
            if left < 0:
                raise StoreError("The network is down.")
        set_payload(self, *arguments, within=within, **more)

    return set_some


@pytest.mark.parametrize("sent", [0, 1, 2])
def test_a_text_with_missing_parts_is_read_again(
    one_node: QdrantNode, folder: Path, monkeypatch: pytest.MonkeyPatch, sent: int
) -> None:
    with kebab.open(one_node.address(f"parts{uuid4().hex[:6]}"), embedding_model="none") as kb:
        with monkeypatch.context() as patched, pytest.raises(StoreError, match="down"):
            patched.setattr(Collection, "set_payload", failing_after(sent))
            kb.ingest(folder)
        assert not kb.verify().whole
        kb.ingest()
        assert kb.fetch_document("long.md").text == TEXT
        assert kb.verify().whole
        kb.reset()


@pytest.mark.parametrize("sent", [0, 1, 2])
def test_the_old_text_stays_until_the_new_one_is_complete(
    one_node: QdrantNode, monkeypatch: pytest.MonkeyPatch, sent: int
) -> None:
    """Regression: a text without a file was lost if the next text under its title was interrupted."""
    with kebab.open(one_node.address(f"before{uuid4().hex[:6]}"), embedding_model="none") as kb:
        for number in range(2):  # each of the two places is the one in use once
            kb.ingest_text(TEXT.replace("followed", f"succeeded{number}"), title="numbers")
            with monkeypatch.context() as patched, pytest.raises(StoreError, match="down"):
                patched.setattr(Collection, "set_payload", failing_after(sent))
                kb.ingest_text(TEXT, title="numbers")
            assert f"succeeded{number}" in kb.fetch_document("numbers").text
            kb.ingest_text("Something else.", title="other")
            assert kb.search(f"succeeded{number}", mode="lexical").hits
            assert not kb.search("followed", mode="lexical").hits
            assert kb.verify().whole
        kb.reset()
