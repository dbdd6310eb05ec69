"""A query with what it is expected to find, and what every file of such queries has in common."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from kebab.core.errors import GoldenSetError
from kebab.wire.evaluation import EvalGoldenV1

_MOST_NAMED = 50
"""Of unknown ids; the others are counted."""


class GoldenQuery(NamedTuple):
    id: str
    query: str
    expected_docs: Mapping[str, int]
    """Paths, SOURCE:paths or ids of documents, with the grade of each; a judged page is written file.pdf#page=3."""
    expected_chunks: tuple[str, ...] = ()
    expected_spans: tuple[str, ...] = ()
    """path#L3-L9"""
    must_contain: tuple[str, ...] = ()
    """Strings that the passages found must have, verbatim."""
    forbidden: tuple[str, ...] = ()
    """Strings that they must not have."""
    group: str | None = None
    """Queries of one group ask the same in other words."""
    unanswerable: bool = False


class GoldenSet(NamedTuple):
    name: str
    kind: Literal["yaml", "jsonl", "beir"]
    sha256: str
    """Of everything it was read from."""
    queries: tuple[GoldenQuery, ...]

    def as_wire(self) -> EvalGoldenV1:
        return EvalGoldenV1(name=self.name, kind=self.kind, sha256=self.sha256, queries=len(self.queries))


def read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise unsound(
            path, f"cannot be read: {error.strerror}", "Name a YAML or JSONL file, or a folder in BEIR layout."
        ) from error


def unsound(path: Path, what: str, hint: str) -> GoldenSetError:
    return GoldenSetError(f"{path.name} {what}.", hint=hint, path=str(path))


def listed(names: Sequence[str]) -> str:
    others = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {others:,} more" if others > 0 else "")


def refuse_repeated_ids(queries: Iterable[GoldenQuery], path: Path) -> None:
    twice = [id for id, count in Counter(query.id for query in queries).items() if count > 1]
    if twice:
        raise unsound(path, f"has several queries with the id {twice[0]}", "Give each its own id.")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that is there twice is a slip, and one of its values would be lost."""
    entry: dict[str, Any] = {}
    for key, value in pairs:
        if key in entry:
            raise ValueError(f"the key {key} is there twice")
        entry[key] = value
    return entry


def json_lines(text: str, path: Path) -> Iterable[dict[str, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entry = json.loads(line, object_pairs_hook=_without_repetition)
        except RecursionError as error:
            raise unsound(
                path, f"is nested too deeply in line {number}", "Each line is one JSON object of texts and lists."
            ) from error
        except ValueError as error:
            raise unsound(path, f"has no JSON in line {number}: {error}", "Each line is one JSON object.") from error
        if not isinstance(entry, dict):
            raise unsound(path, f"has no JSON object in line {number}", "Each line is one JSON object.")
        yield entry
