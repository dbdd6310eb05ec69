"""Opening a document at the lines or the page of a citation."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.parsing.pdf_bytes import make_pdf

import kebab
from kebab.core.citations import LineSpan, PageSpan
from kebab.core.errors import NotFound
from kebab.search.lookup import open_cited


def test_cited_lines_are_found_in_the_whole_text(sample_kb: kebab.KnowledgeBase) -> None:
    with sample_kb.catalog() as catalog:
        opened = open_cited(catalog, "notes:git/undo.md#L23-L25")
    assert opened.place == opened.document.source == "notes"
    assert opened.span == LineSpan(23, 25)
    assert opened.text[opened.start : opened.end] == sample_kb.fetch_span("git/undo.md#L23-L25").text
    assert not opened.paged


def test_a_path_without_a_citation_opens_the_whole_document(sample_kb: kebab.KnowledgeBase) -> None:
    with sample_kb.catalog() as catalog:
        opened = open_cited(catalog, "git/undo.md")
    assert opened.span is None
    assert opened.start == opened.end
    assert opened.text == sample_kb.fetch_document("git/undo.md").text


def test_a_citation_of_missing_text_is_not_found(sample_kb: kebab.KnowledgeBase) -> None:
    with sample_kb.catalog() as catalog, pytest.raises(NotFound, match="has lines 1 to"):
        open_cited(catalog, "git/undo.md#L2000-L2001")


def test_a_chunk_id_narrows_a_cited_page(tmp_path: Path) -> None:
    (tmp_path / "paper.pdf").write_bytes(make_pdf([["First page"], ["Second page", "with a newt"]]))
    with kebab.open(tmp_path / "paper.sqlite") as knowledge_base:
        knowledge_base.ingest(tmp_path / "paper.pdf")
        first, second = knowledge_base.document("paper.pdf")[1]
        with knowledge_base.catalog() as catalog:
            opened = open_cited(catalog, "paper.pdf#page=2", second.chunk_id)
            assert (opened.paged, opened.span) == (True, PageSpan(2))
            assert opened.text[opened.start : opened.end] == second.text
            whole = open_cited(catalog, "paper.pdf#page=2")
            # One of another page, or that is gone, is no reason to show nothing.
            for other in (first.chunk_id, "0123456789abcdef"):
                assert open_cited(catalog, "paper.pdf#page=2", other)[5:] == whole[5:]


def test_documents_of_the_same_name_are_distinguished_by_path(sample_kb: kebab.KnowledgeBase) -> None:
    doc_id = sample_kb.document("git/undo.md")[0].doc_id
    with sample_kb.catalog() as catalog:
        assert catalog.paths_beside(doc_id, ["git/setup.md", "git/none.md", "../x"]) == {"git/setup.md"}
        assert catalog.paths_beside(doc_id, []) == set()
