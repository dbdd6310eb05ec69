"""Passages with (nearly) the same text: one of them is listed, and carries the others as its copies.

A backup of a note, a README that was vendored twice, the folders of several versions: their passages have nearly the
same score and so stand close together in a ranked list. A passage is therefore compared only with the few before it.
Whether it is folded depends on nothing that comes after it, so that a list looked at more deeply begins as it did
before, and pages fit together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from math import inf
from typing import Generic, TypeVar

REACH = 10
"""How many places there may be between a copy and the next one."""
MOST_COPIES = 100
"""The most copies that one passage carries; the next copy is listed, and carries those after it."""

_SHINGLE = 5
"""Words in a row that are compared as one."""
_LEAST_OVERLAP = 0.9
"""Share of the shingles of two passages that both have: in a hundred words one may be another."""
_LEAST_SHINGLES = 60
"""In shorter passages a single word may be all that matters, so these must be equal."""
_PROBE = 24
"""Characters of a piece that is looked for in the other passage, before anything is counted."""
_PROBES = 8
"""How many of them, spread over the passage."""
_MOST_MISSED = 2
"""Pieces that edits may have hit."""
_LONGEST_WORD = 16
"""A longer word that is not ASCII is a sentence of a script without spaces: its characters are compared as words."""

T = TypeVar("T")


class Passage:
    """A text that is compared with others; expensive properties are computed on first use."""

    def __init__(self, text: str, content_hash: str = "") -> None:
        """Equal hashes mean equal texts, so the hash alone is enough where the text is not at hand."""
        self.text = text
        self.content_hash = content_hash
        self.length = len(text)
        self.beginning = (text.split(None, 1) or [""])[0]
        """The first word tells most texts apart."""

    @cached_property
    def words(self) -> list[str]:
        return self.text.split()

    @cached_property
    def probes(self) -> list[str]:
        starts = (self.length * number // _PROBES for number in range(_PROBES))
        return [self.text[start : start + _PROBE] for start in starts]

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        """Empty where the text is short, or so repetitive that two such texts would look alike."""
        units = [unit for word in self.words for unit in (word if _is_unspaced(word) else (word,))]
        shingles = frozenset(zip(*(units[start:] for start in range(_SHINGLE)), strict=False))
        return shingles if len(shingles) >= _LEAST_SHINGLES else frozenset()


class _Group(Generic[T]):
    """A listed passage, and the copies that are folded under it."""

    def __init__(self, item: T, passage: Passage | None, place: int) -> None:
        self.item = item
        self.passage = passage
        self.copies: list[T] = []
        self.last = place
        """The place of its last copy, or its own."""

    def is_open(self, place: int) -> bool:
        """Whether the passage at this place may be one of its copies."""
        return self.passage is not None and self.last >= place - REACH and len(self.copies) < MOST_COPIES

    def takes(self, passage: Passage | None, place: int) -> bool:
        if self.passage is None or passage is None or not self.is_open(place):
            return False
        return is_duplicate(self.passage, passage)


def is_duplicate(one: Passage, other: Passage) -> bool:
    """Whether two passages have the same words; long ones may differ by a small edit."""
    if one.content_hash == other.content_hash and one.content_hash:
        return True
    if not one.text or not other.text:
        return not (one.text or other.text or one.content_hash or other.content_hash)
    if one.beginning == other.beginning and one.words == other.words:
        return True
    least, most = (one.length, other.length) if one.length < other.length else (other.length, one.length)
    if least < _LEAST_SHINGLES or least < _LEAST_OVERLAP * most:
        return False
    shorter, longer = (one, other) if (one.length, one.text) < (other.length, other.text) else (other, one)
    return _has_pieces_of(longer.text, shorter.probes) and _overlap(one.shingles, other.shingles) >= _LEAST_OVERLAP


def _has_pieces_of(text: str, probes: list[str]) -> bool:
    """A cheap test that most pairs of different texts fail."""
    missed = 0
    for probe in probes:
        if probe not in text:
            missed += 1
            if missed > _MOST_MISSED:
                return False
    return True


def _is_unspaced(word: str) -> bool:
    return len(word) > _LONGEST_WORD and not word.isascii()


def _overlap(one: frozenset[tuple[str, ...]], other: frozenset[tuple[str, ...]]) -> float:
    common = len(one & other)
    return common / (len(one) + len(other) - common) if common else 0.0


def fold(
    items: Iterable[T], passage_of: Callable[[T], Passage | None], most: float = inf
) -> Iterator[tuple[T, list[T]]]:
    """At most `most` listed items, each with its copies, as soon as no further copy can follow.

    An item whose passage is None is never folded. Later items are compared with listed ones, never with copies:
    otherwise many small edits would add up.
    """
    waiting: deque[_Group[T]] = deque()
    standing = 0
    for place, item in enumerate(items):
        while waiting and not waiting[0].is_open(place):
            done = waiting.popleft()
            yield done.item, done.copies
        if standing >= most and not waiting:
            return
        passage = passage_of(item)
        group = next((group for group in waiting if group.takes(passage, place)), None)
        if group is not None:
            group.copies.append(item)
            group.last = place
        elif standing < most:
            waiting.append(_Group(item, passage, place))
            standing += 1
    for group in waiting:
        yield group.item, group.copies
