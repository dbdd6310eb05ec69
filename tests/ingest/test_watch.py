"""Watching, on every kind of store: it follows the sources that others add and remove."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from uuid import uuid4

import pytest
from tests.qdrant_server import QdrantNode, qdrant_node

import kebab
from kebab.core.errors import KebabError, NotFound, StoreUnreachable
from kebab.ingest import watch
from kebab.ingest.embedding import embed_missing
from kebab.ingest.report import IngestReport

Notes = Callable[[Mapping[str, str]], Path]


@pytest.fixture(params=["file", "cluster"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return str(tmp_path / "kb.sqlite")
    node: QdrantNode = request.getfixturevalue("one_node")
    return node.address(f"watched-{uuid4().hex[:8]}")


def opened(address: str) -> kebab.KnowledgeBase:
    return kebab.open(address, embedding_model="none", store_lock_wait_s=20.0)


@contextmanager
def watching(address: str) -> Iterator[list[IngestReport | KebabError]]:
    stop = Event()
    said: list[IngestReport | KebabError] = []

    def run() -> None:
        with opened(address) as kb:
            said.extend(kb.watch(stop=stop, embed=False))

    thread = Thread(target=run)
    thread.start()
    try:
        yield said
    finally:
        stop.set()
        thread.join()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def paths(kb: kebab.KnowledgeBase) -> list[str]:
    return sorted(record.path for record in kb.documents())


def test_a_source_removed_while_its_ingest_waits_for_the_lock_stays_removed(address: str, write_notes: Notes) -> None:
    """Regression: a watch that waited for the lock of the removal added the source again."""
    folder = write_notes({"a.md": "alpha"})
    with opened(address) as kb:
        kb.ingest(folder, name="notes")
        kb.remove_source("notes")
        report = kb.ingest(folder, known_only=True)
        assert (report.added, report.scanned, paths(kb), kb.sources()) == (0, 0, [], [])
        assert kb.ingest(folder).added == 1
        assert kb.ingest(folder / "a.md", known_only=True).unchanged == 1


def test_a_reset_database_is_not_created_again(address: str, write_notes: Notes) -> None:
    """Regression: an empty one was, in which nothing could be found."""
    folder = write_notes({"a.md": "alpha"})
    with opened(address) as kb:
        kb.ingest(folder)
        kb.reset()
        with pytest.raises(NotFound):
            kb.ingest(folder, known_only=True)
        embed_missing(kb.session, "kb watch", IngestReport(), stop=lambda: False)
        assert not kb.session.store.exists()


def test_watch_waits_for_a_server_that_is_down(tmp_path: Path, write_notes: Notes) -> None:
    """Regression: a watch ended when the cluster was down while it was asked for its sources."""
    folder = write_notes({"a.md": "alpha"})
    with qdrant_node() as node:
        address = node.address("watched")
        with opened(address) as kb:
            kb.ingest(folder)
        with watching(address) as said:
            time.sleep(0.5)
            node.kill()
            until(lambda: any(isinstance(one, StoreUnreachable) for one in said))
            (folder / "b.md").write_text("bravo")
            time.sleep(3)
            node.restart()
            with opened(address) as kb:
                until(lambda: paths(kb) == ["a.md", "b.md"])
    assert sum(isinstance(one, StoreUnreachable) for one in said) <= 3  # not with every look


def test_watch_follows_sources_that_others_add(
    address: str, write_notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: a watch on a cluster asked for its sources only once."""
    monkeypatch.setattr(watch, "_ASK_AGAIN_S", 0.3)
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.md").write_text("bravo")
    with opened(address) as kb:
        kb.ingest(write_notes({"a.md": "alpha"}))
        with watching(address):
            kb.ingest(other)
            (other / "c.md").write_text("charlie")
            until(lambda: paths(kb) == ["a.md", "b.md", "c.md"])
