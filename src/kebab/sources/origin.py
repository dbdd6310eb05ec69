"""Finds and reads the origin of a library, the argument of `kb lib add`: a repository, folder, file or archive.

Archives (zip and tar) are read in memory: nothing is unpacked onto the disk. Limits count the unpacked bytes, not the
sizes that the archive states. Links, devices, and names that lead out of the archive are left out.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import re
import tarfile
import time
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from hashlib import sha256
from io import BytesIO
from netrc import NetrcParseError, netrc
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, Self, cast
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from kebab.config.settings import IngestSettings, Settings
from kebab.core.addresses import shown_address, without_credentials, without_password
from kebab.core.errors import SourceError, file_errors
from kebab.core.files import open_regular, read_regular
from kebab.core.libraries import OriginKind
from kebab.core.paths import file_stem
from kebab.core.ports import FileTree, TreeFile
from kebab.core.text import nfc
from kebab.http_client import Response, opened
from kebab.sources.folder import scan_folder
from kebab.sources.git_mirror import PASSWORD_HINT, FetchLimits, GitMirror, checked_ref, checked_url, forget
from kebab.sources.git_repository import SCP_LIKE, host_and_place

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
    with file_errors(path, "cannot be read", "Check its name and permissions."), open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > limits.megabytes * 2**20:
            message = f"{path} is larger than {limits.megabytes:g} MB."
            raise SourceError(message, hint="Raise the setting library.fetch_mb.", path=place)
        return path.name, file.read()


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
        with file_errors(file.path, "cannot be read", "Run the command again."):
            return read_regular(self._places[file.path], follow_link=self._follow_links)


# --- archives


SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
_MOST_FILES = 200_000
_MOST_BYTES = 1 << 30
_MOST_FILE_BYTES = 64 << 20
_MOST_UNPACKED_BYTES = 4 << 30
"""Includes files that are skipped because they are too large to be documentation: unpacking them takes time, too."""
_MOST_HEADER_BYTES = 1 << 20
_STEP = 1 << 20
_DRIVE = re.compile(r"[A-Za-z]:")
_PACKERS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open), (b"\x5d\0\0", lzma.open))
"""The first bytes of a compressed file, and the function that opens it."""
DAMAGED = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError),
    *(RuntimeError, MemoryError, OverflowError),
)
"""What reading a damaged archive may raise."""

_Member = tuple[str, IO[bytes] | None]
"""The name of a member and its content, which is None unless it is a regular file of moderate size."""


class _TooLarge(Exception):
    """Raised when an archive exceeds a limit; its text names the limit."""


def read_archive(name: str, packed: bytes) -> dict[str, bytes]:
    """The files of an archive by path. A single top folder, as in releases, is removed from the paths."""
    try:
        found = _read_all(BytesIO(packed))
    except _TooLarge as error:
        hint = "Unpack the part that is documentation and add that folder."
        raise SourceError(f"{name} holds more than {error}.", hint=hint, path=name) from error
    except DAMAGED as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        hint = "zip, tar, tar.gz, tar.bz2 and tar.xz are read."
        raise SourceError(f"{name} is no archive that can be read: {reason}.", hint=hint, path=name) from error
    folders = {path.partition("/")[0] if "/" in path else "" for path in found}
    shared = f"{folders.pop()}/" if len(folders) == 1 and "" not in folders else ""
    return {path[len(shared) :]: data for path, data in sorted(found.items())}


def path_inside(name: str) -> str | None:
    """The path in its usual form, or None if it leads out of the archive."""
    path = PurePosixPath(nfc(name.replace("\\", "/")))
    if path.is_absolute() or ".." in path.parts or not path.parts or "\0" in name or _DRIVE.match(path.parts[0]):
        return None
    return str(path)


def _read_all(packed: BytesIO) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    taken = 0
    members = _zip_members(packed) if zipfile.is_zipfile(packed) else _tar_members(packed)
    for number, (name, content) in enumerate(members):
        if number >= _MOST_FILES:
            raise _TooLarge(f"{_MOST_FILES:,} files")
        path = path_inside(name)
        data = _bounded(content) if path is not None and content is not None else None
        if path is None or data is None:
            continue
        taken += len(data)
        if taken > _MOST_BYTES:
            raise _TooLarge(f"{_MOST_BYTES >> 20:,} MB")
        found[path] = data
    return found


def _zip_members(packed: BytesIO) -> Iterator[_Member]:
    with zipfile.ZipFile(packed) as archive:
        for entry in archive.infolist():
            # The file type is a regular file, or unknown because the system that packed it does not say.
            is_plain = not entry.is_dir() and (entry.external_attr >> 28) in (0, 8)
            if is_plain and entry.file_size <= _MOST_FILE_BYTES:
                with archive.open(entry) as file:
                    yield entry.filename, file
            else:
                yield entry.filename, None


def _tar_members(packed: BytesIO) -> Iterator[_Member]:
    unpacked = _Unpacked(packed)
    with tarfile.open(fileobj=cast("IO[bytes]", unpacked), mode="r:") as archive:
        while (member := archive.next()) is not None:
            unpacked.header_bytes_left = None
            is_taken = member.isfile() and member.size <= _MOST_FILE_BYTES
            yield member.name, archive.extractfile(member) if is_taken else None
            archive.members.clear()  # type: ignore[attr-defined]  # it would keep them all
            unpacked.header_bytes_left = _MOST_HEADER_BYTES


class _Unpacked:
    """The unpacked bytes of a tar archive, read only forwards, with limits for all bytes and for one member's headers.

    tarfile reads a long name, a list of attributes or a map of holes before its size can be checked, and seeks back for
    ever at a negative size.
    """

    def __init__(self, packed: BytesIO) -> None:
        packed.seek(0)
        start = packed.read(8)
        packed.seek(0)
        unpacking = next((opened for begins, opened in _PACKERS if start.startswith(begins)), None)
        self._bytes = cast("IO[bytes]", unpacking(packed)) if unpacking else packed
        self.tell = self._bytes.tell
        self.header_bytes_left: int | None = _MOST_HEADER_BYTES
        """None while the content of a member is read."""

    def read(self, size: int) -> bytes:
        if self.header_bytes_left is not None:
            self.header_bytes_left -= size
            if self.header_bytes_left < 0:
                raise _TooLarge(f"{_MOST_HEADER_BYTES >> 20} MB of names and attributes for one file")
        _check_position(self.tell() + size)
        return self._bytes.read(size)

    def seek(self, position: int) -> int:
        if position < self.tell():
            raise tarfile.ReadError("a header leads back")
        _check_position(position)
        return self._bytes.seek(position)


def _check_position(position: int) -> None:
    if position > _MOST_UNPACKED_BYTES:
        raise _TooLarge(f"{_MOST_UNPACKED_BYTES >> 20:,} MB")


def _bounded(member: IO[bytes]) -> bytes | None:
    """The content of a member, or None if it is too large to be documentation."""
    parts, length = [], 0
    while part := member.read(_STEP):
        length += len(part)
        if length > _MOST_FILE_BYTES:
            return None
        parts.append(part)
    return b"".join(parts)


# --- files and facts from the web, fetched only when a command names them


_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MOST_REDIRECTS = 5
_QUIET_SECONDS = 30.0
"""The longest pause of a download before it counts as broken off."""
_MOST_FACT_BYTES = 4 << 20


class RepositoryFacts(NamedTuple):
    stars: int | None
    description: str | None


def fetch(url: str, limits: FetchLimits) -> bytes:
    """The bytes at an http or https address; SourceError if they cannot be fetched, take too long or are too large.

    A name and password in the address are sent to its host only, never to the target of a redirect.
    """
    ends = time.monotonic() + limits.seconds
    address, authorization = without_password(checked_web_address(url)), _authorization(url)
    try:
        for redirects_left in range(_MOST_REDIRECTS, -1, -1):
            with opened(
                "GET",
                address,
                headers={"Accept": "*/*", **authorization},
                seconds=ends - time.monotonic(),
                quiet_seconds=_QUIET_SECONDS,
            ) as response:
                if 200 <= response.status < 300:
                    return _body(response, url, limits)
                location = response.headers.get("Location")
                if response.status not in _REDIRECTS or location is None or not redirects_left:
                    raise _refused(url, response.status, response.reason)
            before, following = urlsplit(address), urlsplit(urljoin(address, location))
            if following.scheme not in ("http", "https"):
                raise _refused(url, response.status, "and leads to something that is not on the web")
            if (before.scheme, _host(before)) != (following.scheme, _host(following)):
                authorization = {}
            address = without_password(following.geturl())
    except (OSError, ValueError) as error:
        if time.monotonic() >= ends:
            message, hint = f"took longer than {limits.seconds:g} seconds", "Raise the setting library.fetch_seconds."
        else:
            reason = without_credentials(str(error), url).rstrip(".")
            message, hint = f"could not be fetched: {reason}", "Check the address and the network."
        raise SourceError(f"{_shown(url)} {message}.", hint=hint) from error
    raise AssertionError("unreachable")


def _body(response: Response, url: str, limits: FetchLimits) -> bytes:
    parts, length = [], 0
    for part in response.parts():
        length += len(part)
        parts.append(part)
        if length > limits.megabytes * 2**20:
            hint = "Raise the setting library.fetch_mb."
            raise SourceError(f"{_shown(url)} is larger than {limits.megabytes:g} MB.", hint=hint)
    return b"".join(parts)


def _refused(url: str, status: int, reason: str) -> SourceError:
    hint = PASSWORD_HINT if status in (401, 403) else "Check the address."
    return SourceError(f"{_shown(url)} answered {status} {without_credentials(reason, url)}.", hint=hint)


def repository_facts(owner: str, project: str, api: str, seconds: float) -> RepositoryFacts:
    """The stars and the description of a repository on GitHub; `api` is the address of its API."""
    address = f"{api.rstrip('/')}/repos/{quote(owner, safe='')}/{quote(project, safe='')}"
    said = fetch(address, FetchLimits(seconds, _MOST_FACT_BYTES / 2**20))
    try:
        found = json.loads(said)
        stars, description = found.get("stargazers_count"), found.get("description")
    except (ValueError, AttributeError, RecursionError) as error:
        hint = "Leave out --fetch-metadata, or give --stars."
        raise SourceError(f"{_shown(address)} did not answer what was expected.", hint=hint) from error
    text = " ".join(description.split()) if isinstance(description, str) else ""
    return RepositoryFacts(stars if type(stars) is int and stars >= 0 else None, text or None)


def checked_web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if a password with a slash is in its place
        is_one = parts.scheme in ("http", "https") and bool(parts.hostname) and url.isprintable() and " " not in url
    except ValueError:
        is_one = False
    if not is_one:
        hint = "For example: https://docs.example.org/llms.txt"
        raise SourceError(f"{_shown(url)!r} is not an address on the web.", hint=hint)
    return url


def _authorization(url: str) -> dict[str, str]:
    """The Authorization header with the name and password of an address or of ~/.netrc; empty without them."""
    parts = urlsplit(url)
    name, password = unquote(parts.username or ""), unquote(parts.password or "")
    if parts.username is None:
        name, password = _in_netrc(parts)
    if not name and not password:
        return {}
    return {"Authorization": f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"}


def _in_netrc(parts: SplitResult) -> tuple[str, str]:
    """The name and password that the user keeps for this host, as git and curl read them; empty without any."""
    with suppress(OSError, NetrcParseError, UnicodeDecodeError):
        if found := netrc().authenticators(parts.hostname or ""):
            return found[0], found[2] or ""
    return "", ""


def _host(parts: SplitResult) -> str:
    return parts.netloc.rpartition("@")[2]


def _shown(url: str) -> str:
    """The address without name, password and query, which may contain a key."""
    return re.split(r"[?#]", shown_address(url), maxsplit=1)[0]
