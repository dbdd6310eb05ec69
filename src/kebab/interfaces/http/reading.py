"""What a request says, as values: out of its address and its body."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kebab.core.errors import UsageError
from kebab.core.json_text import values_of

if TYPE_CHECKING:
    from starlette.requests import Request

_MOST_FIELDS = 100
_NUMBER = re.compile(r"-?[0-9]{1,12}")


def given(request: Request) -> dict[str, list[str]]:
    """The parameters of the address, each as often as it is there."""
    parameters = request.query_params
    return {name: parameters.getlist(name) for name in parameters}


def filled_in(request: Request) -> dict[str, list[str]]:
    """The same of a form, which sends every field: what was left empty is not given."""
    kept = {name: [text for text in texts if text.strip()] for name, texts in given(request).items()}
    return {name: texts for name, texts in kept.items() if texts}


def only(request: Request, known: Mapping[str, Any] | set[str]) -> dict[str, str]:
    """The parameters of an address that takes these, each once."""
    values: dict[str, str] = {}
    for name, texts in given(request).items():
        if name not in known:
            raise UsageError(
                f"There is no parameter {name!r} here.", hint=f"Parameters: {', '.join(sorted(known)) or 'none'}."
            )
        if len(texts) > 1:
            raise UsageError(f"{name} is given {len(texts)} times.", hint="Give it once.")
        if not texts[0].strip():
            raise UsageError(f"{name} is empty.", hint="Name a value, or leave the parameter out.")
        values[name] = texts[0]
    return values


def form_fields(request: Request, known: set[str]) -> dict[str, str]:
    """The same of a form: a field that was left empty is not given."""
    filled = filled_in(request)
    unknown = sorted(set(given(request)) - known)
    if unknown:
        raise UsageError(f"There is no parameter {unknown[0]!r} here.", hint=f"Parameters: {', '.join(sorted(known))}.")
    return {name: texts[0] for name, texts in filled.items()}


def required(values: Mapping[str, str], name: str) -> str:
    if name not in values:
        raise UsageError(f"The parameter {name} is missing.", hint=f"For example ?{name}=…")
    return values[name]


def whole_number(values: Mapping[str, str], name: str, default: int | None = None) -> int | None:
    text = values.get(name)
    if text is None:
        return default
    if not _NUMBER.fullmatch(text):
        raise UsageError(f"{name} takes a whole number, not {text!r}.", hint=f"For example {name}=10.")
    return int(text)


async def json_body(request: Request) -> Any:
    try:
        return values_of(await request.body())
    except (ValueError, RecursionError) as error:
        hint = "Send it as application/json, in UTF-8; JSON lines, where they are taken, as application/x-ndjson."
        raise UsageError(f"The body is not JSON: {error}.", hint=hint) from error


async def form_body(request: Request) -> dict[str, str]:
    """The fields of a form, as browsers send them; of a field that is there several times, the last."""
    from urllib.parse import parse_qsl

    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        raise UsageError(
            f"The body is no form: {error}.", hint="Send it as application/x-www-form-urlencoded, in UTF-8."
        ) from error
