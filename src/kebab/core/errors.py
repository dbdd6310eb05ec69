"""All exceptions that Kebab raises. The code of a class is part of the wire format.

An exception ends a whole operation. A failure of one file among many is recorded in the ingest report instead.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

_STORAGE_ERRNOS = frozenset({errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM})


class KebabError(Exception):
    """The base class: `message` says what happened, `hint` what to do, and `path` names the file concerned, if any."""

    code = "kebab_error"
    status = 500
    """The status of an HTTP response that reports it."""

    def __init_subclass__(cls, *, code: str | None = None, status: int | None = None) -> None:
        cls.code = code or cls.code
        cls.status = status or cls.status

    def __init__(self, message: str, *, hint: str | None = None, path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path


class UsageError(KebabError, code="usage", status=400):
    """Options that are invalid, missing or contradict each other."""


class ConfigError(KebabError, code="invalid_config"):
    """A setting that is unknown or out of range."""


class QueryError(KebabError, code="invalid_query", status=400):
    """A raw FTS5 expression that does not parse."""


class StaleCursor(QueryError, code="stale_cursor", status=409):
    """A cursor that belongs to another query or index."""


class SourceError(KebabError, code="source_error", status=422):
    """A source that cannot be used: its folder is missing, or its name is taken."""


class NothingIndexable(SourceError, code="nothing_indexable"):
    """A library that has no file that could be documentation."""


class StoreError(KebabError, code="store_error"):
    """The store cannot do what was asked."""


class NotFound(StoreError, code="not_found", status=404):
    """No such database, document, chunk or span."""


class StillIndexing(StoreError, code="still_indexing", status=202):
    """A library that is being indexed for the first time."""


class Ambiguous(StoreError, code="ambiguous", status=409):
    """An id prefix or path that matches several documents or chunks."""


class Locked(StoreError, code="locked", status=503):
    """Another process is writing."""


class TooNew(StoreError, code="too_new"):
    """A file that a later version of Kebab wrote."""


class TooOld(StoreError, code="too_old", status=502):
    """A server whose version is too old."""


class StoreUnreachable(StoreError, code="store_unreachable", status=502):
    """A server that does not answer, or refuses the key."""


class NotEmpty(StoreError, code="not_empty", status=409):
    """The target of a migration is not empty, or a store is still being filled by a migration."""


class CopyDiffers(StoreError, code="copy_differs"):
    """A database was copied completely, and the copy is not the same."""


class Corrupt(StoreError, code="corrupt"):
    """Not a database, or a damaged one."""


class SchemaAltered(StoreError, code="schema_altered"):
    """A database whose tables another program has changed."""


class ReadOnly(StoreError, code="read_only"):
    """No permission to write."""


class DiskFull(StoreError, code="disk_full", status=507):
    """No space left for the database."""


class ModelError(KebabError, code="model_error", status=502):
    """A model cannot do what was asked."""


class ModelMissing(ModelError, code="no_vectors", status=409):
    """A search by vectors in a store without vectors."""


class VectorsOff(ModelMissing, code="vectors_off"):
    """The settings turn vectors off."""

    def __init__(self) -> None:
        hint = "Set embedding.model to bundled, then: kb ingest"
        super().__init__("Vectors are turned off (embedding.model is none).", hint=hint)


class ModelCorrupt(ModelError, code="model_corrupt", status=500):
    """Damaged weights of a model."""


class ModelMismatch(ModelError, code="model_mismatch", status=409):
    """Vectors whose size or model is not the expected one."""


class ModelUnreachable(ModelError, code="model_unreachable"):
    """A model endpoint that does not answer, or refuses the request."""


class TextRefused(ModelUnreachable, code="text_refused"):
    """A text that a model endpoint refuses, for instance because it is too long."""


class ParseError(KebabError, code="parse_error", status=422):
    """One file that cannot be read. `reason` is the word under which the ingest report counts it."""

    def __init__(self, message: str, *, reason: str, hint: str | None = None, path: str | None = None) -> None:
        super().__init__(message, hint=hint, path=path)
        self.reason = reason

    @property
    def is_defect(self) -> bool:
        """Whether the parser crashed. False if it refused the file."""
        return self.reason == "parser_failed"


@contextmanager
def only_parse_errors() -> Iterator[None]:
    """Converts every exception of the `with` block to a ParseError, so that only this one file fails."""
    try:
        yield
    except ParseError:
        raise
    except (MemoryError, RecursionError) as error:
        raise ParseError(
            "It takes more memory than there is.", reason="too_costly", hint="Split it into smaller files."
        ) from error
    except Exception as error:  # a parser may raise anything; KeyboardInterrupt and SystemExit are not caught
        message = f"Its parser failed ({type(error).__name__}). This is a defect of Kebab; please report it."
        raise ParseError(message, reason="parser_failed") from error


class GoldenSetError(KebabError, code="invalid_golden_set", status=422):
    """A file of judged queries, or of their results, that cannot be read."""


@contextmanager
def file_errors(path: object, what: str, hint: str, kind: type[KebabError] = SourceError) -> Iterator[None]:
    """Converts every OSError of the `with` block to an error of this kind, for example: PATH cannot be read: REASON."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path} {what}: {error.strerror or error}.", hint=hint, path=str(path)) from error


class MissingExtra(KebabError, code="missing_extra", status=501):
    """An optional package is not installed."""


class Refused(KebabError, code="forbidden", status=403):
    """A request that the server does not allow."""


class Unauthorized(Refused, code="unauthorized", status=401):
    """No token, or a wrong one."""


class NoSuchMethod(Refused, code="method_not_allowed", status=405):
    """A request with the wrong HTTP method, such as POST to an address that only takes GET."""


class TooLarge(Refused, code="too_large", status=413):
    """A request beyond the size limit."""


class TooMany(Refused, code="too_many_requests", status=429):
    """Too many requests or wrong tokens from one address, which may try again after `retry_after` seconds."""

    def __init__(self, message: str, *, hint: str | None = None, path: str | None = None, retry_after: int = 1) -> None:
        super().__init__(message, hint=hint, path=path)
        self.retry_after = retry_after


class TimedOut(Refused, code="timed_out", status=503):
    """An answer that took too long."""


class Internal(KebabError, code="internal"):
    """A defect of Kebab."""

    @classmethod
    def of(cls, error: BaseException) -> KebabError:
        """The error to show for an uncaught exception: a KebabError itself, StoreError or DiskFull for a failing disk,
        else Internal.
        """
        if isinstance(error, KebabError):
            return error
        if isinstance(error, OSError) and error.filename is not None and error.errno in _STORAGE_ERRNOS:
            place = os.fsdecode(error.filename)
            kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StoreError
            hint = "Check the disk, its free space and the permissions, then run the command again."
            return kind(f"{place} cannot be read or written: {error.strerror}.", hint=hint, path=place)
        hint = "This is a defect of Kebab; please report it with what was printed where it runs."
        return cls(f"Something unexpected happened: {type(error).__name__}: {error}", hint=hint)
