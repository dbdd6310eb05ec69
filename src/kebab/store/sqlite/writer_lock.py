"""One writer at a time, and the name of whoever it is.

SQLite's own lock lasts one transaction; an ingest is thousands of them. This lock spans the whole run. It is a lock of
the operating system on a file beside the database, so a killed process leaves none behind.
"""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
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


class WriterLock:
    def __init__(self, database: Path, *, wait_s: float, purpose: str) -> None:
        self._path = database.with_name(database.name + ".lock")
        self._wait_s = wait_s
        self._purpose = purpose
        self._handle: IO[str] | None = None

    def __enter__(self) -> WriterLock:
        deadline = time.monotonic() + self._wait_s
        while (handle := self._try()) is None:
            if time.monotonic() >= deadline:
                raise Locked(
                    f"Another process is writing to this knowledge base: {self._holder()}.",
                    hint="Wait for it to finish, or raise store.lock_wait_s.",
                )
            time.sleep(0.05)
        self._handle = handle
        self._sign(handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handle is not None:
            with suppress(OSError):
                self._handle.truncate(0)
            self._handle.close()
            self._handle = None

    def _try(self) -> IO[str] | None:
        """The locked file, or None while another process has it."""
        try:
            handle = open_file(self._path, "a+")
        except OSError as error:
            raise ReadOnly(
                f"{self._path} cannot be written: {error.strerror}.",
                hint="Choose another place with --db.",
                path=str(self._path),
            ) from error
        try:
            _try_lock(handle)
            # `kb reset` deletes the file: a lock on what is no longer there would keep nobody out.
            if os.fstat(handle.fileno()).st_ino == self._path.stat().st_ino:
                return handle
        except OSError:
            pass
        handle.close()
        return None

    def _sign(self, handle: IO[str]) -> None:
        """Who holds it, for others to read. On a full disk the lock holds without a name."""
        started = time.strftime("%Y-%m-%d %H:%M:%S")
        with suppress(OSError):
            os.ftruncate(handle.fileno(), 0)
            os.write(
                handle.fileno(), json.dumps({"pid": os.getpid(), "purpose": self._purpose, "since": started}).encode()
            )

    def _holder(self) -> str:
        try:
            holder = json.loads(self._path.read_text(encoding="utf-8"))
            return f"process {holder['pid']} ({holder['purpose']}, since {holder['since']})"
        except (OSError, ValueError, KeyError):
            return "an unnamed process"
