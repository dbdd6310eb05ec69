"""What an address of the REST interface takes and gives: said once, and both served and documented from that."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.core import errors

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Schema = dict[str, Any]
Handler = Callable[["Request"], Awaitable["Response"]]


class Parameter(NamedTuple):
    """In the query of an address, or, where the path has a place for it, there."""

    schema: Schema
    required: bool = False


class Answer(NamedTuple):
    """A body that comes with success; `schema` is the name of a wire object, or a schema."""

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
"""Server-sent events: each has a name, and a wire object in its data."""


class Endpoint(NamedTuple):
    method: str
    path: str
    handler: Handler
    summary: str
    answers: tuple[Answer, ...]
    parameters: Mapping[str, Parameter] = {}
    bodies: Mapping[str, Schema] = {}
    """The schema of what is sent, by media type."""
    fails: tuple[type[errors.KebabError], ...] = ()
    """Besides what any request may meet."""


ALWAYS: tuple[type[errors.KebabError], ...] = (
    errors.UsageError,
    errors.Refused,
    errors.Unauthorized,
    errors.NotFound,
    errors.TooLarge,
    errors.TooMany,
    errors.TimedOut,
    errors.Internal,
)
"""What any request may meet; not found, also where the database itself is gone."""
SEARCHING: tuple[type[errors.KebabError], ...] = (
    errors.NotFound,
    errors.StaleCursor,
    errors.ModelUnreachable,
    errors.StillIndexing,
)
