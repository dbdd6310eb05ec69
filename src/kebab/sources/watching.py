"""Waits until something below a folder changes, and says where. What changed, and whether it matters, is for an ingest to find out."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from threading import Event

_QUIET_MS = 100
"""Changes that follow each other faster than this belong together: an editor's save is several."""
_LONGEST_MS = 800
"""But nobody waits longer for a storm to end."""
_TICK_MS = 300
"""How often single files are looked at: editors put a new file in the place of the old one, and a watch would stay with the old."""


def changed_roots(roots: Sequence[Path], *, own_files: Collection[Path] = (), stop: Event | None = None) -> Iterator[set[Path]]:
    """Which of these folders and files have changes, each time there are some; all of them the first time, since something may have
    changed before the watch began. Ends when `stop` is set. Roots that are not there are not watched.
    """
    from watchfiles import watch

    folders = [root for root in roots if root.is_dir()]
    files = {root: _state(root) for root in roots if root not in folders}
    own = {str(path) for path in own_files}
    if not folders:
        yield from _changed_files_only(files, stop)
        return
    first = True
    for changes in watch(
        *folders,
        watch_filter=lambda _, path: path not in own and f"{os.sep}.git{os.sep}" not in path,
        step=_QUIET_MS,
        debounce=_LONGEST_MS,
        rust_timeout=_TICK_MS,
        yield_on_timeout=True,
        stop_event=stop,
        ignore_permission_denied=True,
    ):
        paths = [Path(path) for _, path in changes]
        changed = {folder for folder in folders if any(folder == path or folder in path.parents for path in paths)} | _changed(files)
        if first or changed:
            yield set(roots) if first else changed
        first = False


def _changed_files_only(files: dict[Path, object], stop: Event | None) -> Iterator[set[Path]]:
    yield set(files)
    stop = stop or Event()
    while not stop.wait(_TICK_MS / 1000):
        changed = _changed(files)
        if changed:
            yield changed


def _changed(files: dict[Path, object]) -> set[Path]:
    now = {path: _state(path) for path in files}
    changed = {path for path, state in now.items() if state != files[path]}
    files.update(now)
    return changed


def _state(path: Path) -> object:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
