"""The wire object error.v1."""

from __future__ import annotations

from kebab.core.errors import KebabError
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


def error_v1(error: KebabError, *, id: str | None = None) -> ErrorV1:
    return ErrorV1(code=error.code, message=error.message, hint=error.hint, path=error.path, id=id)
