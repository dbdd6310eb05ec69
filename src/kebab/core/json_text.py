"""JSON that somebody sent, as values."""

from __future__ import annotations

import json
from typing import Any

from kebab.core.text import whole_characters


def values_of(text: str | bytes) -> Any:
    """What it says; raises ValueError or RecursionError. An escape can be half a character, which can neither be stored
    nor sent back: a question mark stands for it.
    """
    values = json.loads(text)
    written = json.dumps(values, ensure_ascii=False)
    whole = whole_characters(written)
    return values if whole == written else json.loads(whole)
