"""The files of a library as they are now, wherever it comes from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kebab.config.settings import Settings
from kebab.core.addresses import shown_address
from kebab.core.errors import SourceError
from kebab.core.files import open_regular
from kebab.core.ports import FileTree
from kebab.sources.archive import ArchiveTree
from kebab.sources.folder_tree import FolderTree, SingleFile
from kebab.sources.git_mirror import GitMirror, checked_ref, forget
from kebab.sources.origin import Origin
from kebab.sources.web import FetchLimits, fetch


def library_tree(origin: Origin, tag: str | None, branch: str | None, settings: Settings, cache: Path) -> FileTree:
    """Fetched, where it is not on this machine. `tag`, else `branch`, else the default branch, of a repository."""
    limits = _limits(settings)
    if origin.kind == "git":
        mirror = _mirror(origin, limits, cache)
        if tag is not None:
            return mirror.fetch_tag(tag)
        return mirror.fetch_branch(branch) if branch else mirror.fetch_default()
    if origin.kind == "folder":
        return FolderTree(Path(origin.place), settings.ingest)
    name, data = _file(origin.address, limits)
    return ArchiveTree(shown_address(origin.place), data) if origin.kind == "archive" else SingleFile(name, data)


def check_tags(origin: Origin, tags: Sequence[str], settings: Settings, cache: Path) -> None:
    """SourceError, with what may have been meant, when a repository does not have all of these."""
    if origin.kind != "git":
        return
    there = _mirror(origin, _limits(settings), cache).tags()
    missing = [tag for tag in tags if checked_ref(tag) not in there]
    if missing:
        from difflib import get_close_matches

        close = dict.fromkeys(name for tag in missing for name in get_close_matches(tag, there, n=2, cutoff=0.5))
        last = f"Its last tags: {', '.join(there[-5:])}." if there else "It has no tags."
        hint = f"Did you mean {' or '.join(close)}?" if close else last
        raise SourceError(f"{shown_address(origin.place)} has no tag {' and no tag '.join(missing)}.", hint=hint)


def forget_mirror(place: str, cache: Path) -> bool:
    """Deletes what was fetched of a repository; libraries that come from it fetch it again. False if it is just in use,
    and so left.
    """
    return forget(_mirror_folder(place, cache))


def _limits(settings: Settings) -> FetchLimits:
    return FetchLimits(settings.library.fetch_seconds, settings.library.fetch_mb)


def _mirror(origin: Origin, limits: FetchLimits, cache: Path) -> GitMirror:
    return GitMirror(_mirror_folder(origin.place, cache), origin.address, limits)


def _mirror_folder(place: str, cache: Path) -> Path:
    return cache / "repositories" / f"{sha256(place.encode()).hexdigest()[:24]}.git"


def _file(place: str, limits: FetchLimits) -> tuple[str, bytes]:
    """Its name, and what is in it."""
    if "://" in place:
        return unquote(urlsplit(place).path).rpartition("/")[2], fetch(place, limits)
    path = Path(place)
    try:
        with open_regular(path) as file:
            if os.fstat(file.fileno()).st_size > limits.megabytes * 2**20:
                raise SourceError(
                    f"{path} is larger than {limits.megabytes:g} MB.",
                    hint="Raise the setting library.fetch_mb.",
                    path=place,
                )
            return path.name, file.read()
    except OSError as error:
        raise SourceError(
            f"{path} cannot be read: {error.strerror}.", hint="Check its name and permissions.", path=place
        ) from error
