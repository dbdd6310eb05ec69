"""`kb migrate` as a user runs it: killed repeatedly on the way to a Qdrant server, it copies everything exactly once."""

from __future__ import annotations

import json
import signal
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.end_to_end.conftest import User
from tests.qdrant_server import QdrantNode, free_ports


@pytest.fixture
def address(one_node: QdrantNode) -> str:
    return one_node.address(f"migrated-{uuid4().hex[:8]}")


@pytest.fixture
def full(user: User) -> User:
    """A knowledge base with more documents than one request writes."""
    for number in range(260):
        user.write(
            f"{number % 7}/note{number}.md",
            f"---\ntags: [tag{number % 5}]\n---\n# Note {number}\n\nWords of note number{number}.\n",
        )
    user.ingest()
    return user


def events(user: User, *arguments: str | Path) -> Generator[dict[str, Any], None, None]:
    """The progress events of a migration, which is killed when the caller stops reading them."""
    process = user.start("migrate", *arguments, "--progress", "json")
    assert process.stderr is not None
    try:
        for line in process.stderr:
            yield json.loads(line)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        process.stderr.close()
        assert process.stdout is not None
        process.stdout.close()


def test_a_killed_migration_continues_and_loses_or_doubles_nothing(full: User, address: str) -> None:
    way = ("--from", full.database, "--to", address)
    with closing(events(full, *way)) as told:
        assert any(event["event"] == "file" and event["done"] for event in told), (
            "it was done before it could be killed"
        )
    with closing(events(full, *way)) as told:
        assert next(told)["event"] == "file"
    report = full.ask("migrate", *way)
    assert report["resumed"]
    assert report["counts"]["documents"] == report["counts"]["chunks"] == 260
    assert report["documents"] < 260, "what had arrived was not carried again"
    assert report["compared"] == 200
    assert full.ask("verify", "--strict", "--db", address)["ok"] == 260
    assert full.ask("doctor", "--db", address)["healthy"]
    for query in ("number42", "words", "note 7"):
        here, there = (
            full.ask("search", query, "-k", "300", "--db", place)["hits"] for place in (full.database, address)
        )
        assert [hit["chunk_id"] for hit in here] == [hit["chunk_id"] for hit in there]
    back = full.home / "back.sqlite"
    said = full.run("migrate", "--from", address, "--to", back)
    assert said.code == 0, said.err
    assert "260 documents and 0 vectors carried over" in said.out
    assert "both sides have the same; 200 documents compared word by word" in said.out
    full.check(back)
    assert full.chunks(back) == full.chunks()
    full.fails("migrate", "--from", full.database, "--to", back, code="not_empty")
    assert full.run("reset", "--yes", "--db", address).code == 0


def test_without_from_the_default_database_is_migrated(reader: User, tmp_path: Path) -> None:
    target = tmp_path / "target.sqlite"
    assert reader.ask("migrate", "--to", target)["counts"]["documents"] == 3
    assert reader.chunks(target) == reader.chunks()


def test_an_impossible_migration_is_a_clear_error(reader: User, tmp_path: Path) -> None:
    [port] = free_ports(1)
    reader.fails("migrate", "--to", f"qdrant://127.0.0.1:{port}/notes", code="store_unreachable")
    reader.fails("migrate", "--to", reader.database, code="usage")
    reader.fails("migrate", code="usage")
    reader.fails("migrate", "--from", tmp_path / "missing.sqlite", "--to", tmp_path / "target.sqlite", code="not_found")
    assert not (tmp_path / "target.sqlite").exists()
