"""English word forms that the stemmer handles wrongly, and the edit distance of misspellings.

The stemmer separates took and take, e-mail and email, photos and photography. It confuses capitals and capitalization.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

# The first word of each group is the base of the others. A form that is also another common word (found, felt, lay) is
# left out.
_FORMS = """
arise arose arisen, become became, begin began begun beginning, bend bent, bite bit bitten, blow blew blown,
borrow borrowed, break broke broken, bring brought, build built, buy bought, catch caught, choose chose chosen choice,
come came, deal dealt, decide decision, die died dead death, dig dug, do did done, draw drew drawn, drink drank drunk,
drive drove driven, eat ate eaten, fall fell fallen, feed fed, fight fought, flee fled, fly flew flown flight,
forbid forbade forbidden, forget forgot forgotten, freeze froze frozen, get got gotten, give gave given, go went gone,
grow grew grown growth, hang hung, have had, hear heard, hide hid hidden, high height, hold held, keep kept,
know knew known, lead led, learn learnt, leave left, lend lent, lose lost loss, long length, make made, mean meant,
meet met meeting, pay paid payment payments, prove proven proof, ride rode ridden, ring rang rung, rise rose risen,
run ran, say said, see saw seen, seek sought, sell sold sale sales, send sent, shake shook shaken, shoot shot,
show shown, shrink shrank shrunk, sing sang sung, sink sank sunk, sit sat, sleep slept, speak spoke spoken,
spend spent, stand stood, steal stole stolen, stick stuck, strike struck, strong strength, sweep swept,
swear swore sworn, swim swam swum, take took taken, teach taught, tear tore torn, tell told, think thought,
throw threw thrown, understand understood, wake woke woken, wear wore worn, weigh weight weights heavy, win won,
write wrote written, person people, child children, foot feet, man men, woman women, mouse mice, knife knives,
life lives
"""
_SUFFIXES = ("ment", "graphi", "graph", "eri", "anc", "enc", "iti")
"""Stemmed suffixes: of deployment, photography, photographs, delivery, disturbance, dependency and validity."""
_LEAST_ROOT = 5
_AGENT_SUFFIXES = ("er", "or")
_IZED = re.compile(r"\b([a-z]{4,}i[sz])(?:e[ds]?|ing|ations?|ers?)\b", re.IGNORECASE)
_FOUNDED = re.compile(r"\bfound(?:ed|ers?|ing|s)\b", re.IGNORECASE)
"""Forms of the verb "found", which the stemmer must not confuse with forms of "find"."""
_COMPOUND = re.compile(r"\b[a-z]+(?:-[a-z]+)+\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z]{3,}")
_SHORT_PART = 2


@cache
def _bases() -> dict[str, str]:
    return {form: base for base, *forms in map(str.split, _FORMS.split(",")) for form in forms}


def base_of(word: str) -> str | None:
    """The base of an irregular form (take for took), or None for any other word. Expects lower case."""
    return _bases().get(word)


def other_words(text: str) -> Iterator[str]:
    """The bases of irregular forms in the text, and its compounds written as one word."""
    lower = text.lower()
    bases = _bases()
    yield from (bases[word] for word in bases.keys() & set(_WORD.findall(lower)))
    if "-" in lower:
        yield from (compound.replace("-", "") for compound in _COMPOUND.findall(lower))


def told_apart(text: str) -> str:
    """The text with those words respelt that the stemmer would confuse with other words."""
    return _FOUNDED.sub("foundexed", _IZED.sub(r"\1ex", text))


def short_compounds(text: str) -> Iterator[str]:
    """Hyphenated words with a part of at most two letters, such as e-mail and Wi-Fi."""
    for compound in _COMPOUND.findall(text):
        if min(map(len, compound.split("-"))) <= _SHORT_PART:
            yield compound


@lru_cache(maxsize=1 << 10)
def related_stems(stem: str, *, who: bool = False) -> frozenset[str]:
    """The stems of words with the same root; with `who`, also of the person who does it (deliver, deliverer)."""
    # The stemmer makes deploi of deploy, and deploy of deployment.
    roots = {stem, stem[:-1] + "y"} if stem.endswith("i") else {stem}
    roots = {root for root in roots if len(root) >= _LEAST_ROOT}
    shorter = {stem.removesuffix(suffix) for suffix in _SUFFIXES if stem.endswith(suffix)}
    shorter = {root for root in shorter if len(root) >= _LEAST_ROOT}
    related = roots | shorter | {root + suffix for root in roots for suffix in _SUFFIXES}
    related |= {root[:-1] + "i" for root in (stem, *shorter) if root.endswith("y")}
    if who:
        related |= {stem.removesuffix("e") + suffix for suffix in _AGENT_SUFFIXES}
        for suffix in _AGENT_SUFFIXES:
            if stem.endswith(suffix):
                related |= {stem.removesuffix(suffix), stem.removesuffix(suffix) + "e"}
    return frozenset(related)


def edit_distance(typed: str, meant: str, most: int) -> int | None:
    """The number of letters inserted, left out, replaced or swapped with their neighbour; None if more than `most`."""
    if abs(len(typed) - len(meant)) > most:
        return None
    far = most + 1
    before: list[int] = []
    above = [min(column, far) for column in range(len(meant) + 1)]
    for row, letter in enumerate(typed, start=1):
        current = [far] * (len(meant) + 1)
        current[0] = min(row, far)
        # Cells farther than `most` from the diagonal always have a larger distance than `most`.
        for column in range(max(1, row - most), min(len(meant), row + most) + 1):
            other = meant[column - 1]
            least = above[column - 1]
            if letter != other:
                least = 1 + min(least, above[column], current[column - 1])
            if row > 1 < column and letter == meant[column - 2] and other == typed[row - 2]:
                least = min(least, before[column - 2] + 1)
            current[column] = least
        if min(current) > most and min(above) >= most:  # a swap may still use the row before
            return None
        before, above = above, current
    return above[-1] if above[-1] <= most else None
