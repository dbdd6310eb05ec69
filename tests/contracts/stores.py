"""The stores that the contract suite runs on, and a corpus in one of them that is reached through the ports only.

A new store is a line in CASES: a function that names a place where nothing is yet. It gets the request of the fixture,
and with it the fixtures of the session, such as a server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from typing import Any
from uuid import uuid4

import pytest
from tests.documents import make_document
from tests.qdrant_server import cluster_address

import kebab
from kebab.config.cluster_address import cluster_address as cluster_address_of
from kebab.config.loading import LoadedSettings
from kebab.config.settings import AnalysisSettings, EmbeddingSettings, Settings, StoreSettings
from kebab.core.documents import Source, embedded_text
from kebab.core.ports import (
    ChunkContext,
    ColumnWeights,
    Embedder,
    EmbeddingModels,
    IndexedDocument,
    LexicalMatches,
    NewVector,
    PendingChunk,
    VectorMatch,
)
from kebab.core.query_tree import parse
from kebab.core.records import ContextNote
from kebab.core.search import SearchFilters
from kebab.core.store_ports import Catalog, Reading, Store, Writing
from kebab.session import open_store
from kebab.store.qdrant.client import Client, StatusError
from kebab.store.qdrant.schema import Schema

Case = Callable[[pytest.FixtureRequest], StoreSettings]


def sqlite_file(request: pytest.FixtureRequest) -> StoreSettings:
    folder = request.getfixturevalue("tmp_path_factory").mktemp("store")
    return StoreSettings(path=str(folder / "kebab.sqlite"))


def qdrant_server(request: pytest.FixtureRequest) -> StoreSettings:
    """A Qdrant server whose collections have two shards, so that it must merge their results."""
    return _emptied("qdrant") or StoreSettings(url=request.getfixturevalue("one_node").address(_new_name()), shards=2)


def qdrant_cluster_of_three(request: pytest.FixtureRequest) -> StoreSettings:
    nodes = request.getfixturevalue("three_nodes")
    return _emptied("cluster") or StoreSettings(url=cluster_address(nodes, _new_name()), shards=3, replicas=2)


_EMPTIED: dict[int, list[StoreSettings]] = {}
"""Emptied collections of former stores, by the number of servers: creating new ones takes a cluster seconds."""


def _emptied(case: str) -> StoreSettings | None:
    waiting = _EMPTIED.get(1 if case == "qdrant" else 3)
    return waiting.pop() if waiting else None


def _put_back(settings: StoreSettings) -> bool:
    """Empties a store for the next test, and returns whether nothing but its empty collections is left."""
    address = cluster_address_of(settings.url)
    client = Client(address)
    schema = Schema(client, StoreSettings())
    try:
        if schema.chunks_collections() != [f"{schema.chunks.name}.1"] or schema.spaces():
            return False
        for collection in (schema.catalog, schema.documents, schema.terms, schema.chunks):
            collection.delete({"must": []})
    except StatusError:  # the test has taken it away
        return False
    finally:
        client.close()
    _EMPTIED.setdefault(len(address.nodes), []).append(settings)
    return True


def _new_name() -> str:
    return f"contract-{uuid4().hex[:12]}"


CASES: dict[str, Case] = {"sqlite": sqlite_file, "qdrant": qdrant_server, "cluster": qdrant_cluster_of_three}


class Corpus:
    """A store, with short functions for what tests write and ask."""

    def __init__(self, settings: StoreSettings) -> None:
        self.settings = settings
        self.store = self.another()

    def another(self, *, korean: str = "bigrams", **settings: Any) -> Store:
        """The same store, opened as by another process."""
        return open_store(Settings(store=self.settings._replace(**settings), analysis=AnalysisSettings(korean)))

    def open(self, models: EmbeddingModels | None = None) -> kebab.KnowledgeBase:
        settings = Settings(store=self.settings, embedding=EmbeddingSettings(model="none"))
        knowledge_base = kebab.KnowledgeBase(LoadedSettings(settings, {}, None))
        if models is not None:
            knowledge_base.session.models = models
        return knowledge_base

    def close(self) -> None:
        if not self.settings.url or not _put_back(self.settings):
            self.store.reset()
        self.store.close()

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        with self.store.reading() as reading:
            assert reading is not None
            yield reading

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        with self.reading() as reading:
            yield reading.catalog

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        with self.store.writing("a test") as writing:
            writing.settle_analysis()
            yield writing

    # --- documents

    document = staticmethod(make_document)

    def write(self, path: str, *texts: str, **details: Any) -> int:
        return self.write_all(make_document(path, *texts, **details))

    def write_all(self, *documents: IndexedDocument) -> int:
        """Writes several documents in one call, with their sources if these are missing."""
        with self.writing() as writing:
            store = writing.documents()
            known = {source.name for source in store.sources()}
            for name in dict.fromkeys(document.source for document in documents):
                if name not in known:
                    store.add_source(Source(name, "folder", f"/{name}"))
            return store.write(*documents)

    def remove(self, *paths: str, source: str = "notes") -> int:
        with self.writing() as writing:
            return writing.documents().remove(source, paths)

    def chunks(self) -> list[ChunkContext]:
        """The chunks of the user's own documents, by path."""
        with self.catalog() as catalog:
            documents = sorted(catalog.all_documents(), key=lambda record: (record.path, record.source))
            return [chunk for record in documents for chunk in catalog.chunks_of(record.doc_id)]

    def texts(self) -> list[tuple[str, str]]:
        return [(chunk.doc_path, chunk.text) for chunk in self.chunks()]

    def ids(self) -> dict[str, str]:
        """The chunk ids, by text."""
        return {chunk.text: chunk.chunk_id for chunk in self.chunks()}

    def note(self, folder: str, text: str, source: str = "notes") -> int:
        """Adds a note to a source or folder; an empty text removes it."""
        with self.writing() as writing:
            notes = writing.notes()
            return (
                notes.put(source, ContextNote(folder, text))
                if text
                else notes.remove(source, ContextNote(folder, text))
            )

    def is_healthy(self) -> bool:
        return all(check.ok for check in self.store.health())

    # --- search

    def matches(
        self, query: str, *, match: str = "all", limit: int = 1000, filters: SearchFilters | None = None, **options: Any
    ) -> LexicalMatches:
        options = {"drop_stop_words": False, **options}
        with self.reading() as reading:
            index = reading.lexical_index(ColumnWeights())
            return index.search(parse(query), match=match, filters=filters or SearchFilters(), limit=limit, **options)

    def search(self, query: str, *, match: str = "all", drop_stop_words: bool = False, **filters: Any) -> list[str]:
        """The paths of the documents found, best first, each once."""
        found = self.matches(query, match=match, drop_stop_words=drop_stop_words, filters=SearchFilters(**filters))
        return list(dict.fromkeys(chunk.doc_path for chunk in self.read(found)))

    def read(self, found: LexicalMatches) -> list[ChunkContext]:
        """The passages of these matches, in their order."""
        with self.reading() as reading:
            chunks = reading.chunks().contexts([match.chunk_id for match in found.matches])
        return [chunks[match.chunk_id] for match in found.matches if match.chunk_id in chunks]

    def count(self, query: str, *, match: str = "all", **filters: Any) -> int:
        with self.reading() as reading:
            index = reading.lexical_index(ColumnWeights())
            return index.count(parse(query), match=match, drop_stop_words=False, filters=SearchFilters(**filters))

    # --- vectors

    def give(self, embedder: Embedder, vectors: Mapping[str, Any], *, primary: bool = True) -> None:
        """Gives vectors to chunks, which are named by their texts. Equal vectors of several chunks are stored as those
        of different texts.
        """
        with self.writing() as writing:
            writer = writing.vectors()
            keys = {
                chunk.text: chunk.key for chunk in writer.pending([embedder], primary=False, after=None, limit=10_000)
            }
            new = [
                NewVector(hash_of(f"{embedder.name} {text}"), vector, [keys[text]]) for text, vector in vectors.items()
            ]
            writer.add(embedder, new, primary=primary)

    def embed(self, embedder: Embedder, *, settle: bool = True) -> tuple[int, int]:
        """Embeds pending chunks as an ingest does. Returns how many texts were embedded, and how many chunks used a
        stored vector.
        """
        with self.writing() as writing:
            writer = writing.vectors()
            pending = {chunk.key: text_of(chunk) for chunk in writer.pending([embedder], after=None, limit=10_000)}
            linked = writer.link(embedder, [(key, hash_of(text)) for key, text in pending.items()], primary=True)
            texts: dict[str, list[Any]] = {}
            for key, text in pending.items():
                if key not in linked:
                    texts.setdefault(text, []).append(key)
            if texts:
                made = embedder.embed(list(texts), "passage")
                writer.add(
                    embedder,
                    [NewVector(hash_of(text), vector, texts[text]) for text, vector in zip(texts, made, strict=True)],
                    primary=True,
                )
            if settle:
                writer.settle([embedder])
        return len(texts), len(linked)

    def pending(self, embedder: Embedder) -> list[str]:
        with self.writing() as writing:
            return [chunk.text for chunk in writing.vectors().pending([embedder], after=None, limit=10_000)]

    def near(
        self, embedder: Embedder, vector: Any, limit: int = 10, *, filters: SearchFilters | None = None, **options: bool
    ) -> list[VectorMatch]:
        with self.reading() as reading:
            return list(
                reading.vectors().search(
                    embedder.fingerprint, vector, filters=filters or SearchFilters(), limit=limit, **options
                )
            )

    def closest(self, embedder: Embedder, text: str, limit: int = 3) -> list[str]:
        """The texts of the chunks closest to this vector."""
        texts = {chunk.chunk_id: chunk.text for chunk in self.chunks()}
        return [texts[match.chunk_id] for match in self.near(embedder, embedder.embed([text], "query")[0], limit)]


def text_of(chunk: PendingChunk) -> str:
    return embedded_text(chunk.path, chunk.title, chunk.headings, chunk.text)


def hash_of(text: str) -> bytes:
    return sha256(text.encode()).digest()[:16]
