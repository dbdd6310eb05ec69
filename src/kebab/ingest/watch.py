"""`kb watch`: ingests a source again when its files change, and tries again after an error, such as a missing folder.

Vectors are made only while no file changes, so that the words of a saved file can be searched at once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from stat import S_ISDIR
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

from watchfiles import watch

from kebab.core.errors import KebabError, Locked, SourceError
from kebab.ingest.embedding import embed_missing
from kebab.ingest.report import IngestReport
from kebab.ingest.run import ingest
from kebab.session import Session
from kebab.sources.git_repository import checked_out

_TICK_S = 0.3
_EMBEDDING_S = 5.0
"""Seconds of making vectors before checking for sources that other processes may have added."""
_ASK_AGAIN_S = 1.0
"""Seconds between two reads of the sources from a store without files, where no file time shows a change."""
_BEFORE_EMBEDDING_AGAIN_S = 30.0
"""Seconds to wait after a model or an endpoint has failed. A changed file ends the wait."""


Paths = Sequence[str | os.PathLike[str]]


class _Stopped(Exception):
    """`stop` was set in the middle of an ingest."""


class Watching:
    """One watch over the paths, or over every known source."""

    def __init__(self, session: Session, paths: Paths, *, name: str | None, embed: bool, stop: Event | None) -> None:
        self._session = session
        self._paths = paths
        self._name = name
        self._embeds = embed and session.models is not None
        self._own_files = session.store.own_files()
        self._stop = stop or Event()
        self._written: list[object] = []
        self._watch: Watch | None = None
        self._errors: dict[Path | str, str] = {}
        """The current error of each root, of reading the sources (key "sources"), and of embedding (key "vectors")."""
        self._vectors = IngestReport()
        self._embed_at = 0.0 if self._embeds else float("inf")

    def run(self) -> Iterator[IngestReport | KebabError]:
        """Yields a report after each change, and each error once, however often it repeats."""
        try:
            yield from self._begin()
            while not self._stop.is_set():
                yield from self._look_for_sources()
                watch = self._watch
                if watch is None:
                    self._stop.wait(_TICK_S)
                    continue
                for root in sorted(watch.take() | {root for root in self._errors if isinstance(root, Path)}):
                    yield from self._update(root)
                if time.monotonic() >= self._embed_at and not watch.has_news:
                    yield from self._make_vectors(watch)
                watch.wait(_TICK_S)
        except _Stopped:
            pass
        finally:
            if self._watch is not None:
                self._watch.close()

    def _begin(self) -> Iterator[IngestReport | KebabError]:
        """Ingests everything once. A known source may be missing for now; other errors are raised."""
        known = [] if self._paths else self._roots()
        there = [root for root in known if root.exists()]
        for root in known:
            if root not in there:
                yield from self._update(root)
        if there or not known:
            paths = [*self._paths, *there]
            yield ingest(self._session, paths, IngestReport(), name=self._name, embed=False, progress=self._progress)

    def _roots(self) -> list[Path]:
        """Returns the roots of the sources that contain the paths, or of all sources if there are no paths."""
        if not self._session.store.exists():
            return []
        with self._session.reading() as reading:
            sources = reading.catalog.sources() if reading else []
        wanted = {Path(path).expanduser().resolve() for path in self._paths}
        roots = [Path(source.root) for source in sources if source.root is not None]
        return [root for root in roots if not wanted or any(path == root or root in path.parents for path in wanted)]

    def _look_for_sources(self) -> Iterator[KebabError]:
        """Watches the sources that other processes have added, too. If the store fails, the known ones stay watched."""
        try:
            self._watch_sources()
        except KebabError as error:
            yield from self._once("sources", error)
        else:
            self._errors.pop("sources", None)

    def _watch_sources(self) -> None:
        files = [file for file in self._own_files if not file.name.endswith((".lock", "-shm"))]
        written: list[object] = [_state_of(file) for file in files] or [time.monotonic() // _ASK_AGAIN_S]
        if self._watch is None or written != self._written:
            roots = self._roots()
            self._written = written
            if self._watch is None or roots != self._watch.roots:
                if self._watch is not None:
                    self._watch.close()
                self._watch = Watch(roots, self._own_files)
                for root in [root for root in self._errors if isinstance(root, Path) and root not in roots]:
                    del self._errors[root]

    def _update(self, root: Path) -> Iterator[IngestReport | KebabError]:
        try:
            if not root.exists():
                hint = "It is taken up when it appears."
                raise SourceError(f"There is no file or folder {root}.", hint=hint, path=str(root))
            # known_only: a source that is removed while this waits for the writer's lock stays removed.
            report = ingest(
                self._session, [root], IngestReport(), embed=False, known_only=True, progress=self._progress
            )
        except KebabError as error:
            yield from self._once(root, error)
            return
        self._errors.pop(root, None)
        if report.added or report.updated or report.removed or report.failed:
            if self._embeds:
                self._embed_at = 0.0
            yield report

    def _make_vectors(self, watch: Watch) -> Iterator[IngestReport | KebabError]:
        until = time.monotonic() + _EMBEDDING_S

        def stop() -> bool:
            return watch.has_news or self._stop.is_set() or time.monotonic() > until

        try:
            complete = embed_missing(self._session, "kb watch", self._vectors, stop=stop)
        except KebabError as error:
            yield from self._once("vectors", error)
            self._embed_at = time.monotonic() + (_TICK_S if isinstance(error, Locked) else _BEFORE_EMBEDDING_AGAIN_S)
            return
        self._errors.pop("vectors", None)
        if complete:
            self._embed_at = float("inf")
            made, self._vectors = self._vectors, IngestReport()
            if made.vectors_made or made.vectors_reused:
                yield made

    def _once(self, subject: Path | str, error: KebabError) -> Iterator[KebabError]:
        """Yields the error, unless the last error of this subject had the same message."""
        is_new = self._errors.get(subject) != error.message
        self._errors[subject] = error.message
        if is_new:
            yield error

    def _progress(self, *_: Any, **__: Any) -> None:
        """Ends an ingest between two files if `stop` is set. The files read before are written."""
        if self._stop.is_set():
            raise _Stopped


def _state_of(file: Path) -> object:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


# --- changes of files


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
