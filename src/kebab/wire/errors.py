"""error.v1, and the one table from each error to its exit code and HTTP status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from kebab.core import errors


@dataclass(frozen=True, kw_only=True)
class ErrorV1:
    """One failure: what happened, and what to do."""

    schema_version: Literal["error.v1"] = "error.v1"
    code: str
    message: str
    hint: str | None
    path: str | None
    id: str | None = None


class Outcome(NamedTuple):
    """Outcome"""

    exit_code: int
    http_status: int


OUTCOMES: dict[type[errors.KebabError], Outcome] = {
    errors.KebabError: Outcome(2, 500),
    errors.UsageError: Outcome(2, 400),
    errors.ConfigError: Outcome(2, 500),
    errors.QueryError: Outcome(2, 400),
    errors.StaleCursor: Outcome(2, 409),
    errors.SourceError: Outcome(2, 422),
    errors.NothingIndexable: Outcome(2, 422),
    errors.StoreError: Outcome(2, 500),
    errors.NotFound: Outcome(2, 404),
    errors.StillIndexing: Outcome(2, 202),
    errors.Ambiguous: Outcome(2, 409),
    errors.Locked: Outcome(2, 503),
    errors.TooNew: Outcome(2, 500),
    errors.TooOld: Outcome(2, 502),
    errors.StoreUnreachable: Outcome(2, 502),
    errors.NotEmpty: Outcome(2, 409),
    errors.CopyDiffers: Outcome(2, 500),
    errors.Corrupt: Outcome(2, 500),
    errors.SchemaAltered: Outcome(2, 500),
    errors.ReadOnly: Outcome(2, 500),
    errors.DiskFull: Outcome(2, 507),
    errors.ModelError: Outcome(2, 502),
    errors.ModelMissing: Outcome(2, 409),
    errors.VectorsOff: Outcome(2, 409),
    errors.ModelCorrupt: Outcome(2, 500),
    errors.ModelMismatch: Outcome(2, 409),
    errors.ModelUnreachable: Outcome(2, 502),
    errors.TextRefused: Outcome(2, 502),
    errors.ParseError: Outcome(2, 422),
    errors.GoldenSetError: Outcome(2, 422),
    errors.MissingExtra: Outcome(2, 501),
    errors.Refused: Outcome(2, 403),
    errors.Unauthorized: Outcome(2, 401),
    errors.NoSuchMethod: Outcome(2, 405),
    errors.TooLarge: Outcome(2, 413),
    errors.TooMany: Outcome(2, 429),
    errors.TimedOut: Outcome(2, 503),
    errors.Internal: Outcome(2, 500),
}


def outcome_of(error: errors.KebabError) -> Outcome:
    """Of its class, or of the nearest one above that has one."""
    return next(OUTCOMES[kind] for kind in type(error).__mro__ if kind in OUTCOMES)


def error_v1(error: errors.KebabError, *, id: str | None = None) -> ErrorV1:
    return ErrorV1(code=error.code, message=error.message, hint=error.hint, path=error.path, id=id)
