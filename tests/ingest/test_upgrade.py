"""What an older version has parsed is found at once, and parsed again by the next ingest or by `kb index --upgrade`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.conftest import Toy, WordEmbedder
from tests.qdrant_server import QdrantNode

import kebab
from kebab.parsing import markdown
from kebab.parsing.markdown import MarkdownParser

LIBRARY = "/acme/widget"
NOTES = {
    "Cards view.md": "Text of cards.\n\n## Settings\n\nSizes.\n",
    "plan.md": "# Plan\n\nWater the garden.\n",
    "korean.md": "## 설정\n\n정원에 물을 준다.\n",
    "list.csv": "name,price\ntea,3\n",
    "page.html": "<title>Page</title><p>Tea is hot.</p>",
}


@pytest.fixture(params=["file", "cluster"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return str(tmp_path / "kb.sqlite")
    node: QdrantNode = request.getfixturevalue("one_node")
    return node.address(f"upgraded-{uuid4().hex[:8]}")


@pytest.fixture
def model() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def notes(write_notes: Callable[[Mapping[str, str]], Path]) -> Path:
    return write_notes(NOTES)


@pytest.fixture
def old(
    address: str, model: WordEmbedder, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toy: type[Toy]
) -> Iterator[kebab.KnowledgeBase]:
    """In which an older version called every Markdown document "Old", and has indexed notes, a text and a library."""
    docs = tmp_path / "widget"
    docs.mkdir()
    (docs / "README.md").write_text("## Use\n\nTurn the widget.\n")
    with toy.open(address, toy.models(model)) as kb:
        with monkeypatch.context() as patch:
            patch.setattr(MarkdownParser, "version", "markdown-0")
            patch.setattr(markdown, "title_of", lambda *_: "Old")
            kb.ingest(notes)
            kb.ingest_text("Milk and bread.", title="Shopping")
            kb.libraries.add(str(docs), library_id=LIBRARY)
        model.batches.clear()
        yield kb
        kb.reset()


def titles(kb: kebab.KnowledgeBase) -> dict[str, str]:
    return {document.path: document.title for document in kb.documents()}


def library_titles(kb: kebab.KnowledgeBase) -> list[str]:
    return [snippet.breadcrumb for snippet in kb.libraries.docs(LIBRARY, "widget").snippets]


NEW = {
    "Cards view.md": "Cards view",
    "Shopping": "Shopping",
    "korean.md": "korean",
    "list.csv": "list",
    "page.html": "Page",
    "plan.md": "Plan",
}


def test_an_upgrade_parses_again_from_what_is_stored(
    old: kebab.KnowledgeBase, notes: Path, model: WordEmbedder
) -> None:
    shutil.rmtree(notes)
    assert titles(old)["Cards view.md"] == titles(old)["Shopping"] == "Old"
    assert [hit.doc_path for hit in old.search("sizes", mode="lexical")] == ["Cards view.md"], "at once"
    dates = {document.path: document.date for document in old.documents()}
    report = old.upgrade()
    assert (report.scanned, report.updated, report.unread) == (5, 5, 0)
    assert titles(old) == NEW
    assert library_titles(old) == ["widget"]
    assert {document.path: document.date for document in old.documents()} == dates
    assert next(hit.doc_path for hit in old.search("cards view", mode="lexical")) == "Cards view.md"
    assert {check.name for check in old.health() if not check.ok} <= {"source notes"}
    model.batches.clear()
    assert (old.upgrade().scanned, model.batches) == (0, [])


def test_the_next_ingest_parses_again_texts_libraries_and_files(old: kebab.KnowledgeBase) -> None:
    old.ingest()
    assert (titles(old), library_titles(old)) == (NEW, ["widget"])
    assert old.upgrade().scanned == 0


def test_the_next_ingest_parses_again_what_is_stored_of_a_folder_that_is_gone(
    old: kebab.KnowledgeBase, notes: Path
) -> None:
    shutil.rmtree(notes)
    with pytest.raises(kebab.KebabError, match="is not there"):
        old.ingest()
    assert titles(old) == NEW


def test_vectors_of_unchanged_passages_stay(
    old: kebab.KnowledgeBase, model: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markdown, "title_of", lambda *_: "Old")
    report = old.upgrade()
    assert (report.updated, report.vectors_made, model.texts()) == (5, 0, [])


def test_an_interrupted_upgrade_goes_on_where_it_was(old: kebab.KnowledgeBase, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(event: str, **details: Any) -> None:
        if event == "file" and details["source"] == "notes" and details["done"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        old.upgrade(stop)
    done = sum(NEW[path] == title for path, title in titles(old).items() if path.endswith(".md"))
    assert done == 2
    report = old.upgrade()
    assert report.scanned < 3
    assert titles(old) == NEW


def test_a_file_whose_text_is_not_all_that_is_stored_is_read_again(
    old: kebab.KnowledgeBase, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kebab.parsing.html import HtmlParser

    old.upgrade()
    monkeypatch.setattr(HtmlParser, "version", "html-next")
    (notes / "page.html").write_text("<title>Later</title><p>Tea is cold.</p>")
    report = old.upgrade()
    assert (report.scanned, report.updated, titles(old)["page.html"]) == (1, 1, "Later")
    monkeypatch.setattr(HtmlParser, "version", "html-last")
    (notes / "page.html").unlink()
    report = old.upgrade()
    assert (report.scanned, report.updated, titles(old)["page.html"]) == (1, 0, "Later"), "it stays as it is"
