"""Describes REST endpoints, and reads and checks the parameters and bodies of requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from kebab.core import errors
from kebab.core.checking import empty, from_text, unknown
from kebab.core.errors import UsageError
from kebab.core.text import json_values
from kebab.interfaces.arguments import KINDS, checked_argument, require

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Schema = dict[str, Any]
Handler = Callable[["Request"], Awaitable["Response"]]
_MOST_FIELDS = 100


class Parameter(NamedTuple):
    """A parameter in an address: in the path if the endpoint's path names it, otherwise in the query."""

    schema: Schema
    required: bool = False


class Answer(NamedTuple):
    """A successful response. `schema` is the name of a wire object, or a JSON Schema."""

    schema: str | Schema
    media: str = "application/json"
    status: int = 200


EVENTS = Answer(
    {
        "type": "object",
        "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
        "required": ["event", "data"],
    },
    "text/event-stream",
)
"""A response of server-sent events. The data of each event is JSON."""


class Endpoint(NamedTuple):
    path: str
    """The path without the leading /api/."""
    handler: Handler
    summary: str
    answers: tuple[Answer, ...]
    parameters: Mapping[str, Parameter] = {}
    fails: tuple[type[errors.KebabError], ...] = ()
    """Errors that it may return besides those of ALWAYS."""
    bodies: Mapping[str, Schema] = {}
    """The schema of the request body by media type. An endpoint with a request body takes POST, any other GET."""

    @property
    def method(self) -> str:
        return "POST" if self.bodies else "GET"


ALWAYS: tuple[type[errors.KebabError], ...] = (
    *(errors.UsageError, errors.Refused, errors.Unauthorized, errors.NotFound),
    *(errors.TooLarge, errors.TooMany, errors.TimedOut, errors.Internal),
)
"""Errors that any request may return. NotFound is one of them because the database may be missing."""
SEARCHING: tuple[type[errors.KebabError], ...] = (
    *(errors.NotFound, errors.StaleCursor, errors.ModelUnreachable, errors.StillIndexing),
)


# --- reading requests


def texts_of(request: Request) -> dict[str, list[str]]:
    """The query parameters of a request, each with all its values."""
    parameters = request.query_params
    return {name: parameters.getlist(name) for name in parameters}


def values_given(request: Request, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The checked parameters of the path and the query. Unknown, repeated, empty or missing ones raise UsageError."""
    values = dict(request.path_params)
    known = [name for name in parameters if name not in values]
    for name, texts in texts_of(request).items():
        if name not in known:
            raise unknown(name, known)
        if len(texts) > 1:
            raise UsageError(f"{name} is given {len(texts)} times.", hint="Give it once.")
        if not texts[0].strip():
            raise empty(name)
        values[name] = checked_text(name, texts[0], parameters[name].schema)
    require((name for name, parameter in parameters.items() if parameter.required), values)
    return values


def checked_text(name: str, text: str, schema: Schema) -> Any:
    """Converts a text from an address to the type in its schema, and checks it."""
    return checked_argument(name, from_text(text, KINDS[schema["type"]]), schema)


def filled_in(request: Request) -> dict[str, list[str]]:
    """The query parameters without empty values, because a browser also sends the form fields that are left empty."""
    kept = {name: [text for text in texts if text.strip()] for name, texts in texts_of(request).items()}
    return {name: texts for name, texts in kept.items() if texts}


def form_fields(request: Request, known: set[str]) -> dict[str, str]:
    """The first value of each non-empty query parameter. A parameter that is not in `known` raises UsageError."""
    for name in sorted(set(texts_of(request)) - known):
        raise unknown(name, sorted(known))
    return {name: texts[0] for name, texts in filled_in(request).items()}


async def json_body(request: Request) -> Any:
    try:
        return json_values(await request.body())
    except (ValueError, RecursionError) as error:
        hint = "Send it as application/json, in UTF-8; JSON lines, where they are taken, as application/x-ndjson."
        raise UsageError(f"The body is not JSON: {error}.", hint=hint) from error


async def form_body(request: Request) -> dict[str, str]:
    """The fields of a posted HTML form. The last value counts if a field is repeated."""
    try:
        return dict(parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except ValueError as error:
        hint = "Send it as application/x-www-form-urlencoded, in UTF-8."
        raise UsageError(f"The body is no form: {error}.", hint=hint) from error
