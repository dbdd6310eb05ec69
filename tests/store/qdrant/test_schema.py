"""The collections of a knowledge base: which belong to it, what an interrupted move leaves, and how vectors are stored."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from tests.conftest import Toy
from tests.documents import make_document
from tests.qdrant_server import QdrantNode, wait_for

import kebab
from kebab.config.cluster_address import cluster_address
from kebab.config.settings import StoreSettings
from kebab.core.documents import Source
from kebab.core.errors import Corrupt, NotEmpty, NotFound, TooOld
from kebab.core.ports import NewVector
from kebab.core.search import SearchFilters
from kebab.store.qdrant.schema import META, SCHEMA, WORDS, Schema
from kebab.store.qdrant.store import QdrantStore

VECTORS, DIMENSION = 1500, 384


def asked(node: QdrantNode, method: str, path: str, body: Any = None) -> Any:
    request = urllib.request.Request(
        f"{node.url}{path}",
        data=json.dumps(body or {}).encode(),
        method=method,
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["result"]


@contextmanager
def opened(node: QdrantNode, name: str) -> Iterator[kebab.KnowledgeBase]:
    with kebab.open(node.address(name), embedding_model="none") as kb:
        yield kb
        kb.reset()


def note(folder: Path) -> Path:
    (folder / "a.md").write_text("# Apples\n\nApples are red.\n")
    return folder


def test_a_reset_deletes_nothing_but_the_knowledge_base(one_node: QdrantNode, tmp_path: Path) -> None:
    """Regression: every collection whose name began like that of the knowledge base was deleted."""
    name = f"own{uuid4().hex[:6]}"
    others = [f"{name}.chunks.backup", f"{name}2.chunks.1", f"{name}.mine"]
    for other in others:
        asked(one_node, "PUT", f"/collections/{other}", {"vectors": {}})
    try:
        with opened(one_node, name) as kb:
            kb.ingest(note(tmp_path))
            kb.reset()
            left = {one["name"] for one in one_node.get("/collections")["collections"]}
            assert {one for one in left if one.startswith(name)} == set(others)
    finally:
        for other in others:
            asked(one_node, "DELETE", f"/collections/{other}")


def test_preparing_a_model_deletes_no_other_collection(one_node: QdrantNode) -> None:
    """Regression: a collection with the next name for chunks was deleted."""
    name = f"room{uuid4().hex[:6]}"
    others = [f"{name}.chunks.2", f"{name}.chunks.7"]
    with Toy.open(one_node.address(name), Toy.models()) as kb:
        kb.ingest_text("Pears are green.", title="Pears", embed=False)
        for other in others:
            asked(one_node, "PUT", f"/collections/{other}", {"vectors": {}})
        try:
            kb.ingest_text("Plums are blue.", title="Plums")
            aliases = {
                alias["alias_name"]: alias["collection_name"] for alias in asked(one_node, "GET", "/aliases")["aliases"]
            }
            assert aliases[f"{name}.chunks"] == f"{name}.chunks.3"
            assert kb.verify().whole
            kb.reset()
            left = [collection["name"] for collection in asked(one_node, "GET", "/collections")["collections"]]
            assert sorted(one for one in left if one.startswith(f"{name}.")) == others
        finally:
            for other in others:
                asked(one_node, "DELETE", f"/collections/{other}")


@pytest.mark.parametrize("kind", ["catalog", "documents", "terms", "chunks", "chunks.1"])
def test_a_foreign_collection_is_neither_emptied_nor_deleted(one_node: QdrantNode, tmp_path: Path, kind: str) -> None:
    """Regression: it was mistaken for the rest of an interrupted reset."""
    name = f"foreign{uuid4().hex[:6]}"
    foreign = f"/collections/{name}.{kind}"
    asked(one_node, "PUT", foreign, {"vectors": {}})
    asked(
        one_node, "PUT", f"{foreign}/points?wait=true", {"points": [{"id": 1, "vector": {}, "payload": {"mine": True}}]}
    )
    try:
        with kebab.open(one_node.address(name), embedding_model="none") as kb:
            for change in (lambda: kb.ingest(note(tmp_path)), kb.reset):
                with pytest.raises(NotEmpty, match=rf"{name}\.{kind}"):
                    change()
        names = [one["name"] for one in one_node.get("/collections")["collections"]]
        assert [one for one in names if one.startswith(name)] == [f"{name}.{kind}"]
        assert asked(one_node, "POST", f"{foreign}/points/count", {"exact": True})["count"] == 1
    finally:
        asked(one_node, "DELETE", foreign)


@pytest.mark.parametrize("kind", ["catalog", "documents", "terms", "chunks"])
def test_a_foreign_alias_is_neither_emptied_nor_deleted(one_node: QdrantNode, tmp_path: Path, kind: str) -> None:
    name = f"other{uuid4().hex[:6]}"
    asked(one_node, "PUT", f"/collections/shop-{name}", {"vectors": {}})
    asked(
        one_node,
        "PUT",
        f"/collections/shop-{name}/points?wait=true",
        {"points": [{"id": 1, "vector": {}, "payload": {"what": "mine"}}]},
    )
    alias = {"create_alias": {"collection_name": f"shop-{name}", "alias_name": f"{name}.{kind}"}}
    asked(one_node, "POST", "/collections/aliases", {"actions": [alias]})
    try:
        with kebab.open(one_node.address(name), embedding_model="none") as kb:
            for change in (lambda: kb.ingest(note(tmp_path)), kb.reset):
                with pytest.raises(NotEmpty, match=rf"{name}\.{kind}"):
                    change()
        assert asked(one_node, "POST", f"/collections/shop-{name}/points/count", {"exact": True})["count"] == 1
    finally:
        asked(one_node, "DELETE", f"/collections/shop-{name}")


@pytest.mark.parametrize("left", [["terms", "documents"], ["chunks.1"], ["chunks.1", "documents", "terms"]])
def test_documents_of_an_interrupted_reset_do_not_come_back(
    one_node: QdrantNode, tmp_path: Path, left: list[str]
) -> None:
    """Regression: the next ingest mistook documents that were not deleted yet for its own."""
    name = f"half{uuid4().hex[:6]}"
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.md").write_text("# Pears\n\nPears are green.\n")
    with opened(one_node, name) as kb:
        (tmp_path / "apples").mkdir()
        kb.ingest(note(tmp_path / "apples"))
        schema: Schema = kb.session.store._schema  # type: ignore[attr-defined]
        schema.mark_as_ours(given_up=True)
        schema.catalog.delete([META])
        for kind in left:
            asked(one_node, "DELETE", f"/collections/{name}.{kind}")
        kb.ingest(other)
        assert [record.path for record in kb.documents()] == ["b.md"]
        assert len(kb.search("apples")) == 0
        assert [check for check in kb.verify().checks if not check.ok] == []


@pytest.mark.parametrize("lost", ["the point", "the version"])
def test_documents_without_their_description_are_not_deleted(one_node: QdrantNode, tmp_path: Path, lost: str) -> None:
    """Regression: everything was mistaken for the rest of an interrupted reset."""
    with opened(one_node, f"lost{uuid4().hex[:6]}") as kb:
        kb.ingest(note(tmp_path))
        schema: Schema = kb.session.store._schema  # type: ignore[attr-defined]
        if lost == "the point":
            schema.catalog.delete([META])
        else:
            path = f"/collections/{schema.catalog.name}/points/payload/delete?wait=true"
            asked(one_node, "POST", path, {"keys": ["schema"], "points": [META]})
        with pytest.raises(Corrupt, match="what describes it is missing") as raised:
            kb.ingest(tmp_path)
        assert "kb --db" in (raised.value.hint or "")
        assert schema.documents.count() == 1
        kb.reset()
        assert kb.ingest(tmp_path).added == 1


def test_documents_without_their_catalog_are_not_deleted(one_node: QdrantNode, tmp_path: Path) -> None:
    """Regression: verify called them foreign, to be deleted on the server."""
    name = f"uncatalogued{uuid4().hex[:6]}"
    with kebab.open(one_node.address(name), embedding_model="none") as kb:
        kb.ingest(note(tmp_path))
        asked(one_node, "DELETE", f"/collections/{name}.catalog")
        for change in (lambda: kb.ingest(tmp_path), lambda: kb.search("apples"), kb.reset):
            with pytest.raises(Corrupt, match="what describes it is missing") as raised:
                change()
            assert f"Restore {name}.catalog from a snapshot" in (raised.value.hint or "")
    for kind in ("chunks.1", "documents", "terms"):
        asked(one_node, "DELETE", f"/collections/{name}.{kind}")


def test_writing_withdraws_an_interrupted_reset(one_node: QdrantNode, tmp_path: Path) -> None:
    """Regression: after a killed reset, another process could delete everything much later."""
    with opened(one_node, f"kept{uuid4().hex[:6]}") as kb:
        kb.ingest(note(tmp_path))
        schema: Schema = kb.session.store._schema  # type: ignore[attr-defined]
        schema.mark_as_ours(given_up=True)
        kb.ingest()
        schema.catalog.delete([META])
        with pytest.raises(Corrupt, match="what describes it is missing"):
            kb.ingest(tmp_path)


def test_an_unused_collection_of_chunks_is_named_and_deleted(one_node: QdrantNode, tmp_path: Path) -> None:
    name = f"moved{uuid4().hex[:6]}"
    with opened(one_node, name) as kb:
        kb.ingest(note(tmp_path))
        asked(one_node, "PUT", f"/collections/{name}.chunks.2", {"vectors": {}, "sparse_vectors": {WORDS: {}}})
        (leftovers,) = (check for check in kb.health() if not check.ok)
        assert f"{name}.chunks.2" in leftovers.message
        assert "next ingest" in (leftovers.hint or "")
        kb.ingest()
        assert all(check.ok for check in kb.health())
        assert len(kb.search("apples")) == 1


def test_an_older_schema_is_refused(one_node: QdrantNode, tmp_path: Path) -> None:
    name = f"old{uuid4().hex[:6]}"
    with opened(one_node, name) as kb:
        kb.ingest(note(tmp_path))
        asked(
            one_node,
            "POST",
            f"/collections/{name}.catalog/points/payload?wait=true",
            {"payload": {"schema": 1}, "points": [META]},
        )
        for refused in (lambda: kb.search("apples"), lambda: kb.ingest(tmp_path)):
            with pytest.raises(
                TooOld, match=f"was written by an earlier Kebab \\(schema 1, this one needs {SCHEMA}\\)"
            ):
                refused()


def test_a_reader_gets_not_found_if_the_knowledge_base_is_deleted(one_node: QdrantNode, tmp_path: Path) -> None:
    with opened(one_node, f"deleted{uuid4().hex[:6]}") as kb:
        kb.ingest(note(tmp_path))
        with pytest.raises(NotFound, match="deleted meanwhile"), kb.session.store.reading() as reading:
            assert reading is not None
            kb.reset()
            reading.stats()


def test_on_disk_indexes_are_created_on_disk(one_node: QdrantNode, tmp_path: Path) -> None:
    name = f"disk{uuid4().hex[:6]}"
    with kebab.open(one_node.address(name), embedding_model="none", store_on_disk=True) as kb:
        kb.ingest(note(tmp_path))
        facts = asked(one_node, "GET", f"/collections/{name}.chunks")
        assert {index["params"]["on_disk"] for index in facts["payload_schema"].values()} == {True}
        assert facts["config"]["params"]["sparse_vectors"]["words"]["index"]["on_disk"] is True
        assert len(kb.search("apples", tags_any=[], path="*.md")) == 1
        assert all(check.ok for check in kb.health())
        kb.reset()


class OfTheTest:
    name, version, dimension, fingerprint = "test", "1", DIMENSION, f"test@1:{DIMENSION}"

    def embed(self, texts: Any, kind: str) -> Any:  # noqa: ARG002
        raise AssertionError("its vectors are known")


@pytest.mark.parametrize("quantization", ["scalar", "binary"])
def test_quantized_vectors_find_the_same_neighbours(one_node: QdrantNode, quantization: str) -> None:
    """With quantized vectors and an index, which servers otherwise create only for many more vectors."""
    name = f"short{uuid4().hex[:6]}"
    store = QdrantStore(cluster_address(one_node.address(name)), StoreSettings(quantization=quantization, shards=1))
    random = np.random.default_rng(3)
    subjects = random.standard_normal((60, DIMENSION))

    def about(count: int) -> Any:
        made = (
            subjects[random.integers(0, len(subjects), count)] + 0.7 * random.standard_normal((count, DIMENSION)) + 0.5
        )
        return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)

    vectors = about(VECTORS)
    try:
        with store.writing("a test") as writing:
            writing.settle_analysis()
            writing.expect_vectors([OfTheTest()])
            quick = {"optimizers_config": {"indexing_threshold": 50, "default_segment_number": 1}}
            asked(one_node, "PATCH", f"/collections/{name}.chunks", quick)
            documents = writing.documents()
            documents.add_source(Source("notes", "folder", "/notes"))
            for start in range(0, VECTORS, 100):
                documents.write(make_document(f"{start}.md", *(f"note {start + number}" for number in range(100))))
            pending = writing.vectors().pending([OfTheTest()], after=None, limit=VECTORS)
            writing.vectors().add(
                OfTheTest(),
                [NewVector(b"", vectors[number], [chunk.key]) for number, chunk in enumerate(pending)],
                primary=True,
            )
        chunks = [chunk.chunk_id for chunk in pending]
        wait_for(
            lambda: asked(one_node, "GET", f"/collections/{name}.chunks")["indexed_vectors_count"] >= VECTORS,
            "the index of vectors",
        )
        assert asked(one_node, "GET", f"/collections/{name}.chunks")["config"]["quantization_config"][quantization]
        found, wanted = 0, 0
        with store.reading() as reading:
            assert reading is not None
            for query in about(40):
                best = {chunks[place] for place in np.argsort(-(vectors @ query))[:10]}
                hits = {
                    match.chunk_id
                    for match in reading.vectors().search(
                        OfTheTest.fingerprint, query, filters=SearchFilters(), limit=10
                    )
                }
                found, wanted = found + len(best & hits), wanted + len(best)
        assert found / wanted > 0.93
    finally:
        store.reset()
        store.close()
