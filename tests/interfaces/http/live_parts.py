"""Finds parts of a page that run code or load something."""

from __future__ import annotations

import re
from html.parser import HTMLParser


class LiveParts(HTMLParser):
    """All parts of a page that run code or load something, as a browser parses it."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag in ("img", "iframe", "svg", "object", "embed", "base", "style") or (
            tag == "script" and not values.get("src", "").startswith("/static/")
        ):
            self.found.append(tag)
        self.found += [f"{tag} {name}" for name in values if name.startswith("on") or name == "style"]
        addresses = [values[name] for name in ("href", "src", "action") if name in values]
        self.found += [address for address in addresses if not re.match(r"/(?!/)|#|https?://|mailto:", address)]
