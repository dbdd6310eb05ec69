"""Ingests that were asked for over HTTP: one after the other, in a thread of their own, and what became of them."""

from __future__ import annotations

import time
from collections import deque
from datetime import UTC, datetime
from itertools import count
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Literal

from kebab.core.errors import Internal, KebabError, Locked, NotFound, TooMany
from kebab.interfaces.service import Service
from kebab.wire.errors import ErrorV1, error_v1
from kebab.wire.reports import IngestProgressV1, ingest_progress_v1, ingest_report_v1
from kebab.wire.serving import IngestJobsV1, IngestJobV1

_REMEMBERED = 100
_MOST_WAITING = 20
_FINAL = ("done", "failed", "interrupted")


class IngestJob:
    """One ingest; only its own thread changes it."""

    def __init__(self, job_id: str, paths: tuple[str, ...], name: str | None, embed: bool) -> None:
        self.job_id = job_id
        self.paths = paths
        self.name = name
        self.embed = embed
        self.state: Literal["queued", "running", "done", "failed", "interrupted"] = "queued"
        self.progress: IngestProgressV1 | None = None
        self._created_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._finished_at: str | None = None
        self._started = 0.0
        self._report: Any = None
        self._error: ErrorV1 | None = None

    @property
    def is_over(self) -> bool:
        return self.state in _FINAL

    def as_wire(self) -> IngestJobV1:
        return IngestJobV1(
            job_id=self.job_id,
            state=self.state,
            paths=list(self.paths),
            name=self.name,
            embed=self.embed,
            created_at=self._created_at,
            finished_at=self._finished_at,
            progress=self.progress,
            report=self._report,
            error=self._error,
        )

    def run(self, service: Service, stop: Event) -> None:
        """To its end, whatever that is; `stop` ends it between two files or batches of vectors, with all that is
        written kept.
        """
        self._started = time.perf_counter()
        if stop.is_set():
            self._end("interrupted")
            return

        def progress(event: str, **details: Any) -> None:
            if stop.is_set():
                raise _Stopped
            self._happened(event, details)

        self.state = "running"
        try:
            report = service.ingest(*self.paths, name=self.name, embed=self.embed, progress=progress)
        except _Stopped:
            done = service.kb.last_ingest
            self._report = ingest_report_v1(done, interrupted=True) if done is not None else None
            self._end("interrupted")
        except KebabError as error:
            self._error = error_v1(error)
            self._end("failed")
        except Exception as error:  # noqa: BLE001 - the boundary of this thread: a defect must be told
            self._error = error_v1(Internal.of(error))
            self._end("failed")
        else:
            self._report = ingest_report_v1(report)
            self._end("done")

    def _end(self, state: Literal["done", "failed", "interrupted"]) -> None:
        self._finished_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._happened(state, {})
        self.state = state

    def _happened(self, event: str, details: dict[str, Any]) -> None:
        self.progress = ingest_progress_v1(event, details, time.perf_counter() - self._started)


class IngestJobs:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._jobs: deque[IngestJob] = deque(maxlen=_REMEMBERED)
        self._waiting: SimpleQueue[IngestJob | None] = SimpleQueue()
        self._numbers = count(1)
        self._changing = Lock()
        self._stop = Event()
        self._thread: Thread | None = None

    def start(self, paths: tuple[str, ...], name: str | None, embed: bool) -> IngestJobV1:
        self._service.require_write()
        if self._stop.is_set():
            raise Locked("This server is stopping.", hint="Ask again once it runs: nothing was started.")
        with self._changing:
            if sum(job.state == "queued" for job in self._jobs) >= _MOST_WAITING:
                raise TooMany(f"{_MOST_WAITING} ingests are waiting already.", hint="Wait until one of them is done.")
            job = IngestJob(str(next(self._numbers)), paths, name, embed)
            self._jobs.append(job)
            if self._thread is None:
                self._thread = Thread(target=self._work, name="ingest", daemon=True)
                self._thread.start()
            self._waiting.put(job)
        return job.as_wire()

    def find(self, job_id: str) -> IngestJob:
        for job in self._jobs:
            if job.job_id == job_id:
                return job
        raise NotFound(
            f"There is no ingest {job_id}.",
            hint="See what there is at /api/v1/ingest; it is forgotten when the server stops.",
        )

    def all(self) -> IngestJobsV1:
        return IngestJobsV1(items=[job.as_wire() for job in reversed(self._jobs)])

    @property
    def is_running(self) -> bool:
        return any(not job.is_over for job in self._jobs)

    def begin_to_stop(self) -> None:
        """Has what runs end where nothing is half written; what waits is not begun."""
        self._stop.set()
        self._waiting.put(None)

    def stop(self) -> None:
        """The same, and waits for it."""
        self.begin_to_stop()
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        for job in iter(self._waiting.get, None):
            job.run(self._service, self._stop)
        self._service.kb.close()


class _Stopped(BaseException):
    """Raised inside an ingest to end it; no other code may take it for an error of a file."""
