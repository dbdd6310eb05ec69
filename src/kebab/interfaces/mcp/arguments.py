"""What a model sends as the arguments of a tool, made into what the tool takes: other names of an argument, and numbers
in quotes, are understood; anything else says what is valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kebab.core.errors import UsageError
from kebab.core.text import whole_characters

Schema = Mapping[str, Any]
_WHOLE = re.compile(r"\s*-?\d{1,18}\s*")
_DECIMAL = re.compile(r"\s*-?\d{1,18}(\.\d{1,18})?\s*")
_SWITCHES = {"true": True, "false": False}
_LARGEST = 2**63
"""Beyond it no number means anything here, and very long ones cannot even be quoted in an error."""
_DEEPEST = 20
_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "string": (str, "a text"),
    "integer": (int, "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list of texts"),
}


def named(
    tool: str, given: Mapping[str, Any], schemas: Mapping[str, Schema], aliases: Mapping[str, str]
) -> dict[str, Any]:
    """The arguments by their own names, each once; what is null was not given."""
    values: dict[str, Any] = {}
    for written, value in given.items():
        name = aliases.get(written, written)
        if name not in schemas:
            raise _unknown(tool, whole_characters(written), schemas, aliases)
        if value is None:
            continue
        if name in values:
            raise UsageError(f"{name} is given twice, once as {written}.", hint="Give it once.")
        values[name] = _meant(_storable(value), schemas[name])
    return values


def _unknown(tool: str, written: str, schemas: Mapping[str, Schema], aliases: Mapping[str, str]) -> UsageError:
    from difflib import get_close_matches

    close = get_close_matches(written, [*schemas, *aliases], n=1)
    valid = ", ".join(schemas) or "none"
    return UsageError(
        f"{tool} has no argument {written!r}.",
        hint=f"Did you mean {close[0]}? Valid: {valid}." if close else f"Valid: {valid}.",
    )


def _storable(value: Any, depth: int = 0) -> Any:
    """Without halves of characters, which can be in JSON but not in what is sent back, and without what cannot be
    quoted.
    """
    if depth > _DEEPEST:
        raise UsageError("An argument is nested too deeply.", hint="Send texts, numbers, and lists of texts.")
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, list):
        return [_storable(item, depth + 1) for item in value]
    if isinstance(value, dict):
        return {whole_characters(key): _storable(item, depth + 1) for key, item in value.items()}
    if isinstance(value, int) and abs(value) >= _LARGEST:
        raise UsageError("A number is larger than any that is taken here.", hint="Send a smaller one.")
    return value


def _meant(value: Any, schema: Schema) -> Any:
    """Models put numbers and switches in quotes now and then, and write 5.0 for 5."""
    kind = schema.get("type")
    if kind == "integer":
        if isinstance(value, str) and _WHOLE.fullmatch(value):
            return int(value)
        if isinstance(value, float) and value.is_integer():
            return int(value)
    if kind == "number" and isinstance(value, str) and _DECIMAL.fullmatch(value):
        return float(value)
    if kind == "boolean" and isinstance(value, str):
        return _SWITCHES.get(value.strip().lower(), value)
    return value


def as_list(value: Any, schema: Schema) -> Any:
    """One text where several are taken is a list of one. Options of a search are not meant: they say themselves what a
    text holds.
    """
    return [value] if schema["type"] == "array" and isinstance(value, str) else value


def check(name: str, value: Any, schema: Schema) -> None:
    """Whether a value is what its schema says, in words that tell what to send instead."""
    types, words = _KINDS[schema["type"]]
    if not isinstance(value, types) or (isinstance(value, bool) and schema["type"] != "boolean") or value != value:
        raise UsageError(f"{name} takes {words}, not {value!r}.", hint="See the tool's input schema.")
    if isinstance(value, str):
        _check_text(name, value, schema)
    elif isinstance(value, list):
        for item in value:
            check(name, item, schema["items"])
    elif not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        raise UsageError(
            f"{name} = {value} is out of range.", hint=f"Allowed: {schema['minimum']} to {schema['maximum']}."
        )


def _check_text(name: str, value: str, schema: Schema) -> None:
    if not value.strip() and schema.get("minLength"):
        raise UsageError(f"{name} is empty.", hint="Name a value, or leave the argument out.")
    if len(value) > schema.get("maxLength", len(value)):
        raise UsageError(f"{name} is longer than {schema['maxLength']} characters.", hint="Ask in fewer words.")
    if value not in schema.get("enum", (value,)):
        raise UsageError(f"{name} = {value!r} is not known.", hint=f"Valid: {', '.join(schema['enum'])}.")
    if "\0" in value:
        raise UsageError(f"{name} contains a null character.", hint="Send plain text.")
