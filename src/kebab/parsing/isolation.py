"""Parsers that run in processes of their own, within limits of time and memory (see `worker`), several at once where
there are cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError, only_parse_errors
from kebab.core.ports import Parser
from kebab.parsing.process_watch import ProcessWatch
from kebab.parsing.registry import parser_for
from kebab.parsing.worker import OUT_OF_MEMORY, from_answer, receive, send, too_much_memory

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_MOST_WORKERS = 4
"""The one writer keeps up with no more."""
_LAST_WORDS = 2.0
"""Seconds in which a process whose pipe is closed has ended, and says how."""


class Limits(NamedTuple):
    """What one file may take."""

    max_seconds: float
    max_memory_mb: int
    pdf_password: str = ""


class Parsers:
    """Parsers for files by their path. The processes are started when they are first needed, and end with the `with`
    block.
    """

    def __init__(self, limits: Limits, *, workers: int | None = None) -> None:
        self._limits = limits
        self._count = workers or max(1, min(_MOST_WORKERS, (os.cpu_count() or 1) - 1))
        self._pool: ThreadPoolExecutor | None = None
        self._idle: list[Worker] = []
        self._all: list[Worker] = []

    def __enter__(self) -> Parsers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Whatever is still being parsed is not waited for."""
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
        """Starts parsing; what it returns waits for the end, and raises what went wrong."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            # Each thread only waits for a process.
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
    """One process, started again when it had to be killed."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.process: subprocess.Popen[bytes] | None = None
        self._ended = False

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        with ProcessWatch(process, self.limits.max_seconds, self.limits.max_memory_mb) as watch:
            try:
                send(process.stdin, {"path": path, "pdf_password": self.limits.pdf_password}, data)
                header, body = receive(process.stdout)
            except (EOFError, OSError, ValueError) as error:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LAST_WORDS)
                self.stop()
                raise self._broken(watch, process.returncode) from error
        if "error" in header:
            message, reason, hint = header["error"]
            raise ParseError(message, reason=reason, hint=hint)
        return from_answer(header, body)

    def end(self) -> None:
        """For good, from another thread: whoever waits for an answer hears that the process is gone."""
        self._ended = True
        if self.process is not None:
            self.process.kill()

    def _broken(self, watch: ProcessWatch, status: int) -> ParseError:
        if watch.was_too_late:
            seconds = f"{self.limits.max_seconds:g}"
            return ParseError(
                f"Reading it took longer than {seconds} seconds.", reason="too_costly", hint="Raise ingest.max_seconds."
            )
        if status == OUT_OF_MEMORY or watch.saw_memory_run_out:
            return too_much_memory(self.limits.max_memory_mb)
        return ParseError(
            "Its parser broke down over it.", reason="damaged", hint="Open it in its own program and save it again."
        )

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is not None and self.process.poll() is not None:
            self.stop()
        if self._ended:
            raise ParseError("The ingest has ended.", reason="damaged", hint="Run it again.")
        if self.process is None:
            self.process = subprocess.Popen(
                # -P: nothing from the folder one happens to be in.
                [sys.executable, "-P", "-m", "kebab.parsing.worker", str(self.limits.max_memory_mb)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the ingest, which ends the worker in its own time
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
                with suppress(OSError):  # what was not sent is not needed any more
                    stream.close()


class _Isolated:
    """A parser whose work is done elsewhere."""

    def __init__(self, parsers: Parsers, parser: Parser) -> None:
        self.version = parser.version
        self.keeps_lines = parser.keeps_lines
        self.isolated = False  # it runs there already
        self.begin = parsers.begin

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        return self.begin(data, path)()
