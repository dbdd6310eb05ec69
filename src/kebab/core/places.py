"""Where a passage says that it stands in the text of its document, and whether it does."""

from __future__ import annotations

from kebab.core.documents import page_text
from kebab.core.spans import PageSpan, Span, lines_of
from kebab.core.text import LineTable


def stands_there(text: str, start: int, end: int, span: Span, body: str, lines: LineTable) -> bool:
    """By its offsets, and on the lines or the page that are cited. `lines`: those of `body`."""
    if body[start:end] != text:
        return False
    if isinstance(span, PageSpan):
        return text in (page_text(body, span.page) or "")
    cited = lines_of(span)
    return cited is None or text in lines.slice(*cited)
