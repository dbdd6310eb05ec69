"""Expected queries are embedded in batches, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from tests.conftest import Toy, TwoScripts

from kebab.embedding.expected_queries import ExpectedQueries


def test_first_query_embeds_all_expected_ones_of_its_model(toy: type[Toy]) -> None:
    models: TwoScripts = toy.two_scripts()
    ahead = ExpectedQueries(models, ["one", "하나", "two", "one"])
    (space, *_) = ahead.for_query("two")
    vectors = [space.embedder.embed([text], "query")[0] for text in ("two", "one", "two")]
    assert models.latin.batches == [("query", ["one", "two"])]
    assert models.everything.batches == [], "no Korean query has been sent yet"
    assert np.array_equal(vectors[0], toy.two_scripts().latin.embed(["two"], "query")[0])
    assert np.array_equal(vectors[0], vectors[2])
    assert space.embedder.fingerprint == models.latin.fingerprint


def test_an_unexpected_query_is_embedded_by_itself(toy: type[Toy]) -> None:
    models: TwoScripts = toy.two_scripts()
    (space, *_) = ExpectedQueries(models, ["one"]).for_query("three")
    space.embedder.embed(["three"], "query")
    assert models.latin.batches == [("query", ["three"])]
    assert [embedder.name for embedder in ExpectedQueries(models, []).embedders] == ["latin", "everything"]


def test_a_knowledge_base_that_expects_its_queries_gives_the_same_hits(
    toy: type[Toy], tmp_path: Path, write_notes: Callable[[dict[str, str]], Path]
) -> None:
    notes = write_notes(
        {f"{number}.md": f"# Note {number}\n\nword{number} and word{number + 1} stand here\n" for number in range(12)}
    )
    queries = [f"word{number} stand" for number in range(12)]
    with toy.open(tmp_path / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(notes)
        expecting = knowledge_base.variant(expecting=queries)
        for query in queries:
            assert [(hit.chunk_id, hit.score) for hit in expecting.search(query)] == [
                (hit.chunk_id, hit.score) for hit in knowledge_base.search(query)
            ]


def test_without_a_model_nothing_is_expected(tmp_path: Path, toy: type[Toy]) -> None:
    import kebab

    with kebab.open(tmp_path / "kb.sqlite", embedding_model="none") as knowledge_base:
        knowledge_base.ingest_text("some words", title="words")
        assert len(knowledge_base.variant(expecting=["words"]).search("words")) == 1
