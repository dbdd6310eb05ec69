"""A cluster of three servers: any one may be away for a while without documents lost, stored twice or not found."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest
from tests.qdrant_server import QdrantNode, cluster_address, wait_for

import kebab
from kebab.config.cluster_address import Node
from kebab.core.errors import KebabError
from kebab.store.qdrant.integrity import _differing_shards

PLUMS, APPLES = 30, 150


def write(folder: Path, count: int, words: str) -> Path:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\n{words} only{folder.name}{number}\n")
    return folder


@pytest.fixture
def knowledge_base(three_nodes: Sequence[QdrantNode]) -> Iterator[kebab.KnowledgeBase]:
    address = cluster_address(three_nodes, f"cluster-{uuid4().hex[:8]}")
    with kebab.open(address, store_shards=3, store_replicas=2) as opened:
        yield opened
        opened.reset()


class Searching(threading.Thread):
    """A thread that searches without pause and records errors."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.answers = 0
        self._address = address
        self._done = threading.Event()

    def run(self) -> None:
        with kebab.open(self._address) as opened:
            while not self._done.wait(0.02):
                try:
                    found = len(opened.search("plums", mode="lexical", k=2 * PLUMS))
                    self.answers += found == PLUMS
                    if found != PLUMS:
                        self.faults.append(f"found {found}")
                except KebabError as error:
                    self.faults.append(error.message)

    def stop(self) -> None:
        self._done.set()
        self.join()


def test_killing_a_server_during_ingest_and_search_loses_nothing(
    knowledge_base: kebab.KnowledgeBase, three_nodes: Sequence[QdrantNode], tmp_path: Path
) -> None:
    """This test kills the last server, which rarely leads the cluster; `test_faults` kills the leader."""
    knowledge_base.ingest(write(tmp_path / "plums", PLUMS, "plums and quinces"))
    apples = write(tmp_path / "apples", APPLES, "apples and pears")
    searching = Searching(knowledge_base.address)
    searching.start()
    node = three_nodes[2]

    def fail_for_a_while() -> None:
        time.sleep(0.3)
        node.kill()
        time.sleep(1.0)
        node.restart()

    failing = threading.Thread(target=fail_for_a_while)
    failing.start()
    try:
        report = knowledge_base.ingest(apples)
    finally:
        failing.join()
        time.sleep(0.5)
        searching.stop()
    assert (report.added, report.failed) == (APPLES, [])
    assert searching.faults == []
    assert searching.answers > 10
    wait_for(lambda: all(check.ok for check in knowledge_base.health()), "all replicas to be active again")
    assert knowledge_base.ingest().unchanged == APPLES + PLUMS
    for one in three_nodes:
        with kebab.open(one.address(knowledge_base.address.rpartition("/")[2])) as opened:
            assert opened.count_documents() == APPLES + PLUMS
            assert [
                len(opened.search(f"onlyapples{number}", mode="lexical", match="all"))
                for number in (0, APPLES // 2, APPLES - 1)
            ] == [1, 1, 1]


def test_words_are_counted_once_with_several_replicas(knowledge_base: kebab.KnowledgeBase, tmp_path: Path) -> None:
    """Regression: a count that most replicas answer is the sum of their counts."""
    words = " ".join(f"word{number}" for number in range(700))
    knowledge_base.ingest(write(tmp_path / "plums", 3, words), embed=False)
    knowledge_base.rebuild_fts()
    assert [check for check in knowledge_base.verify().checks if not check.ok] == []


def test_doctor_shows_the_points_of_every_server(
    knowledge_base: kebab.KnowledgeBase, three_nodes: Sequence[QdrantNode], tmp_path: Path
) -> None:
    knowledge_base.ingest(write(tmp_path / "plums", 9, "plums and quinces"), embed=False)
    wait_for(lambda: all(check.ok for check in knowledge_base.health()), "nothing to be wrong")
    checks = {check.name: check.message for check in knowledge_base.health()}
    name = knowledge_base.address.rpartition("/")[2]
    counts = [int(count) for count in re.findall(r"(\d+) on 127", checks[f"{name}.documents"])]
    assert len(counts) == 3  # servers
    assert sum(counts) == 2 * 9  # copies
    assert {f"server 127.0.0.1:{node.http_port}" for node in three_nodes} <= checks.keys()


def test_doctor_detects_differing_replicas() -> None:
    told = {
        Node("127.0.0.1", number): {"local_shards": [{"shard_id": 4, "points_count": count}]}
        for number, count in ((1, 7), (2, 8))
    }
    assert _differing_shards(told) == [4]
    assert _differing_shards({node: one for node, one in told.items() if node.port == 1}) == []


def said_of_the_cluster(knowledge_base: kebab.KnowledgeBase) -> str:
    (check,) = (check for check in knowledge_base.session.store.health() if check.name == "cluster")
    return check.message


def test_doctor_names_a_missing_server(
    knowledge_base: kebab.KnowledgeBase, three_nodes: Sequence[QdrantNode], tmp_path: Path
) -> None:
    knowledge_base.ingest(write(tmp_path / "plums", 3, "plums and quinces"))
    assert [check for check in knowledge_base.health() if not check.ok] == []
    three_nodes[1].kill()
    try:
        failed = {check.name: check for check in knowledge_base.session.store.health() if not check.ok}
        assert f"server 127.0.0.1:{three_nodes[1].http_port}" in failed
        assert all(check.hint for check in failed.values())
        wait_for(
            lambda: f":{three_nodes[1].p2p_port}/ does not answer" in said_of_the_cluster(knowledge_base),
            "the others to miss it",
        )
        assert len(knowledge_base.search("plums", mode="lexical")) == 3
    finally:
        three_nodes[1].restart()
    wait_for(lambda: all(check.ok for check in knowledge_base.health()), "all replicas to be active again")
