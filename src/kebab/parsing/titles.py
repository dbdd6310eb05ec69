"""The title of a document, told by what it says of itself, by its headings, or by its name."""

from __future__ import annotations

from collections.abc import Iterable

from kebab.core.documents import Block
from kebab.core.paths import file_stem
from kebab.core.text import storable


def title_of(declared: str, blocks: Iterable[Block], path: str) -> str:
    """On one line, and never empty."""
    return (
        storable(" ".join(declared.split()))
        or first_heading(blocks)
        or storable(" ".join(file_stem(path).split()))
        or path
    )


def first_heading(blocks: Iterable[Block]) -> str:
    """The first heading of the highest level there is."""
    headings = [block for block in blocks if block.kind == "heading" and block.title]
    return min(headings, key=lambda block: block.level).title if headings else ""
