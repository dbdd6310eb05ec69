"""kill -9 at any moment: the file opens and is sound, the next run finishes, and nothing is lost or stored twice."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.end_to_end.conftest import User

FILES = 400
KILLS = 12


def write_files(user: User) -> None:
    words = random.Random(7)
    for number in range(FILES):
        paragraphs = "\n\n".join(
            f"## Part {part}\n\n"
            + " ".join(f"w{words.randrange(3000)}" for _ in range(120))
            + f" 문서{number}를 찾는다."
            for part in range(3)
        )
        user.write(f"{number % 20}/{number}.md", f"---\ntags: [t{number % 5}]\n---\n# Note {number}\n\n{paragraphs}\n")


class Killer:
    """Kills ingests at moments spread over their whole duration, on machines of any speed."""

    def __init__(self, user: User) -> None:
        self.user = user
        self.moments = random.Random(time.time_ns())
        self.longest = {"start": 1.0, "work": 1.0}  # seconds to wait at the most, before the first event and behind it

    def kills(self, database: Path, phase: str) -> bool:
        """Whether the ingest still ran when it was killed. If not, the next one gets less time."""
        process = self.user.start("ingest", "--db", database, self.user.notes, "--json", "--progress", "json")
        assert process.stderr is not None
        if phase == "work":
            process.stderr.readline()
        time.sleep(self.moments.uniform(0, self.longest[phase]))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        killed = process.returncode == -signal.SIGKILL
        if not killed:
            self.longest[phase] *= 0.7
        return killed


def opened_and_whole(user: User, database: Path) -> None:
    """Checks what a user sees right after the kill: search works, the file is sound, and every document is complete."""
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


def test_an_ingest_that_is_killed_repeatedly_ends_with_the_same_index(user: User) -> None:
    write_files(user)
    undisturbed = user.base / "undisturbed.sqlite"
    user.ingest("--db", undisturbed, user.notes)
    expected = user.chunks(undisturbed)
    assert len({path for _, path, _ in expected}) == FILES

    killer = Killer(user)
    for number in range(KILLS):
        if number % 4 == 0:  # from nothing, while it makes the file; the next three go on with what the one before left
            databases = (user.base / f"killed{number}-{again}.sqlite" for again in range(100))
            database = next(databases)
        while not killer.kills(database, "start" if number % 4 == 0 else "work"):
            database = next(databases)
        opened_and_whole(user, database)
    for database in sorted(user.base.glob("killed*.sqlite")):
        user.ingest("--db", database, user.notes)
        assert user.chunks(database) == expected
        user.check(database)
        with user.open(database) as connection:
            counted = connection.execute("SELECT count(*), count(DISTINCT chunk_id) FROM chunks").fetchall()
        assert counted == [(len(expected), len(expected))]
    assert user.counts(user.ingest("--db", database, user.notes)) == {"unchanged": FILES}
