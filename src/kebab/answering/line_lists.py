"""Recognises paragraphs that are no running text: logs, diaries, entries with a name before a colon, and short lines
that are separate.
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
"""The beginning of a log or diary entry: a date, a time or a day."""
_KEY = re.compile(r"\s*[*_]*(?:[\w./-]+|[A-Z가-힣][\w'’/()-]*(?:\s[\w'’/()&-]+){1,3})[*_]*\s?[:：][*_]*\s+\S")
_DIALOGUE = re.compile(r"\s*\W{0,4}(?:[QA]|질문|답변?|문|답)\s?[:.)]", re.IGNORECASE)
"""The beginning of a question or an answer in a dialogue; both belong together."""
_ENDED = re.compile(r"""[.!?…。！？,;:：\\({\[-]["'”’)\]*_`]*$""")
_GOES_ON_INSIDE = re.compile(r"\w{4,}[.!?]\s+[A-Z가-힣]")
_GOES_ON_KOREAN = re.compile(r"(?:[은는을를에]|에서|에게|하고|하며|으로|및)$")
_WIDEST = 60
_WIDTH_PER_LINE = 20
"""The most characters of a line, per number of lines: two lines must be shorter than many to be told from a sentence
that continues.
"""


def entries(paragraph: Sequence[str]) -> frozenset[int]:
    """The numbers of the lines of a paragraph that begin an entry; none for running text. A line that introduces the
    others is no entry.
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
    """The lines that begin like the first one, which must begin like an entry. A more indented line belongs to the line
    above.
    """
    if not begins(lines[0]):
        return []
    return [number for number, line in enumerate(lines) if begins(line) and _indent(line) <= _indent(lines[0])]


def _stand_alone(lines: Sequence[str]) -> bool:
    """Whether the lines are short and no sentence continues on the next line."""
    widest = min(_WIDEST, _WIDTH_PER_LINE * len(lines))
    return all(
        len(line.rstrip()) <= widest and not _ENDED.search(line.rstrip()) and not _GOES_ON_INSIDE.search(line)
        for line in lines
    ) and not any(_goes_on(line.split()[-1], after.split()[0]) for line, after in pairwise(lines))


def _goes_on(last: str, first: str) -> bool:
    return first[0].islower() or is_stop_word(last.lower()) or _GOES_ON_KOREAN.search(last) is not None


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
