"""Paragraphs that are no running text: logs, diaries, entries with a name before a colon, and short lines that each
stand by themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise

from kebab.analysis.language import is_stop_word
from kebab.answering.kinds import MONTH, WEEKDAY

_STAMP = re.compile(
    r"\s*[\[(*_]*(?:\d{4}[-./]\d{1,2}|\d{1,2}[./]\d{1,2}\.?(?:\d{2,4})?(?=[\s:,)\]])|\d{1,2}:\d\d"
    rf"|{MONTH}\.?\s\d{{1,2}}\b|\d{{1,2}}\.?\s{MONTH}\b|{WEEKDAY}\b|\d{{4}}년|\d{{1,2}}월|[월화수목금토일]요일)",
    re.IGNORECASE,
)
"""A date, a time or a day, as an entry of a log or a diary begins."""
_KEY = re.compile(r"\s*[*_]*(?:[\w./-]+|[A-Z가-힣][\w'’/()-]*(?:\s[\w'’/()&-]+){1,3})[*_]*\s?[:：][*_]*\s+\S")
_DIALOGUE = re.compile(r"\s*\W{0,4}(?:[QA]|질문|답변?|문|답)\s?[:.)]", re.IGNORECASE)
"""A question and its answer belong together."""
_ENDED = re.compile(r"""[.!?…。！？,;:：\\({\[-]["'”’)\]*_`]*$""")
_GOES_ON_INSIDE = re.compile(r"\w{4,}[.!?]\s+[A-Z가-힣]")
_GOES_ON_KOREAN = re.compile(r"(?:[은는을를에]|에서|에게|하고|하며|으로|및)$")
_WIDEST = 60
_WIDTH_PER_LINE = 20
"""Two lines must be shorter than many to be told from a sentence that goes on."""


def entries(paragraph: Sequence[str]) -> frozenset[int]:
    """Which lines of a paragraph begin an entry, by number; none of running text. What leads up to the others is no
    entry itself.
    """
    lead = int(len(paragraph) > 2 and paragraph[0].rstrip().endswith((":", "：")))
    lines = paragraph[lead:]
    if len(lines) < 2:
        return frozenset()
    stamped = _begun_by(lines, lambda line: _STAMP.match(line) is not None)
    keyed = _begun_by(lines, lambda line: _KEY.match(line) is not None and not _DIALOGUE.match(line))
    if len(stamped) > 1:
        found = stamped
    elif len(keyed) > 1 and 2 * len(keyed) >= len(lines):
        found = keyed
    else:
        found = list(range(len(lines))) if _stand_alone(lines) else []
    return frozenset(number + lead for number in found)


def _begun_by(lines: Sequence[str], begins: Callable[[str], bool]) -> list[int]:
    """Those that begin like the first, which must begin so; what is indented deeper belongs to the line above."""
    if not begins(lines[0]):
        return []
    return [number for number, line in enumerate(lines) if begins(line) and _indent(line) <= _indent(lines[0])]


def _stand_alone(lines: Sequence[str]) -> bool:
    """Short lines, none of which goes on in the next one."""
    widest = min(_WIDEST, _WIDTH_PER_LINE * len(lines))
    return all(
        len(line.rstrip()) <= widest and not _ENDED.search(line.rstrip()) and not _GOES_ON_INSIDE.search(line)
        for line in lines
    ) and not any(_goes_on(line.split()[-1], after.split()[0]) for line, after in pairwise(lines))


def _goes_on(last: str, first: str) -> bool:
    return first[0].islower() or is_stop_word(last.lower()) or _GOES_ON_KOREAN.search(last) is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
