"""Everything Kebab raises on purpose. The code of a class is part of the wire format.

Exceptions are for a whole operation that cannot go on. What happens to one file of many is a value in the report.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

_STORAGE_ERRNOS = frozenset({errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM})


class KebabError(Exception):
    """One sentence on what happened (`message`), one on what to do (`hint`), and the file concerned, if any."""

    code = "kebab_error"

    def __init_subclass__(cls, *, code: str | None = None) -> None:
        cls.code = code or cls.code

    def __init__(self, message: str, *, hint: str | None = None, path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path


class UsageError(KebabError, code="usage"):
    """Contradicting or missing options."""


class ConfigError(KebabError, code="invalid_config"):
    """A setting that is unknown or out of range."""


class QueryError(KebabError, code="invalid_query"):
    """A raw FTS5 expression that does not parse."""


class StaleCursor(QueryError, code="stale_cursor"):
    """A cursor of another query or index."""


class SourceError(KebabError, code="source_error"):
    """A folder that is missing, a name that is taken."""


class NothingIndexable(SourceError, code="nothing_indexable"):
    """A library without any file that could be documentation."""


class StoreError(KebabError, code="store_error"):
    """The store cannot do what was asked."""


class NotFound(StoreError, code="not_found"):
    """No such database, document, chunk or span."""


class StillIndexing(StoreError, code="still_indexing"):
    """A library that is being indexed for the first time."""


class Ambiguous(StoreError, code="ambiguous"):
    """An id prefix or path that fits several."""


class Locked(StoreError, code="locked"):
    """Another process is writing."""


class TooNew(StoreError, code="too_new"):
    """A file written by a later version."""


class TooOld(StoreError, code="too_old"):
    """A server of an earlier version than is needed."""


class StoreUnreachable(StoreError, code="store_unreachable"):
    """A server that does not answer, or refuses the key."""


class NotEmpty(StoreError, code="not_empty"):
    """The target of a migration holds something else."""


class CopyDiffers(StoreError, code="copy_differs"):
    """A database was copied completely, and the copy is not the same."""


class Corrupt(StoreError, code="corrupt"):
    """Not a database, or a damaged one."""


class SchemaAltered(StoreError, code="schema_altered"):
    """A database whose tables another program has changed."""


class ReadOnly(StoreError, code="read_only"):
    """No permission to write."""


class DiskFull(StoreError, code="disk_full"):
    """No space left for the database."""


class ModelError(KebabError, code="model_error"):
    """A model cannot do what was asked."""


class ModelMissing(ModelError, code="no_vectors"):
    """A search by vectors where there are none."""


class VectorsOff(ModelMissing, code="vectors_off"):
    """The settings turn vectors off."""

    def __init__(
        self,
        message: str = "Vectors are turned off (embedding.model is none).",
        *,
        hint: str | None = "Set embedding.model to bundled, then: kb ingest",
        path: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint, path=path)


class ModelCorrupt(ModelError, code="model_corrupt"):
    """Damaged weights of a model."""


class ModelMismatch(ModelError, code="model_mismatch"):
    """Vectors of another size or model than expected."""


class ModelUnreachable(ModelError, code="model_unreachable"):
    """An endpoint that does not answer, or refuses."""


class TextRefused(ModelUnreachable, code="text_refused"):
    """A text that an endpoint does not take, for instance because it is too long."""


class ParseError(KebabError, code="parse_error"):
    """One file that cannot be read. `reason` is the word under which the ingest report counts it."""

    def __init__(self, message: str, *, reason: str, hint: str | None = None, path: str | None = None) -> None:
        super().__init__(message, hint=hint, path=path)
        self.reason = reason

    @property
    def is_defect(self) -> bool:
        """Whether the parser failed, rather than refused the file."""
        return self.reason == "parser_failed"


@contextmanager
def only_parse_errors() -> Iterator[None]:
    """Whatever parsing one file raises leaves this block as a ParseError, so that it costs that file only."""
    try:
        yield
    except ParseError:
        raise
    except (MemoryError, RecursionError) as error:
        raise ParseError(
            "It takes more memory than there is.", reason="too_costly", hint="Split it into smaller files."
        ) from error
    except Exception as error:  # a parser may raise anything; KeyboardInterrupt and SystemExit pass
        message = f"Its parser failed ({type(error).__name__}). This is a defect of Kebab; please report it."
        raise ParseError(message, reason="parser_failed") from error


class GoldenSetError(KebabError, code="invalid_golden_set"):
    """Judged queries, or a run of them, that cannot be read."""


class MissingExtra(KebabError, code="missing_extra"):
    """An optional package is not installed."""


class Refused(KebabError, code="forbidden"):
    """A request that the server does not allow."""


class Unauthorized(Refused, code="unauthorized"):
    """No token, or a wrong one."""


class NoSuchMethod(Refused, code="method_not_allowed"):
    """An address that is read with POST, or written to with GET."""


class TooLarge(Refused, code="too_large"):
    """A request beyond the size limit."""


class TooMany(Refused, code="too_many_requests"):
    """More requests, or wrong tokens, than one address may send. `retry_after`: seconds."""

    def __init__(self, message: str, *, hint: str | None = None, path: str | None = None, retry_after: int = 1) -> None:
        super().__init__(message, hint=hint, path=path)
        self.retry_after = retry_after


class TimedOut(Refused, code="timed_out"):
    """An answer that took too long."""


class Internal(KebabError, code="internal"):
    """A defect of Kebab."""

    @classmethod
    def of(cls, error: BaseException) -> KebabError:
        """What every surface says of an uncaught exception. A file system that fails is no defect of ours."""
        if isinstance(error, OSError) and error.filename is not None and error.errno in _STORAGE_ERRNOS:
            place = os.fsdecode(error.filename)
            kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StoreError
            hint = "Check the disk, its free space and the permissions, then run the command again."
            return kind(f"{place} cannot be read or written: {error.strerror}.", hint=hint, path=place)
        hint = "This is a defect of Kebab; please report it with what was printed where it runs."
        return cls(f"Something unexpected happened: {type(error).__name__}: {error}", hint=hint)
