"""Runs the ingests that HTTP clients start, one after the other in a single thread, and keeps their outcomes."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from threading import Event, Lock
from typing import Any, Literal

from kebab.core.errors import Internal, Locked, NotFound, TooMany
from kebab.interfaces.service import Service
from kebab.wire.errors import error_v1
from kebab.wire.reports import IngestProgressV1, ingest_progress_v1, ingest_report_v1
from kebab.wire.serving import IngestJobsV1, IngestJobV1

_REMEMBERED = 100
_MOST_WAITING = 20
_FINAL = ("done", "failed", "interrupted")


class IngestJob:
    """One ingest. At each change its thread replaces `wire` as a whole, so other threads read a consistent state."""

    def __init__(self, job_id: str, paths: tuple[str, ...], name: str | None, embed: bool) -> None:
        unfinished = dict.fromkeys(("finished_at", "progress", "report", "error"))
        asked: dict[str, Any] = {"job_id": job_id, "paths": list(paths), "name": name, "embed": embed, **unfinished}
        self.wire = IngestJobV1(state="queued", created_at=datetime.now(UTC).isoformat(timespec="seconds"), **asked)
        self._started = 0.0

    @property
    def is_over(self) -> bool:
        return self.wire.state in _FINAL

    def run(self, service: Service, stop: Event) -> None:
        """Runs the ingest. Once `stop` is set, it ends between two files or batches of vectors and keeps these."""
        self._started = time.perf_counter()
        if stop.is_set():
            self._end("interrupted")
            return

        def progress(event: str, **details: Any) -> None:
            if stop.is_set():
                raise _Stopped
            self.wire = replace(self.wire, progress=self._progress(event, details))

        self.wire = replace(self.wire, state="running")
        wire = self.wire
        try:
            report = service.ingest(*wire.paths, name=wire.name, embed=wire.embed, progress=progress)
        except _Stopped:
            done = service.kb.last_ingest
            self._end("interrupted", report=ingest_report_v1(done, interrupted=True) if done is not None else None)
        except Exception as error:  # noqa: BLE001 - also a defect is reported in the job and must not end the thread
            self._end("failed", error=error_v1(Internal.of(error)))
        else:
            self._end("done", report=ingest_report_v1(report))

    def _end(self, state: Literal["done", "failed", "interrupted"], **outcome: Any) -> None:
        self.wire = replace(
            self.wire,
            state=state,
            finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
            progress=self._progress(state, {}),
            **outcome,
        )

    def _progress(self, event: str, details: dict[str, Any]) -> IngestProgressV1:
        return ingest_progress_v1(event, details, time.perf_counter() - self._started)


class IngestJobs:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._jobs: deque[IngestJob] = deque(maxlen=_REMEMBERED)
        self._numbers = count(1)
        self._changing = Lock()
        self._stop = Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ingest")

    def start(self, paths: tuple[str, ...], name: str | None, embed: bool) -> IngestJobV1:
        if self._stop.is_set():
            raise Locked("This server is stopping.", hint="Ask again once it runs: nothing was started.")
        with self._changing:
            if sum(job.wire.state == "queued" for job in self._jobs) >= _MOST_WAITING:
                raise TooMany(f"{_MOST_WAITING} ingests are waiting already.", hint="Wait until one of them is done.")
            job = IngestJob(str(next(self._numbers)), paths, name, embed)
            self._jobs.append(job)
            self._thread.submit(job.run, self._service, self._stop)
        return job.wire

    def find(self, job_id: str) -> IngestJob:
        for job in self._jobs:
            if job.wire.job_id == job_id:
                return job
        hint = "See what there is at /api/v1/ingest; it is forgotten when the server stops."
        raise NotFound(f"There is no ingest {job_id}.", hint=hint)

    def all(self) -> IngestJobsV1:
        return IngestJobsV1(items=[job.wire for job in reversed(self._jobs)])

    @property
    def is_running(self) -> bool:
        return any(not job.is_over for job in self._jobs)

    def begin_to_stop(self) -> None:
        """Tells the running ingest to end after the current file or batch of vectors. No other one starts."""
        self._stop.set()

    def stop(self) -> None:
        """Stops the ingests, and waits until their thread ends."""
        self.begin_to_stop()
        self._thread.submit(self._service.kb.close)  # its connections can be closed only there
        self._thread.shutdown()


class _Stopped(BaseException):
    """Ends an ingest from its progress callback. It is no Exception, so no code takes it for an error of a file."""
