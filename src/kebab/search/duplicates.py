"""Folds passages with (nearly) the same text: the first one is listed, and the others become its copies.

Passages of a backup, a vendored README or several versions of a folder have nearly the same score, and so are close
together in a ranked list. Each passage is therefore compared only with the few before it. Whether it is folded does not
depend on later passages, so a longer list begins like a shorter one, and pages of results fit together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from math import inf
from typing import Generic, TypeVar

REACH = 10
"""The largest distance in the list between a copy and the next one."""
MOST_COPIES = 100
"""The most copies under one passage. The next copy is listed, with later ones under it."""

_SHINGLE = 5
"""The number of consecutive words in a shingle, the unit of comparison."""
_LEAST_OVERLAP = 0.9
"""The least share of common shingles of two duplicates: about one word in a hundred may differ."""
_LEAST_SHINGLES = 60
"""Passages with fewer shingles must be equal, because a single word may make the difference."""
_PROBE = 24
"""The length of a probe: a piece of one passage that is searched for in the other, before shingles are compared."""
_PROBES = 8
"""The number of probes, spread evenly over the passage."""
_MOST_MISSED = 2
"""The most probes that may be missing, because of edits."""
_LONGEST_WORD = 16
"""A longer non-ASCII word is text of a script without spaces, so its characters are compared as words."""

T = TypeVar("T")


class Passage:
    """A text to compare with others. Expensive properties are computed on first use."""

    def __init__(self, text: str, content_hash: str = "") -> None:
        """`content_hash` may be given without a text: equal hashes mean equal texts."""
        self.text = text
        self.content_hash = content_hash
        self.length = len(text)
        self.beginning = (text.split(None, 1) or [""])[0]
        """The first word, which differs for most different texts."""

    @cached_property
    def words(self) -> list[str]:
        return self.text.split()

    @cached_property
    def probes(self) -> list[str]:
        starts = (self.length * number // _PROBES for number in range(_PROBES))
        return [self.text[start : start + _PROBE] for start in starts]

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        """All shingles; empty if there are too few, because the text is short or repetitive."""
        units = [unit for word in self.words for unit in (word if _is_unspaced(word) else (word,))]
        shingles = frozenset(zip(*(units[start:] for start in range(_SHINGLE)), strict=False))
        return shingles if len(shingles) >= _LEAST_SHINGLES else frozenset()


class _Group(Generic[T]):
    """A listed item, and the copies that are folded under it."""

    def __init__(self, item: T, passage: Passage | None, place: int) -> None:
        self.item = item
        self.passage = passage
        self.copies: list[T] = []
        self.last = place
        """The place in the list of the last copy, or of the item itself if it has none."""

    def is_open(self, place: int) -> bool:
        """Whether a passage at this place may still be added as a copy."""
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
    """Whether enough probes occur in the text: a fast test that excludes most different texts."""
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
    """Yields at most `most` listed items with their copies, each as soon as no further copy can follow.

    An item whose passage is None is never folded. Items are compared only with listed items, not with copies, so that
    small differences do not add up.
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
