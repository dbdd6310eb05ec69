"""A real database file on disk, and documents made of whatever chunks a test needs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from kebab.analysis.query_syntax import parse
from kebab.core.documents import Chunk, ParsedDocument, Source
from kebab.core.ports import FileState, IndexedDocument
from kebab.core.search import SearchFilters
from kebab.core.spans import LineSpan
from kebab.store.sqlite.database import Database
from kebab.store.sqlite.documents import SqliteDocumentStore
from kebab.store.sqlite.lexical import SqliteLexicalIndex


def make_document(path: str, *texts: str, source: str = "notes", title: str | None = None, **details: Any) -> IndexedDocument:
    """Every text is one paragraph and one chunk; `details` are fields of ParsedDocument, and date, trust, headings, state."""
    body, chunks, line = "", [], 1
    for ordinal, text in enumerate(texts):
        chunks.append(
            Chunk(ordinal, len(body), len(body) + len(text), text, details.get("headings", ()), (LineSpan(line, line + text.count("\n")),))
        )
        body += text + "\n\n"
        line += text.count("\n") + 2
    parsed = ParsedDocument(
        text=body,
        title=path if title is None else title,
        blocks=(),
        doc_type=details.get("doc_type", "markdown"),
        format=details.get("format", "md"),
        lang=details.get("lang", "en"),
        tags=tuple(details.get("tags", ())),
        aliases=tuple(details.get("aliases", ())),
        metadata=details.get("metadata", {}),
    )
    return IndexedDocument(
        source=source,
        path=path,
        state=details.get("state", FileState(len(body), 1, "hash", "print")),
        parsed=parsed,
        chunks=chunks,
        chunker_version="test-1",
        date=details.get("date", "2026-01-01"),
        trust_level=details.get("trust", "primary"),
    )


class Shelf:
    """A database with its one writing connection."""

    def __init__(self, path: Path, korean: str = "bigrams") -> None:
        self.path = path
        self.korean = korean
        self.database = Database(path)
        self.connection: apsw.Connection = self.database.writer()
        self.store = SqliteDocumentStore(self.connection, path, korean_analysis=korean)

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
        return self.rows("SELECT d.path, c.text FROM chunks c JOIN documents d ON d.id = c.document_id ORDER BY d.path, c.ordinal")

    def chunk_rows(self) -> dict[str, int]:
        """Text → row id."""
        return dict(self.rows("SELECT text, id FROM chunks"))

    def matching(self, expression: str) -> list[int]:
        """Row ids that raw FTS5 finds."""
        return [row for (row,) in self.rows("SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? ORDER BY rowid", (expression,))]

    def search(self, query: str, *, match: str = "all", drop_stop_words: bool = False, **filters: Any) -> list[str]:
        """The paths that answer, best first, each once."""
        index = SqliteLexicalIndex(self.connection, korean_analysis=self.korean)
        found = index.search(
            parse(query), match=match, drop_stop_words=drop_stop_words, filters=SearchFilters(**filters), limit=1000
        )  # fmt: skip
        return list(dict.fromkeys(hit.chunk.doc_path for hit in found.matches))

    def check_text_index(self) -> None:
        """Raises when the text index is not exactly that of the chunks: rank 1 compares them."""
        self.connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")

    def reopen(self) -> None:
        """Nothing cached: as another process would see the file."""
        self.connection.close()
        self.connection = self.database.writer()
        self.store = SqliteDocumentStore(self.connection, self.path, korean_analysis=self.korean)

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[Shelf]:
    shelf = Shelf(tmp_path / "kebab.sqlite")
    yield shelf
    shelf.close()


@pytest.fixture(scope="module")
def shared_shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """One for a whole module of tests that only read, or that write what all of them may see."""
    shelf = Shelf(tmp_path_factory.mktemp("shelf") / "kebab.sqlite")
    yield shelf
    shelf.close()
