"""A mirror: a bare git repository with only the requested branches and tags of a remote repository.

One mirror per library, shared by all its versions: git fetches each commit without its history, and reads files from it
without a checkout. git prompts for nothing, runs no hook, helper or submodule, and uses only a few protocols.

All databases of a user share the mirrors. One process at a time fetches into a mirror; nothing in it is deleted while
another process reads. Fetching again repairs a mirror that a killed fetch or a failed disk has damaged.
"""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree, which
from typing import IO, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from kebab.core.addresses import shown_address, without_credentials, without_password
from kebab.core.errors import SourceError, file_errors
from kebab.core.files import UMASK, lock_file, make_file, make_folder
from kebab.core.ports import TreeFile

PASSWORD_HINT = "A password is not kept: put it into ~/.netrc, or run kb lib add with it in the address again."
_PROTOCOLS = ("https", "http", "ssh", "git", "file")
_SCP_LIKE = re.compile(r"[\w.+-]+@[\w.-]+:(?!//).+")
_REF = re.compile(r"(?![-./]|@$)(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|\.$|/$|/\.))[^\x00-\x20\x7f~^:?*\[\\]{1,255}")
"""Names of tags and branches that git accepts and cannot mistake for an option."""
_IN_USER = "%:!$&'()*+,;=-._~"
"""Characters that need no quoting before the @ of an address; git takes another @ for the end of the password."""
_NO_SUCH_REF = "couldn't find remote ref"
_POLL_S = 0.2
_DEFAULT = "refs/kebab/default"
_DAMAGED = "kebab-damaged"
"""The name of a file that marks a mirror as damaged, so that it is not used again."""
_LEFT_BEHIND = ("**/*.lock", "gc.pid", "gc.log", "objects/**/tmp_*", "objects/incoming-*")
"""Files that a killed git leaves in a repository."""
_KILLED_WITH_PARENT = 'exec 3<&0 </dev/null; (read -r _ <&3; kill -9 0) >/dev/null 2>&1 & exec git "$@" 3<&-'
"""A shell command that runs git, and kills it when the pipe at its input is closed, as when this process is killed."""
_CONFIG: dict[str, str] = {
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

_HELPER = '!f() { test "$1" = get && printf "username=%s\npassword=%s\n" "$KEBAB_GIT_NAME" "$KEBAB_GIT_PASSWORD"; }; f'
"""A credential helper with the name and password from its environment, because every user can read arguments."""
_UNDELTAED = "--upload-pack=git -c pack.window=0 upload-pack"
"""Turns off delta compression for a repository on this machine, where it saves nothing but is most of the work."""


class FetchLimits(NamedTuple):
    """Limits of one download."""

    seconds: float
    megabytes: float


class _TooMuch(SourceError):
    """Raised when a fetch exceeds the size limit."""


class _Failed(SourceError):
    """Raised when git ends with an error."""


class GitTree:
    """The files of one commit without links and submodules. While it exists, nothing in the mirror is deleted."""

    def __init__(self, mirror: GitMirror, commit: str, held: int) -> None:
        self.commit = commit
        self._mirror = mirror
        weakref.finalize(self, os.close, held)

    def files(self) -> list[TreeFile]:
        try:
            listed = self._mirror.run("ls-tree", "-r", "-z", "--long", "--full-tree", self.commit)
        except _Failed:
            self._mirror.mark_damaged()
            raise
        return [file for entry in listed.split(b"\0") if entry and (file := _tree_file(entry)) is not None]

    @contextmanager
    def reading(self) -> Iterator[BlobReader]:
        process = self._mirror.open_process("cat-file", "--batch")
        try:
            yield BlobReader(process, self._mirror)
        finally:
            _stop(process)


class BlobReader:
    """Reads files of a tree from one git process."""

    def __init__(self, process: subprocess.Popen[bytes], mirror: GitMirror) -> None:
        self._mirror = mirror
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
            if len(data) != int(head[2]) or self._answers.read(1) != b"\n":
                raise ValueError("broken off")
        except (OSError, ValueError) as error:
            self._mirror.mark_damaged()
            message = f"git could not read {file.path} in its own copy of the repository."
            raise SourceError(message, hint="Run kb lib refresh to fetch it anew.") from error
        return data


class GitMirror:
    def __init__(self, folder: Path, url: str, limits: FetchLimits) -> None:
        """A name and password in `url` are used, but neither stored nor passed as an argument."""
        self._folder = folder
        self._given = checked_url(url)
        self._url = without_password(self._given)
        self._limits = limits
        self._ends: float | None = None
        """When the current fetch must be over, however many git commands it takes."""

    def tags(self) -> list[str]:
        listed = self.run("ls-remote", "--tags", "--refs", "--", self._url, local=False).decode("utf-8", "replace")
        return [line.partition("\trefs/tags/")[2] for line in listed.splitlines() if "\trefs/tags/" in line]

    def fetch_default(self) -> GitTree:
        """Fetches the checked-out commit of the remote repository, usually that of its default branch."""
        return self._fetched("HEAD", _DEFAULT, "branch to read", hint="Name one with --branch.")

    def fetch_branch(self, branch: str) -> GitTree:
        return self._fetched(f"refs/heads/{checked_ref(branch)}", _DEFAULT, f"branch {branch}")

    def fetch_tag(self, tag: str) -> GitTree:
        reference = f"refs/tags/{checked_ref(tag)}"
        return self._fetched(reference, reference, f"tag {tag}")

    def mark_damaged(self) -> None:
        with suppress(OSError):
            make_file(self._folder / _DAMAGED)

    def _fetched(self, theirs: str, ours: str, called: str, hint: str = "Look at its tags and branches.") -> GitTree:
        with _fetch_lock(self._folder, self._limits.seconds) as lock:
            self._ends = time.monotonic() + self._limits.seconds
            try:
                self._fetch(f"+{theirs}:{ours}", lock)
                return GitTree(self, self._commit(ours, called), _lock(self._folder, "reading", shared=True))
            except _TooMuch:
                _delete(self._folder)  # a fetch with a higher limit starts anew
                raise
            except _Failed as error:
                if _NO_SUCH_REF in error.message:
                    raise SourceError(f"{shown_address(self._url)} has no {called}.", hint=hint) from error
                raise
            finally:
                self._ends = None

    def _commit(self, reference: str, called: str) -> str:
        """The commit of a reference; raises SourceError if a tag names a file or a folder instead."""
        try:
            return self.run("rev-parse", "--verify", f"{reference}^{{commit}}").decode().strip()
        except _Failed as error:
            message = f"{shown_address(self._url)} has a {called}, but it leads to no commit."
            raise SourceError(message, hint="Name one that does: git tag lists them.") from error

    def _fetch(self, refspec: str, lock: int) -> None:
        """Fetches into the existing mirror, or into a new one if that fails."""
        was_there = self._is_usable()
        if not was_there:
            self._make("sha1")
        before = _megabytes(self._folder)
        try:
            self._fetch_once(refspec, lock)
        except (_Failed, _TooMuch) as error:
            if _NO_SUCH_REF in error.message:
                raise
            self._fetch_anew(refspec, lock, error, was_there)
        else:
            if before < (now := _megabytes(self._folder)) and now > self._limits.megabytes / 2:
                # Drops old commits of branches that have moved on, unless another process reads.
                with suppress(BlockingIOError, SourceError), _unread_mirror(self._folder):
                    self.run("gc", "--prune=now", "--quiet")

    def _fetch_anew(self, refspec: str, lock: int, error: SourceError, was_there: bool) -> None:
        """Fetches into a new mirror; raises `error` if the remote does not answer or a new mirror has just failed."""
        try:
            their_format = self._object_format()
        except SourceError:
            raise error from None
        if (not was_there and their_format == "sha1") or not _delete(self._folder):
            raise error
        self._make(their_format)
        self._fetch_once(refspec, lock)

    def _fetch_once(self, refspec: str, lock: int) -> None:
        options = ["--depth=1", "--no-tags", "--force", "--quiet", "--no-write-fetch-head"]
        if self._url.startswith("file:"):
            options.append(_UNDELTAED)
        self.run("fetch", *options, "--", self._url, refspec, held=lock)

    def _is_usable(self) -> bool:
        """Whether the mirror is usable. First removes what a killed git left, safe under the lock for fetching."""
        for pattern in _LEFT_BEHIND:
            for left in list(self._folder.glob(pattern)):
                _remove(left)
        if not (self._folder / "HEAD").is_file() or (self._folder / _DAMAGED).exists():
            return False
        try:
            return self.run("rev-parse", "--is-bare-repository").strip() == b"true"
        except _Failed:
            return False

    def _make(self, object_format: str) -> None:
        """Makes an empty mirror, completely or not at all."""
        if not _delete(self._folder):
            message = f"The copy of {shown_address(self._url)} is damaged, and another process reads it."
            raise SourceError(message, hint="Try again when that one has finished.")
        unfinished = self._folder.with_name(f"{self._folder.name}.new")
        rmtree(unfinished, ignore_errors=True)
        form = () if object_format == "sha1" else (f"--object-format={object_format}",)
        self.run("init", "--bare", "--quiet", "--template=", *form, "--", str(unfinished), local=False)
        unfinished.rename(self._folder)

    def _object_format(self) -> str:
        """The object format of the remote repository, by the length of its ids."""
        first = self.run("ls-remote", "--", self._url, local=False).partition(b"\t")[0]
        return "sha256" if len(first) == 64 else "sha1"

    def run(self, *arguments: str, local: bool = True, held: int | None = None) -> bytes:
        """Runs git and returns its output; raises SourceError if it fails or takes too long. With `held`, the lock for
        fetching, also if the mirror gets too large.
        """
        ours, theirs = os.pipe()
        kept = () if held is None else (held,)
        try:
            process = self.open_process(*arguments, local=local, errors=subprocess.PIPE, lifeline=ours, kept=kept)
            output, errors = self._wait_for(process, limits_size=held is not None)
        finally:
            os.close(ours)
            os.close(theirs)
        if process.returncode != 0:
            message = f"git {arguments[0]} failed for {shown_address(self._url)}: {_reason(errors, self._given)}."
            raise _Failed(message, hint=f"Check the address. {PASSWORD_HINT}")
        return output

    def _wait_for(self, process: subprocess.Popen[bytes], *, limits_size: bool) -> tuple[bytes, bytes]:
        """Returns the output and errors of a process; stops it if it takes too long or the mirror gets too large."""
        limits = self._limits
        ends = self._ends or time.monotonic() + limits.seconds
        try:
            while True:
                output = None
                with suppress(subprocess.TimeoutExpired):
                    output = process.communicate(timeout=_POLL_S)
                if output is None and time.monotonic() > ends:
                    hint = "Raise the setting library.fetch_seconds if that is to be expected."
                    raise SourceError(f"git was stopped: it took longer than {limits.seconds:g} seconds.", hint=hint)
                if limits_size and _megabytes(self._folder) > limits.megabytes:
                    hint = "Raise the setting library.fetch_mb if that is to be expected."
                    raise _TooMuch(f"git was stopped: it brought more than {limits.megabytes:g} MB.", hint=hint)
                if output is not None:
                    return output
        except BaseException:
            _stop(process)
            raise

    def open_process(
        self,
        *arguments: str,
        local: bool = True,
        errors: int = subprocess.DEVNULL,
        lifeline: int | None = None,
        kept: tuple[int, ...] = (),
    ) -> subprocess.Popen[bytes]:
        """Starts git, which is killed when the pipe `lifeline` is closed. git keeps the locks `kept` until it ends."""
        own = [part for key, value in _CONFIG.items() for part in ("-c", f"{key}={value}")]
        place = ["--git-dir", str(self._folder)] if local else []
        environment = _environment()
        if self._given != self._url:
            parts = urlsplit(self._given)
            host = parts.netloc.rpartition("@")[2]
            own += ["-c", f"credential.{parts.scheme}://{host}.helper={_HELPER}"]
            environment["KEBAB_GIT_NAME"] = unquote(parts.username or "")
            environment["KEBAB_GIT_PASSWORD"] = unquote(parts.password or "")
        if which("git") is None:
            raise SourceError("git is not installed.", hint="Install git, or add a folder instead of a repository.")
        return subprocess.Popen(
            [*(["git"] if lifeline is None else ["sh", "-c", _KILLED_WITH_PARENT, "git"]), *own, *place, *arguments],
            stdin=subprocess.PIPE if lifeline is None else lifeline,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            umask=UMASK,
            pass_fds=kept,
            start_new_session=True,  # so that all processes it starts end with it
        )


@contextmanager
def _fetch_lock(folder: Path, seconds: float) -> Iterator[int]:
    """Holds the lock for fetching into this mirror. The operating system releases it with its process."""
    ends = time.monotonic() + seconds
    lock = None
    while lock is None:
        try:
            lock = _lock(folder, "fetching")
        except BlockingIOError:
            if time.monotonic() > ends:
                message = f"Another process has been fetching this repository for longer than {seconds:g} seconds."
                hint = "Wait for it to finish, or raise the setting library.fetch_seconds."
                raise SourceError(message, hint=hint) from None
            time.sleep(_POLL_S / 4)
    try:
        yield lock
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)  # releases it even if a killed git has not ended yet
        os.close(lock)


