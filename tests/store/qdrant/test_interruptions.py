"""After a writer was interrupted anywhere, the next one repairs everything: no document is lost or stored twice, and
all counts are right.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
from tests.documents import make_document
from tests.qdrant_server import QdrantNode

import kebab
from kebab.config.cluster_address import cluster_address
from kebab.config.settings import StoreSettings
from kebab.core.documents import Source
from kebab.core.errors import KebabError, Locked, NotFound
from kebab.core.libraries import VectorSpace
from kebab.core.ports import ColumnWeights
from kebab.core.query_tree import parse
from kebab.core.search import SearchFilters
from kebab.store.qdrant import writer_lease
from kebab.store.qdrant.client import Client
from kebab.store.qdrant.schema import Schema
from kebab.store.qdrant.store import QdrantStore
from kebab.store.qdrant.terms import CORPORA

BEFORE = [("a.md", ["apples are red", "pears are green"]), ("b.md", ["berries grow wild"])]
AFTER = [("a.md", ["apples are red", "apples are sweet"]), ("c.md", ["cherries are red too"])]


class Killed(BaseException):
    """Ends the writer as SIGKILL does: nothing of it continues."""


class DyingClient(Client):
    """A client that ends before the changing request of this number; all earlier requests are done."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.changes = 0
        self.last: int | None = None
        self._counting = threading.Lock()

    def ask(
        self, method: str, path: str, body: Any = None, options: Mapping[str, str] | None = None, **more: Any
    ) -> Any:
        if "wait" not in (options or {}) or self.last is None:
            return super().ask(method, path, body, options, **more)
        with self._counting:
            if self.changes > self.last:
                raise Killed
            self.changes += 1
            if self.changes > self.last:
                raise Killed
        return super().ask(method, path, body, options, **more)


@pytest.fixture
def store(one_node: QdrantNode) -> Iterator[QdrantStore]:
    store = QdrantStore(cluster_address(one_node.address("interrupted")), StoreSettings())
    store.reset()
    yield store
    store.reset()
    store.close()


