"""kill -9 at any moment: the file opens, integrity holds, the next run finishes, nothing is doubled or lost."""

from __future__ import annotations

import random
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.end_to_end.conftest import User

FILES = 400
KILLS = 12


def write_files(user: User) -> None:
    words = random.Random(7)
    for number in range(FILES):
        paragraphs = "\n\n".join(
            f"## Part {part}\n\n" + " ".join(f"w{words.randrange(3000)}" for _ in range(120)) + f" 문서{number}를 찾는다."
            for part in range(3)
        )
        user.write(f"{number % 20}/{number}.md", f"---\ntags: [t{number % 5}]\n---\n# Note {number}\n\n{paragraphs}\n")


def opened_and_whole(user: User, database: Path) -> None:
    """What a user sees right after the kill: searching works, the file is whole, every document is complete."""
    done = user.run("--db", database, "search", "note", "--json")
    assert done.code == 0, done.out + done.err
    done.json()
    user.check(database)
    with user.open(database) as connection:
        assert connection.execute(
            "SELECT path FROM documents d WHERE chunk_count <> (SELECT count(*) FROM chunks c WHERE c.document_id = d.id)"
        ).fetchall() == []  # fmt: skip


def test_r074_an_ingest_killed_again_and_again_ends_like_an_undisturbed_one(user: User) -> None:
    """R074"""
    write_files(user)
    undisturbed = user.base / "undisturbed.sqlite"
    started = time.monotonic()
    user.ingest("--db", undisturbed, user.notes)
    duration = time.monotonic() - started
    expected = user.chunks(undisturbed)
    assert len({path for _, path, _ in expected}) == FILES

    moments = random.Random(time.time_ns())
    database = user.base / "killed.sqlite"
    killed = 0
    for number in range(KILLS):
        if number % 4 == 0:  # sometimes from nothing, sometimes on top of what earlier runs left
            for file in user.base.glob("killed.sqlite*"):
                file.unlink()
        process = user.start("ingest", "--db", database, user.notes, "--json", "--quiet")
        moment = moments.uniform(0.1, 1.0) * duration / (1 if number % 4 == 0 else 2)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed += process.returncode == -signal.SIGKILL
        with user.open(database) as connection:  # opens, whatever the moment was
            born = connection.pragma("user_version") > 0
        if born:
            opened_and_whole(user, database)
    assert killed >= KILLS // 3, "the moments were too late to prove anything"
    user.ingest("--db", database, user.notes)
    assert user.chunks(database) == expected
    user.check(database)
    with user.open(database) as connection:
        assert connection.execute("SELECT count(*), count(DISTINCT chunk_id) FROM chunks").fetchall() == [(len(expected), len(expected))]
    again = user.ingest("--db", database, user.notes)
    assert user.counts(again) == {"unchanged": FILES}


@pytest.mark.parametrize("command", ["--rebuild-fts", "--optimize"])
def test_a_rebuild_or_an_optimize_that_is_killed_leaves_a_whole_index(user: User, command: str) -> None:
    for number in range(80):
        user.write(f"{number}.md", f"# Note {number}\n\n" + " ".join(f"word{number * i % 977}" for i in range(1500)))
    user.ingest()
    expected = user.chunks()
    original = user.base / "original.sqlite"
    shutil.copy(user.database, original)
    for moment in (0.15, 0.25, 0.3, 0.35):
        process = user.start("index", command)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert user.chunks() == expected
        user.check()
    user.ask("index", command)
    assert user.chunks() == expected
    user.check()