@contextmanager
def _unread_mirror(folder: Path) -> Iterator[None]:
    """Locks the mirror while no process reads it, else BlockingIOError. The caller holds the lock for fetching."""
    lock = _lock(folder, "reading")
    try:
        yield
    finally:
        os.close(lock)


def _lock(folder: Path, name: str, *, shared: bool = False) -> int:
    """Locks a file beside the mirror and returns its descriptor; BlockingIOError if another process has the lock."""
    path = folder.with_name(f"{folder.name}.{name}")
    with file_errors(path, "cannot be written", "Check its permissions."):
        make_folder(path.parent)
        lock = lock_file(path, shared=shared)
    if lock is None:
        raise BlockingIOError
    return lock


def _delete(folder: Path) -> bool:
    """Deletes the mirror, under the lock for fetching. False while another process reads it."""
    try:
        with _unread_mirror(folder):
            rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return False
    return not folder.exists()


def forget(folder: Path) -> bool:
    """Deletes a mirror with its locks. False if it is in use."""
    if not folder.parent.is_dir():
        return True
    try:
        with _fetch_lock(folder, 0):
            gone = _delete(folder)
            if gone:
                for beside in ("new", "reading", "fetching"):
                    _remove(folder.with_name(f"{folder.name}.{beside}"))
            return gone
    except SourceError:
        return False


