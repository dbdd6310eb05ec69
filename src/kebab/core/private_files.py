"""Files and folders that only their owner can read: every file Kebab writes is made here.

The mode is given when a file is made, never afterwards, so there is no moment at which others can open it. What exists
keeps its mode.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

UMASK = 0o077
"""For programs that we start and that write files."""


def make_folder(folder: Path) -> None:
    """With its missing parents; `Path.mkdir` would leave those open to everyone."""
    if not folder.parent.exists():
        make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


def make_file(path: Path) -> None:
    """Empty, unless it exists. An existing file is not even opened: closing it would drop the locks SQLite holds in
    this process.
    """
    with suppress(FileExistsError):
        os.close(_owner_only(str(path.resolve()), os.O_CREAT | os.O_EXCL | os.O_WRONLY))


def open_file(path: Path, mode: str) -> IO[Any]:
    encoding = None if "b" in mode else "utf-8"
    return open(path, mode, encoding=encoding, opener=_owner_only)


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
