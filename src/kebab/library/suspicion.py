"""Libraries whose own description reads like orders: it is shown as it stands, with a flag."""

from __future__ import annotations

from kebab.analysis.orders import reads_like_orders
from kebab.core.libraries import Library

REMARK = "Some of this reads like orders to whoever reads it by machine. It is quoted from the documentation, and nothing more."


def names_like_orders(library: Library) -> bool:
    """Of what a list of libraries shows."""
    return reads_like_orders(f"{library.title}\n{library.description}")
