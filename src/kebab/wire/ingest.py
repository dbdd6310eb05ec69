"""ingest_report.v1 and ingest_progress.v1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kebab.ingest.report import SKIP_REASONS, Failure, IngestReport


@dataclass(frozen=True, kw_only=True)
class SkippedV1:
    """Files left out for one reason."""

    reason: str
    meaning: str
    count: int
    examples: list[str]


@dataclass(frozen=True, kw_only=True)
class FileOutcomeV1:
    """What happened to one file."""

    path: str
    code: str
    message: str


@dataclass(frozen=True, kw_only=True)
class SlowFileV1:
    """A file that took long."""

    path: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class IngestReportV1:
    """What an ingest did."""

    schema_version: Literal["ingest_report.v1"] = "ingest_report.v1"
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


@dataclass(frozen=True, kw_only=True)
class IngestProgressV1:
    """What an ingest is doing, or a migration."""

    schema_version: Literal["ingest_progress.v1"] = "ingest_progress.v1"
    event: Literal["scanning", "file", "sweeping", "embedding", "vectors", "verifying", "done", "failed", "interrupted"]
    """The last three are terminal: exactly one of them ends the stream. vectors: they are carried over; verifying: both
    are compared.
    """
    source: str | None
    path: str | None
    done: int | None
    total: int | None
    elapsed_s: float


def ingest_report_v1(report: IngestReport, *, interrupted: bool = False) -> IngestReportV1:
    return IngestReportV1(
        sources=list(report.sources),
        scanned=report.scanned,
        added=report.added,
        updated=report.updated,
        unchanged=report.unchanged,
        unread=report.unread,
        removed=report.removed,
        chunks=report.chunks,
        bytes=report.bytes,
        seconds=report.seconds,
        skipped=[
            SkippedV1(
                reason=reason,
                meaning=SKIP_REASONS.get(reason, reason),
                count=skipped.count,
                examples=list(skipped.examples),
            )
            for reason, skipped in sorted(report.skipped.items())
        ],
        failed=[_outcome(failure) for failure in report.failed],
        warnings=[_outcome(failure) for failure in report.warnings],
        slowest=[SlowFileV1(path=path, seconds=seconds) for path, seconds in report.slowest],
        absorbed=list(report.absorbed),
        reanalysed=report.reanalysed,
        vectors_made=report.vectors_made,
        vectors_reused=report.vectors_reused,
        embedding_seconds=report.embedding_seconds,
        interrupted=interrupted,
    )


def _outcome(failure: Failure) -> FileOutcomeV1:
    return FileOutcomeV1(path=failure.path, code=failure.code, message=failure.message)
