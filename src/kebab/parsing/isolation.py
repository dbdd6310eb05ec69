"""Parsers that run in a process of their own, within limits of time and memory (see `worker`)."""

from __future__ import annotations

import subprocess
import sys
import threading
from types import TracebackType

from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.ports import Parser
from kebab.parsing.registry import parser_for
from kebab.parsing.worker import from_answer, receive, send


class Parsers:
    """Parsers for files by their path. One worker process at a time, started when it is first needed."""

    def __init__(self, *, max_seconds: float, max_memory_mb: int, pdf_password: str = "") -> None:
        self._max_seconds = max_seconds
        self._max_memory_mb = max_memory_mb
        self._pdf_password = pdf_password
        self._worker: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Parsers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stop()

    def of(self, path: str) -> Parser:
        parser = parser_for(path)
        return _Isolated(self, parser) if parser.isolated else parser

    def parse_elsewhere(self, data: bytes, path: str) -> ParsedDocument:
        worker = self._running()
        assert worker.stdin is not None
        assert worker.stdout is not None
        in_time = threading.Event()
        watch = threading.Timer(self._max_seconds, _kill, (worker, in_time))
        watch.start()
        try:
            send(worker.stdin, {"path": path, "pdf_password": self._pdf_password}, data)
            header, body = receive(worker.stdout)
        except (EOFError, OSError, ValueError) as error:
            self._stop()
            raise self._ended(in_time) from error
        finally:
            watch.cancel()
        if "error" in header:
            message, reason, hint = header["error"]
            raise ParseError(message, reason=reason, hint=hint)
        return from_answer(header, body)

    def _ended(self, killed: threading.Event) -> ParseError:
        if killed.is_set():
            return ParseError(
                f"Reading it took longer than {self._max_seconds:g} seconds.", reason="too_costly", hint="Raise ingest.max_seconds."
            )
        return ParseError("Its parser broke down over it.", reason="damaged", hint="Open it in its own program and save it again.")

    def _running(self) -> subprocess.Popen[bytes]:
        if self._worker is not None and self._worker.poll() is not None:
            self._stop()
        if self._worker is None:
            self._worker = subprocess.Popen(
                # -P: nothing from the folder one happens to be in.
                [sys.executable, "-P", "-m", "kebab.parsing.worker", str(self._max_memory_mb)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the ingest, which ends the worker in its own time
            )
        return self._worker

    def _stop(self) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        worker.kill()
        worker.wait()
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    continue  # what was not sent is not needed any more


def _kill(worker: subprocess.Popen[bytes], killed: threading.Event) -> None:
    killed.set()
    worker.kill()


class _Isolated:
    """A parser whose work is done elsewhere."""

    def __init__(self, parsers: Parsers, parser: Parser) -> None:
        self._parsers = parsers
        self.version = parser.version
        self.keeps_lines = parser.keeps_lines
        self.isolated = False  # it runs there already

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        return self._parsers.parse_elsewhere(data, path)
