"""The wire objects ingest_report.v1, ingest_progress.v1 and migration_report.v1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from kebab.core.records import SpaceCount
from kebab.ingest.report import SKIP_REASONS, Failure, IngestReport
from kebab.wire import VIEWS, Wire, view, viewed

if TYPE_CHECKING:
    from kebab.upkeep.migration import MigrationReport


class SkippedV1(Wire):
    """Files left out for one reason."""

    reason: str
    meaning: str
    count: int
    examples: list[str]


class FileOutcomeV1(Wire, of=Failure):
    """What happened to one file."""

    path: str
    code: str
    message: str


class SlowFileV1(Wire):
    """A file that took long."""

    path: str
    seconds: float


class IngestReportV1(Wire, schema="ingest_report.v1"):
    """What an ingest did."""

    sources: list[str]
    scanned: int
    added: int
    updated: int
    unchanged: int
    unread: int
    """Scanned, but skipped for what is in them, or failed: with added, updated and unchanged, all that were scanned."""
    removed: int
    chunks: int
    bytes: int
    seconds: float
    skipped: list[SkippedV1]
    failed: list[FileOutcomeV1]
    warnings: list[FileOutcomeV1]
    slowest: list[SlowFileV1]
    absorbed: list[str]
    reanalysed: int
    vectors_made: int
    vectors_reused: int
    embedding_seconds: float
    interrupted: bool


class IngestProgressV1(Wire, schema="ingest_progress.v1"):
    """What an ingest is doing, or a migration."""

    event: Literal["scanning", "file", "sweeping", "embedding", "vectors", "verifying", "done", "failed", "interrupted"]
    """The last three are terminal: exactly one of them ends the stream. vectors: they are carried over; verifying: both
    are compared.
    """
    source: str | None
    path: str | None
    done: int | None
    total: int | None
    elapsed_s: float


class SpaceCountV1(Wire):
    """How many chunks have a vector of one model."""

    model: str
    """With version and dimension."""
    vectors: int
    homes: int
    """Chunks for which it is the model that suits them best."""


class MigrationCountsV1(Wire):
    """What there is on both sides."""

    sources: int
    notes: int
    documents: int
    chunks: int
    tags: int
    libraries: int
    versions: int
    library_documents: int
    snippets: int
    vectors: list[SpaceCountV1]


class MigrationReportV1(Wire, schema="migration_report.v1"):
    """What was carried from one database into another."""

    origin: str
    target: str
    resumed: bool
    """Whether an earlier run was interrupted, and this one went on."""
    documents: int
    """Carried by this run."""
    vectors: int
    """Carried by this run."""
    counts: MigrationCountsV1 | None
    """Counted on both sides and found the same; null when it was interrupted before that."""
    compared: int
    """Documents of which every passage and vector was compared."""
    seconds: float
    interrupted: bool


def ingest_report_v1(report: IngestReport, *, interrupted: bool = False) -> IngestReportV1:
    return view(
        IngestReportV1,
        report,
        skipped=[
            view(SkippedV1, skipped, reason=reason, meaning=SKIP_REASONS.get(reason, reason))
            for reason, skipped in sorted(report.skipped.items())
        ],
        slowest=[SlowFileV1(path=path, seconds=seconds) for path, seconds in report.slowest],
        interrupted=interrupted,
    )


def ingest_progress_v1(event: Any, details: Mapping[str, Any], elapsed_s: float) -> IngestProgressV1:
    known: dict[str, Any] = {name: details.get(name) for name in ("source", "path", "done", "total")}
    return IngestProgressV1(event=event, elapsed_s=elapsed_s, **known)


def migration_report_v1(report: MigrationReport, *, interrupted: bool = False) -> MigrationReportV1:
    counts = view(MigrationCountsV1, report.counts, vectors=viewed(report.counts.spaces)) if report.counts else None
    return view(MigrationReportV1, report, counts=counts, interrupted=interrupted)


VIEWS[SpaceCount] = lambda space: view(SpaceCountV1, space, model=space.fingerprint, homes=space.primaries)
