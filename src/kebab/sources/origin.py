"""The origin of a library by the argument of `kb lib add`: a repository, folder, file or archive, and a default name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from kebab.core.addresses import shown_address, without_password
from kebab.core.errors import SourceError
from kebab.core.libraries import OriginKind
from kebab.core.paths import file_stem
from kebab.sources.archive import SUFFIXES
from kebab.sources.git_mirror import checked_url
from kebab.sources.git_repository import SCP_LIKE, host_and_place
from kebab.sources.web import checked_web_address

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
    """As given, with name and password; or an absolute path."""
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
    """None for a repository."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https"):
        return None
    if _archive_suffix(parts.path):
        return "archive"
    return "file" if parts.path.lower().endswith(_WEB_FILES) else None


def _web_file(url: str, kind: OriginKind) -> Origin:
    """The host is a better name than llms.txt, which many sites have."""
    parts = urlsplit(url)
    name, version = _name_and_version(unquote(parts.path).rpartition("/")[2])
    host = _name(parts.hostname or "web")
    return Origin(kind, url, f"/{host}/{name}", host if name.startswith("llms") else name, version=version)


def _archive_suffix(name: str) -> str:
    return next((suffix for suffix in SUFFIXES if name.lower().endswith(suffix)), "")


def _name_and_version(file: str) -> tuple[str, str | None]:
    """The name of a library, and of an archive the version at the end of its name."""
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
