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
    """A file open for reading. OSError when it is anything but a regular file; never waits for the other end of a pipe.

    A scanned file may have been replaced since, so only the opened file is checked.
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
    """Waits a while for a file that a server (Samba, NFS) has leased, and that the system asks it to give back."""
    ends = time.monotonic() + _LEASE_S
    while True:
        try:
            return os.open(path, flags)
        except BlockingIOError:
            if time.monotonic() > ends:
                raise
            time.sleep(0.02)


def read_regular(path: str | os.PathLike[str], most_bytes: int = -1, *, follow_link: bool = True) -> bytes:
    """The bytes of a regular file, or its beginning; OSError for anything else."""
    with open_regular(path, follow_link=follow_link) as file:
        return file.read(most_bytes)
