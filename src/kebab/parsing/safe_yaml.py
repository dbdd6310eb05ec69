"""YAML from strangers: values only, and neither its depth nor its merge keys may take more than a little time and stack."""

from __future__ import annotations

from typing import Any

import yaml

_DEEPEST = 100
_MOST_MERGED = 5000

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's is ten times faster, and not in every build


class BoundedLoader(_Loader):  # type: ignore[misc]  # its base is known only at run time
    def construct_yaml_timestamp(self, node: Any) -> Any:
        """As text, when there is no such day: the rest of the front matter is right all the same."""
        try:
            return super().construct_yaml_timestamp(node)
        except ValueError:
            return self.construct_scalar(node)

    def flatten_mapping(self, node: Any) -> None:
        """Merge keys (`<<`) copy what they name; a few lines of them can stand for billions of values."""
        super().flatten_mapping(node)
        if len(node.value) > _MOST_MERGED:
            raise ValueError("it merges too many values")


class StrictLoader(BoundedLoader):
    """For what people have written by hand: a key that is there twice is a slip, and one of its values would be lost."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            name = str(key.value)
            if name in seen:
                raise yaml.constructor.ConstructorError(problem=f"the key {name} is there twice", problem_mark=key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


BoundedLoader.add_constructor("tag:yaml.org,2002:timestamp", BoundedLoader.construct_yaml_timestamp)


def refuse_deep_nesting(source: str) -> None:
    """Before anything is built: libyaml builds by recursion in C, and a deep enough text overflows the stack of the process."""
    if sum(source.count(opening) for opening in "[{-?\n") <= _DEEPEST:
        return  # nothing opens a level but these
    depth = 0
    for event in yaml.parse(source, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEEPEST:
                raise ValueError("it is nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
