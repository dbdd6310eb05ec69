"""The wire object error.v1, and the HTTP status of each class of errors."""

from __future__ import annotations

from kebab.core import errors
from kebab.wire import Wire


class ErrorV1(Wire, schema="error.v1"):
    """One failure: what happened, and what to do."""

    code: str
    message: str
    hint: str | None
    path: str | None
    id: str | None = None


EXIT_CODE = 2
"""The exit code of the command line for every error."""
_BY_STATUS: dict[int, tuple[type[errors.KebabError], ...]] = {
    202: (errors.StillIndexing,),
    400: (errors.UsageError, errors.QueryError),
    401: (errors.Unauthorized,),
    403: (errors.Refused,),
    404: (errors.NotFound,),
    405: (errors.NoSuchMethod,),
    409: (errors.StaleCursor, errors.Ambiguous, errors.NotEmpty, errors.ModelMissing, errors.ModelMismatch),
    413: (errors.TooLarge,),
    422: (errors.SourceError, errors.ParseError, errors.GoldenSetError),
    429: (errors.TooMany,),
    500: (errors.KebabError, errors.ModelCorrupt),
    501: (errors.MissingExtra,),
    502: (errors.TooOld, errors.StoreUnreachable, errors.ModelError),
    503: (errors.Locked, errors.TimedOut),
    507: (errors.DiskFull,),
}
_STATUS = {kind: status for status, kinds in _BY_STATUS.items() for kind in kinds}


def http_status(error: type[errors.KebabError]) -> int:
    """The HTTP status of a class of errors: its own, or that of its nearest base class."""
    return next(_STATUS[kind] for kind in error.__mro__ if kind in _STATUS)


def error_v1(error: errors.KebabError, *, id: str | None = None) -> ErrorV1:
    return ErrorV1(code=error.code, message=error.message, hint=error.hint, path=error.path, id=id)
