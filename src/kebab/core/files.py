"""Reading files that others may change or replace at any moment."""

from __future__ import annotations

import os
import stat
import time
from io import FileIO

_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))
_LEASE_S = 10.0


class NotRegular(OSError):
    """A folder, pipe, socket or device, where a file was expected."""


def open_regular(path: str | os.PathLike[str], *, follow_link: bool = True) -> FileIO:
    """Opens a file for reading; OSError if it is not a regular file. Never blocks on a pipe.

    Checks the opened file, not the path, because the file may be replaced at any moment.
    """
    descriptor = _opened(path, _FLAGS if follow_link else _FLAGS | getattr(os, "O_NOFOLLOW", 0))
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
