"""Finds the git repository of a folder with its branch and commit, and reads addresses of repositories.

Reads git's own files instead of running git, which may not be installed and runs commands that a repository configures.
Data that is missing, damaged or of an unknown form is left out and never raises an error.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from kebab.core.documents import Repository
from kebab.core.files import read_regular

_MOST_BYTES = 1 << 20
"""The most bytes that are read of a file of git: `config` and the like are small."""
_MOST_PACKED_REFS = 1 << 26
_MOST_STEPS = 5
"""How many references to follow."""
SCP_LIKE = re.compile(r"[\w.+-]+@(?P<host>[\w.-]+):(?P<path>.+)")
_COMMIT = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
_NAME = r"[\w.+-]{1,255}"
"""The name of a repository in a url. Text with other characters may be a password, and is not kept."""
_SECTION = r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]'
_BRANCHES = "refs/heads/"


class _GitFolder(NamedTuple):
    work_tree: Path
    own: Path
    """The folder with HEAD."""
    shared: Path
    """The folder with `config` and branches: the same, except in a linked work tree."""


def repository_of(folder: Path) -> Repository | None:
    """The repository of the innermost work tree that contains the folder; None outside of any."""
    git = _git_around(folder)
    if git is None:
        return None
    head = _text_of(git.own / "HEAD").strip()
    reference = _reference_in(head)
    branch = reference.removeprefix(_BRANCHES) if reference and reference.startswith(_BRANCHES) else None
    if branch == ".invalid":  # written for older programs when references are kept in another format
        branch = None
    name = _name_in_url(_origin_url(_text_of(git.shared / "config")))
    return Repository(name or git.work_tree.name or "root", branch, _commit_of(git, head))


def checked_out(folder: Path) -> object:
    """A value that changes whenever another branch or commit may be checked out. Called often, so it reads little."""
    git = _git_around(folder)
    if git is None:
        return None
    head = _text_of(git.own / "HEAD").strip()
    name = _reference_in(head)
    files = (git.own / name, git.shared / name, git.shared / "packed-refs") if name else ()
    return git.own, head, tuple(map(_time_of, files))


def source_url(repository: str | None, commit: str | None, path: str, lines: tuple[int, int] | None) -> str | None:
    """The web address of lines of a file on GitHub or GitLab; None for other hosts or without a commit."""
    host, place = host_and_place(repository or "")
    blob = {"github.com": "blob", "gitlab.com": "-/blob"}.get(host)
    if blob is None or commit is None:
        return None
    fragment = f"#L{lines[0]}-L{lines[1]}" if lines else ""
    return f"https://{host}/{place}/{blob}/{commit}/{quote(path)}{fragment}"


def same_repository(one: str, other: str) -> bool:
    """Whether two addresses differ only in .git, a final slash, a name and password, or ssh and https."""
    (host, place), (other_host, other_place) = host_and_place(one), host_and_place(other)
    return host == other_host and place.casefold() == other_place.casefold()


def host_and_place(url: str) -> tuple[str, str]:
    """The host of a repository and the path there, without .git and slashes around it."""
    scp = SCP_LIKE.fullmatch(url)
    parts = urlsplit(url)
    host, place = (scp["host"], scp["path"]) if scp else (parts.hostname or "", parts.path)
    return host.lower(), place.strip("/").removesuffix(".git")


def on_github(repository: str | None) -> tuple[str, str] | None:
    """Owner and project of a repository on GitHub; None for other addresses."""
    host, place = host_and_place(repository or "")
    parts = place.split("/")
    return (parts[0], parts[1]) if host == "github.com" and len(parts) == 2 and all(parts) else None


def _git_around(folder: Path) -> _GitFolder | None:
    for place in (folder, *folder.parents):
        with suppress(OSError, ValueError):  # no permission, a loop of links, a NUL in a name
            if git := _git_folder(place):
                return git
    return None


def _git_folder(place: Path) -> _GitFolder | None:
    own = place / ".git"
    if own.is_file():  # a linked work tree or a submodule
        key, _, target = _text_of(own).partition(":")
        if key != "gitdir" or not target.strip():
            return None
        own = place / target.strip()
    if not (own / "HEAD").is_file():
        return None
    shared = _text_of(own / "commondir").strip()
    return _GitFolder(place, own, own / shared if shared else own)


def _commit_of(git: _GitFolder, value: str) -> str | None:
    """The commit that a chain of references leads to; None for a branch without commits."""
    for _ in range(_MOST_STEPS):
        if re.fullmatch(_COMMIT, value):
            return value
        reference = _reference_in(value)
        if reference is None:
            return None
        loose = _text_of(git.own / reference).strip() or _text_of(git.shared / reference).strip()
        value = loose or _packed(git.shared / "packed-refs", reference)
    return None


def _reference_in(value: str) -> str | None:
    """The reference in `ref: refs/heads/main`; None if it leads out of the folder of git."""
    key, _, name = value.partition(":")
    name = name.strip()
    inside = name.startswith("refs/") and ".." not in name.split("/") and "\0" not in name
    return name if key == "ref" and inside else None


def _packed(path: Path, reference: str) -> str:
    """The commit of a reference in the file packed-refs, or an empty string."""
    for line in _text_of(path, _MOST_PACKED_REFS).splitlines():
        commit, _, name = line.strip().partition(" ")
        if name == reference:
            return commit
    return ""


def _origin_url(config: str) -> str:
    section = ("", "")
    for line in map(str.strip, config.replace("\\\r\n", "").replace("\\\n", "").splitlines()):
        if line.startswith(("#", ";")):
            continue
        if match := re.match(_SECTION, line):
            section = (match[1].lower(), match[2] or "")
            line = line[match.end() :].strip()  # a key may follow on the same line
        key, _, value = line.partition("=")
        if section == ("remote", "origin") and key.strip().lower() == "url":
            return re.split(r"\s[#;]", value.strip())[0].strip().strip('"').replace("\\\\", "\\")
    return ""


def _name_in_url(url: str) -> str | None:
    """The repository name in a url, or None. The rest of the url may contain a password or token and is not kept."""
    try:
        path = unquote(urlsplit(url).path) if "://" in url else url
    except ValueError:
        return None
    path = path.rstrip("/\\").removesuffix("/.git").removesuffix(".git")
    name = re.split(r"[/\\:]", path)[-1]
    return name if re.fullmatch(_NAME, name) and name.strip(".") else None


def _text_of(path: Path, most_bytes: int = _MOST_BYTES) -> str:
    """The text of a regular file; empty without one. A pipe or device could block."""
    with suppress(OSError, ValueError):
        return read_regular(path, most_bytes).decode("utf-8", "replace")
    return ""


def _time_of(path: Path) -> tuple[int, int] | None:
    with suppress(OSError, ValueError):
        status = path.stat()
        return status.st_ino, status.st_mtime_ns
    return None
