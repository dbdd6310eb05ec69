"""The search service over seeded libraries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import kebab
from kebab.library.libraries import SearchService

PAGES = {
    "one": ["A dial shows a number.", "A dial dial dial dial.", "Colours are free."],
    "two": ["A dial of the other library."],
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[SearchService]:
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        for name, texts in PAGES.items():
            for number, text in enumerate(texts):
                page = tmp_path / name / f"{number}.md"
                page.parent.mkdir(exist_ok=True)
                page.write_text(f"# Page {number}\n\n{text}\n")
            kb.libraries.add(str(tmp_path / name), library_id=f"/acme/{name}", title=name.title())
        with kb.libraries.service() as service:
            assert service is not None
            yield service


def test_snippets_come_with_their_repository_in_order_of_bm25_and_by_pages(service: SearchService) -> None:
    found = service.search_snippets("dial", "/acme/one")
    assert [result.snippet.content for result in found] == ["A dial dial dial dial.", "A dial shows a number."]
    assert found[0].score < found[1].score < 0
    assert found[0].repository == ("/acme/one", "One")
    assert service.search_snippets("dial", "/acme/one", limit=1, offset=1) == found[1:]
    assert service.search_snippets("dial", "/acme/one", offset=2) == []
    assert [result.snippet.content for result in service.search_snippets("dial", "/acme/two")] == [
        "A dial of the other library."
    ]
    assert service.search_snippets("dial", "/acme/one", type="code") == []


def test_defaults_are_limit_20_and_offset_0_and_ten_libraries(service: SearchService) -> None:
    assert service.search_snippets.__defaults__ == (None, None, 20, 0)
    assert service.search_repositories.__defaults__ == (None, 10)


def test_words_are_stemmed_and_folded(service: SearchService) -> None:
    assert [result.snippet.content for result in service.search_snippets("COLOÚR free", "/acme/one")] == [
        "Colours are free."
    ]


@pytest.mark.parametrize(
    "query", ["", "   ", "()", '"', "*", "AND", "NOT", "OR OR", "dial)", "'", "\x00", "a" * 5000, "문서"]
)
def test_any_query_is_answered_without_an_error(service: SearchService, query: str) -> None:
    service.search_snippets(query, "/acme/one")
    service.search_repositories(query, query)
