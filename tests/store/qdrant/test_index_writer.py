"""The ids of points, and what searches know about libraries."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import Toy, WordEmbedder
from tests.qdrant_server import QdrantNode

import kebab
from kebab.core.documents import chunk_id, document_id
from kebab.core.ports import ColumnWeights
from kebab.core.search import SearchFilters
from kebab.core.store_ports import Reading
from kebab.store.qdrant.codec import chunk_of, chunk_point_id

CHUNKS = st.builds(
    lambda path, ordinal, text: chunk_id(document_id("notes", path), ordinal, text),
    st.text(),
    st.integers(0),
    st.text(),
)


@given(CHUNKS, CHUNKS)
def test_a_point_id_contains_the_chunk_id_and_sorts_like_it(one: str, other: str) -> None:
    points = chunk_point_id(one), chunk_point_id(other)
    assert tuple(map(chunk_of, points)) == (one, other)
    assert (UUID(points[0]).int < UUID(points[1]).int) == (one < other)


@given(st.text())
def test_any_text_as_chunk_id_gives_a_valid_point_id(text: str) -> None:
    assert UUID(chunk_point_id(text))


def test_counts_are_written_before_vectors_are_made(one_node: QdrantNode, tmp_path: Path, toy: type[Toy]) -> None:
    """Regression: until all vectors were made, searches did not know how rare words are, and doctor reported a fault."""
    (tmp_path / "a.md").write_text("# Apples\n\nApples are red.\n")
    seen: list[tuple[int, list[str]]] = []

    class Looking(WordEmbedder):
        def embed(self, texts: Any, kind: Any) -> Any:
            with kebab.open(address) as other, other.session.store.reading() as reading:
                assert reading is not None
                seen.append(
                    (
                        reading.lexical_index(ColumnWeights()).size(),
                        [check.name for check in other.health() if not check.ok],
                    )
                )
            return super().embed(texts, kind)

    address = one_node.address(f"counted-{uuid4().hex[:8]}")
    with toy.open(address, toy.models(Looking())) as kb:
        kb.ingest(tmp_path)
        kb.reset()
    assert seen
    assert set(map(repr, seen)) == {"(1, [])"}


# --- libraries


def tells_of_libraries(kb: kebab.KnowledgeBase) -> Any:
    with kb.session.store.reading() as reading:
        assert reading is not None
        return reading._state.has_libraries  # type: ignore[attr-defined]


def near(reading: Reading, toy: type[Toy]) -> set[str]:
    """The paths of the chunks closest to any vector."""
    model = toy.embedder()
    vector = model.embed(["widget"], "query")[0]
    found = reading.vectors().search(model.fingerprint, vector, filters=SearchFilters(), limit=100)
    return {context.doc_path for context in reading.chunks().contexts([match.chunk_id for match in found]).values()}


@pytest.fixture
def kb(one_node: QdrantNode, tmp_path: Path, toy: type[Toy]) -> Any:
    for path in ("own/garden.md", "widget/README.md"):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(f"# {path}\n\nHow to run the widget.\n")
    with toy.open(one_node.address(f"libraries-{uuid4().hex[:8]}"), toy.models()) as knowledge_base:
        knowledge_base.ingest(tmp_path / "own")
        yield knowledge_base
        knowledge_base.reset()


def test_the_state_says_whether_libraries_exist(kb: kebab.KnowledgeBase, tmp_path: Path) -> None:
    assert not tells_of_libraries(kb)
    for library in ("/acme/one", "/acme/two"):
        kb.libraries.add(str(tmp_path / "widget"), library_id=library)
        assert tells_of_libraries(kb)
    kb.libraries.remove("/acme/one")
    assert tells_of_libraries(kb)
    kb.libraries.remove("/acme/two")
    assert not tells_of_libraries(kb)
    assert kb.verify().whole


def test_a_library_added_during_a_search_is_not_among_own_hits(
    kb: kebab.KnowledgeBase, toy: type[Toy], tmp_path: Path
) -> None:
    with kb.session.store.reading() as before:
        assert before is not None
        assert near(before, toy) == {"garden.md"}
        kb.libraries.add(str(tmp_path / "widget"), library_id="/acme/widget")
        assert near(before, toy) == {"garden.md"}
    with kb.session.store.reading() as after:
        assert after is not None
        assert near(after, toy) == {"garden.md"}
