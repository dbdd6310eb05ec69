"""The JSON shapes of version 1, by family. CLI, HTTP and MCP return these very objects.

Keyword-only dataclasses: schemas are derived from them, and nothing needs a validation library to make one. Inside v1,
fields are only ever added, and only optional ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, TypeVar

_Wire = TypeVar("_Wire")
VIEWS: dict[type, Callable[[Any], Any]] = {}
"""What makes the wire object of each class of records; every module of the family adds its own."""


def view(wire_class: type[_Wire], record: object, **fields: Any) -> _Wire:
    """A wire object with these fields and those of the record; records in them become what VIEWS says."""
    for name in wire_class.__dataclass_fields__:  # type: ignore[attr-defined]  # all of them are dataclasses
        if name not in fields and hasattr(record, name):
            fields[name] = viewed(getattr(record, name))
    return wire_class(**fields)


def viewed(value: Any) -> Any:
    """A value with the wire objects of the records in it, and lists for tuples."""
    if type(value) in (tuple, list):
        return [viewed(item) for item in value]
    make = VIEWS.get(type(value))
    return make(value) if make is not None else value


def plain(value: Any) -> Any:
    """A wire object as JSON values."""
    if is_dataclass(value):
        return {name: plain(item) for name, item in vars(value).items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def to_json(value: Any, *, indent: int | None = None) -> str:
    """The fields of a wire object are its variables, in their order, so the encoder needs no copy of them."""
    return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False, default=vars)
