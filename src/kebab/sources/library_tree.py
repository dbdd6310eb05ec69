"""The files of a library as they are now: of a repository, a folder, an archive or a single file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Self
from urllib.parse import unquote, urlsplit

from kebab.config.settings import IngestSettings, Settings
from kebab.core.addresses import shown_address
from kebab.core.errors import SourceError
from kebab.core.files import open_regular, read_regular
from kebab.core.ports import FileTree, TreeFile
from kebab.sources.archive import read_archive
from kebab.sources.folder import scan_folder
from kebab.sources.git_mirror import GitMirror, checked_ref, forget
from kebab.sources.origin import Origin
from kebab.sources.web import FetchLimits, fetch


def library_tree(origin: Origin, tag: str | None, branch: str | None, settings: Settings, cache: Path) -> FileTree:
    """The files, fetched unless they are on this machine. Of a repository those of the tag, else of the branch, else
    of the default branch.
    """
    if origin.kind == "git":
        mirror = _mirror(origin, settings, cache)
        if tag is not None:
            return mirror.fetch_tag(tag)
        return mirror.fetch_branch(branch) if branch else mirror.fetch_default()
    if origin.kind == "folder":
        return FolderTree(Path(origin.place), settings.ingest)
    name, data = _file(origin.address, _limits(settings))
    return MemoryTree(read_archive(shown_address(origin.place), data) if origin.kind == "archive" else {name: data})


def check_tags(origin: Origin, tags: Sequence[str], settings: Settings, cache: Path) -> None:
    """SourceError, with similar tags, unless a repository has all of these."""
    if origin.kind != "git":
        return
    existing = _mirror(origin, settings, cache).tags()
    missing = [tag for tag in tags if checked_ref(tag) not in existing]
    if missing:
        close = dict.fromkeys(name for tag in missing for name in get_close_matches(tag, existing, n=2, cutoff=0.5))
        last = f"Its last tags: {', '.join(existing[-5:])}." if existing else "It has no tags."
        hint = f"Did you mean {' or '.join(close)}?" if close else last
        raise SourceError(f"{shown_address(origin.place)} has no tag {' and no tag '.join(missing)}.", hint=hint)


def forget_mirror(place: str, cache: Path) -> bool:
    """Deletes the mirror of a repository; libraries that come from it fetch it again. False if it is in use."""
    return forget(_mirror_folder(place, cache))


def _limits(settings: Settings) -> FetchLimits:
    return FetchLimits(settings.library.fetch_seconds, settings.library.fetch_mb)


def _mirror(origin: Origin, settings: Settings, cache: Path) -> GitMirror:
    return GitMirror(_mirror_folder(origin.place, cache), origin.address, _limits(settings))


def _mirror_folder(place: str, cache: Path) -> Path:
    return cache / "repositories" / f"{sha256(place.encode()).hexdigest()[:24]}.git"


def _file(place: str, limits: FetchLimits) -> tuple[str, bytes]:
    """The name of a file on the web or on this machine, and its bytes."""
    if "://" in place:
        return unquote(urlsplit(place).path).rpartition("/")[2], fetch(place, limits)
    path = Path(place)
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > limits.megabytes * 2**20:
                message = f"{path} is larger than {limits.megabytes:g} MB."
                raise SourceError(message, hint="Raise the setting library.fetch_mb.", path=place)
            return path.name, file.read()
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror}."
        raise SourceError(message, hint="Check its name and permissions.", path=place) from error


class _OpenTree:
    """Files outside of git, which need no preparation to be read."""

    commit = None

    @contextmanager
    def reading(self) -> Iterator[Self]:
        yield self


class MemoryTree(_OpenTree):
    """Files in memory, by path."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self._contents = contents

    def files(self) -> list[TreeFile]:
        return [TreeFile(path, sha256(data).hexdigest(), len(data)) for path, data in self._contents.items()]

    def read(self, file: TreeFile) -> bytes:
        return self._contents[file.path]


class FolderTree(_OpenTree):
    """The files of a folder by the same rules as for notes: ignored and hidden files are left out."""

    def __init__(self, root: Path, settings: IngestSettings) -> None:
        if not root.is_dir():
            message, hint = f"The folder {root} is not there.", "Its text stays searchable until it is removed."
            raise SourceError(message, hint=hint, path=str(root))
        self._follow_links = settings.follow_links
        self._places = {file.path: file.absolute for file in scan_folder(root, settings).files}

    def files(self) -> list[TreeFile]:
        found = []
        for path, place in self._places.items():
            try:
                data = read_regular(place, follow_link=self._follow_links)
            except OSError:  # deleted in the meantime, or no permission
                continue
            found.append(TreeFile(path, sha256(data).hexdigest(), len(data)))
        return found

    def read(self, file: TreeFile) -> bytes:
        try:
            return read_regular(self._places[file.path], follow_link=self._follow_links)
        except OSError as error:
            message = f"{file.path} cannot be read: {error.strerror}."
            raise SourceError(message, hint="Run the command again.", path=file.path) from error
