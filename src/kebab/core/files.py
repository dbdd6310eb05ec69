"""Reading files that others may change or replace at any moment."""

from __future__ import annotations

import os
import stat
from io import FileIO

_FLAGS = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))


class NotRegular(OSError):
    """A folder, pipe, socket or device, where a file was expected."""


def open_regular(path: str | os.PathLike[str], *, follow_link: bool = True) -> FileIO:
    """A file open for reading. OSError when it is anything but a regular file; never waits for the other end of a pipe.

    What a scan saw may have been replaced since, so only what was opened is asked.
    """
    descriptor = os.open(path, _FLAGS if follow_link else _FLAGS | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotRegular(None, "it is not a regular file", os.fspath(path))
        return FileIO(descriptor)
    except BaseException:
        os.close(descriptor)
        raise


def read_regular(path: str | os.PathLike[str], most_bytes: int = -1, *, follow_link: bool = True) -> bytes:
    """What is in a regular file, or the beginning of it; OSError when it is anything else."""
    with open_regular(path, follow_link=follow_link) as file:
        return file.read(most_bytes)
