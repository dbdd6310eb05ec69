"""Writes runs to files, as eval_report.v1, and reads them back."""

from __future__ import annotations

import json
import re
import types
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kebab.core.errors import GoldenSetError, UsageError, file_errors
from kebab.core.files import open_file
from kebab.wire import to_json
from kebab.wire.evaluation import EvalReportV1

_ANOTHER = "Name another file with --out."
_HINT = "Make one with: kb eval run FILE --out RUN.json"


def write_run(report: EvalReportV1, path: Path) -> None:
    write_text(to_json(report) + "\n", path)


def refuse_to_replace(path: Path) -> None:
    """Raises UsageError if `path` has anything but a run, so that a run never overwrites a golden set."""
    _refuse_unless(rb'.*"eval_report\.v1"', path, "run")


def refuse_to_replace_with_page(path: Path) -> None:
    """Raises UsageError if `path` has anything but an HTML page, such as a run or a golden set."""
    _refuse_unless(rb"(?i:(\xef\xbb\xbf)?\s*<(!doctype )?html)", path, "HTML page")


def _refuse_unless(beginning: bytes, path: Path, what: str) -> None:
    """Raises UsageError unless the file is missing, is empty, or begins like this."""
    if not path.exists():
        return
    with file_errors(path, "cannot be read", _ANOTHER), path.open("rb") as file:
        found = file.read(200)
    if found and not re.match(beginning, found, re.DOTALL):
        raise UsageError(
            f"{path} exists already, and is no {what}.", hint="Name another file with --out, or delete it first."
        )


def write_text(text: str, path: Path) -> None:
    with file_errors(path, "cannot be written", _ANOTHER), open_file(path, "w") as file:
        file.write(text)


def read_run(path: Path) -> EvalReportV1:
    """The report in a file that `kb eval run --out` wrote; any other file is an error."""
    try:
        with file_errors(path, "cannot be read", _HINT, GoldenSetError):
            data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise GoldenSetError(f"{path} is no run: it has no JSON.", hint=_HINT, path=str(path)) from error
    if not isinstance(data, dict) or data.get("schema_version") != "eval_report.v1":
        raise GoldenSetError(f"{path} is no run: it is not eval_report.v1.", hint=_HINT, path=str(path))
    try:
        report: EvalReportV1 = _read(EvalReportV1, data)
    except (KeyError, TypeError, ValueError) as error:
        raise GoldenSetError(f"{path} is a damaged run: {error}.", hint=_HINT, path=str(path)) from error
    return report


def _may_be_left_out(item: Field[Any]) -> bool:
    """Whether a field has a default, because runs of earlier versions do not have it."""
    return item.default is not MISSING or item.default_factory is not MISSING


def _read(hint: Any, value: Any) -> Any:
    """Checks a JSON value and converts it to a type. Unknown keys are ignored, since later versions may add some."""
    origin = get_origin(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        given = [item.name for item in fields(hint) if item.name in value or not _may_be_left_out(item)]
        return hint(**{name: _read(hints[name], value[name]) for name in given})
    if origin is list:
        if not isinstance(value, list):
            raise TypeError(f"{value!r} is no list")
        return [_read(get_args(hint)[0], item) for item in value]
    if origin is dict:
        _, of = get_args(hint)
        return {str(key): _read(of, item) for key, item in dict(value).items()}
    if origin in (Union, types.UnionType):
        if value is None:
            return None
        (some,) = [option for option in get_args(hint) if option is not type(None)]
        return _read(some, value)
    if origin is Literal:
        if value not in get_args(hint):
            raise ValueError(f"{value!r} is not known")
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is not Any and (not isinstance(value, hint) or (hint is not bool and isinstance(value, bool))):
        raise TypeError(f"{value!r} is no {hint.__name__}")
    return value
