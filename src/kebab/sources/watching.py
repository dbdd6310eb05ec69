"""Watches folders and files for changes. An ingest finds out what changed and whether it matters."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from stat import S_ISDIR
from threading import Event, Lock, Thread
from typing import NamedTuple

from watchfiles import watch

from kebab.core.errors import SourceError
from kebab.sources.git_repository import checked_out

_QUIET_MS = 100
"""Changes that follow each other faster than this belong together: an editor saves in several steps."""
_LONGEST_MS = 800
"""The longest wait for a series of changes to end."""
_TICK_MS = 300
"""How often single files are checked: editors replace a file by a new one, and the system would watch the old one."""


class Watch:
    """Watches folders and files in a thread, so that a running ingest can ask whether there are changes.

    At first all folders and files count as changed, because something may have changed before the watch began.
    """

    def __init__(self, roots: Sequence[Path], own_files: Collection[Path] = ()) -> None:
        self.roots = list(roots)
        self._own = {str(path) for path in own_files}
        self._changed: set[Path] = set()
        self._error: Exception | None = None
        self._lock = Lock()
        self._news = Event()
        self._end = Event()
        self._thread = Thread(target=self._run, name="kebab-watch", daemon=True)
        self._thread.start()

    @property
    def has_news(self) -> bool:
        return self._news.is_set()

    def wait(self, seconds: float) -> None:
        """Waits for a change, at most for this time."""
        self._news.wait(seconds)

    def take(self) -> set[Path]:
        """The folders and files with changes since the last call."""
        with self._lock:
            changed, self._changed = self._changed, set()
            self._news.clear()
        if self._error is not None:
            hint = "On Linux, raise the limit fs.inotify.max_user_watches; or run kb ingest now and then instead."
            raise SourceError(f"The system does not watch these folders: {self._error}.", hint=hint) from self._error
        return changed

    def close(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for changed in _changes(self.roots, self._own, self._end):
                self._tell(changed)
        except (OSError, RuntimeError) as error:  # `take` raises it in the thread of the caller
            self._error = error
            self._tell(set())

    def _tell(self, changed: set[Path]) -> None:
        with self._lock:
            self._changed |= changed
            self._news.set()


class _State(NamedTuple):
    """The state of a folder or file itself, without what is below it."""

    folder: tuple[int, int] | None
    """The identity of the folder, which is another one after it was deleted and made again."""
    file: tuple[int, int, int] | None
    head: object
    """A value that changes with the checked-out commit, even if all files stay unchanged."""


def _changes(roots: Sequence[Path], own: Collection[str], stop: Event) -> Iterator[set[Path]]:
    states = {root: _state(root) for root in roots}
    changed = set(roots)
    while not stop.is_set():
        folders = [root for root in roots if states[root].folder]
        changed |= set(folders)  # the system does not report changes made before it watches
        for reported in _changes_below(folders, own, stop):
            before, states = states, {root: _state(root) for root in roots}
            changed |= reported | {root for root in roots if states[root] != before[root]}
            if changed:
                yield changed
            changed = set()
            if any(states[root].folder != before[root].folder for root in roots):
                break  # the system still watches the old folder


def _changes_below(folders: Sequence[Path], own: Collection[str], stop: Event) -> Iterator[set[Path]]:
    """Yields the folders with changes, at least once per tick; an empty set without changes."""
    if not folders:
        while not stop.wait(_TICK_MS / 1000):
            yield set()
        return
    try:
        for changes in watch(
            *folders,
            watch_filter=None,
            step=_QUIET_MS,
            debounce=_LONGEST_MS,
            rust_timeout=_TICK_MS,
            yield_on_timeout=True,
            stop_event=stop,
            ignore_permission_denied=True,
        ):
            # Filtered here, because watchfiles yields nothing while only filtered files change.
            paths = [Path(path) for _, path in changes if path not in own and f"{os.sep}.git{os.sep}" not in path]
            yield {folder for folder in folders if any(folder == path or folder in path.parents for path in paths)}
    except FileNotFoundError:  # deleted before the watch began
        stop.wait(_TICK_MS / 1000)
        yield set()


def _state(root: Path) -> _State:
    try:
        status = root.stat()
    except OSError:
        return _State(None, None, None)
    if S_ISDIR(status.st_mode):
        return _State((status.st_dev, status.st_ino), None, checked_out(root))
    return _State(None, (status.st_ino, status.st_size, status.st_mtime_ns), checked_out(root.parent))
