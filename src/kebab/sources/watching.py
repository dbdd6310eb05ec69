"""Notices when something below a folder changes, and says where. What changed, and whether it matters, is for an ingest
to find out.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from stat import S_ISDIR
from threading import Event, Lock, Thread
from typing import NamedTuple

from kebab.core.errors import SourceError
from kebab.sources.git_repository import checked_out

_QUIET_MS = 100
"""Changes that follow each other faster than this belong together: an editor's save is several."""
_LONGEST_MS = 800
"""But nobody waits longer for a storm to end."""
_TICK_MS = 300
"""How often single files are looked at: editors put a new file in the place of the old one, and a watch would stay with
the old.
"""


class Watch:
    """Looks at folders and files from a thread of its own, so that whoever is at work can ask now and then whether to
    make way.

    All of them have news at first, since something may have changed before the watch began.
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
        """Until there are news, and not longer than this."""
        self._news.wait(seconds)

    def take(self) -> set[Path]:
        """The folders and files with changes since the last call."""
        with self._lock:
            changed, self._changed = self._changed, set()
            self._news.clear()
        if self._error is not None:
            raise SourceError(
                f"The system does not watch these folders: {self._error}.",
                hint="On Linux, raise the limit fs.inotify.max_user_watches; or run kb ingest now and then instead.",
            ) from self._error
        return changed

    def close(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for changed in _changes(self.roots, self._own, self._end):
                self._tell(changed)
        except (OSError, RuntimeError) as error:  # nobody sees what a thread raises; whoever asks next does
            self._error = error
            self._tell(set())

    def _tell(self, changed: set[Path]) -> None:
        with self._lock:
            self._changed |= changed
            self._news.set()


class _Look(NamedTuple):
    """What a glance at a folder or file shows, without what is below it."""

    folder: tuple[int, int] | None
    """Which folder it is, whatever its name: another one after it was deleted and made again."""
    file: tuple[int, int, int] | None
    head: object
    """The commit that is checked out: a new one may leave all files as they are."""


def _changes(roots: Sequence[Path], own: Collection[str], stop: Event) -> Iterator[set[Path]]:
    looks = {root: _look(root) for root in roots}
    changed = set(roots)
    while not stop.is_set():
        folders = [root for root in roots if looks[root].folder]
        changed |= set(folders)  # what happens before the system watches is not reported
        for reported in _changes_below(folders, own, stop):
            before, looks = looks, {root: _look(root) for root in roots}
            changed |= reported | {root for root in roots if looks[root] != before[root]}
            if changed:
                yield changed
            changed = set()
            if any(looks[root].folder != before[root].folder for root in roots):
                break  # the system goes on watching what stood there before


def _changes_below(folders: Sequence[Path], own: Collection[str], stop: Event) -> Iterator[set[Path]]:
    """The folders in which something has changed, and nothing now and then."""
    if not folders:
        while not stop.wait(_TICK_MS / 1000):
            yield set()
        return
    from watchfiles import watch

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
            # Filtered here: watchfiles would not say anything while only its filtered files are written.
            paths = [Path(path) for _, path in changes if path not in own and f"{os.sep}.git{os.sep}" not in path]
            yield {folder for folder in folders if any(folder == path or folder in path.parents for path in paths)}
    except FileNotFoundError:  # gone between the look and the watch
        stop.wait(_TICK_MS / 1000)
        yield set()


def _look(root: Path) -> _Look:
    try:
        status = root.stat()
    except OSError:
        return _Look(None, None, None)
    if S_ISDIR(status.st_mode):
        return _Look((status.st_dev, status.st_ino), None, checked_out(root))
    return _Look(None, (status.st_ino, status.st_size, status.st_mtime_ns), checked_out(root.parent))
