"""A real database file, with short functions for what tests write and ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.documents import make_document

from kebab.core.documents import Source
from kebab.core.ports import Embedder, NewVector
from kebab.core.query_tree import parse
from kebab.core.search import SearchFilters
from kebab.store.sqlite.database import Connection, Database
from kebab.store.sqlite.documents import SqliteDocumentStore
from kebab.store.sqlite.filters import document_filter
from kebab.store.sqlite.lexical import SqliteLexicalIndex
from kebab.store.sqlite.rows import SqliteChunkReader
from kebab.store.sqlite.vector_writer import SqliteVectorWriter
from kebab.store.sqlite.vectors import SqliteVectorStore


class Shelf:
    """A database and its one writing connection."""

    def __init__(self, path: Path, korean: str = "bigrams") -> None:
        self.path = path
        self.korean = korean
        self.database = Database(path)
        self.connection: Connection = self.database.writer()
        self.store = SqliteDocumentStore(self.connection, korean_analysis=korean)
        self._read: tuple[Any, ...] = ()

    def add_source(self, name: str) -> None:
        if name not in {source.name for source in self.store.sources()}:
            self.store.add_source(Source(name, "folder", f"/{name}"))

    document = staticmethod(make_document)

    def write(self, path: str, *texts: str, source: str = "notes", **details: Any) -> int:
        self.add_source(source)
        return self.store.write(make_document(path, *texts, source=source, **details))

    def rows(self, sql: str, bindings: Any = ()) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql, bindings).fetchall()

    def value(self, sql: str, bindings: Any = ()) -> Any:
        return self.rows(sql, bindings)[0][0]

    def texts(self) -> list[tuple[str, str]]:
        return self.rows(
            "SELECT d.path, c.text FROM chunks c JOIN documents d ON d.id = c.document_id ORDER BY d.path, c.ordinal"
        )

    def chunk_rows(self) -> dict[str, int]:
        """The row id of each chunk, by its text."""
        return dict(self.rows("SELECT text, id FROM chunks"))

    def matching(self, expression: str) -> list[int]:
        """The row ids that a raw FTS5 expression finds."""
        return [
            row
            for (row,) in self.rows(
                "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rowid", (expression,)
            )
        ]

    def search(self, query: str, *, match: str = "all", drop_stop_words: bool = False, **filters: Any) -> list[str]:
        """The paths of the documents found, best first, each once."""
        index = SqliteLexicalIndex(self.connection, korean_analysis=self.korean)
        found = index.search(
            parse(query), match=match, drop_stop_words=drop_stop_words, filters=SearchFilters(**filters), limit=1000
        )  # fmt: skip
        ids = [match.chunk_id for match in found.matches]
        chunks = SqliteChunkReader(self.connection).contexts(ids)
        return list(dict.fromkeys(chunks[chunk_id].doc_path for chunk_id in ids))

    # --- vectors

    @property
    def vectors(self) -> SqliteVectorWriter:
        return SqliteVectorWriter(self.connection)

    @property
    def vector_store(self) -> SqliteVectorStore:
        return SqliteVectorStore(self.connection)

    def give(self, embedder: Embedder, vectors: Mapping[int, Any], *, primary: bool = True) -> None:
        """Gives vectors to chunks, which are named by their rows. Equal vectors of several chunks are stored as those
        of different texts.
        """
        new = [
            NewVector(sha256(f"{embedder.name} {row}".encode()).digest()[:16], vector, [row])
            for row, vector in vectors.items()
        ]
        self.vectors.add(embedder, new, primary=primary)

    def closest(
        self, space: str, query: Any, *, filters: SearchFilters | None = None, primary: bool | None = None
    ) -> list[tuple[str, float]]:
        """Chunk ids and cosines of all chunks of a space, best first, computed from every stored row."""
        documents = {row for (row,) in self.rows(*self._filter(filters))} if filters else None
        chunks, owners, primaries, matrix = self._stored_vectors(space)
        cosines = matrix @ np.asarray(query, np.float64) if len(chunks) else np.zeros(0)
        kept = np.full(len(chunks), True) if primary is None else (primaries > 0) == primary
        if documents is not None:
            kept &= np.isin(owners, list(documents))
        order = np.lexsort((chunks[kept], -cosines[kept]))
        return list(zip(chunks[kept][order].tolist(), cosines[kept][order].tolist(), strict=True))

    def _stored_vectors(self, space: str) -> tuple[Any, ...]:
        """Chunk ids, rows of their documents, whether this is their primary space, and vectors. Read once, until
        something is written.
        """
        state = (space, self.connection.total_changes())
        if self._read[:1] != (state,):
            rows = self.rows(
                """SELECT c.chunk_id, c.document_id, cv.home, v.vector FROM embedding_spaces e JOIN vectors v ON v.space_id = e.id
                   JOIN chunks_vec cv ON cv.vector_id = v.id JOIN chunks c ON c.id = cv.chunk
                   WHERE e.model || '@' || e.version || ':' || e.dimension = ?""",
                (space,),
            )
            matrix = (
                np.frombuffer(b"".join(row[3] for row in rows), np.float16)
                .astype(np.float64)
                .reshape(max(1, len(rows)), -1)
            )
            chunks, owners, primaries = (np.array([row[column] for row in rows]) for column in range(3))
            self._read = (state, chunks.astype(str), owners.astype(int), primaries.astype(int), matrix)
        return self._read[1:]

    def _filter(self, filters: SearchFilters) -> tuple[str, dict[str, str]]:
        sql, bindings = document_filter(filters)
        return sql, bindings

    def check_codes(self) -> None:
        """Checks that in a space with codes exactly the stored vectors have codes."""
        for space, dimension, centre in self.rows("SELECT id, dimension, centre FROM embedding_spaces"):
            stored = dict(self.rows("SELECT id, vector FROM vectors WHERE space_id = ?", (space,)))
            coded: dict[int, bytes] = {}
            for count, ids, planes in self.rows(
                "SELECT count, ids, planes FROM vector_codes WHERE space_id = ?", (space,)
            ):
                words = np.frombuffer(planes, np.uint64).reshape(-(-dimension // 64), count)
                numbers = np.frombuffer(ids, np.int64).tolist()
                assert len(numbers) == count
                assert not set(numbers) & set(coded)
                coded |= {number: words[:, place].tobytes() for place, number in enumerate(numbers)}
            if centre is None:
                assert not coded
                continue
            assert set(coded) == set(stored)
            middle = np.frombuffer(centre, np.float32)
            for number, vector in stored.items():
                above = np.frombuffer(vector, np.float16).astype(np.float32) > middle
                bits = np.unpackbits(np.frombuffer(coded[number], np.uint8))
                assert bits[:dimension].tolist() == above.tolist()
                assert not bits[dimension:].any()

    def check_text_index(self) -> None:
        """Checks that the text index equals that of the chunks."""
        self.connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")

    def reopen(self) -> None:
        """Opens the file again without cached state, as another process would, also a damaged file that is to be
        rebuilt.
        """
        self.connection.close()
        self.connection = self.database.writer(mending=True)
        self.store = SqliteDocumentStore(self.connection, korean_analysis=self.korean)

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path / "kebab.sqlite")
    yield shelf
    shelf.close()


@pytest.fixture(scope="session")
def new_shelf(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Shelf]:
    """A function that makes databases, for fixtures that many tests share."""
    return lambda name: Shelf(tmp_path_factory.mktemp(name) / "kebab.sqlite")


@pytest.fixture(scope="module")
def shared_shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """One database for a module of tests that only read, or that do not depend on each other's writes."""
    shelf = Shelf(tmp_path_factory.mktemp("shelf") / "kebab.sqlite")
    yield shelf
    shelf.close()
