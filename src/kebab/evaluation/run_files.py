"""Runs as files: eval_report.v1 written and read back."""

from __future__ import annotations

import json
import types
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kebab.core.errors import GoldenSetError, SourceError
from kebab.wire.evaluation import EvalReportV1
from kebab.wire.objects import to_json

_HINT = "Make one with: kb eval run FILE --out RUN.json"


def write_run(report: EvalReportV1, path: Path) -> None:
    write_text(to_json(report) + "\n", path)


def write_text(text: str, path: Path) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SourceError(f"{path} cannot be written: {error.strerror}.", hint="Name another file with --out.", path=str(path)) from error


def read_run(path: Path) -> EvalReportV1:
    """What `kb eval run --out` wrote; anything else is an error."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GoldenSetError(f"{path} cannot be read: {error.strerror}.", hint=_HINT, path=str(path)) from error
    except ValueError as error:
        raise GoldenSetError(f"{path} is no run: it has no JSON.", hint=_HINT, path=str(path)) from error
    if not isinstance(data, dict) or data.get("schema_version") != "eval_report.v1":
        raise GoldenSetError(f"{path} is no run: it is not eval_report.v1.", hint=_HINT, path=str(path))
    try:
        report: EvalReportV1 = _read(EvalReportV1, data)
    except (KeyError, TypeError, ValueError) as error:
        raise GoldenSetError(f"{path} is a damaged run: {error}.", hint=_HINT, path=str(path)) from error
    return report


def _read(hint: Any, value: Any) -> Any:
    """JSON values → what the type says, dataclasses inside out; keys that are not known here are of a later version and left alone."""
    origin = get_origin(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint)
        return hint(**{item.name: _read(hints[item.name], value[item.name]) for item in fields(hint)})
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
