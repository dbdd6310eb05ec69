"""The files of a library as they are now, wherever it comes from."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from urllib.parse import unquote, urlsplit

from kebab.config.settings import Settings
from kebab.core.errors import SourceError
from kebab.core.ports import FileTree
from kebab.sources.archive import ArchiveTree
from kebab.sources.folder_tree import FolderTree, SingleFile
from kebab.sources.git_mirror import GitMirror
from kebab.sources.origin import Origin
from kebab.sources.web import FetchLimits, fetch


def library_tree(origin: Origin, tag: str | None, branch: str | None, settings: Settings, cache: Path) -> FileTree:
    """Fetched, where it is not on this machine. `tag`, else `branch`, else the default branch, of a repository."""
    limits = FetchLimits(settings.library.fetch_seconds, settings.library.fetch_mb)
    if origin.kind == "git":
        name = sha256(origin.place.encode()).hexdigest()[:24]
        mirror = GitMirror(cache / "repositories" / f"{name}.git", origin.place, limits)
        return mirror.fetch_tag(tag) if tag is not None else mirror.fetch_branch(branch or mirror.default_branch())
    if origin.kind == "folder":
        return FolderTree(Path(origin.place), settings.ingest)
    name, data = _file(origin.place, limits)
    return ArchiveTree(origin.place, data) if origin.kind == "archive" else SingleFile(name, data)


def _file(place: str, limits: FetchLimits) -> tuple[str, bytes]:
    """Its name, and what is in it."""
    if "://" in place:
        return unquote(urlsplit(place).path).rpartition("/")[2], fetch(place, limits)
    path = Path(place)
    try:
        if path.stat().st_size > limits.megabytes * 2**20:
            raise SourceError(f"{path} is larger than {limits.megabytes:g} MB.", hint="Raise the setting library.fetch_mb.", path=place)
        return path.name, path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}.", hint="Check its name and permissions.", path=place) from error
