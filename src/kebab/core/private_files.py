"""Creates all files and folders that Kebab writes, so that only their owner can read them.

The mode is set at creation, so that nobody else can open a file in between. Existing files and folders keep their mode.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

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
