"""What a tool is: its name and arguments as agents see them, and what it does."""

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
"""Tokens of a structured answer without a budget: agents refuse more than 25,000. Its text always takes less."""
_NOTHING: Mapping[str, Any] = {}
_LARGEST = 2**63
"""Larger numbers are never valid, and very long ones cannot even be quoted in an error."""
_DEEPEST = 20


class Answer(NamedTuple):
    """A wire object, and the same as texts. Each is a separate part, so that quotations and remarks stay apart."""

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
    """Search options, which SearchRequest checks."""
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
        """The arguments as `run` takes them: by their own names and checked; null means not given."""
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
            # Models put numbers and switches in quotes now and then.
            values[name] = from_text(value, KINDS[schemas[name]["type"]]) if isinstance(value, str) else value
        require(self.required, values)
        for name, schema in self.arguments.items():
            if name in values:
                value = values[name]  # one text where several are taken is a list of one
                is_one = schema["type"] == "array" and isinstance(value, str)
                values[name] = checked_argument(name, [value] if is_one else value, schema)
        return values

    def _unknown(self, written: str) -> UsageError:
        if "mode" in self.options:  # it searches
            return unknown_option(written, *self.arguments, *self.aliases)
        return unknown(written, self.schemas, self.aliases)


def _storable(value: Any, depth: int = 0) -> Any:
    """The value with half characters replaced, which cannot be sent back; raises for values that cannot be quoted."""
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
