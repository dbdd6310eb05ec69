"""A bare repository of our own that holds the states of somebody else's that were asked for, and nothing else of it.

One mirror per library, shared by all its versions: each state is fetched without its history, and read out of git's store without being
checked out. git is run for both. It asks nobody, runs no hook, helper or submodule, and speaks the few protocols it is allowed to.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import IO
from urllib.parse import urlsplit

from kebab.core.errors import SourceError
from kebab.core.ports import TreeFile
from kebab.sources.web import FetchLimits

_PROTOCOLS = ("https", "http", "ssh", "git", "file")
_SCP_LIKE = re.compile(r"[\w.+-]+@[\w.-]+:(?!//).+")
_REF = re.compile(r"(?![-./@])(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|\.$|/$|/\.))[^\x00-\x20\x7f~^:?*\[\\]{1,255}")
"""What git takes as the name of a tag or a branch, and cannot take for an option."""
_LOOK_S = 0.2
_DEFAULT = "refs/kebab/default"
_OURS: dict[str, str] = {
    "core.hooksPath": os.devnull,
    "credential.helper": "",
    "core.askPass": "",
    "core.fsmonitor": "false",
    "submodule.recurse": "false",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "transfer.fsckObjects": "false",
    "advice.detachedHead": "false",
    **{f"protocol.{name}.allow": "always" for name in _PROTOCOLS},
}


class GitTree:
    """The files of one commit. Links and submodules are left out: they lead elsewhere."""

    def __init__(self, mirror: GitMirror, commit: str) -> None:
        self.commit = commit
        self._mirror = mirror

    def files(self) -> list[TreeFile]:
        listed = self._mirror.run("ls-tree", "-r", "-z", "--long", "--full-tree", self.commit)
        return [file for entry in listed.split(b"\0") if entry and (file := _tree_file(entry)) is not None]

    @contextmanager
    def reading(self) -> Iterator[BlobReader]:
        process = self._mirror.open_process("cat-file", "--batch")
        try:
            yield BlobReader(process)
        finally:
            _stop(process)


class BlobReader:
    """Reads files of a tree, one after the other, by a process that stays."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._requests: IO[bytes] = process.stdin
        self._answers: IO[bytes] = process.stdout

    def read(self, file: TreeFile) -> bytes:
        try:
            self._requests.write(f"{file.key}\n".encode())
            self._requests.flush()
            head = self._answers.readline().split()
            if len(head) != 3 or head[1] != b"blob":
                raise ValueError("not a file")
            data = self._answers.read(int(head[2]))
            self._answers.read(1)
        except (OSError, ValueError) as error:
            raise SourceError(
                f"git could not read {file.path} in its own copy of the repository.", hint="Run kb lib refresh to fetch it anew."
            ) from error
        return data


