"""Checks values from HTTP addresses, HTTP bodies and MCP tool calls against a JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kebab.core.checking import checked
from kebab.core.errors import UsageError

Schema = Mapping[str, Any]
KINDS: dict[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list}


def checked_argument(name: str, value: Any, schema: Schema) -> Any:
    """Returns the value if its schema allows it (as an integer, 10.0 becomes 10); otherwise raises UsageError."""
    kind = KINDS[schema["type"]]
    text = schema.get("items", schema)
    value = checked(
        name,
        value,
        kind,
        least=schema.get("minimum"),
        most=schema.get("maximum"),
        choices=text.get("enum", ()),
        longest=text.get("maxLength"),
        may_be_empty="minLength" not in text and "pattern" not in text,
    )
    if kind is list and any("\0" in item for item in value):
        raise UsageError(f"{name} contains a null character.", hint="Send plain text.")
    return value


def require(names: Iterable[str], given: Mapping[str, Any]) -> None:
    for name in names:
        if name not in given:
            raise UsageError(f"{name} is missing.", hint="It has to be named.")
