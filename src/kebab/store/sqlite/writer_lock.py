"""The writer's lock, which allows one writer at a time and shows the others who holds it.

SQLite's own lock lasts for one transaction, but an ingest is thousands of transactions. This lock lasts for the whole
run. It is a lock of the operating system on a file in the database's folder, so it ends when its process is killed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kebab.core.errors import Locked, ReadOnly, file_errors
from kebab.core.files import lock_file


@contextmanager
def writer_lock(database: Path, *, wait_s: float, purpose: str) -> Iterator[None]:
    """Holds the lock of a database; raises Locked after waiting `wait_s` seconds. Waiting writers see `purpose`."""
    path = database.with_name(database.name + ".lock")
    deadline = time.monotonic() + wait_s
    with file_errors(path, "cannot be written", "Choose another place with --db.", ReadOnly):
        while (lock := lock_file(path)) is None:
            if time.monotonic() >= deadline:
                raise Locked(
                    f"Another process is writing to this knowledge base: {_holder(path)}.",
                    hint="Wait for it to finish, or raise store.lock_wait_s.",
                )
            time.sleep(0.05)
    try:
        _sign(lock, purpose)
        yield
    finally:
        with suppress(OSError):
            os.ftruncate(lock, 0)
        os.close(lock)


def _sign(lock: int, purpose: str) -> None:
    """Writes who holds the lock into the file, for other writers. Ignores errors, such as a full disk."""
    holder = {"pid": os.getpid(), "purpose": purpose, "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    with suppress(OSError):
        os.ftruncate(lock, 0)
        os.write(lock, json.dumps(holder).encode())


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        return f"process {holder['pid']} ({holder['purpose']}, since {holder['since']})"
    except (OSError, ValueError, KeyError):
        return "an unnamed process"
