"""`kb` as a process of its own, without the time that a fresh interpreter takes to import everything.

One process per worker imports the package and waits; for each command it forks a process that gets the arguments, the
environment, the working folder and the pipes of the command, and runs `python -m kebab` in it. A command that needs a
fresh interpreter (a variable such as PYTHONHASHSEED, something to do before it starts) gets one.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import kebab

SERVERS = ("kebab.interfaces.http.", "kebab.interfaces.mcp.")  # imported for the first command that is a server
_LENGTH = 8


def run_kb(
    arguments: Sequence[str | bytes | Path],
    *,
    input: bytes,
    timeout: float = 60,
    **options: Any,
) -> subprocess.CompletedProcess[bytes]:
    """What `subprocess.run([python, "-m", "kebab", *arguments], …)` gives, where permission bits hold even for root."""
    options |= dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with start_kb(arguments, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def start_kb(
    arguments: Sequence[str | bytes | Path],
    *,
    env: Mapping[str, str],
    before: Callable[[], object] | None = None,
    **options: Any,
) -> subprocess.Popen[Any]:
    """What `subprocess.Popen([python, "-m", "kebab", *arguments], …)` gives, where permission bits hold even for root."""
    command = [sys.executable, "-m", "kebab", *arguments]
    if before or _interpreter(env) != _interpreter(os.environ):
        return subprocess.Popen(command, env=env, preexec_fn=before or obey_permission_bits, **options)
    return _ForkedProcess(command, env=env, **options)


class _ForkedProcess(subprocess.Popen[Any]):
    """A process that is no child of this one: its parent says which it is, and how it ended."""

    def _execute_child(
        self,
        args: Any,
        _executable: Any,
        _preexec_fn: Any,
        _close_fds: Any,
        _pass_fds: Any,
        cwd: Any,
        env: Any,
        _startupinfo: Any,
        _creationflags: Any,
        _shell: Any,
        *rest: int,
    ) -> None:
        pipes = rest[:6]
        for_process = [end if end != -1 else standard for standard, end in enumerate((pipes[0], pipes[3], pipes[5]))]
        request = json.dumps(
            {
                "arguments": [os.fsdecode(argument) for argument in args[3:]],
                "environment": dict(env),
                "folder": os.fsdecode(cwd or Path.cwd()),
            }
        ).encode()
        self._parent = socket.socket(socket.AF_UNIX)
        self._parent.connect(_waiting_process())
        socket.send_fds(self._parent, [len(request).to_bytes(_LENGTH, "big")], for_process)
        self._parent.sendall(request)
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]
        self.pid = int.from_bytes(_exactly(self._parent, _LENGTH), "big")
        self._child_created = True

    def _internal_poll(self, **_of_the_interpreter: Any) -> int | None:
        if self.returncode is None and select.select([self._parent], [], [], 0)[0]:
            self._wait(None)
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            self._parent.settimeout(timeout)
            try:
                self.returncode = int.from_bytes(_exactly(self._parent, _LENGTH), "big", signed=True)
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self._parent.close()
        return self.returncode


def kb_command() -> list[str]:
    """A program that runs its arguments as `kb` does, for a shell: what it starts ends before it does."""
    return [sys.executable, "-IS", str(Path(__file__).with_name("forked_kb_command.py")), _waiting_process()]


def obey_permission_bits() -> None:
    """Root reads and writes everything; a program started without these two capabilities does not."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            libc.prctl(24, capability, 0, 0, 0)


def _interpreter(environment: Mapping[str, str]) -> dict[str, str]:
    """What an interpreter reads when it starts, except for the warnings, which are errors in every forked process."""
    decides = ("PYTHON", "LANG", "LC_", "LD_")
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(decides) and (name, value) != ("PYTHONWARNINGS", "error")
    }


def _exactly(connection: socket.socket, length: int) -> bytes:
    parts = b""
    while len(parts) < length:
        part = connection.recv(length - len(parts))
        if not part:
            raise AssertionError("The process that runs kb is gone.")
        parts += part
    return parts


_starting = threading.Lock()


def _waiting_process() -> str:
    """The address of the process of this worker that has everything imported."""
    with _starting:
        return _start()


@cache
def _start() -> str:
    address = str(Path(tempfile.mkdtemp(prefix="kb-"), "socket"))
    # Pipes, as the commands have: an interpreter looks at them once, when it starts.
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.forked_kb", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        cwd=Path(__file__).parent.parent,
        start_new_session=True,
        preexec_fn=obey_permission_bits,
    )
    assert process.stdin and process.stdout and process.stderr  # noqa: PT018  (for the type checker)
    if process.stdout.readline() != b"ready\n":
        raise AssertionError(process.stderr.read().decode())
    atexit.register(process.communicate)  # closes its stdin, at which it ends
    return address


def _become_a_command(address: str) -> None:
    """Returns in the process of a command, set up for it, and nowhere else."""
    ended, tell_ended = os.pipe()
    os.set_blocking(tell_ended, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(tell_ended)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(64)
    running: dict[int, socket.socket] = {}
    os.write(1, b"ready\n")
    while True:
        ready, _, _ = select.select([listening.fileno(), ended, 0], [], [])
        if 0 in ready:  # the worker is gone
            shutil.rmtree(Path(address).parent)
            os._exit(0)
        if ended in ready:
            os.read(ended, 1 << 16)
            _say_who_ended(running)
        if listening.fileno() in ready:
            connection, _ = listening.accept()
            length, ends, *_ = socket.recv_fds(connection, _LENGTH, 3)
            wanted = json.loads(_exactly(connection, int.from_bytes(length, "big")))
            if {"serve", "mcp"} & {*wanted["arguments"]}:
                _import_servers()
            pid = os.fork()
            if pid == 0:
                break
            for end in ends:
                os.close(end)
            running[pid] = connection
            connection.sendall(pid.to_bytes(_LENGTH, "big"))
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for standard, end in enumerate(ends):
        os.dup2(end, standard)
    for end in (ended, tell_ended, *ends):
        os.close(end)
    for held in (listening, connection, *running.values()):
        held.close()
    os.environ.clear()
    os.environ.update(wanted["environment"])
    time.tzset()
    os.chdir(wanted["folder"])
    sys.path[0] = wanted["folder"]
    sys.argv[1:] = wanted["arguments"]


def _say_who_ended(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with running.pop(pid) as connection, suppress(OSError):  # perhaps nobody waits any longer
            connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(_LENGTH, "big", signed=True))


def _import(wanted: Callable[[str], bool]) -> None:
    for module in walk_packages(kebab.__path__, "kebab."):
        if wanted(module.name) and module.name != "kebab.__main__":
            import_module(module.name)
    gc.freeze()


@cache
def _import_servers() -> None:
    _import(lambda name: name.startswith(SERVERS))


if __name__ == "__main__":
    _import(lambda name: not name.startswith(SERVERS))
    _become_a_command(sys.argv[1])
    try:
        runpy.run_module("kebab", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        # What an interpreter does at its end, except for clearing every object away: they are the memory of all.
        if isinstance(end.code, int):
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
            with suppress(OSError, ValueError):  # otherwise it ends below, as every interpreter that cannot write
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(end.code)
        raise
