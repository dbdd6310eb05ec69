"""Which words a vocabulary keeps, and which of them a misspelt word may stand for. Each store keeps them in its way."""

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
    """Those of the known words (word, stem) within this many edits: one for each stem, the nearest and those with the
    same first letter first.
    """
    from kebab.analysis.word_forms import edit_distance  # searches that find something do without it

    found = [(distance, other, stem) for other, stem in known if (distance := edit_distance(word, other, edits))]
    by_stem: dict[str, NearWord] = {}
    # Letters are left out more often than added, so of renew and renewal for renewl the longer one.
    for distance, other, stem in sorted(
        found, key=lambda item: (item[0], item[1][0] != word[0], -len(item[1]), item[1])
    ):
        by_stem.setdefault(stem, NearWord(other, distance))
    return list(by_stem.values())[:MAX_NEAR]
