"""The steps around a retriever: cursors bound to their list, scores, budgets, and what the user must know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kebab
from kebab.core.errors import ModelMissing, StaleCursor
from kebab.core.search import SearchResponse
from kebab.core.text import estimate_tokens


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search-pipeline")
    notes = folder / "notes"
    notes.mkdir()
    for number in range(23):
        words = " ".join(["okapi"] * (1 + number % 4)) + (" quagga" if number % 5 == 0 else "")
        (notes / f"{number:02}.md").write_text(
            f"---\ndate: 2024-01-{number + 1:02}\ntags: [{'odd' if number % 2 else 'even'}]\n---\n# Note {number}\n\n{words} {'filler ' * number}\n",
            encoding="utf-8",
        )
    with kebab.open(folder / "kb.sqlite") as kb:
        kb.ingest(notes)
    return folder / "kb.sqlite"


@pytest.fixture
def kb(database: Path) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(database) as opened:
        yield opened


def ids(response: SearchResponse) -> list[str]:
    return [hit.chunk_id for hit in response]


def codes(response: SearchResponse) -> list[str]:
    return [notice.code for notice in response.notices]


def pages(kb: kebab.KnowledgeBase, query: str, **options: Any) -> list[SearchResponse]:
    found = [kb.search(query, **options)]
    while found[-1].next_cursor and len(found) < 100:
        found.append(kb.search(query, cursor=found[-1].next_cursor, **options))
    return found


@pytest.mark.parametrize("match", ["auto", "all", "any"])
@pytest.mark.parametrize("query", ["okapi", "okapi quagga", "what is an okapi", "'okapi'", "okapi OR quagga"])
def test_pages_by_cursor_are_disjoint_and_complete(kb: kebab.KnowledgeBase, query: str, match: str) -> None:
    found = pages(kb, query, k=4, match=match)
    paged = [chunk for page in found for chunk in ids(page)]
    assert len(set(paged)) == len(paged)
    assert len({page.match for page in found}) == 1, "every page comes from the list of the first"
    assert paged == ids(kb.search(query, k=1000, match=found[0].match if found[0].match in ("all", "any") else match)) or match == "auto"
    if query == "okapi":
        assert len(paged) == 23
    assert [hit.rank for page in found for hit in page] == list(range(1, len(paged) + 1))


@pytest.mark.parametrize(
    "options",
    [
        {"sort": "date", "k": 5},
        {"per_doc": 1, "k": 5},
        {"tags_any": ["odd"], "k": 2},
        {"max_tokens": 30, "k": 6},
        {"k": 5, "full_text": True, "max_tokens": 60},
        {"sort": "date", "max_tokens": 30, "k": 6},
    ],
    ids=str,
)
def test_paging_loses_nothing_whatever_else_is_asked(kb: kebab.KnowledgeBase, options: dict[str, Any]) -> None:
    paged = [chunk for page in pages(kb, "okapi", **options) for chunk in ids(page)]
    whole = {name: value for name, value in options.items() if name not in ("k", "max_tokens")}
    assert paged == ids(kb.search("okapi", k=1000, **whole))


def test_a_page_cut_by_the_budget_after_a_minimum_score_goes_on_at_the_right_hit(kb: kebab.KnowledgeBase) -> None:
    """By date, hits below the minimum stand between those above it."""
    scores = sorted(hit.score for hit in kb.search("okapi", k=1000))
    least = scores[len(scores) // 2]
    paged = [chunk for page in pages(kb, "okapi", match="all", sort="date", min_score=least, max_tokens=30, k=8) for chunk in ids(page)]
    assert paged == ids(kb.search("okapi", match="all", sort="date", min_score=least, k=1000))


@pytest.mark.parametrize(
    "changed",
    [
        {"query": "quagga"},
        {"tags_any": ["odd"]},
        {"sort": "date"},
        {"match": "any"},
        {"per_doc": 1},
        {"after": "2024-01-05"},
        {"type": ["markdown"]},
    ],
    ids=str,
)
def test_a_cursor_of_another_query_is_refused(kb: kebab.KnowledgeBase, changed: dict[str, Any]) -> None:
    cursor = kb.search("okapi", k=2).next_cursor
    with pytest.raises(StaleCursor) as caught:
        kb.search(**{"query": "okapi", "k": 2, "cursor": cursor, **changed})
    assert caught.value.code == "stale_cursor"
    assert caught.value.hint


def test_a_cursor_of_another_index_is_refused(kb: kebab.KnowledgeBase, database: Path, tmp_path: Path) -> None:
    """The version is part of the cursor: an index with another analysis orders its hits otherwise."""
    from kebab.core.ports import Retriever
    from kebab.core.search import HitList, SearchQuery
    from kebab.pipelines.search import Retrievers, search
    from kebab.pipelines.search_request import SearchRequest

    class Nothing:
        def search(self, query: SearchQuery) -> HitList:  # noqa: ARG002
            return HitList()

        def index_version(self) -> str:
            return "lex:2:other"

    retriever: Retriever = Nothing()
    cursor = kb.search("okapi", k=2).next_cursor
    request = SearchRequest.from_options({"query": "okapi", "k": 2, "cursor": cursor})
    with pytest.raises(StaleCursor):
        search(request, kb.settings.search, Retrievers(retriever, None))


@pytest.mark.parametrize("cursor", ["", " ", "x", "e30", "bnVsbA", "W10", "!!!!", "한글", "eyJvZiI6MX0", "=" * 50, "a" * 10_000])
def test_what_is_no_cursor_is_refused_and_never_crashes(kb: kebab.KnowledgeBase, cursor: str) -> None:
    if not cursor.strip():
        kb.search("okapi", cursor=None)
        return
    with pytest.raises(StaleCursor):
        kb.search("okapi", cursor=cursor)


def test_the_page_size_may_change_on_the_way(kb: kebab.KnowledgeBase) -> None:
    first = kb.search("okapi", k=3)
    rest = kb.search("okapi", k=100, cursor=first.next_cursor)
    assert ids(first) + ids(rest) == ids(kb.search("okapi", k=1000))
    assert rest.next_cursor is None


def test_max_tokens_gives_whole_hits_up_to_the_budget_and_at_least_one(kb: kebab.KnowledgeBase) -> None:
    everything = kb.search("okapi", k=20, full_text=True)
    for budget in (1, 40, 100, 10_000):
        response = kb.search("okapi", k=20, full_text=True, max_tokens=budget)
        used = sum(estimate_tokens(hit.text) for hit in response)
        assert used <= budget or len(response) == 1
        assert ids(response) == ids(everything)[: len(response)]
        assert response.truncated == (len(response) < len(everything))
    assert kb.search("okapi", k=20, full_text=True, max_tokens=10_000).truncated is False


def test_min_score_works_in_lexical_mode_and_ends_the_list(kb: kebab.KnowledgeBase) -> None:
    best = kb.search("okapi", k=5)
    least = best.hits[2].score
    response = kb.search("okapi", k=5, min_score=least, explain=True)
    assert {hit.score >= least for hit in response} == {True}
    assert len(response) >= 3
    assert response.explanation is not None
    assert response.explanation["removed_by_min_score"] == 5 - len(response)
    assert kb.search("okapi", min_score=1.1).hits == ()
    assert kb.search("okapi", k=2, min_score=1.1).next_cursor is None


def test_a_threshold_on_rrf_removes_nothing_here_and_a_notice_says_so(kb: kebab.KnowledgeBase) -> None:
    response = kb.search("okapi", threshold=0.99)
    assert len(response) == 10
    assert "threshold_unused" in codes(response)


def test_hybrid_without_vectors_answers_lexically_with_a_notice(kb: kebab.KnowledgeBase) -> None:
    response = kb.search("okapi", mode="hybrid")
    assert (response.mode, response.method, codes(response)) == ("hybrid", "lexical", ["vectors_off"])
    assert codes(kb.search("okapi", mode="lexical")) == []
    with pytest.raises(ModelMissing):
        kb.search("okapi", mode="vector")


@pytest.mark.parametrize("query", ["", "  ", "\n\t"])
def test_an_empty_query_is_an_empty_answer_with_a_notice(kb: kebab.KnowledgeBase, query: str) -> None:
    """R027."""
    response = kb.search(query, mode="lexical", explain=True)
    assert (response.hits, response.match, response.next_cursor, codes(response)) == ((), None, None, ["empty_query"])


def test_a_database_not_yet_made_is_an_empty_corpus_with_a_notice(isolated_home: Path) -> None:
    """R032, R063."""
    with kebab.open() as empty:
        response = empty.search("okapi", mode="lexical")
        assert (response.hits, codes(response)) == ((), ["empty_corpus"])
        assert response.index_version.startswith("lex:")
        assert not empty.path.exists()


def test_an_unknown_tag_is_pointed_out(kb: kebab.KnowledgeBase) -> None:
    assert codes(kb.search("okapi", mode="lexical", tags_any=["odd", "nonsense"])) == ["unknown_tag"]
    assert codes(kb.search("okapi", mode="lexical", tags_any=["ODD"])) == []


def test_the_default_number_of_hits_comes_from_the_settings(database: Path) -> None:
    """R137."""
    with kebab.open(database) as kb:
        assert len(kb.search("okapi")) == 10
    with kebab.open(database, search_default_k=3) as kb:
        assert len(kb.search("okapi")) == 3
        assert len(kb.search("okapi", k=7)) == 7


def test_without_highlights_the_snippet_is_the_same(kb: kebab.KnowledgeBase) -> None:
    with_marks, without = kb.search("okapi"), kb.search("okapi", highlight=False)
    assert [hit.snippet for hit in with_marks] == [hit.snippet for hit in without]
    assert all(hit.highlights for hit in with_marks)
    assert not any(hit.highlights for hit in without)
