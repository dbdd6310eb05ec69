"""TOML from unknown authors, as values."""

from __future__ import annotations

from typing import Any

_MOST_STEPS = 2_000_000
_STEPS_PER_HEADER_PART = 20
_MOST_PARTS = 20
"""Keys with fewer parts cost little, however many there are."""


def read_toml(source: str) -> dict[str, Any]:
    """ValueError or RecursionError when it cannot be read, or is made to take long."""
    import tomllib

    if _steps(source) > _MOST_STEPS:
        raise ValueError("its keys have too many parts")
    return tomllib.loads(source)


def _steps(source: str) -> int:
    """About how much work its long dotted keys are.

    For every part of a key, tomllib walks the whole way to it: down the table header, then down the parts before. A key
    is on one line, so the dots of a line bound its parts.
    """
    keys = header = 0
    for line in source.split("\n"):
        dots = line.count(".")
        if dots > _MOST_PARTS:
            keys += dots * dots
            if line.lstrip(" \t").startswith("["):
                header = max(header, dots)
    return keys + _STEPS_PER_HEADER_PART * header * (source.count("\n") + source.count("."))
