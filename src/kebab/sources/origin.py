"""Finds and reads the origin of a library, the argument of `kb lib add`: a repository, folder, file or archive."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import unquote, urlsplit

from kebab.config.settings import IngestSettings, Settings
from kebab.core.addresses import shown_address, without_password
from kebab.core.errors import SourceError
from kebab.core.files import open_regular, read_regular
from kebab.core.libraries import OriginKind
from kebab.core.paths import file_stem
from kebab.core.ports import FileTree, TreeFile
from kebab.sources.archive import SUFFIXES, read_archive
from kebab.sources.folder import scan_folder
from kebab.sources.git_mirror import GitMirror, checked_ref, checked_url, forget
from kebab.sources.git_repository import SCP_LIKE, host_and_place
from kebab.sources.web import FetchLimits, checked_web_address, fetch

_NOT_IN_NAMES = re.compile(r"[^\w.+-]+")
_WEB_FILES = (".txt", ".md", ".mdx", ".rst", ".html", ".htm", ".ipynb")
_RELEASE = re.compile(r"(?P<name>.+?)[-_](?P<version>v?\d+(?:\.\d+)+(?:[-._+]?[A-Za-z0-9]+)*)")
EXPORTED = ".kebab"
"""The extension of files of kb lib export."""
_EXAMPLE = "For example: https://github.com/owner/project"
_LIBRARY_ID = re.compile(r"/[^/\s@]{1,200}/[^/\s@]{1,200}")


class Origin(NamedTuple):
    kind: OriginKind
    address: str
    """The address as given, with name and password; or an absolute path."""
    library_id: str
    name: str
    repository: str | None = None
    """The address of the git repository, without a password."""
    version: str | None = None
    """The version in the name of an archive: widget-1.2.tar.gz."""

    @property
    def place(self) -> str:
        """The address that is stored and shown: without a password."""
        return without_password(self.address)


def origin_of(given: str) -> Origin:
    if "://" not in given and not SCP_LIKE.fullmatch(given):
        return _local(Path(given).expanduser().absolute(), given)
    url = checked_url(given)
    if (kind := _kind_of_web_file(url)) is not None:
        return _web_file(checked_web_address(url), kind)
    parts = urlsplit(url)
    _, path = host_and_place(url)
    names = [_name(unquote(name)) for name in path.split("/") if name]
    if not names:
        raise SourceError(f"{shown_address(given)} names no repository.", hint=_EXAMPLE)
    owner = "local" if parts.scheme == "file" or len(names) < 2 else names[-2]
    repository = None if parts.scheme == "file" else shown_address(url)
    return Origin("git", url, f"/{owner}/{names[-1]}", names[-1], repository)


def _local(path: Path, given: str) -> Origin:
    if path.is_dir():
        is_git = (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())
        path = path.resolve()
        name = _name(path.name.removesuffix(".git"))
        if is_git:
            return Origin("git", path.as_uri(), f"/local/{name}", name)
        return Origin("folder", str(path), f"/local/{name}", name)
    if not path.is_file():
        raise SourceError(f"{given} is neither an address nor a file or folder here.", hint=_EXAMPLE, path=given)
    name, version = _name_and_version(path.name)
    kind: OriginKind = "archive" if _archive_suffix(path.name) else "file"
    kind = "export" if path.suffix.lower() == EXPORTED else kind
    return Origin(kind, str(path.resolve()), f"/local/{name}", name, version=version)


def _kind_of_web_file(url: str) -> OriginKind | None:
    """The kind of the file at a web address; None for the address of a repository."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return None
    if _archive_suffix(parts.path):
        return "archive"
    return "file" if parts.path.lower().endswith(_WEB_FILES) else None


def _web_file(url: str, kind: OriginKind) -> Origin:
    """The origin of a file on the web. An llms.txt is named after its host, because many sites have one."""
    parts = urlsplit(url)
    name, version = _name_and_version(unquote(parts.path).rpartition("/")[2])
    host = _name(parts.hostname or "web")
    return Origin(kind, url, f"/{host}/{name}", host if name.startswith("llms") else name, version=version)


def _archive_suffix(name: str) -> str:
    return next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), "")


def _name_and_version(file: str) -> tuple[str, str | None]:
    """The name of a library by the name of its file, and for an archive the version at the end of that name."""
    suffix = _archive_suffix(file)
    if not suffix:
        return _name(file_stem(file)), None
    stem = file[: len(file) - len(suffix)]
    release = _RELEASE.fullmatch(stem)
    return (_name(release["name"]), release["version"]) if release else (_name(stem), None)


def checked_id(library_id: str) -> str:
    is_id = _LIBRARY_ID.fullmatch(library_id) and library_id.isprintable()
    if not is_id or {".", ".."} & set(library_id.split("/")):
        raise SourceError(f"{library_id!r} cannot be the id of a library.", hint="It looks like /owner/project.")
    return library_id


def _name(text: str) -> str:
    return _NOT_IN_NAMES.sub("-", text).strip("-") or "library"


def library_tree(origin: Origin, tag: str | None, branch: str | None, settings: Settings, cache: Path) -> FileTree:
    """The files of an origin, fetched unless they are on this machine. Of a repository, the files of the tag, else of
    the branch, else of the default branch.
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
    """Raises SourceError, with similar tags as a hint, if a repository lacks one of these tags."""
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
    """A file tree outside of git, which needs no process to read files."""

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
