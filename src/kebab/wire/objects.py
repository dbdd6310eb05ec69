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
    return json.dumps(plain(value), ensure_ascii=False, indent=indent, allow_nan=False)
