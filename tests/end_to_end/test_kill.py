"""kill -9 at any moment: the file opens, integrity holds, the next run finishes, nothing is doubled or lost."""

from __future__ import annotations

import json
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


def run_until_killed(user: User, database: Path, share: float, moments: random.Random) -> bool:
    """Kills an ingest once it has passed this share of the files, and then some; whether it was still running."""
    process = user.start("ingest", "--db", database, user.notes, "--json", "--progress", "json")
    assert process.stderr is not None
    if share == 0:  # while it starts, makes the file and its schema
        time.sleep(moments.uniform(0.05, 0.6))
    else:
        for line in process.stderr:
            if (json.loads(line)["done"] or 0) >= share * FILES:
                break
        time.sleep(moments.uniform(0, 0.1))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return process.returncode == -signal.SIGKILL


def opened_and_whole(user: User, database: Path) -> None:
    """What a user sees right after the kill: searching works, the file is whole, every document is complete."""
    done = user.run("--db", database, "search", "note", "--json")
    if done.json()["schema_version"] == "error.v1":  # killed before there was anything
        assert done.json()["code"] == "not_found", done.out
        return
    assert done.code == 0, done.out + done.err
    user.check(database)
    with user.open(database) as connection:
        assert connection.execute(
            "SELECT path FROM documents d WHERE chunk_count <> (SELECT count(*) FROM chunks c WHERE c.document_id = d.id)"
        ).fetchall() == []  # fmt: skip


def test_r074_an_ingest_killed_again_and_again_ends_like_an_undisturbed_one(user: User) -> None:
    """R074"""
    write_files(user)
    undisturbed = user.base / "undisturbed.sqlite"
    user.ingest("--db", undisturbed, user.notes)
    expected = user.chunks(undisturbed)
    assert len({path for _, path, _ in expected}) == FILES

    moments = random.Random(time.time_ns())
    killed = 0
    for number in range(KILLS):
        if number % 4 == 0:  # from nothing; the next three go on with what the one before left
            database = user.base / f"killed{number}.sqlite"
        share = 0 if number % 4 == 0 else (number % 4 - 1 + moments.random()) * 0.3
        killed += run_until_killed(user, database, share, moments)
        opened_and_whole(user, database)
    assert killed >= KILLS // 2, "the moments were too late to prove anything"
    for database in sorted(user.base.glob("killed*.sqlite")):
        user.ingest("--db", database, user.notes)
        assert user.chunks(database) == expected
        user.check(database)
        with user.open(database) as connection:
            counted = connection.execute("SELECT count(*), count(DISTINCT chunk_id) FROM chunks").fetchall()
        assert counted == [(len(expected), len(expected))]
    assert user.counts(user.ingest("--db", database, user.notes)) == {"unchanged": FILES}


@pytest.mark.parametrize("command", ["--rebuild-fts", "--optimize"])
def test_a_rebuild_or_an_optimize_that_is_killed_leaves_a_whole_index(user: User, command: str) -> None:
    for number in range(80):
        user.write(f"{number}.md", f"# Note {number}\n\n" + " ".join(f"word{number * i % 977}" for i in range(1500)))
    user.ingest()
    expected = user.chunks()
    original = user.base / "original.sqlite"
    shutil.copy(user.database, original)
    for moment in (0.15, 0.25, 0.35):
        process = user.start("index", command)
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert user.chunks() == expected
        user.check()
    user.ask("index", command)
    assert user.chunks() == expected
    user.check()