class GitMirror:
    def __init__(self, folder: Path, url: str, limits: FetchLimits) -> None:
        self._folder = folder
        self._url = checked_url(url)
        self._limits = limits

    def default_branch(self) -> str:
        """Its name, as the other side says."""
        said = self.run("ls-remote", "--symref", "--", self._url, "HEAD", local=False).decode("utf-8", "replace")
        match = re.search(r"^ref: refs/heads/(\S+)\tHEAD$", said, re.MULTILINE)
        if match is None:
            raise SourceError(f"{shown_url(self._url)} has no branch to read.", hint="Name one with --branch.")
        return match[1]

    def tags(self) -> list[str]:
        said = self.run("ls-remote", "--tags", "--refs", "--", self._url, local=False).decode("utf-8", "replace")
        return [line.partition("\trefs/tags/")[2] for line in said.splitlines() if "\trefs/tags/" in line]

    def fetch_branch(self, branch: str) -> GitTree:
        return self._fetched(f"refs/heads/{checked_ref(branch)}", _DEFAULT, f"branch {branch}")

    def fetch_tag(self, tag: str) -> GitTree:
        reference = f"refs/tags/{checked_ref(tag)}"
        return self._fetched(reference, reference, f"tag {tag}")

    def _fetched(self, theirs: str, ours: str, called: str) -> GitTree:
        if not (self._folder / "HEAD").is_file():
            self._folder.mkdir(parents=True, exist_ok=True)
            self.run("init", "--bare", "--quiet", "--template=", str(self._folder), local=False)
        try:
            self.run("fetch", "--depth=1", "--no-tags", "--force", "--quiet", "--no-write-fetch-head", "--", self._url, f"+{theirs}:{ours}")
        except SourceError as error:
            if "couldn't find remote ref" in error.message:
                raise SourceError(f"{shown_url(self._url)} has no {called}.", hint="Look at its tags and branches.") from error
            raise
        return GitTree(self, self.run("rev-parse", "--verify", f"{ours}^{{commit}}").decode().strip())

    def run(self, *arguments: str, local: bool = True) -> bytes:
        """What it printed; SourceError with what it said when it fails, takes too long, or fetches too much."""
        process = self.open_process(*arguments, local=local, errors=subprocess.PIPE)
        watched = _Watched(process, self._folder, self._limits)
        output, errors = watched.communicate()
        if process.returncode != 0:
            raise SourceError(
                f"git {arguments[0]} failed for {shown_url(self._url)}: {_reason(errors, self._url)}.",
                hint="Check the address, and that you may read it without typing a password.",
            )
        return output

    def open_process(self, *arguments: str, local: bool = True, errors: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        own = [part for key, value in _OURS.items() for part in ("-c", f"{key}={value}")]
        place = ["--git-dir", str(self._folder)] if local else []
        try:
            return subprocess.Popen(
                ["git", *own, *place, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=_environment(),
                start_new_session=True,  # so that whatever it starts ends with it
            )
        except FileNotFoundError as error:
            raise SourceError("git is not installed.", hint="Install git, or add a folder instead of a repository.") from error


class _Watched:
    """A process that is ended when it takes too long, or too much room."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path, limits: FetchLimits) -> None:
        self._process = process
        self._folder = folder
        self._limits = limits

    def communicate(self) -> tuple[bytes, bytes]:
        ends = time.monotonic() + self._limits.seconds
        while True:
            said = None
            try:
                said = self._process.communicate(timeout=_LOOK_S)
            except subprocess.TimeoutExpired:
                pass
            except BaseException:
                _stop(self._process)
                raise
            if said is None and time.monotonic() > ends:
                self._give_up(f"took longer than {self._limits.seconds:g} seconds", "library.fetch_seconds")
            if _megabytes(self._folder) > self._limits.megabytes:
                rmtree(self._folder, ignore_errors=True)  # it is fetched again by whoever allows more
                self._give_up(f"brought more than {self._limits.megabytes:g} MB", "library.fetch_mb")
            if said is not None:
                return said

    def _give_up(self, what: str, setting: str) -> None:
        _stop(self._process)
        raise SourceError(f"git was stopped: it {what}.", hint=f"Raise the setting {setting} if that is to be expected.")


def checked_url(url: str) -> str:
    """As git takes it; SourceError if it is none that git may be given."""
    if any(ord(character) < 32 or ord(character) == 127 for character in url) or url.startswith("-"):
        raise SourceError(f"{url!r} is not the address of a repository.", hint="For example: https://github.com/owner/project")
    if _SCP_LIKE.fullmatch(url):
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in _PROTOCOLS:
        raise SourceError(
            f"{url!r} is not an address that is read.", hint=f"It begins with {', '.join(f'{name}://' for name in _PROTOCOLS)}."
        )
    if parts.scheme != "file" and (not parts.hostname or parts.hostname.startswith("-") or (parts.username or "").startswith("-")):
        raise SourceError(f"{url!r} names no host.", hint="For example: https://github.com/owner/project")
    return url


def checked_ref(name: str) -> str:
    if not _REF.fullmatch(name):
        raise SourceError(f"{name!r} cannot be the name of a tag or a branch.", hint="git tag lists those of a repository.")
    return name


def shown_url(url: str) -> str:
    """Without the name and password it may have in it."""
    return re.sub(r"(?<=://)[^/@]*@", "", url)


def _tree_file(entry: bytes) -> TreeFile | None:
    about, _, name = entry.partition(b"\t")
    mode, kind, key, size = about.split()
    if kind != b"blob" or mode == b"120000":
        return None
    try:
        return TreeFile(name.decode("utf-8"), key.decode(), int(size))
    except UnicodeDecodeError:
        return None


def _environment() -> dict[str, str]:
    """The user's, but for what would let git ask questions or read another repository than ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {
        **kept,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "SSH_ASKPASS": "true",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oStrictHostKeyChecking=yes",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "LC_ALL": "C",
    }


def _stop(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    process.wait()


def _megabytes(folder: Path) -> float:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += (Path(path) / name).lstat().st_size
    return total / 2**20


def _reason(errors: bytes, url: str) -> str:
    """Its last words, on one line and without a password."""
    said = [line.strip() for line in errors.decode("utf-8", "replace").replace(url, shown_url(url)).splitlines() if line.strip()]
    told: Sequence[str] = [line for line in said if line.startswith(("fatal:", "error:", "remote:"))] or said
    return (told[-1].partition(":")[2].strip() if told and ":" in told[-1] else " ".join(told[-1:]))[:300].rstrip(
        "."
    ) or "it gave no reason"
