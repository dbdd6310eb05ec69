"""Chooses the words that a vocabulary keeps, and the known words nearest to a misspelt one."""

from __future__ import annotations

from collections.abc import Iterable

from kebab.analysis.cjk import has_cjk
from kebab.core.ports import NearWord

MAX_EXPANSIONS = 50
MAX_NEAR = 40
_LONGEST_WORD = 48  # longer tokens are hashes and encoded data, which are not typed


def worth_keeping(word: str) -> bool:
    return 1 < len(word) <= _LONGEST_WORD and not has_cjk(word)


def nearest(word: str, known: Iterable[tuple[str, str]], edits: int) -> list[NearWord]:
    """Returns known words within this many edits, one for each stem: the nearest first; of equally near ones, those
    with the same first letter first. `known`: pairs (word, stem).
    """
    from kebab.analysis.word_forms import edit_distance  # imported here, because a search with results does not need it

    found = [(distance, other, stem) for other, stem in known if (distance := edit_distance(word, other, edits))]
    by_stem: dict[str, NearWord] = {}
    # People leave out letters more often than they add them, so renewl gives renewal before renew.
    for distance, other, stem in sorted(
        found, key=lambda item: (item[0], item[1][0] != word[0], -len(item[1]), item[1])
    ):
        by_stem.setdefault(stem, NearWord(other, distance))
    return list(by_stem.values())[:MAX_NEAR]
