"""Everything Kebab raises on purpose.

    KebabError                 kebab_error
    ├── UsageError             usage               contradicting or missing options
    ├── ConfigError            invalid_config      a setting that is unknown or out of range
    ├── QueryError             invalid_query       a raw FTS5 expression that does not parse
    │   └── StaleCursor        stale_cursor        a cursor of another query or index
    ├── SourceError            source_error        a folder that is missing, a name that is taken
    │   └── NothingIndexable   nothing_indexable   a library without any file that could be documentation
    ├── StoreError             store_error
    │   ├── NotFound           not_found           no such database, document, chunk, span
    │   ├── StillIndexing      still_indexing      a library that is just being indexed for the first time
    │   ├── Ambiguous          ambiguous           an id prefix or path that fits several
    │   ├── Locked             locked              another process is writing
    │   ├── TooNew             too_new             a file written by a later version
    │   ├── TooOld             too_old             a server of an earlier version than is needed
    │   ├── StoreUnreachable   store_unreachable   a server that does not answer, or refuses the key
    │   ├── NotEmpty           not_empty           the target of a migration holds something else
    │   ├── CopyDiffers        copy_differs        all of a database was carried over, and is not the same
    │   ├── Corrupt            corrupt             not a database, or a damaged one
    │   ├── SchemaAltered      schema_altered      a database whose tables another program has changed
    │   ├── ReadOnly           read_only           no permission to write
    │   └── DiskFull           disk_full           no space left for the database
    ├── ModelError             model_error
    │   ├── ModelMissing       no_vectors          vectors were asked for and there are none
    │   │   └── VectorsOff     vectors_off         the settings say that there shall be none
    │   ├── ModelCorrupt       model_corrupt       weights that are not what they should be
    │   ├── ModelMismatch      model_mismatch      vectors of another size or model than expected
    │   └── ModelUnreachable   model_unreachable   an endpoint that does not answer, or refuses
    │       └── TextRefused    text_refused        a text that an endpoint does not take, too long for instance
    ├── ParseError             parse_error         one file that cannot be read as text
    ├── GoldenSetError         invalid_golden_set  judged queries, or a run of them, that cannot be read
    ├── MissingExtra           missing_extra       an optional package is not installed
    ├── Refused                forbidden           what a server does not do for this caller
    │   ├── Unauthorized       unauthorized        no token, or a wrong one
    │   ├── NoSuchMethod       method_not_allowed  an address that is read with POST, or written to with GET
    │   ├── TooLarge           too_large           a request beyond the limit of its size
    │   ├── TooMany            too_many_requests   more requests, or wrong tokens, than one address may send
    │   └── TimedOut           timed_out           an answer that took too long
    └── Internal               internal            a defect of ours

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

    def __init__(self, message: str, *, hint: str | None = None, path: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.path = path


class UsageError(KebabError):
    code = "usage"


class ConfigError(KebabError):
    code = "invalid_config"


class QueryError(KebabError):
    code = "invalid_query"


class StaleCursor(QueryError):
    code = "stale_cursor"


class SourceError(KebabError):
    code = "source_error"


class NothingIndexable(SourceError):
    code = "nothing_indexable"


class StoreError(KebabError):
    code = "store_error"


class NotFound(StoreError):
    code = "not_found"


class StillIndexing(StoreError):
    code = "still_indexing"


class Ambiguous(StoreError):
    code = "ambiguous"


class Locked(StoreError):
    code = "locked"


class TooNew(StoreError):
    code = "too_new"


class TooOld(StoreError):
    code = "too_old"


class StoreUnreachable(StoreError):
    code = "store_unreachable"


class NotEmpty(StoreError):
    code = "not_empty"


class CopyDiffers(StoreError):
    code = "copy_differs"


class Corrupt(StoreError):
    code = "corrupt"


class SchemaAltered(StoreError):
    code = "schema_altered"


class ReadOnly(StoreError):
    code = "read_only"


class DiskFull(StoreError):
    code = "disk_full"


class ModelError(KebabError):
    code = "model_error"


class ModelMissing(ModelError):
    code = "no_vectors"


class VectorsOff(ModelMissing):
    code = "vectors_off"


class ModelCorrupt(ModelError):
    code = "model_corrupt"


class ModelMismatch(ModelError):
    code = "model_mismatch"


class ModelUnreachable(ModelError):
    code = "model_unreachable"


class TextRefused(ModelUnreachable):
    code = "text_refused"


class ParseError(KebabError):
    """One file that cannot be taken in. `reason` is the word under which the ingest report counts it."""

    code = "parse_error"

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


class GoldenSetError(KebabError):
    code = "invalid_golden_set"


class MissingExtra(KebabError):
    code = "missing_extra"


class Refused(KebabError):
    code = "forbidden"


class Unauthorized(Refused):
    code = "unauthorized"


class NoSuchMethod(Refused):
    code = "method_not_allowed"


class TooLarge(Refused):
    code = "too_large"


class TooMany(Refused):
    """`retry_after`: seconds."""

    code = "too_many_requests"

    def __init__(self, message: str, *, hint: str | None = None, path: str | None = None, retry_after: int = 1) -> None:
        super().__init__(message, hint=hint, path=path)
        self.retry_after = retry_after


class TimedOut(Refused):
    code = "timed_out"


class Internal(KebabError):
    code = "internal"

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
