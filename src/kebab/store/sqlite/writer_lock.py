"""One writer at a time, and its name for the others.

SQLite's own lock lasts for one transaction; an ingest is thousands of them. This lock lasts for the whole run. It is a
lock of the operating system on a file beside the database, so a killed process leaves none behind.
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
from kebab.core.private_files import open_file

if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: IO[str]) -> None:
        handle.seek(1 << 20)  # beyond the text: a locked range cannot be read on Windows
        msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _try_lock(handle: IO[str]) -> None:
        fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def writer_lock(database: Path, *, wait_s: float, purpose: str) -> Iterator[None]:
    """Holds the lock of a database; waits for it at most `wait_s` seconds. `purpose` is shown to other writers."""
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
    """None while another process has the lock."""
    try:
        handle = open_file(path, "a+")
    except OSError as error:
        raise ReadOnly(
            f"{path} cannot be written: {error.strerror}.", hint="Choose another place with --db.", path=str(path)
        ) from error
    with suppress(OSError):
        _try_lock(handle)
        # `kb reset` deletes the file: a lock on a deleted file excludes no other process.
        if os.fstat(handle.fileno()).st_ino == path.stat().st_ino:
            return handle
    handle.close()
    return None


def _sign(handle: IO[str], purpose: str) -> None:
    """Writes who holds the lock, for others to read. On a full disk the lock holds without a name."""
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
