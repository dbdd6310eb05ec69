"""Hits grouped by document, and hits with the passages before and after them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kebab
from kebab.core.errors import UsageError
from kebab.core.search import Neighbours
from kebab.core.text import estimate_tokens
from kebab.search.options import MAX_NEIGHBOURS

PARTS = 9


def part(number: int, word: str) -> str:
    return f"## Part {number}\n\n{word} {' '.join(f'{word}{number}x{place}' for place in range(150))}\n\n"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("neighbours")
    (folder / "notes").mkdir()
    for name in ("animals", "plants"):
        text = f"# {name}\n\n" + "".join(part(number, name) for number in range(PARTS))
        (folder / "notes" / f"{name}.md").write_text(text, encoding="utf-8")
    (folder / "notes" / "short.md").write_text(
        "# Short\n\nanimals and plants, and nothing beside them\n", encoding="utf-8"
    )
    with kebab.open(folder / "kb.sqlite") as kb:
        kb.ingest(folder / "notes", embed=False)
    return folder / "kb.sqlite"


@pytest.fixture
def kb(database: Path) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(database, embedding_model="none") as opened:
        yield opened


def beside(kb: kebab.KnowledgeBase, query: str, **options: Any) -> Neighbours:
    neighbours = kb.search(query, mode="lexical", k=1, **options).hits[0].neighbours
    assert neighbours is not None
    return neighbours


def test_neighbours_of_a_hit_are_in_document_order_and_from_the_same_document(kb: kebab.KnowledgeBase) -> None:
    for number in range(PARTS):
        for count in range(1, MAX_NEIGHBOURS + 1):
            hit = kb.search(f"animals{number}x7", mode="lexical", neighbours=count).hits[0]
            _, chunks = kb.document("animals.md")
            ids = [chunk.chunk_id for chunk in chunks]
            place = ids.index(hit.chunk_id)
            before, after = hit.neighbours or Neighbours()
            assert [one.chunk_id for one in before] == ids[max(0, place - count) : place]
            assert [one.chunk_id for one in after] == ids[place + 1 : place + 1 + count]
            for one in (*before, *after):
                own = chunks[ids.index(one.chunk_id)]
                assert (one.text, one.heading_path, one.section_label) == (
                    own.text,
                    own.heading_path,
                    own.section_label,
                )
                assert one.text.strip() in kb.fetch_span(one.citation.uri).text
                assert one.citation.content_hash == own.content_hash


def test_the_only_passage_of_a_document_has_no_neighbours_and_unrequested_ones_are_none(
    kb: kebab.KnowledgeBase,
) -> None:
    assert beside(kb, "nothing beside", neighbours=2) == Neighbours((), ())
    assert kb.search("animals", neighbours=0).hits[0].neighbours is None
    assert kb.search("animals").hits[0].neighbours is None


def test_tokens_of_neighbours_count_towards_max_tokens(kb: kebab.KnowledgeBase) -> None:
    alone = kb.search("animals", mode="lexical", max_tokens=1500, full_text=True)
    response = kb.search("animals", mode="lexical", max_tokens=1500, full_text=True, neighbours=1)
    texts = [
        text for hit in response for text in (hit.text, *(one.text for side in hit.neighbours or () for one in side))
    ]
    assert len(response) < len(alone)
    assert response.truncated
    assert sum(map(estimate_tokens, texts)) <= 1500


def test_a_cursor_stays_valid_if_neighbours_or_grouping_change(kb: kebab.KnowledgeBase) -> None:
    first = kb.search("animals", mode="lexical", k=2)
    assert (
        kb.search("animals", mode="lexical", k=2, cursor=first.next_cursor, neighbours=1, group=True).hits[0].rank == 3
    )


@pytest.mark.parametrize("wrong", [-1, MAX_NEIGHBOURS + 1, 1.5, "2", True])
def test_a_number_of_neighbours_out_of_range_is_a_usage_error(kb: kebab.KnowledgeBase, wrong: Any) -> None:
    with pytest.raises(UsageError) as caught:
        kb.search("animals", neighbours=wrong)
    assert "neighbours" in caught.value.message
    assert caught.value.hint


def test_grouped_documents_are_in_the_order_of_their_best_hits(kb: kebab.KnowledgeBase) -> None:
    response = kb.search("animals OR plants", mode="lexical", k=12, group=True)
    assert response.grouped
    groups = response.by_document()
    assert [group.hits[0].rank for group in groups] == sorted(group.hits[0].rank for group in groups)
    assert len({group.doc_id for group in groups}) == len(groups)
    assert sorted(hit.rank for group in groups for hit in group.hits) == [hit.rank for hit in response]
    for group in groups:
        assert {(hit.doc_id, hit.doc_path, hit.title, hit.source) for hit in group.hits} == {group[:4]}
        assert [hit.rank for hit in group.hits] == sorted(hit.rank for hit in group.hits)
    assert not kb.search("animals").grouped


@pytest.mark.parametrize("wrong", ["yes", 1, []])
def test_group_takes_only_true_or_false(kb: kebab.KnowledgeBase, wrong: Any) -> None:
    with pytest.raises(UsageError):
        kb.search("animals", group=wrong)
