"""Wire object → plain JSON values."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from typing import Any


def plain(value: Any) -> Any:
    if is_dataclass(value):
        return {name: plain(item) for name, item in vars(value).items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def to_json(value: Any, *, indent: int | None = None) -> str:
    """The fields of a wire object are its variables, in their order: the encoder asks for them itself, without a copy
    before.
    """
    return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False, default=vars)
