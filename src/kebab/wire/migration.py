"""migration_report.v1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kebab.upkeep.migration import MigrationReport


@dataclass(frozen=True, kw_only=True)
class SpaceCountV1:
    """How many chunks have a vector of one model."""

    model: str
    """With version and dimension."""
    vectors: int
    homes: int
    """Chunks for which it is the model that suits them best."""


@dataclass(frozen=True, kw_only=True)
class MigrationCountsV1:
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


@dataclass(frozen=True, kw_only=True)
class MigrationReportV1:
    """What was carried from one database into another."""

    schema_version: Literal["migration_report.v1"] = "migration_report.v1"
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


def migration_report_v1(report: MigrationReport, *, interrupted: bool = False) -> MigrationReportV1:
    values = {name: value for name, value in vars(report).items() if name != "counts"}
    counts = None
    if report.counts is not None:
        numbers = report.counts._asdict()
        spaces = [
            SpaceCountV1(model=space.fingerprint, vectors=space.vectors, homes=space.homes)
            for space in numbers.pop("spaces")
        ]
        counts = MigrationCountsV1(**numbers, vectors=spaces)
    return MigrationReportV1(**values, counts=counts, interrupted=interrupted)