def _remove(path: Path) -> None:
    rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def checked_url(url: str) -> str:
    """The address in the form that git takes; raises SourceError if it is malformed or unsafe."""
    shown, example = f"{shown_address(url)!r}", "For example: https://github.com/owner/project"
    if any(ord(character) < 32 or ord(character) == 127 for character in url) or url.startswith("-"):
        raise SourceError(f"{shown} is not the address of a repository.", hint=example)
    if _SCP_LIKE.fullmatch(url):
        return url
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if a password with a slash is in its place
    except ValueError:
        hint = "In a password, / is written %2F, @ %40 and : %3A."
        raise SourceError(f"{shown} is not the address of a repository.", hint=hint) from None
    if parts.scheme not in _PROTOCOLS:
        hint = f"It begins with {', '.join(f'{name}://' for name in _PROTOCOLS)}."
        raise SourceError(f"{shown} is not an address that is read.", hint=hint)
    host, name = parts.hostname or "", parts.username or ""
    if parts.scheme != "file" and (not host or host.startswith("-") or name.startswith("-")):
        raise SourceError(f"{shown} names no host.", hint=example)
    user, given, host = parts.netloc.rpartition("@")
    return url.replace(parts.netloc, f"{quote(user, safe=_IN_USER)}@{host}", 1) if given and "@" in user else url


def checked_ref(name: str) -> str:
    if not _REF.fullmatch(name):
        message = f"{name!r} cannot be the name of a tag or a branch."
        raise SourceError(message, hint="git tag lists those of a repository.")
    return name


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
    """The environment of the user, except what lets git prompt or read another repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
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
    """The last message of git, on one line and without a password."""
    text = without_credentials(errors.decode("utf-8", "replace"), url)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    messages = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))] or lines or [""]
    before, colon, after = messages[-1].partition(":")
    return (after.strip() if colon else before)[:300].rstrip(".") or "it gave no reason"
