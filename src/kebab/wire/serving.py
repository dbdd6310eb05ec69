"""The wire objects that only a server returns: health, status, ingest jobs and bulk responses."""

from __future__ import annotations

from typing import Literal

from kebab.wire import Wire
from kebab.wire.errors import ErrorV1
from kebab.wire.records import StatsV1
from kebab.wire.reports import IngestProgressV1, IngestReportV1
from kebab.wire.search import SearchResponseV1


class HealthV1(Wire, schema="health.v1"):
    """That the server answers and can read its database."""

    ok: Literal[True] = True
    version: str


class StatusV1(Wire, schema="status.v1"):
    """What the server serves."""

    version: str
    read_only: bool
    """Whether ingest is refused, because the server was not started with --allow-write."""
    stats: StatsV1 | None
    """Null while nothing has been ingested."""
    sources: list[str]
    libraries: int
    ingest_running: bool


class IngestJobV1(Wire, schema="ingest_job.v1"):
    """An ingest that the server was asked for."""

    job_id: str
    state: Literal["queued", "running", "done", "failed", "interrupted"]
    """The last three are final."""
    paths: list[str]
    """Empty: every known source."""
    name: str | None
    embed: bool
    created_at: str
    finished_at: str | None
    progress: IngestProgressV1 | None
    """The last event."""
    report: IngestReportV1 | None
    """What was done, once it is over."""
    error: ErrorV1 | None


class IngestJobsV1(Wire, schema="ingest_jobs.v1"):
    """The ingests of this run of the server, the latest first."""

    items: list[IngestJobV1]


class BulkResponseV1(Wire, schema="bulk_response.v1"):
    """The answers to several queries, in their order; an error stands in the place of its query."""

    responses: list[SearchResponseV1 | ErrorV1]
