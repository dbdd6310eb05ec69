"""Reads files that others may change or replace at any moment, locks files, and creates files that only their owner
can read.

The mode is set at creation, so that nobody else can open a file in between. Existing files and folders keep their mode.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import IO, Any

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_LEASE_S = 10.0


class NotRegular(OSError):
    """A folder, pipe, socket or device, where a file was expected."""


def open_regular(path: str | os.PathLike[str], *, follow_link: bool = True) -> FileIO:
    """Opens a file for reading; OSError if it is not a regular file. Never blocks on a pipe.

    Checks the opened file, not the path, because the file may be replaced at any moment.
    """
    descriptor = _opened(path, _FLAGS if follow_link else _FLAGS | os.O_NOFOLLOW)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegular(None, "it is not a regular file", os.fspath(path))
        return FileIO(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def _opened(path: str | os.PathLike[str], flags: int) -> int:
    """Opens a file. Waits up to ten seconds if a file server (Samba, NFS) holds a lease on the file."""
    ends = time.monotonic() + _LEASE_S
    while True:
        try:
            return os.open(path, flags)
        except BlockingIOError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.02)


def read_regular(path: str | os.PathLike[str], most_bytes: int = -1, *, follow_link: bool = True) -> bytes:
    """The bytes of a regular file, at most `most_bytes` of them; OSError for anything else."""
    with open_regular(path, follow_link=follow_link) as file:
        return file.read(most_bytes)


# --- locks


def lock_file(path: Path, *, shared: bool = False) -> int | None:
    """Locks a file, which is created if it is missing, and returns its descriptor; None while another process has the
    lock. Closing the descriptor ends the lock, also if the process is killed.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(OSError):
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_ino == path.stat().st_ino:  # a deleted file would exclude no other process
            return descriptor
    os.close(descriptor)
    return None


# --- private files

UMASK = 0o077
"""The umask for other programs that Kebab starts."""


def make_folder(folder: Path) -> None:
    """Creates a folder and its missing parents, all private; `Path.mkdir` would make the parents public."""
    if not folder.parent.exists():
        make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def make_file(path: Path) -> None:
    """Creates an empty file, unless it exists. Never opens an existing file: closing it would drop SQLite's locks."""
    with suppress(FileExistsError):
        os.close(_owner_only(str(path.resolve()), os.O_CREAT | os.O_EXCL | os.O_WRONLY))


def open_file(path: Path, mode: str) -> IO[Any]:
    encoding = None if "b" in mode else "utf-8"
    return open(path, mode, encoding=encoding, opener=_owner_only)


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
