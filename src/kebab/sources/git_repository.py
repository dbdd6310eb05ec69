"""The git repository a folder belongs to: its name, the branch and the commit that are checked out.

Read from git's own files, without running git: it may not be installed, and it runs what a repository tells it to.
Whatever is missing, damaged or in a form not known here is simply not told; no file of a repository can make this fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from kebab.core.documents import Repository
from kebab.core.files import read_regular

_MOST_BYTES = 1 << 20
"""Of a file of git's: `config` and the like are small, and what is longer is none of them."""
_MOST_PACKED_REFS = 1 << 26
_MOST_STEPS = 5
"""From one reference to the next."""
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NAME = re.compile(r"[\w.+-]{1,255}")
"""Of a repository in a url. Whatever has other characters may be a password, and is not kept."""
_SECTION = re.compile(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]')
_BRANCHES = "refs/heads/"


class _GitFolder(NamedTuple):
    work_tree: Path
    own: Path
    """HEAD is here."""
    shared: Path
    """`config` and branches are here: the same, except in a linked work tree."""


def repository_of(folder: Path) -> Repository | None:
    """Of the innermost work tree that holds the folder; None outside of any."""
    for place in (folder, *folder.parents):
        with suppress(OSError, ValueError):  # no permission, a loop of links, a NUL in a name
            found = _git_folder(place)
            if found is not None:
                return _described(found)
    return None


def checked_out(folder: Path) -> object:
    """Another value whenever another branch or commit may be checked out; read often, so it follows no more than it has
    to.
    """
    for place in (folder, *folder.parents):
        with suppress(OSError, ValueError):
            found = _git_folder(place)
            if found is not None:
                head = _text_of(found.own / "HEAD").strip()
                reference = _reference_in(head)
                kept_in = (
                    ()
                    if reference is None
                    else (found.own / reference, found.shared / reference, found.shared / "packed-refs")
                )
                return found.own, head, tuple(_time_of(file) for file in kept_in)
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


def _described(git: _GitFolder) -> Repository:
    head = _text_of(git.own / "HEAD").strip()
    reference = _reference_in(head)
    branch = reference.removeprefix(_BRANCHES) if reference and reference.startswith(_BRANCHES) else None
    if branch == ".invalid":  # what stands there for older programs when references are kept in another format
        branch = None
    name = _name_in_url(_origin_url(_text_of(git.shared / "config")))
    return Repository(name or git.work_tree.name or "root", branch, _commit_of(git, head))


def _commit_of(git: _GitFolder, value: str) -> str | None:
    """Follows references until one holds a commit; a branch without commits leads nowhere."""
    for _ in range(_MOST_STEPS):
        if _COMMIT.fullmatch(value):
            return value
        reference = _reference_in(value)
        if reference is None:
            return None
        loose = _text_of(git.own / reference).strip() or _text_of(git.shared / reference).strip()
        value = loose or _packed(git.shared / "packed-refs", reference)
    return None


def _reference_in(value: str) -> str | None:
    """The reference that `ref: refs/heads/main` names; nothing that would lead out of the folder of git."""
    key, _, name = value.partition(":")
    name = name.strip()
    inside = name.startswith("refs/") and ".." not in name.split("/") and "\0" not in name
    return name if key == "ref" and inside else None


def _packed(path: Path, reference: str) -> str:
    """A line is a commit and the reference it belongs to; others are comments, or tell more of the line before."""
    with suppress(OSError):
        for line in read_regular(path, _MOST_PACKED_REFS).decode("utf-8", "replace").splitlines():
            commit, _, name = line.strip().partition(" ")
            if name == reference:
                return commit
    return ""


def _origin_url(config: str) -> str:
    section = ("", "")
    for line in _config_lines(config):
        if match := _SECTION.match(line):
            section = (match[1].lower(), match[2] or "")
            line = line[match.end() :].strip()  # a key may follow on the same line
        key, _, value = line.partition("=")
        if section == ("remote", "origin") and key.strip().lower() == "url":
            return re.split(r"\s[#;]", value.strip())[0].strip().strip('"').replace("\\\\", "\\")
    return ""


def _config_lines(config: str) -> Iterator[str]:
    """Without comments; a line may go on after a backslash."""
    for line in config.replace("\\\r\n", "").replace("\\\n", "").splitlines():
        if line.strip() and line.strip()[0] not in "#;":
            yield line.strip()


def _name_in_url(url: str) -> str | None:
    """The last part of its path without .git. Only that is kept: a url may hold a user's name, a password or a token."""
    try:
        path = unquote(urlsplit(url).path) if "://" in url else url
    except ValueError:
        return None
    path = path.rstrip("/\\").removesuffix("/.git").removesuffix(".git")
    name = re.split(r"[/\\:]", path)[-1]
    return name if _NAME.fullmatch(name) and name.strip(".") else None


def _text_of(path: Path) -> str:
    """Empty where there is no such file. A pipe or device, which could keep us waiting, is none."""
    with suppress(OSError, ValueError):
        return read_regular(path, _MOST_BYTES).decode("utf-8", "replace")
    return ""


def _time_of(path: Path) -> tuple[int, int] | None:
    with suppress(OSError, ValueError):
        status = path.stat()
        return status.st_ino, status.st_mtime_ns
    return None
