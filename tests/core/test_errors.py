"""One tree of errors, each with a stable code, an exit code and an HTTP status."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import pytest

from kebab.core import errors
from kebab.core.errors import KebabError, ParseError
from kebab.wire.errors import EXIT_CODE, error_v1


def every_class(root: type[KebabError] = KebabError) -> Iterator[type[KebabError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from every_class(child)


def test_every_error_is_mapped_to_an_exit_code_and_an_http_status() -> None:
    assert EXIT_CODE == 2
    accepted = {error for error in every_class() if not 400 <= error.status < 600}
    assert accepted == {errors.StillIndexing}, "whoever asks too early is told to come back"
    assert errors.StillIndexing.status == 202


def test_codes_are_unique_and_the_query_error_is_invalid_query() -> None:
    codes = [class_.code for class_ in every_class()]
    assert len(set(codes)) == len(codes)
    assert errors.QueryError.code == "invalid_query"
    assert errors.QueryError.status == 400
    assert errors.NotFound.code == "not_found"


def test_an_error_object_has_message_hint_and_path_of_the_exception() -> None:
    for class_ in set(every_class()) - {errors.VectorsOff}:  # whose message is always the same
        extra = {"reason": "binary"} if class_ is ParseError else {}
        error = class_("What happened.", hint="What to do.", path="a.md", **extra)
        wire = error_v1(error, id="q1")
        assert (wire.code, wire.message, wire.hint, wire.path, wire.id) == (
            class_.code,
            "What happened.",
            "What to do.",
            "a.md",
            "q1",
        )
        assert str(error) == "What happened."


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.EIO, "Input/output error", "/kb/x"), "store_error"),
        (PermissionError(errno.EACCES, "Permission denied", b"/kb/x"), "store_error"),
        (OSError(errno.ENOSPC, "No space left on device", "/kb/x"), "disk_full"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/kb/x"), "internal"),
        (OSError(errno.EIO, "Input/output error"), "internal"),
    ],
)
def test_uncaught_failure_of_the_file_system_is_not_reported_as_a_defect(error: OSError, code: str) -> None:
    told = errors.Internal.of(error)
    assert (told.code, told.path) == (code, None if code == "internal" else "/kb/x")
    assert told.hint
