"""A note and its words for every passage below it are stored together, whenever the process is killed."""

from __future__ import annotations

import random
import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.end_to_end.conftest import User

FILES = 300
KILLS = 6


def described(user: User) -> bool:
    """Whether there is a note. Checks that it finds all passages or, if there is none, no passage."""
    (source,) = user.ask("list", "sources")["items"]
    with user.open() as connection:
        every, some = connection.execute(
            "SELECT count(*), (SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'teamwork') FROM chunks"
        ).fetchall()[0]
    assert some == (every if source["notes"] else 0)
    return bool(source["notes"])


def test_note_and_terms_agree_after_a_kill_at_any_moment(user: User) -> None:
    for number in range(FILES):
        user.write(
            f"{number % 7}/{number}.md",
            "\n\n".join(f"# Part {part}\n\n" + f"word{number} text{part} " * 60 for part in range(6)),
        )
    user.ingest()
    ids = user.ask("search", "word7", "--match", "all")["hits"][0]["chunk_id"]
    moments = random.Random(3)
    was_killed = 0
    started = time.monotonic()
    user.ask("source", "describe", "notes", "teamwork of many")
    whole = time.monotonic() - started  # the next ones take as long, whatever the machine
    user.ask("source", "describe", "notes", "--remove")
    for _ in range(KILLS):
        process = user.start("source", "describe", "notes", "teamwork of many")
        time.sleep(moments.uniform(0.2, 0.9) * whole)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        was_killed += process.returncode == -signal.SIGKILL
        user.check()
        if described(user):
            user.ask("source", "describe", "notes", "--remove")
    assert was_killed
    user.ask("source", "describe", "notes", "teamwork of many")
    assert described(user)
    assert user.ask("search", "word7", "--match", "all")["hits"][0]["chunk_id"] == ids
    assert user.counts(user.ingest()) == {"unchanged": FILES}
    user.check()


def test_a_lone_file_keeps_its_note_when_its_folder_comes(user: User) -> None:
    file = user.write("deep/a.md", "alpha")
    user.write("deep/b.md", "alpha")
    user.ingest(file)
    user.ask("source", "describe", "a.md", "the first letter")
    user.ingest()
    assert user.found("letter alpha") == ["deep/a.md"]
    assert user.ask("list", "sources")["items"][0]["notes"] == [{"folder": "deep/a.md", "text": "the first letter"}]
