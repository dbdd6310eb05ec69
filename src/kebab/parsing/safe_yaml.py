"""Reads YAML of unknown authors: values only, with limits for depth, number of values and merge keys."""

from __future__ import annotations

from math import inf
from typing import Any

import yaml

_DEEPEST = 100
_MOST_MERGED = 5000
_LONGEST_NUMBER = 1000
"""In characters. PyYAML takes quadratic time for a sexagesimal number."""

_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is ten times faster, and not in every build


class BoundedLoader(_Loader):  # type: ignore[misc]  # its base is known only at run time
    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._mappings_entered = 0
        self._merged = 0

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        """Raises a YAMLError for a value that does not fit its tag, where PyYAML raises any exception."""
        try:
            if node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
                raise ValueError
            return super().construct_object(node, deep)
        except (yaml.YAMLError, RecursionError, MemoryError):
            raise
        except Exception as error:
            raise _refused(f"this is not of the type {node.tag.rpartition(':')[2]}", node) from error

    def construct_yaml_timestamp(self, node: Any) -> Any:
        """The timestamp, or its text if the day does not exist, so that the other values can still be read."""
        try:
            return super().construct_yaml_timestamp(node)
        except ValueError:
            return self.construct_scalar(node)

    def flatten_mapping(self, node: Any) -> None:
        """Limits merge keys (`<<`), a few lines of which can expand to billions of values.

        PyYAML enters a mapping from inside another one exactly when it merges it.
        """
        self._mappings_entered += 1
        super().flatten_mapping(node)
        self._mappings_entered -= 1
        if self._mappings_entered:
            self._merged += len(node.value)
            if self._merged > _MOST_MERGED:
                raise _refused("it merges too many values", node)


class StrictLoader(BoundedLoader):
    """For files that people write: a repeated key is an error, because one of its values would be lost."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                raise _refused(f"the key {name} is there twice", key)
            seen.add(name)
        return super().construct_mapping(node, deep)


def _refused(problem: str, node: Any) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(problem=problem, problem_mark=node.start_mark)


BoundedLoader.add_constructor("tag:yaml.org,2002:timestamp", BoundedLoader.construct_yaml_timestamp)


def refuse_excess(source: str, most_values: float = inf) -> None:
    """Raises ValueError if the YAML is nested too deeply or has too many keys and values.

    Call it before the YAML is loaded: libyaml recurses in C, and deep nesting overflows the stack of the process.
    """
    if sum(source.count(opening) for opening in "[{-?,\n") <= _DEEPEST:
        return  # each of these opens at most one level and separates at most two values
    depth = values = 0
    for event in yaml.parse(source, Loader=_Loader):
        if isinstance(event, yaml.NodeEvent):
            values += 1
            if values > most_values:
                raise ValueError("it holds too many values")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise ValueError("it is nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def load_yaml(source: str, most_values: int) -> Any:
    """The values; raises ValueError with the line of the problem, counted from 2 because a fence precedes the YAML."""
    try:
        refuse_excess(source, 2 * most_values)  # each value may have a key
        return yaml.load(source, Loader=BoundedLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 2 if error.problem_mark else 1
        raise ValueError(f"line {line}: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
