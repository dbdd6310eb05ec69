"""What may go wrong while others work: servers that are killed, connections that break, a process that ends in the
middle.

No acknowledged document may be lost, none doubled, and no query may fail while a replica of everything lives.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.qdrant_server import QdrantNode, cluster_address, qdrant_cluster, wait_for

import kebab
from kebab.core.errors import StoreUnreachable

_SETTINGS: dict[str, Any] = {
    "store_shards": 3,
    "store_replicas": 2,
    "embedding_model": "none",
    "store_lock_wait_s": 60.0,
}
_FILES = 120


@pytest.fixture(scope="module")
def cluster() -> Iterator[Sequence[QdrantNode]]:
    """A cluster for this module only, because its servers are killed."""
    with qdrant_cluster(3) as nodes:
        yield nodes


def _notes(folder: Path, count: int, first: int = 0) -> Path:
    folder.mkdir(exist_ok=True)
    for number in range(first, first + count):
        text = "".join(
            f"\n## Part {part}\n\nA lighthouse near harbour {number}-{part}, mark m{number}p{part}.\n"
            for part in range(4)
        )
        (folder / f"{number:03}.md").write_text(f"# Note {number}\n{text}")
    return folder


def _all_found(address: str, count: int) -> None:
    """Checks that every document is found once with all its chunks, and that the store is sound."""
    with kebab.open(address, **_SETTINGS) as kb:
        records = kb.documents()
        assert sorted(record.path for record in records) == [f"{number:03}.md" for number in range(count)]
        stats = kb.stats()
        assert stats is not None
        assert stats.chunks == sum(record.chunk_count for record in records)
        for number in (0, count // 2, count - 1):
            assert [hit.doc_path for hit in kb.search(f"m{number}p2", mode="lexical").hits] == [f"{number:03}.md"]
        # Servers remember for some seconds that they could not reach each other.
        wait_for(lambda: all(check.ok for check in kb.health()), "kb doctor to find nothing wrong any more")


def _is_settled(nodes: Sequence[QdrantNode], name: str) -> bool:
    """Whether every replica of every shard is active, and all servers count the same number of points."""
    for collection in [
        one["name"] for one in nodes[0].get("/collections")["collections"] if one["name"].startswith(f"{name}.")
    ]:
        counts: dict[int, set[int]] = {}
        for node in nodes:
            facts = node.get(f"/collections/{collection}/cluster")
            shards = [*facts["local_shards"], *facts["remote_shards"]]
            if facts["shard_transfers"] or any(shard["state"] != "Active" for shard in shards):
                return False
            for shard in facts["local_shards"]:
                counts.setdefault(shard["shard_id"], set()).add(shard["points_count"])
        if any(len(count) > 1 for count in counts.values()):
            return False
    return True


class _Searching:
    """A thread that searches without pause and records errors."""

    def __init__(self, address: str) -> None:
        self.answers = 0
        self.failures: list[str] = []
        self._address = address
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> _Searching:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        with kebab.open(self._address, **_SETTINGS) as kb:
            while not self._done.wait(0.05):
                try:
                    found = kb.search("m0p1 lighthouse", mode="lexical").hits
                    if not found or found[0].doc_path != "000.md":
                        self.failures.append(f"found {[hit.doc_path for hit in found[:3]]}")
                    self.answers += 1
                except Exception as error:  # noqa: BLE001 - whatever it is, it must not happen
                    self.failures.append(repr(error))


def _leader(nodes: Sequence[QdrantNode]) -> QdrantNode:
    leader = nodes[0].get("/cluster")["raft_info"]["leader"]
    return next(node for node in nodes if node.get("/cluster")["peer_id"] == leader)


def test_killing_the_leader_loses_no_document_and_no_answer(cluster: Sequence[QdrantNode], tmp_path: Path) -> None:
    name = "killed-leader"
    address = cluster_address(cluster, name)
    notes = _notes(tmp_path / "notes", 10)
    with kebab.open(address, **_SETTINGS) as kb:
        kb.ingest(notes, embed=False)
    victim = _leader(cluster)
    with _Searching(address) as searching:
        ingest = threading.Thread(target=lambda: _ingested(address, _notes(notes, _FILES - 10, 10)))
        ingest.start()
        wait_for(lambda: searching.answers > 3, "searches")
        victim.kill()
        ingest.join(60)
        assert not ingest.is_alive()
        before = searching.answers
        wait_for(lambda: searching.answers > before + 3, "searches without the server")
        victim.restart()
        wait_for(lambda: _is_settled(cluster, name), "all replicas to be active again and to agree")
        before = searching.answers
        wait_for(lambda: searching.answers > before + 3, "searches with it")
    assert searching.failures == []
    _all_found(address, _FILES)


def _ingested(address: str, notes: Path) -> None:
    with kebab.open(address, **_SETTINGS) as kb:
        report = kb.ingest(notes, embed=False)
        assert not report.failed


def test_writing_continues_while_a_server_stays_away(cluster: Sequence[QdrantNode], tmp_path: Path) -> None:
    """Regression: once the other servers had agreed that it was gone, writing failed for lack of replicas of the
    catalog.
    """
    address = cluster_address(cluster, "away")
    notes = _notes(tmp_path / "notes", 10)
    _ingested(address, notes)
    cluster[2].kill()
    try:
        for first in (10, 20):  # while it is noticed, and when it is known
            _ingested(address, _notes(notes, 10, first))
            with kebab.open(address, **_SETTINGS) as kb:
                assert kb.count_documents() == first + 10
    finally:
        cluster[2].restart()
    wait_for(lambda: _is_settled(cluster, "away"), "all replicas to be active again and to agree")
    _all_found(address, 30)


def test_a_hanging_server_only_costs_time(cluster: Sequence[QdrantNode], tmp_path: Path) -> None:
    """It accepts connections and never answers. Regression: the right to write ran out while the others waited for it,
    and every search waited half a minute.
    """
    address = cluster_address(cluster, "hanging")
    notes = _notes(tmp_path / "notes", 10)
    _ingested(address, notes)
    cluster[0].pause()
    try:
        with kebab.open(address, **_SETTINGS) as kb:
            began = time.monotonic()
            assert [hit.doc_path for hit in kb.search("m3p1", mode="lexical").hits] == ["003.md"]
            assert time.monotonic() - began < 15
        _ingested(address, _notes(notes, 10, 10))
    finally:
        cluster[0].resume()
    with kebab.open(address, **_SETTINGS) as kb:  # at once: what it takes for stored is not what is
        assert [check for check in kb.verify().checks if not check.ok] == []
        (notes / "000.md").write_text("# Note 0\n\nA lighthouse, m0p2.\n")
        report = kb.ingest(notes, embed=False)
        assert (report.added, report.updated, report.unchanged) == (0, 1, 19)
    wait_for(lambda: _is_settled(cluster, "hanging"), "all replicas to be active again and to agree")
    _all_found(address, 20)


def test_a_killed_ingest_is_completed_by_the_next(cluster: Sequence[QdrantNode], tmp_path: Path) -> None:
    address = cluster_address(cluster, "killed-ingest")
    notes = _notes(tmp_path / "notes", _FILES)
    program = "import sys, kebab\nwith kebab.open(sys.argv[1], **eval(sys.argv[3])) as kb: kb.ingest(sys.argv[2], embed=False)"
    for delay in (0.6, 1.2, 2.0):
        process = subprocess.Popen(
            [sys.executable, "-c", program, address, str(notes), repr(_SETTINGS)], stderr=subprocess.DEVNULL
        )
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    _ingested(address, notes)
    _all_found(address, _FILES)


@contextmanager
def _between(node: QdrantNode) -> Iterator[Any]:
    """A proxy in front of the server that can cut the connection within a request."""
    listener = socket.create_server(("127.0.0.1", 0))
    wire = _Wire(listener, node.http_port)
    thread = threading.Thread(target=wire.run, daemon=True)
    thread.start()
    yield wire
    listener.close()


class _Wire:
    def __init__(self, listener: socket.socket, port: int) -> None:
        self.port = listener.getsockname()[1]
        self.cuts = 0
        self.cut_after: int | None = None
        """After how many bytes of a request to cut the connection; None to pass everything."""
        self._listener = listener
        self._target = port

    def run(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            there = socket.create_connection(("127.0.0.1", self._target))
            threading.Thread(target=self._carry, args=(here, there, True), daemon=True).start()
            threading.Thread(target=self._carry, args=(there, here, False), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, is_request: bool) -> None:
        carried = 0
        try:
            while data := source.recv(4096):
                carried += len(data)
                if is_request and self.cut_after is not None and carried > self.cut_after:
                    self.cuts += 1
                    self.cut_after = None if self.cuts % 3 == 0 else self.cut_after
                    break
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def test_a_connection_broken_within_a_batch_loses_and_doubles_nothing(one_node: QdrantNode, tmp_path: Path) -> None:
    notes = _notes(tmp_path / "notes", _FILES)
    settings = {**_SETTINGS, "store_shards": 1, "store_replicas": 1}
    with _between(one_node) as wire:
        address = f"qdrant://127.0.0.1:{wire.port}/broken"
        with kebab.open(address, **settings) as kb:
            kb.ingest(_notes(tmp_path / "first", 1), embed=False, name="first")
            wire.cut_after = 20_000
            report = kb.ingest(notes, embed=False)
        assert wire.cuts >= 3
        assert report.added == _FILES
    with kebab.open(one_node.address("broken"), **settings) as kb:
        kb.remove_source("first")
    _all_found(one_node.address("broken"), _FILES)


def test_a_cluster_without_a_majority_raises_and_recovers(cluster: Sequence[QdrantNode], tmp_path: Path) -> None:
    address = cluster_address(cluster, "alone")
    notes = _notes(tmp_path / "notes", 10)
    _ingested(address, notes)
    with kebab.open(address, **{**_SETTINGS, "store_timeout_s": 5.0}) as kb:
        for node in cluster[1:]:
            node.kill()
        try:
            with pytest.raises(StoreUnreachable) as caught:
                kb.ingest(_notes(notes, 5, 10), embed=False)
            assert caught.value.hint
            with pytest.raises(StoreUnreachable, match="cannot do this now"):  # rather than fewer hits
                kb.search("lighthouse", mode="lexical")
        finally:
            for node in cluster[1:]:
                node.restart()
        wait_for(lambda: _is_settled(cluster, "alone"), "the servers to be back")
    _ingested(address, notes)
    _all_found(address, 15)
