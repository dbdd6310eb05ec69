"""Ingest again whenever something changes, and again after what stood in the way: another writer, a folder that is gone
for now.

Words come first: vectors are made while nothing else is to be done, and whoever saves a file does not wait for them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from kebab.core.errors import KebabError, Locked, SourceError
from kebab.core.records import SourceRecord
from kebab.ingest.report import IngestReport
from kebab.sources.watching import Watch

AnyPath = str | os.PathLike[str]

_TICK_S = 0.3
_EMBEDDING_S = 5.0
"""How long vectors are made before sources that others may have added are looked for again."""
_ASK_AGAIN_S = 1.0
"""How often it is asked what is to be watched, where no file of the database tells that somebody has written to it."""
_BEFORE_EMBEDDING_AGAIN_S = 30.0
"""After a model or an endpoint has failed; a change is reason enough to try earlier."""


class TextIngest(Protocol):
    def __call__(
        self, *paths: AnyPath, name: str | None = None, known_only: bool = False, progress: Callable[..., None]
    ) -> IngestReport:
        """Without vectors."""


class SomeEmbedding(Protocol):
    def __call__(self, report: IngestReport, *, stop: Callable[[], bool]) -> bool:
        """Makes missing vectors until `stop` says so; whether all are made."""


class _Stopped(Exception):
    """Somebody wants to end, in the middle of an ingest."""


def watched_roots(sources: Sequence[SourceRecord], paths: Sequence[AnyPath]) -> list[Path]:
    """The folders and files of the sources that hold these paths, or of all."""
    wanted = {Path(path).expanduser().resolve() for path in paths}
    roots = [Path(source.root) for source in sources if source.root is not None]
    return [root for root in roots if not wanted or any(path == root or root in path.parents for path in wanted)]


class KeepingUp:
    def __init__(
        self,
        *,
        roots: Callable[[], list[Path]],
        ingest: TextIngest,
        embed: SomeEmbedding | None,
        own_files: Collection[Path],
        stop: Event | None,
    ) -> None:
        """`roots`: what is to be watched as of now; asked again whenever somebody has written to the database."""
        self._roots = roots
        self._ingest = ingest
        self._embed = embed
        self._own_files = own_files
        self._stop = stop or Event()
        self._written: list[object] = []
        self._watch: Watch | None = None
        self._in_the_way: dict[Path, str] = {}
        self._unasked = ""
        self._vectors = IngestReport()
        self._embed_at = 0.0 if embed else float("inf")
        self._embedding_failed = ""

    def run(self, paths: Sequence[AnyPath], name: str | None) -> Iterator[IngestReport | KebabError]:
        """A report whenever something was done; an error once, however often it is met again."""
        try:
            yield from self._begin(paths, name)
            while not self._stop.is_set():
                yield from self._look_for_sources()
                watch = self._watch
                if watch is None:
                    self._stop.wait(_TICK_S)
                    continue
                for root in sorted(watch.take() | self._in_the_way.keys()):
                    yield from self._bring_up(root)
                if time.monotonic() >= self._embed_at and not watch.has_news:
                    yield from self._make_vectors(watch)
                watch.wait(_TICK_S)
        except _Stopped:
            pass
        finally:
            if self._watch is not None:
                self._watch.close()

    def _begin(self, paths: Sequence[AnyPath], name: str | None) -> Iterator[IngestReport | KebabError]:
        """What cannot be watched at all is an error here and now; a known source whose folder is missing is waited for."""
        known = [] if paths else self._roots()
        there = [root for root in known if root.exists()]
        for root in known:
            if root not in there:
                yield from self._bring_up(root)
        if there or not known:
            yield self._ingest(*paths, *there, name=name, progress=self._go_on)

    def _look_for_sources(self) -> Iterator[KebabError]:
        """They come and go: another process may ingest or remove one. While the database cannot be asked, those are
        watched that were.
        """
        try:
            self._watch_sources()
        except KebabError as error:
            if self._unasked != error.message:
                yield error
            self._unasked = error.message
        else:
            self._unasked = ""

    def _watch_sources(self) -> None:
        written: list[object] = [
            _time_of(file) for file in self._own_files if not file.name.endswith((".lock", "-shm"))
        ]
        written = written or [time.monotonic() // _ASK_AGAIN_S]
        if self._watch is None or written != self._written:
            roots = self._roots()
            self._written = written
            if self._watch is None or roots != self._watch.roots:
                if self._watch is not None:
                    self._watch.close()
                self._watch = Watch(roots, self._own_files)
                self._in_the_way = {root: error for root, error in self._in_the_way.items() if root in roots}

    def _bring_up(self, root: Path) -> Iterator[IngestReport | KebabError]:
        try:
            if not root.exists():
                raise SourceError(
                    f"There is no file or folder {root}.", hint="It is taken up when it appears.", path=str(root)
                )
            report = self._ingest(
                root, known_only=True, progress=self._go_on
            )  # it may be removed while this waits for its turn
        except KebabError as error:
            if self._in_the_way.get(root) != error.message:
                yield error
            self._in_the_way[root] = error.message
            return
        self._in_the_way.pop(root, None)
        if report.added or report.updated or report.removed or report.failed:
            if self._embed is not None:
                self._embed_at = 0.0
            yield report

    def _make_vectors(self, watch: Watch) -> Iterator[IngestReport | KebabError]:
        assert self._embed is not None  # otherwise its time never comes
        until = time.monotonic() + _EMBEDDING_S
        try:
            complete = self._embed(
                self._vectors, stop=lambda: watch.has_news or self._stop.is_set() or time.monotonic() > until
            )
        except KebabError as error:
            if self._embedding_failed != error.message:
                yield error
            self._embedding_failed = error.message
            self._embed_at = time.monotonic() + (_TICK_S if isinstance(error, Locked) else _BEFORE_EMBEDDING_AGAIN_S)
            return
        self._embedding_failed = ""
        if complete:
            self._embed_at = float("inf")
            made, self._vectors = self._vectors, IngestReport()
            if made.vectors_made or made.vectors_reused:
                yield made

    def _go_on(self, *_: Any, **__: Any) -> None:
        """The progress of an ingest, which is a place to leave it: what was read until then is written."""
        if self._stop.is_set():
            raise _Stopped


def _time_of(file: Path) -> object:
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
