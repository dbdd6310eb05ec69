"""The description of an MCP tool, and the checks of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from kebab.core.checking import from_text, unknown
from kebab.core.errors import UsageError
from kebab.core.text import estimate_tokens, whole_characters
from kebab.interfaces.arguments import KINDS, Schema, checked_argument, require
from kebab.search.options import unknown_option
from kebab.wire import to_json

if TYPE_CHECKING:
    from kebab.core.ports import Progress
    from kebab.interfaces.service import Service

ROOM = 20_000
"""The most tokens of a structured answer if the caller gives no budget. Agents refuse more than 25,000."""
_NOTHING: Mapping[str, Any] = {}
_LARGEST = 2**63
"""Numbers of this size or more are refused first, because an error message cannot quote very long ones."""
_DEEPEST = 20


class Answer(NamedTuple):
    """A wire object, and the same answer as texts. Texts are separate to keep quotations and remarks apart."""

    wire_object: Any
    texts: tuple[str, ...]


class Call(NamedTuple):
    """The input of a tool's `run`."""

    service: Service
    values: dict[str, Any]
    """The checked arguments, by their names in the schema."""
    progress: Progress | None = None


class Tool(NamedTuple):
    name: str
    title: str
    description: str
    run: Callable[[Call], Answer]
    answers: str
    """The name of the wire object in a structured answer."""
    arguments: Mapping[str, Schema] = _NOTHING
    """Schemas of the arguments that `read` checks."""
    options: Mapping[str, Schema] = _NOTHING
    """Schemas of the search options, which SearchRequest checks."""
    required: tuple[str, ...] = ()
    aliases: Mapping[str, str] = _NOTHING
    writes: bool = False
    waits: bool = False
    """Whether it may wait for a remote model, and so gets more time."""

    @property
    def schemas(self) -> dict[str, Schema]:
        return {**self.options, **self.arguments}

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments. It does not forbid other names, because aliases are allowed."""
        properties = {name: dict(schema) for name, schema in self.schemas.items()}
        return {"type": "object", "properties": properties, "required": list(self.required)}

    @property
    def output_schema(self) -> dict[str, Any]:
        return _answer_or_error(self.answers)

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the arguments for `run`: checked, and without aliases and nulls."""
        schemas, values = self.schemas, dict[str, Any]()
        for written, value in given.items():
            name = self.aliases.get(written, written)
            if name not in schemas:
                raise self._unknown(whole_characters(written))
            if value is None:
                continue
            if name in values:
                raise UsageError(f"{name} is given twice, once as {written}.", hint="Give it once.")
            value = _storable(value)
            # Models sometimes send numbers and booleans as texts.
            values[name] = from_text(value, KINDS[schemas[name]["type"]]) if isinstance(value, str) else value
        require(self.required, values)
        for name, schema in self.arguments.items():
            if name in values:
                value = values[name]  # one text instead of a list becomes a list of one
                is_one = schema["type"] == "array" and isinstance(value, str)
                values[name] = checked_argument(name, [value] if is_one else value, schema)
        return values

    def _unknown(self, written: str) -> UsageError:
        if "mode" in self.options:  # a tool that searches
            return unknown_option(written, *self.arguments, *self.aliases)
        return unknown(written, self.schemas, self.aliases)


def _storable(value: Any, depth: int = 0) -> Any:
    """The value with lone surrogates replaced. Too deep nesting and too large numbers raise UsageError."""
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


@cache
def _answer_or_error(name: str) -> dict[str, Any]:
    """The JSON Schema of an answer or an error, because clients check both against the output schema."""
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
    """How many of these objects, from the first on, fit into `room` tokens. The first one always counts as fitting."""
    used = 0
    for number, item in enumerate(items):
        used += estimate_tokens(to_json(item), code=True)
        if number and used > room:
            return number
    return len(items)
