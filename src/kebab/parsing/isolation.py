"""Runs parsers in separate processes (see `worker`), several at once, with limits of time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError, only_parse_errors
from kebab.core.ports import Parser
from kebab.parsing.registry import parser_for
from kebab.parsing.worker import OUT_OF_MEMORY, from_answer, receive, send, too_much_memory

_MOST_WORKERS = 4
"""The single writer to the store cannot keep up with more."""
_EXIT_SECONDS = 2.0
"""How long a process whose pipe is closed may take to end and give its exit status."""
_FIRST_LOOK = 0.03
"""Seconds until a process is first checked; most files are parsed sooner."""
_NEXT_LOOK = 0.01
_NEAR_THE_LIMIT = 0.4
"""A process that crashed after using this share of its free memory counts as out of memory. Less than half, because
doubling a buffer fails at half, and memory was last read a moment before.
"""


class Limits(NamedTuple):
    """Time and memory that parsing one file may use, and the password to try on PDFs."""

    max_seconds: float
    max_memory_mb: int
    pdf_password: str = ""


class Parsers:
    """Gives the parser of a path. Owns the worker processes, which start when needed and end with the `with` block."""

    def __init__(self, limits: Limits, *, workers: int | None = None) -> None:
        self._limits = limits
        self._count = workers or max(1, min(_MOST_WORKERS, (os.cpu_count() or 1) - 1))
        self._pool: ThreadPoolExecutor | None = None
        self._idle: list[Worker] = []
        self._all: list[Worker] = []

    def __enter__(self) -> Parsers:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends all processes, also those that are parsing."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for worker in self._all:
                worker.end()
            self._pool.shutdown()
            for worker in self._all:
                worker.stop()

    def of(self, path: str) -> Parser:
        parser = parser_for(path)
        return _Isolated(self, parser) if parser.isolated else parser

    def begin(self, data: bytes, path: str) -> Callable[[], ParsedDocument]:
        """Starts parsing and returns a function that waits for the document, or raises the error."""
        if self._pool is None:  # its threads only wait for processes
            self._pool = ThreadPoolExecutor(self._count, thread_name_prefix="kebab-parser")
        return self._pool.submit(self._parse, data, path).result

    def _parse(self, data: bytes, path: str) -> ParsedDocument:
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = Worker(self._limits)
            self._all.append(worker)
        try:
            with only_parse_errors():
                return worker.parse(data, path)
        finally:
            self._idle.append(worker)


class Worker:
    """One worker process, which is started again after it ended."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.process: subprocess.Popen[bytes] | None = None
        self._ended = False

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        with _ProcessWatch(process, self.limits) as watch:
            try:
                send(process.stdin, {"path": path, "pdf_password": self.limits.pdf_password}, data)
                header, body = receive(process.stdout)
            except (EOFError, OSError, ValueError) as error:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_EXIT_SECONDS)
                self.stop()
                raise self._broken(watch, process.returncode) from error
        if "error" in header:
            message, reason, hint = header["error"]
            raise ParseError(message, reason=reason, hint=hint)
        return from_answer(header, body)

    def end(self) -> None:
        """Kills the process for good. Called from another thread: a `parse` that waits for an answer then fails."""
        self._ended = True
        if self.process is not None:
            self.process.kill()

    def _broken(self, watch: _ProcessWatch, status: int) -> ParseError:
        if watch.timed_out:
            message = f"Reading it took longer than {self.limits.max_seconds:g} seconds."
            return ParseError(message, reason="too_costly", hint="Raise ingest.max_seconds.")
        if status == OUT_OF_MEMORY or watch.saw_memory_run_out:
            return too_much_memory(self.limits.max_memory_mb)
        hint = "Open it in its own program and save it again."
        return ParseError("Its parser broke down over it.", reason="damaged", hint=hint)

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is not None and self.process.poll() is not None:
            self.stop()
        if self._ended:
            raise ParseError("The ingest has ended.", reason="damaged", hint="Run it again.")
        if self.process is None:
            self.process = subprocess.Popen(
                # -P: import nothing from the current folder
                [sys.executable, "-P", "-m", "kebab.parsing.worker", str(self.limits.max_memory_mb)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the ingest, which then ends the worker
            )
        return self.process

    def stop(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):  # unsent bytes are no longer needed
                    stream.close()


class _ProcessWatch:
    """Kills a process when its time is up, and records the most memory it used.

    A C library that gets no more memory crashes as with a damaged file, and the system does not tell how much memory a
    dead process had. So memory is read while the process runs; without /proc it is unknown.
    """

    def __init__(self, process: subprocess.Popen[bytes], limits: Limits) -> None:
        self.timed_out = False
        self._process = process
        self._ends = time.monotonic() + limits.max_seconds
        self._limit = limits.max_memory_mb << 20
        self._before = self._most = _memory_of(process.pid)
        self._over = threading.Event()

    def __enter__(self) -> _ProcessWatch:
        threading.Thread(target=self._look, daemon=True, name="kebab-watch").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    @property
    def saw_memory_run_out(self) -> bool:
        return self._most - self._before >= _NEAR_THE_LIMIT * (self._limit - self._before) > 0

    def _look(self) -> None:
        pause = _FIRST_LOOK
        while not self._over.wait(max(0.0, min(pause, self._ends - time.monotonic()))):
            if time.monotonic() >= self._ends:
                self.timed_out = True
                self._process.kill()
                return
            self._most = max(self._most, _memory_of(self._process.pid))
            pause = _NEXT_LOOK


def _memory_of(pid: int) -> int:
    """The address space of a process in bytes, which the memory limit counts; 0 if unknown."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class _Isolated:
    """A parser that runs in a worker."""

    def __init__(self, parsers: Parsers, parser: Parser) -> None:
        self.version = parser.version
        self.keeps_lines = parser.keeps_lines
        self.isolated = False  # its `parse` already uses a worker
        self.begin = parsers.begin

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        return self.begin(data, path)()
