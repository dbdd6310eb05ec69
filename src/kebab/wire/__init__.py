"""The JSON shapes of version 1, by family. CLI, HTTP and MCP return these very objects.

Keyword-only dataclasses: schemas are derived from them, and nothing needs a validation library to make one. Inside v1,
fields are only ever added, and only optional ones.
"""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from typing import Any, TypeVar

_Wire = TypeVar("_Wire")


def view(wire_class: type[_Wire], record: object, **fields: Any) -> _Wire:
    """A wire object with these fields; the others are those of the record, its tuples as lists."""
    for name in wire_class.__dataclass_fields__:  # type: ignore[attr-defined]  # all of them are dataclasses
        if name not in fields and hasattr(record, name):
            value = getattr(record, name)
            fields[name] = list(value) if type(value) is tuple else value
    return wire_class(**fields)


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
