"""How many files have come into a folder since its last scan that an ingest would take, counted in a short time.

An unknown file is new if it is younger than the last scan; files that the scan left out are older. Only folders with
known files are read, and ignore rules are applied only if there are candidates. A new file deep inside a folder without
any known file is missed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

import ignore

from kebab.config.settings import IngestSettings
from kebab.sources.folder import is_too_large, relative_path, walk_of


class NewFiles(NamedTuple):
    number: int
    complete: bool
    """Whether the time was enough."""


class KnownFolder(NamedTuple):
    root: Path
    paths: Collection[str]
    """The known files, relative to the root."""
    looked_at: float
    excluded: Collection[str]
    """Files and folders that do not belong to the source."""


def count_new_files(known: KnownFolder, settings: IngestSettings, until: float) -> NewFiles:
    """Counts until a time of `time.perf_counter`."""
    search = _Search(known, settings, until)
    try:
        candidates = search.candidates()
        return NewFiles(search.kept_of(candidates) if candidates else 0, complete=True)
    except TimeoutError:
        return NewFiles(search.count, complete=False)


class _Search:
    def __init__(self, known: KnownFolder, settings: IngestSettings, until: float) -> None:
        self.count = 0
        self._known = known
        self._settings = settings
        self._until = until
        self._files = set(known.paths)
        self._folders = {""}
        """The folders of known files, and every folder above them."""
        for path in known.paths:
            folder = path.rpartition("/")[0]
            while folder not in self._folders:
                self._folders.add(folder)
                folder = folder.rpartition("/")[0]

    def candidates(self) -> set[str]:
        """Unknown young files and folders, as absolute paths, before ignore rules apply."""
        found: set[str] = set()
        folders = [str(self._known.root)]
        while folders:
            self._check_time()
            try:
                with os.scandir(folders.pop()) as entries:
                    for entry in entries:
                        if entry.name.startswith(".") and not self._settings.hidden:
                            continue
                        path = relative_path(self._known.root, entry.path)
                        if path in self._folders and entry.is_dir(follow_symlinks=self._settings.follow_links):
                            folders.append(entry.path)
                        elif path in self._files or entry.path in self._known.excluded:
                            continue
                        elif self._is_young(entry.path):
                            found.add(entry.path)
            except OSError:
                continue  # deleted, or no permission
        return found

    def kept_of(self, candidates: set[str]) -> int:
        """How many of the candidates, and of the files below them, an ingest would take.

        The walk tells the depth of an entry at no cost, but its path takes longer than all else. So it asks for the
        path of a folder when an entry below follows, and for that of a file only beside a candidate.
        """
        beside = {os.path.dirname(path) for path in candidates}  # noqa: PTH120 - as below
        waiting = set(candidates)  # candidates that the walk may still reach
        folders: list[str] = []  # the way from the top to where the walk is
        before: ignore.DirEntry | None = None
        walk = iter(walk_of(self._known.root, self._settings))
        while waiting:
            self._check_time()
            try:
                entry = next(walk)
            except StopIteration:
                break
            except (ignore.Error, ignore.IOError):
                continue
            depth = entry.depth()
            if before is not None and depth > before.depth():
                folders.append(str(before.path()))
            before = entry
            if left := folders[depth:]:
                del folders[depth:]
                done = {path for path in waiting if path in left or os.path.dirname(path) in left}  # noqa: PTH120
                waiting -= done
            inside = any(folder in candidates for folder in folders)
            if inside or (depth and folders[-1] in beside):
                path = str(entry.path())
                if inside or path in candidates:
                    self.count += self._would_be_taken(path)
                if not os.path.isdir(path):  # noqa: PTH112 - as below
                    waiting.discard(path)
        return self.count

    def _would_be_taken(self, path: str) -> bool:
        if any(path == place or path.startswith(place + os.sep) for place in self._known.excluded):
            return False
        status = self._status(path)
        is_right = status is not None and S_ISREG(status.st_mode) and not is_too_large(status.st_size, self._settings)
        return is_right and self._is_young(path) and relative_path(self._known.root, path) not in self._files

    def _is_young(self, path: str) -> bool:
        status = self._status(path)
        return status is not None and status.st_ctime > self._known.looked_at

    def _status(self, path: str) -> os.stat_result | None:
        try:
            return os.stat(path, follow_symlinks=self._settings.follow_links)  # noqa: PTH116 - maybe thousands of them
        except OSError:
            return None  # deleted in the meantime

    def _check_time(self) -> None:
        if time.perf_counter() > self._until:
            raise TimeoutError
