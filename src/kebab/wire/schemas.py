"""JSON Schemas of the wire objects, derived from their dataclasses."""

from __future__ import annotations

import ast
import inspect
import types
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from kebab.wire import answers, errors, evaluation, libraries, records, reports, search, serving

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_MODULES = (answers, errors, evaluation, libraries, records, reports, search, serving)
_ROOTS: dict[str, Any] = {
    class_.schema_version.removesuffix(".v1"): class_
    for module in _MODULES
    for class_ in vars(module).values()
    if is_dataclass(class_) and hasattr(class_, "schema_version")
}
_ROOTS["citation"] = search.CitationV1  # a union of the kinds of citations, so it has no class of its own
_PRIMITIVES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def names() -> list[str]:
    return sorted(_ROOTS)


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of the wire object `name`.v1, with all definitions that it needs."""
    definitions: dict[str, Any] = {}
    root = _schema_of(_ROOTS[name], definitions, inline=True)
    top = {"$schema": DIALECT, "title": f"{name}.v1", **root}
    return {**top, "$defs": dict(sorted(definitions.items()))} if definitions else top


def _schema_of(hint: Any, definitions: dict[str, Any], *, inline: bool = False) -> dict[str, Any]:
    origin = get_origin(hint)
    if origin is Literal:
        values = list(get_args(hint))
        return {"const": values[0]} if len(values) == 1 else {"enum": values}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema_of(option, definitions) for option in get_args(hint)]}
    if origin is list:
        return {"type": "array", "items": _schema_of(get_args(hint)[0], definitions)}
    if origin is dict:
        return {"type": "object"}
    if is_dataclass(hint):
        return _object(hint, definitions, inline)
    return {} if hint is Any else {"type": _PRIMITIVES[hint]}


def _object(class_: Any, definitions: dict[str, Any], inline: bool) -> dict[str, Any]:
    name = class_.__name__
    if not inline and name in definitions:
        return {"$ref": f"#/$defs/{name}"}
    if not inline:
        definitions[name] = {}  # reserves the name, because a class may contain itself
    hints = get_type_hints(class_)
    explained = _field_sentences(class_)
    properties = {
        item.name: {**_schema_of(hints[item.name], definitions), **explained.get(item.name, {})}
        for item in fields(class_)
    }
    built = {"type": "object", "properties": properties, "required": list(properties)}
    if inline:
        return built
    definitions[name] = built
    return {"$ref": f"#/$defs/{name}"}


def _field_sentences(class_: Any) -> dict[str, dict[str, str]]:
    """The descriptions of the fields of a class: the texts below the fields in the source code."""
    (body,) = ast.parse(inspect.getsource(class_)).body
    statements = body.body if isinstance(body, ast.ClassDef) else []
    return {
        field.target.id: {"description": " ".join(below.value.value.split())}
        for field, below in pairwise(statements)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant) and isinstance(below.value.value, str)
    }
