"""A hit's snippet as the list of the page shows it: 16 words around what matched, that in `<b>` (R049)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from kebab.wire.search import HighlightV1

WORDS = 16
_CUT = "…"
_WORD = re.compile(r"\S+")
_LEAD = 3
"""Words before the first match, to see what it stands in."""

Ranges = Sequence[tuple[int, int]]


def marked_snippet(snippet: str, highlights: Sequence[HighlightV1], words: int = WORDS) -> Markup:
    """Escaped, on one line."""
    text, marks = shortened(snippet, [(one.start, one.end) for one in highlights], words)
    parts, last = [], 0
    for start, end in marks:
        parts += [escape(text[last:start]), Markup("<b>"), escape(text[start:end]), Markup("</b>")]
        last = end
    return Markup(" ").join(Markup("").join([*parts, escape(text[last:])]).split())


def shortened(snippet: str, highlights: Ranges, words: int) -> tuple[str, list[tuple[int, int]]]:
    """The words of a snippet with most matches among them. In scripts without spaces, its limit of characters is what
    keeps it short.
    """
    begin, stop = snippet.startswith(_CUT), len(snippet) - snippet.endswith(_CUT)
    places = [match.span() for match in _WORD.finditer(snippet, begin, stop)]
    if not places:
        return snippet, []
    first = _densest(places, highlights, words)
    shown = places[first : first + words]
    start, end = shown[0][0], shown[-1][1]
    before = _CUT if first or begin else ""
    after = _CUT if end < places[-1][1] or stop < len(snippet) else ""
    shift = len(before) - start
    marks = [(max(a, start) + shift, min(b, end) + shift) for a, b in highlights if a < end and b > start]
    return before + snippet[start:end] + after, marks


def _densest(places: Ranges, highlights: Ranges, words: int) -> int:
    """The number of the first word to show."""
    hits = [number for number, (start, end) in enumerate(places) if any(a < end and b > start for a, b in highlights)]
    if not hits:
        return 0
    room = words - _LEAD
    best = max(hits, key=lambda first: (sum(first <= hit < first + room for hit in hits), -first))
    return max(0, min(best - _LEAD, len(places) - words))
