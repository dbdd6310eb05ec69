"""The writer's lock, which allows one writer at a time and shows the others who holds it.

SQLite's own lock lasts for one transaction, but an ingest is thousands of transactions. This lock lasts for the whole
run. It is a lock of the operating system on a file in the database's folder, so it ends when its process is killed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from kebab.core.errors import Locked, ReadOnly
from kebab.core.files import open_file

if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: IO[str]) -> None:
        handle.seek(1 << 20)  # after the end of the text, because Windows forbids reading a locked range
        msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(handle: IO[str]) -> None:
        fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def writer_lock(database: Path, *, wait_s: float, purpose: str) -> Iterator[None]:
    """Holds the lock of a database; raises Locked after waiting `wait_s` seconds. Waiting writers see `purpose`."""
    path = database.with_name(database.name + ".lock")
    deadline = time.monotonic() + wait_s
    while (handle := _locked_file(path)) is None:
        if time.monotonic() >= deadline:
            raise Locked(
                f"Another process is writing to this knowledge base: {_holder(path)}.",
                hint="Wait for it to finish, or raise store.lock_wait_s.",
            )
        time.sleep(0.05)
    with handle:
        _sign(handle, purpose)
        try:
            yield
        finally:
            with suppress(OSError):
                handle.truncate(0)


def _locked_file(path: Path) -> IO[str] | None:
    """Locks the file and returns it, or None while another process has the lock."""
    try:
        handle = open_file(path, "a+")
    except OSError as error:
        raise ReadOnly(
            f"{path} cannot be written: {error.strerror}.", hint="Choose another place with --db.", path=str(path)
        ) from error
    with suppress(OSError):
        _try_lock(handle)
        # If `kb reset` has deleted the file meanwhile, the lock on it excludes no other process.
        if os.fstat(handle.fileno()).st_ino == path.stat().st_ino:
            return handle
    handle.close()
    return None


def _sign(handle: IO[str], purpose: str) -> None:
    """Writes who holds the lock into the file, for other writers. Ignores errors, such as a full disk."""
    holder = {"pid": os.getpid(), "purpose": purpose, "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    with suppress(OSError):
        os.ftruncate(handle.fileno(), 0)
        os.write(handle.fileno(), json.dumps(holder).encode())


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        return f"process {holder['pid']} ({holder['purpose']}, since {holder['since']})"
    except (OSError, ValueError, KeyError):
        return "an unnamed process"
