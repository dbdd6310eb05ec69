"""Checks search options, parameters, tool arguments and settings, with the same error messages on every surface."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from kebab.core.errors import UsageError

Schema = Mapping[str, Any]
"""The JSON Schema of one value: its type, bounds and valid texts."""
KINDS: dict[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list}
_WORDS: dict[type, tuple[str, str]] = {
    str: ("a text", "Write it in quotes."),
    int: ("a whole number", "For example 10."),
    float: ("a number", "For example 0.02."),
    bool: ("true or false", "For example true."),
    list: ("a text or a list of texts", 'For example ["a", "b"].'),
}
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_DECIMAL = re.compile(r"[+-]?([0-9]{1,18}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?")
_SWITCHES = {
    **dict.fromkeys(("true", "1", "on", "yes"), True),
    **dict.fromkeys(("false", "0", "off", "no"), False),
}


def checked(
    name: str,
    value: Any,
    kind: type,
    *,
    least: float | None = None,
    most: float | None = None,
    choices: Sequence[str] = (),
    longest: int | None = None,
    may_be_empty: bool = False,
) -> Any:
    """Returns the value as `kind` (str, int, float, bool, or list of texts), or raises UsageError."""
    if kind is int and isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON does not tell 10.0 from 10
    if kind is float and type(value) is int:
        value = float(value) if abs(value) < 1e300 else float("inf")
    if not _is_a(value, kind):
        words, hint = _WORDS[kind]
        raise UsageError(f"{name} takes {words}, not {value!r}.", hint=hint)
    if kind in (int, float):
        _check_bounds(name, value, least, most)
    for text in [value] if kind is str else value if kind is list else ():
        if not may_be_empty and not text.strip():
            raise empty(name)
        if longest is not None and len(text) > longest:
            raise UsageError(f"{name} is longer than {longest} characters.", hint="Ask in fewer words.")
        if choices and text not in choices:
            raise UsageError(f"{name} = {text!r} is not known.", hint=f"Valid: {', '.join(choices)}.")
    return value


def checked_argument(name: str, value: Any, schema: Schema) -> Any:
    """Returns the value if its schema allows it; otherwise raises UsageError. 10.0 becomes the integer 10, and one text
    instead of a list becomes a list of one.
    """
    kind = KINDS[schema["type"]]
    text = schema.get("items", schema)
    value = checked(
        name,
        [value] if kind is list and isinstance(value, str) else value,
        kind,
        least=schema.get("minimum"),
        most=schema.get("maximum"),
        choices=text.get("enum", ()),
        longest=text.get("maxLength"),
        may_be_empty=not {"minLength", "pattern", "enum"} & text.keys(),
    )
    if kind is list and any("\0" in item for item in value):
        raise UsageError(f"{name} contains a null character.", hint="Send plain text.")
    return value


def by_name(
    given: Mapping[str, Any],
    known: Collection[str],
    aliases: Mapping[str, str] | None = None,
    *,
    refuse: Callable[[str], UsageError] | None = None,
) -> dict[str, Any]:
    """The given values under their names instead of aliases, without those that are None. An unknown or repeated name
    raises UsageError. `refuse` makes the error for an unknown name.
    """
    values: dict[str, Any] = {}
    for written, value in given.items():
        name = (aliases or {}).get(written, written)
        if name not in known:
            raise refuse(written) if refuse else unknown(written, known, aliases or ())
        if name in values:
            raise repeated(name)
        if value is not None:
            values[name] = value
    return values


def require(names: Iterable[str], given: Mapping[str, Any]) -> None:
    for name in names:
        if name not in given:
            raise UsageError(f"{name} is missing.", hint="It has to be named.")


def _is_a(value: Any, kind: type) -> bool:
    if kind is list:
        return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    # In Python a bool is an int and NaN is a float; neither is accepted as a number.
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool)) and value == value


def _check_bounds(name: str, value: float, least: float | None, most: float | None) -> None:
    if (least is None or least <= value) and (most is None or value <= most):
        return
    hint = f"Allowed: {_number(least)} to {_number(most)}." if most is not None else f"At least {_number(least)}."
    raise UsageError(f"{name} = {_number(value)} is out of range.", hint=hint)


def _number(value: float | None) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def unknown(given: str, known: Iterable[str], aliases: Iterable[str] = (), noun: str = "option") -> UsageError:
    """The error for an unknown name. Its hint is the most similar known name, or the list of all known names."""
    names = list(known)
    close = close_to(given, [*names, *aliases])
    hint = f"Did you mean {close}?" if close else f"Options: {', '.join(names) or 'none'}."
    return UsageError(f"There is no {noun} {given!r}.", hint=hint)


def empty(name: str) -> UsageError:
    return UsageError(f"{name} is empty.", hint="Name a value, or leave it out.")


def repeated(name: str) -> UsageError:
    return UsageError(f"{name} is given more than once.", hint="Give it once.")


def from_text(text: str, kind: type) -> Any:
    """Converts a text from a URL, a variable or a command line to `kind`. Invalid text is returned unchanged, so that
    `checked` refuses it. Stricter than Python, which also reads 1_000 and NaN as numbers.
    """
    if kind is bool:
        return _SWITCHES.get(text.strip().lower(), text)
    if kind in (int, float):
        if _WHOLE.fullmatch(text.strip()):
            return int(text)
        if _DECIMAL.fullmatch(text.strip()):
            return float(text)
    return text


def close_to(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that is most similar to `name`, or None if none is similar enough."""
    from difflib import get_close_matches  # imported only when there is an error to report

    return next(iter(get_close_matches(name, list(known), 1, cutoff)), None)
