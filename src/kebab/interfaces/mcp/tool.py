"""What a tool is: its name and arguments as agents see them, and what it does. The tables of tools are made of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.core.errors import UsageError
from kebab.core.text import estimate_tokens
from kebab.interfaces.mcp.arguments import Schema, as_list, check, named
from kebab.wire.objects import to_json

if TYPE_CHECKING:
    from kebab.core.ports import Progress
    from kebab.interfaces.service import Service

ROOM = 20_000
"""Tokens of a structured answer that nobody set a budget for: agents refuse more than 25,000. Its text always takes
less.
"""
_NOTHING: Mapping[str, Any] = {}


class Answer(NamedTuple):
    """A wire object, and the same for who reads: each text is a part of its own, so that quoted text cannot run into
    what we say.
    """

    wire_object: Any
    texts: tuple[str, ...]


class Call(NamedTuple):
    """What a tool works with."""

    service: Service
    values: dict[str, Any]
    """The arguments, named as in the schema and checked."""
    progress: Progress | None = None


class Tool(NamedTuple):
    name: str
    title: str
    description: str
    run: Callable[[Call], Answer]
    answers: str
    """The name of the wire object in a structured answer."""
    arguments: Mapping[str, Schema] = _NOTHING
    """Its own, checked here."""
    options: Mapping[str, Schema] = _NOTHING
    """Of a search: checked where every surface has them checked."""
    required: tuple[str, ...] = ()
    aliases: Mapping[str, str] = _NOTHING
    writes: bool = False
    waits: bool = False
    """Whether it may wait for a model elsewhere."""

    @property
    def schemas(self) -> dict[str, Schema]:
        return {**self.options, **self.arguments}

    @property
    def input_schema(self) -> dict[str, Any]:
        """Aliases are taken too, so other names are not forbidden here."""
        properties = {name: dict(schema) for name, schema in self.schemas.items()}
        return {"type": "object", "properties": properties, "required": list(self.required)}

    @property
    def output_schema(self) -> dict[str, Any]:
        return _answer_or_error(self.answers)

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as `run` takes them."""
        values = named(self.name, given, self.schemas, self.aliases)
        for name in self.required:
            if name not in values:
                raise UsageError(f"{self.name} needs {name}.", hint=f"Arguments: {', '.join(self.schemas)}.")
        for name, schema in self.arguments.items():
            if name in values:
                values[name] = as_list(values[name], schema)
                check(name, values[name], schema)
        return values


@cache
def _answer_or_error(name: str) -> dict[str, Any]:
    """Clients check structured content against this also when it is an error."""
    from kebab.wire.schemas import DIALECT, schema

    answer, error = schema(name), schema("error")
    definitions = {**answer.pop("$defs", {}), **error.pop("$defs", {})}
    for one in (answer, error):
        one.pop("$schema")
    both = {"answer": answer, "error": error}
    return {
        "$schema": DIALECT,
        "type": "object",
        "anyOf": [{"$ref": f"#/$defs/{key}"} for key in both],
        "$defs": {**definitions, **both},
    }


def how_many_fit(items: list[Any], room: int = ROOM) -> int:
    """Of these objects, from the first on; at least one, because an answer too long is better than none."""
    used = 0
    for number, item in enumerate(items):
        used += estimate_tokens(to_json(item), code=True)
        if number and used > room:
            return number
    return len(items)
