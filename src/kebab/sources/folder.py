"""Lists and reads the files of a folder, and reports which files are left out and why.

Ignore rules are ripgrep's (the `ignore` crate): .gitignore as git reads it, plus .kebabignore of the same syntax.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple

import ignore
from ignore import overrides

from kebab.config.settings import IngestSettings
from kebab.core.errors import ParseError, SourceError
from kebab.core.files import NotRegular, open_regular
from kebab.core.text import nfc

IGNORE_FILE = ".kebabignore"
_LONGEST_RULES = 1 << 18
"""A longer file of ignore rules is not read, because some rules take long."""
_RULES = (".gitignore", IGNORE_FILE, ".git/info/exclude")
_WITH_RULES = frozenset({".gitignore", IGNORE_FILE, ".git"})
_IN_GLOBS = str.maketrans({character: f"\\{character}" for character in "\\*?[]{}!"})
_UNREPORTED = frozenset({IGNORE_FILE, ".gitignore", ".git", ".kebab"})
"""Hidden files that are left out without a report."""
_READ_ATTEMPTS = 3
_EARLIEST_NS = -(1 << 63)
"""The earliest time that a store can hold."""
_CLOCK_GRAIN_NS = 2_000_000_000
"""A file changed more recently than this may change again with the same time and size, so only its bytes tell."""


class FoundFile(NamedTuple):
    path: str
    """Relative to the source, with `/`, NFC."""
    absolute: Path
    size: int
    mtime_ns: int


class Skip(NamedTuple):
    path: str
    reason: str


@dataclass
class FolderScan:
    files: list[FoundFile] = field(default_factory=list)
    skips: list[Skip] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    """Folders that could not be listed: indexed files below them must not count as deleted."""

    def covers(self, path: str) -> bool:
        """Whether a missing path means that the file was deleted."""
        return not any(folder == "." or path == folder or path.startswith(folder + "/") for folder in self.unreadable)


def scan_folder(
    root: Path, settings: IngestSettings, *, exclude: Collection[str] = (), other_sources: Collection[Path] = ()
) -> FolderScan:
    """Lists the files of a folder without the files `exclude` and the folders `other_sources` below it."""
    if not root.is_dir():
        raise SourceError(
            f"The folder {root} is not there.",
            hint="Check the path, or mount its disk; nothing was removed. What came from a folder that is gone for "
            "good goes with: kb source remove NAME",
            path=str(root),
        )
    listing = _Listing(root, settings, exclude)
    elsewhere = {str(folder) for folder in other_sources}
    for folder in listing.folders:
        if folder in elsewhere:
            listing.scan.skips.append(Skip(relative_path(root, folder) or ".", "other_source"))
        elif not any(folder.startswith(other + os.sep) for other in elsewhere):
            listing.take_folder(folder)
    return listing.scan


def _folders_to_leave_out(root: Path, settings: IngestSettings, check: Callable[[], object] = lambda: None) -> set[str]:
    """The folders whose ignore rules cannot be read: the walk would wait for a pipe, or read a device without end.

    Raises SourceError for the folder itself and for those above it whose rules count.
    """
    if not settings.ignore_files:
        return set()
    for above in (root, *(root.parents if _inside_repository(root) else ())):
        if rules := _unreadable_rules(str(above)):
            raise SourceError(
                f"The ignore rules of {rules} cannot be read: it is no regular file, or longer than 256 kB.",
                hint="Remove it, or set ingest.ignore_files to false.",
                path=rules,
            )
    found: set[str] = set()
    status = root.stat()
    waiting = [(str(root), frozenset({(status.st_dev, status.st_ino)}))]
    while waiting:
        check()
        folder, itself_and_above = waiting.pop()
        below: list[str] = []
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name in _WITH_RULES and _unreadable_rules(folder):
                    found.add(folder)
                    below.clear()
                    break
                if entry.name.startswith(".") and not settings.hidden:
                    continue
                if entry.is_dir(follow_symlinks=settings.follow_links):
                    below.append(entry.path)
        for path in below:
            if settings.follow_links:  # links may lead in a circle
                with suppress(OSError):
                    status = os.stat(path)  # noqa: PTH116 - faster than Path
                    identity = status.st_dev, status.st_ino
                    if identity not in itself_and_above:
                        waiting.append((path, itself_and_above | {identity}))
            else:
                waiting.append((path, itself_and_above))
    return found


def _inside_repository(root: Path) -> bool:
    return not (root / ".git").exists() and any((above / ".git").exists() for above in root.parents)


def _unreadable_rules(folder: str) -> str | None:
    for name in _RULES:
        with suppress(OSError):
            status = os.stat(path := f"{folder}{os.sep}{name}")  # noqa: PTH116 - faster than Path
            if S_ISREG(status.st_mode) and status.st_size <= _LONGEST_RULES:
                continue
            if not stat.S_ISDIR(status.st_mode):
                return path
    return None


def walk_of(root: Path, settings: IngestSettings, left_out: Collection[str]) -> ignore.Walk:
    """Walks all files and folders below a folder that the ignore rules keep, except the folders `left_out`."""
    builder = (
        ignore.WalkBuilder(root)
        .hidden(not settings.hidden)
        .ignore(False)
        .git_ignore(settings.ignore_files)
        .git_exclude(settings.ignore_files)
        .git_global(False)
        .require_git(False)
        # A .gitignore above the folder counts only inside one repository: `*` in a home folder must not hide notes.
        .parents(settings.ignore_files and _inside_repository(root))
        .follow_links(settings.follow_links)
    )
    if settings.ignore_files:
        builder.add_custom_ignore_filename(IGNORE_FILE)
    if left_out:
        rules = overrides.OverrideBuilder(root)
        for folder in left_out:
            rules.add(f"!/{folder[len(str(root)) :].lstrip(os.sep).translate(_IN_GLOBS)}")
        builder.overrides(rules.build())
    return builder.build()


def _walk(root: Path, settings: IngestSettings, left_out: Collection[str]) -> tuple[list[str], set[str]]:
    """The paths that the ignore rules keep: the folders in order, and all entries."""
    entries, walk = [], iter(walk_of(root, settings, left_out))
    while True:
        try:
            entries.append(str(next(walk).path()))
        except StopIteration:
            break
        except (ignore.Error, ignore.IOError):
            continue  # an unreadable folder, which fails again when it is listed, or a loop of links
    is_folder, is_link = os.path.isdir, os.path.islink  # not Path: a million of them are slow
    follow = settings.follow_links
    folders = [path for path in entries if is_folder(path) and (follow or not is_link(path) or path == str(root))]
    return sorted(folders), set(entries)


class _Listing:
    """Lists one folder after another. `folders` are those that the ignore rules keep, in order."""

    def __init__(self, root: Path, settings: IngestSettings, exclude: Collection[str]) -> None:
        self.scan = FolderScan()
        self._left_out = _folders_to_leave_out(root, settings)
        self.folders, self._kept = _walk(root, settings, self._left_out)
        self._root = root
        self._settings = settings
        self._exclude = exclude
        self._seen: set[str] = set()

    def take_folder(self, folder: str) -> None:
        try:
            with os.scandir(folder) as listing:
                # Of two names that differ only in their Unicode form, the one in NFC comes first, as in verify.
                entries = sorted(listing, key=lambda entry: (entry.name != nfc(entry.name), entry.name))
        except OSError:
            path = relative_path(self._root, folder) or "."
            self.scan.skips.append(Skip(path, "unreadable"))
            self.scan.unreadable.append(path)
            return
        for entry in entries:
            self._take(entry)

    def _take(self, entry: os.DirEntry[str]) -> None:
        path = relative_path(self._root, entry.path)
        if entry.path in self._left_out:
            self.scan.skips.append(Skip(_shown(path), "unreadable_rules"))
            self.scan.unreadable.append(path)
            return
        try:
            status = entry.stat(follow_symlinks=self._settings.follow_links)
        except OSError:
            # A folder that may be listed but not entered, or a broken link: what was indexed of it stays.
            self.scan.skips.append(Skip(_shown(path), "link" if entry.is_symlink() else "unreadable"))
            self.scan.unreadable.append(path)
            return
        reason = self._reason_to_skip(entry, status, path)
        if reason:
            self.scan.skips.append(Skip(_shown(path), reason))
        elif reason is None:
            self._seen.add(path)
            self.scan.files.append(FoundFile(path, Path(entry.path), status.st_size, status.st_mtime_ns))

    def _reason_to_skip(self, entry: os.DirEntry[str], status: os.stat_result, path: str) -> str | None:
        """The reason to skip an entry; "" to skip it without a report, None to take it."""
        is_kept = entry.path in self._kept
        if stat.S_ISLNK(status.st_mode) or (not is_kept and entry.is_symlink()):
            return "link"
        if not is_kept:
            if entry.name in _UNREPORTED:
                return ""
            return "hidden" if entry.name.startswith(".") and not self._settings.hidden else "ignored"
        if stat.S_ISDIR(status.st_mode) or entry.path in self._exclude:
            return ""
        if not stat.S_ISREG(status.st_mode):
            return "special"
        if path != _shown(path):
            return "bad_name"
        if is_too_large(status.st_size, self._settings):
            return "too_large"
        return "same_name" if path in self._seen else None  # two names that differ only in their Unicode form


def is_too_large(size: int, settings: IngestSettings) -> bool:
    return size > settings.max_file_mb * 1_000_000


def _shown(path: str) -> str:
    """The path with ? in place of bytes that are not UTF-8."""
    return path.encode("utf-8", "replace").decode()


def relative_path(root: Path, path: str) -> str:
    """The path relative to the root, with `/` and in NFC. The path must begin with the root."""
    return nfc(path[len(str(root)) :].lstrip(os.sep).replace(os.sep, "/"))


def found_file(absolute: Path, path: str) -> FoundFile:
    status = absolute.stat()
    return FoundFile(path, absolute, status.st_size, status.st_mtime_ns)


class FileBytes(NamedTuple):
    data: bytes
    size: int
    mtime_ns: int | None
    """None if the file changed too recently for its time to prove that it is unchanged, or the time is out of range."""
    modified: float


def read_file(path: Path, settings: IngestSettings, *, follow_link: bool) -> FileBytes | None:
    """The bytes of a file that did not change while it was read; None if it changed at every attempt.

    Raises ParseError if a scan would now skip the file.
    """
    for _ in range(_READ_ATTEMPTS):
        with _opened(path, follow_link) as handle:
            before = os.fstat(handle.fileno())
            if is_too_large(before.st_size, settings):
                raise ParseError("The file has become too large.", reason="too_large")
            data = handle.read(before.st_size + 1)
        after = os.stat(path)  # noqa: PTH116 - faster than Path
        same = (before.st_ino, before.st_size, before.st_mtime_ns) == (after.st_ino, after.st_size, after.st_mtime_ns)
        if same and len(data) == after.st_size:
            settled = time.time_ns() - after.st_mtime_ns > _CLOCK_GRAIN_NS and after.st_mtime_ns >= _EARLIEST_NS
            return FileBytes(data, after.st_size, after.st_mtime_ns if settled else None, after.st_mtime)
    return None


def _opened(path: Path, follow_link: bool) -> FileIO:
    try:
        return open_regular(path, follow_link=follow_link)
    except NotRegular as error:
        raise ParseError("It is neither a file nor a folder.", reason="special") from error
    except OSError as error:
        if error.errno == errno.ELOOP and not follow_link:
            raise ParseError("It has become a symbolic link.", reason="link") from error
        raise


class NewFiles(NamedTuple):
    """The number of files that have come since the last scan and that an ingest would take."""

    number: int
    complete: bool
    """Whether all files were counted before the time ran out."""


class KnownFolder(NamedTuple):
    root: Path
    paths: Collection[str]
    """The known files, relative to the root."""
    looked_at: float
    excluded: Collection[str]
    """Files and folders that do not belong to the source."""


def count_new_files(known: KnownFolder, settings: IngestSettings, until: float) -> NewFiles:
    """How many files have come into a folder since its last scan, counted until a time of `time.perf_counter`.

    An unknown file is new if it is younger than the last scan; files that the scan left out are older. Only folders
    with known files are read, and ignore rules are applied only if there are candidates. A new file deep inside a
    folder without any known file is missed.
    """
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

        The walk gives the depth of an entry quickly, but its path slowly. So paths are read only of folders that
        contain entries, and of entries beside or below a candidate.
        """
        beside = {os.path.dirname(path) for path in candidates}  # noqa: PTH120 - faster than Path
        waiting = set(candidates)  # candidates that the walk may still reach
        folders: list[str] = []  # the folders that contain the current entry, outermost first
        before: ignore.DirEntry | None = None
        left_out = _folders_to_leave_out(self._known.root, self._settings, self._check_time)
        walk = iter(walk_of(self._known.root, self._settings, left_out))
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
                if not os.path.isdir(path):  # noqa: PTH112 - faster than Path
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
            return os.stat(path, follow_symlinks=self._settings.follow_links)  # noqa: PTH116 - faster than Path
        except OSError:
            return None  # deleted in the meantime

    def _check_time(self) -> None:
        if time.perf_counter() > self._until:
            raise TimeoutError
