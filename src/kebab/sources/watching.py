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


def changed_roots(
    roots: Sequence[Path], *, own_files: Collection[Path] = (), stop: Event | None = None, again: Collection[Path] = ()
) -> Iterator[set[Path]]:
    """Which of these folders and files have changes, each time there are some; all of them the first time, since something may have
    changed before the watch began, and those in `again` every time somebody looks. Ends when `stop` is set.
    """
    folders = [root for root in roots if not root.is_file()]
    files = {root: _state(root) for root in roots if root not in folders}
    own = {str(path) for path in own_files}
    stop = stop or Event()
    yield set(roots)
    while not stop.is_set():
        there = {folder: _place(folder) for folder in folders if folder.is_dir()}
        for changed in _changes_below(list(there), own, stop):
            changed |= _changed(files) | set(again)
            replaced = {folder for folder in folders if folder.is_dir() and _place(folder) != there.get(folder)}
            if changed or replaced:
                yield changed | replaced
            if replaced:
                break  # the system goes on watching what stood there before
            if stop.is_set():
                return


def _changes_below(folders: Sequence[Path], own: Collection[str], stop: Event) -> Iterator[set[Path]]:
    """The folders in which something has changed, and nothing now and then."""
    if not folders:
        while not stop.wait(_TICK_MS / 1000):
            yield set()
        return
    from watchfiles import watch

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
        yield {folder for folder in folders if any(folder == path or folder in path.parents for path in paths)}


def _place(folder: Path) -> tuple[int, int] | None:
    """Which folder it is, whatever its name: another one after it was deleted and made again."""
    try:
        status = folder.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


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
