"""The wire objects: the dataclasses that CLI, HTTP and MCP return as JSON, in version 1.

JSON Schemas are made from these dataclasses. Version 1 never loses a field; new fields must be optional.
"""

from __future__ import annotations

import json
from dataclasses import Field, dataclass
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform

VIEWS: dict[type, Any] = {}
"""For each class of records, its wire class, or a function that makes its wire object. The modules of this package add
theirs.
"""


@dataclass_transform(kw_only_default=True, eq_default=False)
class Wire:
    """Base class of the wire objects: makes each subclass a dataclass whose fields are given by name. `schema` is the
    value of its first field, `schema_version`, in an object that is not only a part of others. `of`: the class of the
    records that it is made from, if it has fields of the same names.

    They are not frozen and have no equality, because building such classes takes three times as long, and Python builds
    them at every start.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    schema_version: ClassVar[str]

    def __init_subclass__(cls, *, schema: str = "", of: type | None = None) -> None:
        if schema:
            cls.schema_version = schema
            cls.__annotations__ = {"schema_version": Literal[schema], **cls.__annotations__}
        if of is not None:
            VIEWS[of] = cls
        dataclass(kw_only=True, eq=False, repr=False)(cls)


_Wire = TypeVar("_Wire", bound=Wire)


def view(wire_class: type[_Wire], record: object, **fields: Any) -> _Wire:
    """Makes a wire object from these fields and the record's fields of the same names, converted by `viewed`."""
    for name in wire_class.__dataclass_fields__:
        if name not in fields and hasattr(record, name):
            fields[name] = viewed(getattr(record, name))
    return wire_class(**fields)


def viewed(value: Any) -> Any:
    """Converts a value for a wire object: records become wire objects (see VIEWS), tuples become lists."""
    if type(value) in (tuple, list):
        return [viewed(item) for item in value]
    make = VIEWS.get(type(value))
    if make is None:
        return value
    return view(make, value) if isinstance(make, type) else make(value)


def plain(value: Any) -> Any:
    """A wire object as dicts, lists and plain values."""
    return json.loads(to_json(value))


def to_json(value: Any, *, indent: int | None = None) -> str:
    """The JSON text of a wire object, with the fields in the order of the class."""
    return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False, default=vars)
