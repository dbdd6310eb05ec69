"""A hit's snippet as the list of the page shows it: 16 words around what matched, that in `<b>` (R049)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from kebab.retrieval.snippets import ELLIPSIS, Snippet

if TYPE_CHECKING:
    from kebab.wire.search import HighlightV1

WORDS = 16
_WORD = re.compile(r"\S+")
_LEAD = 3
"""Words before the first match, to see what it stands in."""


def marked_snippet(text: str, highlights: Sequence[HighlightV1], words: int = WORDS) -> Markup:
    """Escaped, on one line."""
    short = shortened(Snippet(text, tuple((one.start, one.end) for one in highlights)), words)
    parts, last = [], 0
    for start, end in short.highlights:
        parts += [escape(short.text[last:start]), Markup("<b>"), escape(short.text[start:end]), Markup("</b>")]
        last = end
    marked = Markup("").join([*parts, escape(short.text[last:])])
    return Markup(" ".join(marked.split()))


def shortened(snippet: Snippet, words: int) -> Snippet:
    """The words of a snippet with most matches among them. In scripts without spaces, its limit of characters is what keeps it short."""
    begin, stop = snippet.text.startswith(ELLIPSIS), len(snippet.text) - snippet.text.endswith(ELLIPSIS)
    places = [match.span() for match in _WORD.finditer(snippet.text, begin, stop)]
    if not places:
        return snippet
    first = _densest(places, snippet.highlights, words)
    shown = places[first : first + words]
    start, end = shown[0][0], shown[-1][1]
    before = ELLIPSIS if first or begin else ""
    after = ELLIPSIS if end < places[-1][1] or stop < len(snippet.text) else ""
    shift = len(before) - start
    marks = tuple((max(a, start) + shift, min(b, end) + shift) for a, b in snippet.highlights if a < end and b > start)
    return Snippet(before + snippet.text[start:end] + after, marks)


def _densest(places: Sequence[tuple[int, int]], highlights: Sequence[tuple[int, int]], words: int) -> int:
    """The number of the first word to show."""
    hits = [number for number, (start, end) in enumerate(places) if any(a < end and b > start for a, b in highlights)]
    if not hits:
        return 0
    room = words - _LEAD
    best = max(hits, key=lambda first: (sum(first <= hit < first + room for hit in hits), -first))
    return max(0, min(best - _LEAD, len(places) - words))
