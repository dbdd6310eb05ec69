"""Several processes at once: readers never wait and never fail; a second writer waits or says who holds the lock."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import User

SEARCHERS = 8


def bulk(user: User) -> subprocess.Popen[bytes]:
    """A process that answers queries as long as lines are written to it."""
    return user.start("search", "--bulk", stdin=subprocess.PIPE)


def write(user: User, files: int, words: int = 400) -> None:
    for number in range(files):
        user.write(
            f"{number:04}.md", f"# Note {number}\n\nalpha " + " ".join(f"w{number * i % 4999}" for i in range(1, words))
        )


def test_eight_processes_search_while_one_ingests_from_nothing(user: User) -> None:
    """During the first ingest the corpus is empty and then grows for readers, without errors or waiting for locks."""
    write(user, 600)
    ingest = user.start("ingest", user.notes, "--json")
    queries = b'{"query": "alpha note", "k": 3}\n' * 15
    waves, answers, errors, slowest = 0, [], b"", 0.0
    deadline = time.monotonic() + 10
    while ingest.poll() is None and time.monotonic() < deadline:
        started = time.monotonic()
        searchers = [bulk(user) for _ in range(SEARCHERS)]
        for searcher in searchers:
            out, err = searcher.communicate(queries, timeout=30)
            assert searcher.returncode == 0, err
            answers += [json.loads(line) for line in out.splitlines()]
            errors += err
        slowest = max(slowest, time.monotonic() - started)
        waves += 1
    out, err = ingest.communicate(timeout=60)
    assert ingest.returncode == 0, err
    assert json.loads(out)["added"] == 600
    assert errors == b""
    assert waves >= 1
    assert not [answer for answer in answers if answer["schema_version"] != "search_response.v1"]
    assert len(answers) == waves * SEARCHERS * 15
    assert all(answer["returned"] in (0, 1, 2, 3) for answer in answers)
    assert slowest < 30
    user.check()


def test_eight_processes_search_while_one_ingests_repeatedly(user: User) -> None:
    """No search fails or prints to stderr, and each finds all forty documents in one of their versions."""
    write(user, 40, words=1500)
    user.ingest()
    searchers = [bulk(user) for _ in range(SEARCHERS)]
    deadline = time.monotonic() + 3
    rounds = 0
    while rounds < 2 or time.monotonic() < deadline:
        rounds += 1
        for number in range(40):
            user.write(
                f"{number:04}.md",
                f"# Note {number}\n\nalpha round{rounds} " + " ".join(f"v{rounds}x{i % 300}" for i in range(1500)),
            )
        for searcher in searchers:
            assert searcher.stdin is not None
            searcher.stdin.write(b'{"query": "alpha", "k": 50, "match": "all", "duplicates": "show"}\n' * 10)
            searcher.stdin.flush()
        assert user.ingest()["updated"] == 40
    for searcher in searchers:
        out, err = searcher.communicate(timeout=30)
        assert searcher.returncode == 0
        assert err == b""
        lines = [json.loads(line) for line in out.splitlines()]
        assert len(lines) == rounds * 10
        assert {line["schema_version"] for line in lines} == {"search_response.v1"}
        assert {line["returned"] for line in lines} == {40}
    user.check()


def documents_in(database: Path) -> int:
    """The number of documents, read from the file itself: starting a `kb` process takes as long as the ingest."""
    try:
        with closing(apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            return len(connection.execute("SELECT 1 FROM documents").fetchall())
    except apsw.Error:
        return 0  # not made yet


@pytest.fixture
def busy(user: User) -> subprocess.Popen[bytes]:
    """An ingest that is stopped in the middle of its work while it holds its lock."""
    write(user, 600)
    process = user.start("ingest", user.notes, "--json")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and not documents_in(user.database):
        time.sleep(0.002)
    process.send_signal(signal.SIGSTOP)
    assert 0 < documents_in(user.database) < 600
    return process


def test_a_second_ingest_names_the_first_when_it_does_not_want_to_wait(
    user: User, busy: subprocess.Popen[bytes]
) -> None:
    try:
        done = user.fails("ingest", user.notes, code="locked", env={"KEBAB_STORE_LOCK_WAIT_S": "0.2"})
        assert f"process {busy.pid} (kb ingest, since " in done.err
        for command in (("index", "--optimize"), ("index", "--rebuild-fts"), ("reset", "--yes")):
            assert str(busy.pid) in user.fails(*command, code="locked", env={"KEBAB_STORE_LOCK_WAIT_S": "0"}).err
    finally:
        busy.send_signal(signal.SIGCONT)
        out, err = busy.communicate(timeout=60)
    assert busy.returncode == 0, err
    assert json.loads(out)["added"] == 600


def test_a_second_ingest_waits_for_the_first(user: User, busy: subprocess.Popen[bytes]) -> None:
    second = user.start("ingest", user.notes, "--json", env={"KEBAB_STORE_LOCK_WAIT_S": "60"})
    time.sleep(0.5)
    assert second.poll() is None
    busy.send_signal(signal.SIGCONT)
    assert json.loads(busy.communicate(timeout=60)[0])["added"] == 600
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert json.loads(out)["unchanged"] == 600


def test_readers_continue_while_a_writer_is_stopped(user: User, busy: subprocess.Popen[bytes]) -> None:
    """Reading commands, backup and doctor work while a writer holds its lock."""
    try:
        started = time.monotonic()
        user.ask("search", "alpha")
        user.ask("list", "docs", "--limit", "3")
        user.ask("verify")
        user.ask("schema")
        user.ask("backup", user.base / "copy.sqlite")
        assert time.monotonic() - started < 30
        user.check(user.base / "copy.sqlite")
    finally:
        busy.send_signal(signal.SIGKILL)
        busy.communicate()


def test_the_lock_of_a_killed_ingest_is_free_at_once(user: User, busy: subprocess.Popen[bytes]) -> None:
    busy.send_signal(signal.SIGKILL)
    busy.communicate()
    report = user.ingest(env={"KEBAB_STORE_LOCK_WAIT_S": "0"})
    assert report["added"] + report["unchanged"] == 600