class StoppedClient(Client):
    """A client that stops at the changing request of this number, as a stopped process does: even its lease is not
    renewed.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.changes = 0
        self.stops_at = 0
        self.stands = threading.Event()
        self.goes_on = threading.Event()

    def ask(
        self, method: str, path: str, body: Any = None, options: Mapping[str, str] | None = None, **more: Any
    ) -> Any:
        changes = method in ("PUT", "DELETE") or "wait" in (options or {}) or path.endswith("aliases")
        if changes and threading.current_thread().name != "kebab lease":
            self.changes += 1
            if self.changes == self.stops_at:
                self.stands.set()
        if self.stands.is_set():
            self.goes_on.wait()
        return super().ask(method, path, body, options, **more)


def another(store: QdrantStore, client: Client) -> QdrantStore:
    """Another writer to the same knowledge base."""
    with patch("kebab.store.qdrant.store.Client", lambda *_, **__: client):
        return QdrantStore(cluster_address(store.address), StoreSettings())


def dying(store: QdrantStore, last: int) -> QdrantStore:
    client = DyingClient(cluster_address(store.address))
    client.last = last
    return another(store, client)


def write(store: QdrantStore, documents: list[tuple[str, list[str]]], remove: str | None = None) -> None:
    with store.writing("a test") as writing:
        writing.settle_analysis()
        written = writing.documents()
        if not written.sources():
            written.add_source(Source("notes", "folder", "/notes"))
        for path, texts in documents:
            written.write(make_document(path, *texts))
        if remove is not None:
            written.remove("notes", [remove])


def texts(store: QdrantStore) -> dict[str, list[str]]:
    with store.reading() as reading:
        assert reading is not None
        return {
            record.path: [chunk.text for chunk in reading.catalog.chunks_of(record.doc_id)]
            for record in reading.catalog.all_documents()
        }


def check_counts(store: QdrantStore) -> None:
    """Checks that all stored counts are right."""
    with store.reading() as reading:
        assert reading is not None
        schema, state = reading._schema, reading._state
        chunks = [point["payload"] for point in schema.chunks.scroll()]
        terms = Counter(term for chunk in chunks for term in chunk["terms"])
        counted = {
            point["id"]: point["payload"]["chunks"]
            for point in schema.terms.scroll({"must_not": [{"is_empty": {"key": "chunks"}}]})
        }
        assert counted == terms
        for corpus in CORPORA:
            own = [chunk for chunk in chunks if chunk["corpus"] == corpus]
            assert state.sizes[corpus][:2] == (len(own), sum(chunk["length"] for chunk in own))
    # The next writer deletes what is left of moving chunks.
    assert [check for check in store.health() if not check.ok and check.name != "leftovers"] == []


def found(store: QdrantStore, query: str) -> set[str]:
    with store.reading() as reading:
        assert reading is not None
        index = reading.lexical_index(ColumnWeights())
        matches = index.search(
            parse(query), match="all", drop_stop_words=False, filters=SearchFilters(), limit=10
        ).matches
        return {chunk.text for chunk in reading.chunks().contexts([match.chunk_id for match in matches]).values()}


def test_the_next_writer_completes_a_killed_one(store: QdrantStore) -> None:
    last = 0
    survived = False
    while not survived:
        write(store, BEFORE, remove="c.md")
        check_counts(store)
        other = dying(store, last)
        try:
            write(other, AFTER, remove="b.md")
            survived = True
        except Killed:
            pass
        # Whatever it had come to, what stays the same was found all the time, and nothing is there twice.
        with suppress(Locked):
            assert "apples are red" in found(store, "apples")
        store._schema.catalog.delete(
            [
                point["id"]
                for point in store._schema.catalog.scroll({"must": [{"key": "what", "match": {"value": "lease"}}]})
            ]
        )
        with store.writing("a test"):
            pass
        check_counts(store)
        for path, chunks in texts(store).items():
            assert chunks in (dict(BEFORE).get(path), dict(AFTER).get(path)), (last, path)
        write(store, AFTER, remove="b.md")
        check_counts(store)
        assert texts(store) == dict(AFTER), last
        last += 1
    assert last > 8


def write_after(store: QdrantStore) -> None:
    write(store, AFTER, remove="b.md")


def make_room_for_vectors(store: QdrantStore) -> None:
    """Prepares a second model, which moves all chunks to another collection."""
    with store.writing("a test") as writing:
        writing.vectors().prepare([VectorSpace("another", str(uuid4())[:8], 4)])


@pytest.mark.parametrize("work", [write_after, make_room_for_vectors])
def test_a_stopped_writer_changes_nothing_after_another_wrote(
    store: QdrantStore, monkeypatch: pytest.MonkeyPatch, work: Callable[[QdrantStore], None]
) -> None:
    """Regression: it took back the lease that another writer had released, and wrote outdated counts."""
    slept = 0.0
    clock = writer_lease._clock
    monkeypatch.setattr(writer_lease, "_clock", lambda: clock() + slept)
    stops_at = 1
    tried = refused = 0
    while True:
        write(store, BEFORE, remove="c.md")
        client = StoppedClient(cluster_address(store.address))
        client.stops_at = stops_at
        with ThreadPoolExecutor() as pool:
            first = pool.submit(work, another(store, client))
            while not (client.stands.wait(0.02) or first.done()):
                pass
            try:
                if client.stands.is_set():
                    slept += 2 * writer_lease.LASTS_S
                    store._schema.catalog.set_payload(
                        {"until": 0.0}, {"must": [{"key": "what", "match": {"value": "lease"}}]}
                    )
                    write(store, [("d.md", [f"dates are sweet, the {stops_at}th time"])])
                    check_counts(store)
            finally:
                client.goes_on.set()
            if isinstance(first.exception(), Locked):
                check_counts(store)  # at once, before anybody has put anything in order
        if not client.stands.is_set():
            first.result()
            break
        assert first.exception() is None or isinstance(first.exception(), Locked)
        tried += 1
        refused += first.exception() is not None
        there = texts(store)
        assert there["d.md"] == [f"dates are sweet, the {stops_at}th time"]
        for path in ("a.md", "b.md", "c.md"):
            assert there.get(path) in (dict(BEFORE).get(path), dict(AFTER).get(path)), (stops_at, path)
        with store.writing("a test"):
            pass
        check_counts(store)
        assert texts(store) == there
        stops_at += 2
    assert refused >= tried - 1 > 2  # but for giving back the lease, which is the last change


@pytest.mark.parametrize("stops_at", [3, 4, 5, 6])
def test_a_stopped_reset_deletes_nothing_written_after_it(
    store: QdrantStore, monkeypatch: pytest.MonkeyPatch, stops_at: int
) -> None:
    """Regression: it continued to delete what another writer had written since."""
    slept = 0.0
    clock = writer_lease._clock
    monkeypatch.setattr(writer_lease, "_clock", lambda: clock() + slept)
    write(store, BEFORE)
    client = StoppedClient(cluster_address(store.address))
    client.stops_at = stops_at
    with ThreadPoolExecutor() as pool:
        reset = pool.submit(another(store, client).reset)
        try:
            assert client.stands.wait(20)
            slept = 2 * writer_lease.LASTS_S
            store._schema.catalog.set_payload({"until": 0.0}, {"must": [{"key": "what", "match": {"value": "lease"}}]})
            write(store, [("d.md", ["dates are sweet"])])
        finally:
            client.goes_on.set()
        assert isinstance(reset.exception(), Locked)
    # Until the mark was gone it was a knowledge base, which the other one added to; afterwards, the rest of one.
    assert texts(store) in ({"d.md": ["dates are sweet"]}, {**dict(BEFORE), "d.md": ["dates are sweet"]})
    check_counts(store)


def test_a_writer_without_its_lease_stops(store: QdrantStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched, pytest.raises(Locked, match="right to write was lost"):
        patched.setattr("kebab.store.qdrant.writer_lease.LASTS_S", -1.0)
        write(store, BEFORE)


def test_a_reset_waits_for_the_first_writer(store: QdrantStore, one_node: QdrantNode) -> None:
    """Regression: an unfinished knowledge base was deleted without waiting, and with it the first ingest."""
    other = QdrantStore(cluster_address(one_node.address("interrupted")), StoreSettings(lock_wait_s=0.3))
    store._schema.create_catalog()
    with store._lease("a test"), pytest.raises(Locked, match="a test"):
        other.reset()
    assert other.reset() is False, "there was no knowledge base yet"
    assert not store._schema.catalog.exists()
    other.close()


def test_a_writer_creates_the_catalog_again_if_it_is_deleted_meanwhile(
    store: QdrantStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, made = Schema.create_catalog, []

    def made_and_deleted(self: Schema) -> None:
        begin(self)
        made.append(1)
        if len(made) == 1:
            self.drop()

    with monkeypatch.context() as patched:
        patched.setattr(Schema, "create_catalog", made_and_deleted)
        write(store, BEFORE)
    assert len(made) == 2
    check_counts(store)


def test_concurrent_writers_and_resets_leave_a_whole_knowledge_base_or_none(one_node: QdrantNode) -> None:
    """Regression: collections that were created during a reset were left without a catalog, and the name could not be
    used again.
    """
    stores = [
        QdrantStore(cluster_address(one_node.address("racing")), StoreSettings(lock_wait_s=20.0)) for _ in range(4)
    ]
    failures: list[KebabError] = []

    def go_on(store: QdrantStore, deletes: bool) -> None:
        for number in range(6):
            try:
                store.reset() if deletes else write(store, BEFORE)
            except NotFound:  # between the right to write and the first word it may be deleted by another one
                continue
            except KebabError as error:
                failures.append(error)
            time.sleep(0.01 * number)

    threads = [threading.Thread(target=go_on, args=(store, number % 2 == 1)) for number, store in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    stores[0].reset()
    left = [one["name"] for one in one_node.get("/collections")["collections"] if one["name"].startswith("racing.")]
    assert left == []
    write(stores[0], BEFORE)
    check_counts(stores[0])
    stores[0].reset()
    for store in stores:
        store.close()


def test_only_one_of_several_resets_deletes(store: QdrantStore) -> None:
    """Regression: the second reset ended with the error that there is no knowledge base."""
    for _ in range(3):
        write(store, BEFORE)
        others = [QdrantStore(cluster_address(store.address), StoreSettings()) for _ in range(3)]
        with ThreadPoolExecutor() as pool:
            done = list(pool.map(lambda other: other.reset(), others))
        assert sorted(done) == [False, False, True]
        for other in others:
            other.close()


SECTIONS = [f"## Part {number}\n\n{f'The orchard has {number} trees. ' * 40}" for number in range(4)]
TOLD = "---\ntags: [early]\n---\n# Orchard\n\n" + "\n\n".join(SECTIONS) + "\n"
NEW = (
    TOLD.replace("early", "autumn")
    .replace("# Orchard\n", "# Orchards\n\nThey are old.\n")
    .replace("3 trees", "30 trees")
)
"""The document with another title, another tag, moved chunks and another last part."""


def describe(kb: kebab.KnowledgeBase, folder: Path) -> None:
    kb.describe_source("stdin", f"What was told of {folder.name}")


def rebuild(kb: kebab.KnowledgeBase, folder: Path) -> None:
    assert folder.exists()
    kb.rebuild_fts()


def tell_again(kb: kebab.KnowledgeBase, folder: Path) -> None:
    assert folder.exists()
    kb.ingest_text(NEW, title="told")


def ingest_longer(kb: kebab.KnowledgeBase, folder: Path) -> None:
    """Ingests documents that are so much longer that the stored chunks are weighed again."""
    (folder / "long").mkdir(exist_ok=True)
    for number in range(4):
        (folder / "long" / f"{number}.md").write_text(f"# Long {number}\n\n{'Pears are green and long. ' * 50}\n")
    kb.ingest(folder / "long")


def refresh_library(kb: kebab.KnowledgeBase, folder: Path) -> None:
    (folder / "widget" / "1.md").write_text(f"# Widget\n\nRun it {uuid4().hex} times.\n")
    kb.libraries.refresh("/acme/widget")


def remove_library(kb: kebab.KnowledgeBase, folder: Path) -> None:
    assert folder.exists()
    kb.libraries.remove("/acme/widget")


def store_sources(store: QdrantStore) -> list[str]:
    return [
        point["payload"]["name"]
        for point in store._schema.catalog.scroll({"must": [{"key": "what", "match": {"value": "source"}}]})
    ]


def unlocked(store: QdrantStore) -> None:
    """Deletes the lease of a dead writer, so that no test waits for it to expire."""
    leases = store._schema.catalog.scroll({"must": [{"key": "what", "match": {"value": "lease"}}]})
    store._schema.catalog.delete([point["id"] for point in leases])


@pytest.mark.parametrize("dies_again", [False, True], ids=["once", "twice"])
@pytest.mark.parametrize(
    "change",
    [describe, rebuild, tell_again, ingest_longer, refresh_library, remove_library],
    ids=lambda change: change.__name__,
)
def test_a_change_killed_at_any_request_loses_and_miscounts_nothing(
    store: QdrantStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[kebab.KnowledgeBase, Path], None],
    dies_again: bool,
) -> None:
    """Regression: a text that came from no file was to be read again for ever; what was removed of libraries was
    counted as one's own; what was weighed again was weighed twice; a library lost its source; a writer that died during
    the recovery left wrong counts.
    """
    days = iter(range(10_000))
    monkeypatch.setattr("kebab.store.qdrant.documents.now", lambda: f"2020-01-01T00:{next(days) % 60:02}:00Z")
    monkeypatch.setattr("kebab.store.qdrant.index_writer._DOCUMENTS_BATCH", 2)
    (tmp_path / "widget").mkdir()
    (tmp_path / "short").mkdir()
    for number in range(3):
        (tmp_path / "widget" / f"{number}.md").write_text(f"# Widget {number}\n\nRun the widget {number} times.\n")
        (tmp_path / "short" / f"{number}.md").write_text(f"# Short {number}\n\nApples.\n")
    last, recovery_dies_at = 0, 0
    survived = False
    with kebab.open(store.address, embedding_model="none") as kb:
        while not survived:
            kb.ingest_text(TOLD, title="told")
            kb.ingest(tmp_path / "short")
            kb.describe_source("stdin", "")
            if "long" in {source.name for source in kb.sources()}:
                kb.remove_source("long")
            if not kb.libraries.all():
                kb.libraries.add(str(tmp_path / "widget"), library_id="/acme/widget")
            with kebab.open(store.address, embedding_model="none") as other:
                other.session.store = dying(store, last)
                try:
                    change(other, tmp_path)
                    survived = True
                except Killed:
                    pass
            unlocked(store)
            if dies_again:
                recovery_dies_at = recovery_dies_at % 9 + 2
                with suppress(Killed), dying(store, recovery_dies_at).writing("a test"):
                    pass
                unlocked(store)
            with store.writing("a test"):
                pass
            check_counts(store)
            if change is refresh_library and last % 2:
                kb.libraries.remove("/acme/widget")
                assert sorted(store_sources(store)) == ["short", "stdin"]
                assert not store._schema.documents.count({"must": [{"key": "corpus", "match": {"value": "lib"}}]})
            elif change is refresh_library:
                kb.libraries.refresh("/acme/widget")
                assert sorted(store_sources(store)) == ["/acme/widget", "short", "stdin"]
            if change is ingest_longer:
                kb.ingest(tmp_path / "long")
            if change is tell_again:
                if last % 2:  # what verify recommends, where something is to be read again
                    kb.rebuild_fts()
                kb.ingest()
                tag = "early" if kb.fetch_document("told").text == TOLD else "autumn"
                assert [len(kb.search(word, mode="lexical", k=20).hits) > 0 for word in ("early", "autumn")] == [
                    tag == "early",
                    tag == "autumn",
                ]
                assert len(
                    kb.search("orchard trees", mode="lexical", match="all", duplicates="show", k=20).hits
                ) >= len(SECTIONS)
            faults = [check for check in kb.verify().checks if not check.ok]
            if change is remove_library:
                assert not [check for check in faults if check.name in ("documents", "words", "word counts")]
                if faults:
                    kb.rebuild_fts()
                    kb.libraries.refresh("/acme/widget")
            else:
                assert not faults
            assert kb.fetch_document("told").text in (TOLD, NEW)
            assert kb.search("orchard", mode="lexical").hits
            last += 3  # with every request, and all pairs of them, it would take minutes
    assert last > 5


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnhandledThreadExceptionWarning"
)  # a dead writer cannot renew its lease
def test_an_interrupted_change_of_analysis_can_be_taken_back(store: QdrantStore, tmp_path: Path) -> None:
    """Regression: some passages kept the other analysis."""
    for number in range(3):
        (tmp_path / f"{number}.md").write_text(f"# 문서 {number}\n\n문서를 검색하는 방법을 적는다.\n")
    settings = {"embedding_model": "none", "analysis_korean": "bigrams"}
    with kebab.open(store.address, **settings) as kb:
        kb.ingest(tmp_path)
        for last in range(3, 15, 2):
            with kebab.open(store.address, embedding_model="none", analysis_korean="morphemes") as other:
                other.session.store = dying(store, last)
                with suppress(Killed):
                    other.ingest()
            unlocked(store)
            kb.ingest()
            assert kb.verify().whole, last
