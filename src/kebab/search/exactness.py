"""Finds out how literally passages contain a query, from their texts, so that every store gives the same answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from kebab.analysis import cjk, korean
from kebab.core.ports import Tokenizer
from kebab.core.search import Exactness
from kebab.core.text import nfc

_NEAR = 60
"""How many other characters may stand between words that are near each other."""
_MOST_TERMS = 32
"""A longer query is not looked for as a phrase."""
_WORD = re.compile(r"[^\W_]+")
_AROUND = "()[]{}<>'\"“”‘’…"

_Row = tuple[str, ...]
"""Terms that stand in a row: stems of words, and CJK runs as typed."""


class _Found(NamedTuple):
    term: str
    start: int
    end: int


class Wording:
    """The words of a query and their order."""

    def __init__(self, words: Sequence[str], dropped: Sequence[str], tokenizer: Tokenizer) -> None:
        """`words`: the query's words as typed. `dropped`: those that the search left out because they say little."""
        self._tokenizer = tokenizer
        self._stems: dict[str, str] = {}
        telling = [number for number, word in enumerate(words) if word not in dropped]
        between = words[telling[0] : telling[-1] + 1] if telling else ()
        self.phrases = tuple(dict.fromkeys(filter(None, (_trimmed(words), _trimmed(between)))))
        """The whole query, and the query without the words that say little at its beginning and end."""
        self._rows = [row for phrase in self.phrases if len(row := self._terms(phrase)) > 1]
        self._words = {self._terms(words[number]): None for number in telling}
        self._words.pop((), None)
        terms = {term for row in (*self._rows, *self._words) for term in row}
        self.is_checked = 0 < len(terms) <= _MOST_TERMS
        if self.is_checked:
            self._verbatim = _as_typed(self.phrases[0])
            self._candidate = _beginning_like(terms)

    def exactness_of(self, title: str, headings: Sequence[str], text: str) -> Exactness:
        """How literally a passage that has all the words has them. The title counts less than the passage itself."""
        if not self.is_checked:
            return Exactness.ALL
        text = _flat("\n".join((*headings, text)))
        if self._verbatim.search(text):
            return Exactness.VERBATIM
        found = [_Found(self._stem(match[0]), *match.span()) for match in self._candidate.finditer(text)]
        if any(_rows(row, found, text) for row in self._rows):
            return Exactness.PHRASE
        if self._are_near(found, text) or self._verbatim.search(_flat(title)):
            return Exactness.NEAR
        return Exactness.ALL

    def _are_near(self, found: Sequence[_Found], text: str) -> bool:
        """Whether some part of the text has all words and little else."""
        if len(self._words) < 2:
            return False
        places = sorted((*place, word) for word in self._words for place in _rows(word, found, text))
        last: dict[_Row, tuple[int, int]] = {}
        for start, end, word in places:
            last[word] = (start, end)
            if len(last) == len(self._words):
                own = sum(ends - starts for starts, ends in last.values())
                if end - min(starts for starts, _ in last.values()) - own <= _NEAR:
                    return True
        return False

    def _terms(self, text: str) -> _Row:
        """The terms of a text, without a Korean particle at its end."""
        runs = [run for word in _WORD.findall(_flat(text)) for run in cjk.runs(word)]
        if runs and runs[-1].script == "hangul":
            if len(runs) > 1 and korean.is_particle(runs[-1].text):
                runs.pop()
            else:
                runs[-1] = runs[-1]._replace(text=korean.strip_particle(runs[-1].text))
        return tuple(self._stem(run.text) for run in runs)

    def _stem(self, word: str) -> str:
        if word not in self._stems:
            self._stems[word] = word if cjk.has_cjk(word) else "".join(self._tokenizer.stems(word))
        return self._stems[word]


def _rows(row: _Row, found: Sequence[_Found], text: str) -> list[tuple[int, int]]:
    """Where these terms stand in a row, with no other word between them."""
    places = []
    for number, first in enumerate(found):
        here = found[number : number + len(row)] if first.term == row[0] else ()
        if tuple(one.term for one in here) == row and not any(
            _WORD.search(text, one.end, after.start) for one, after in pairwise(here)
        ):
            places.append((first.start, here[-1].end))
    return places


def _trimmed(words: Sequence[str]) -> str:
    return " ".join(words).strip(_AROUND).rstrip(".,;:!?")


def _flat(text: str) -> str:
    return nfc(text).casefold()


def _as_typed(phrase: str) -> re.Pattern[str]:
    """A pattern for the phrase as whole words, with any space between them."""
    words = _flat(phrase).split()
    before = f"(?<!{_letter(words[0])})" if _is_plain(words[0][0]) else ""
    after = f"(?!{_letter(words[-1])})" if _is_plain(words[-1][-1]) else ""
    return re.compile(before + r"\s+".join(map(re.escape, words)) + after)


def _beginning_like(terms: set[str]) -> re.Pattern[str]:
    """A pattern that finds all words that may have one of these stems, and all CJK runs among the terms."""
    patterns = sorted((re.escape(term) for term in terms if cjk.has_cjk(term)), key=len, reverse=True)
    for term in sorted(terms):
        if not cjk.has_cjk(term):  # a word with the same stem begins with all of the stem but its last letter
            patterns.append(f"(?<!{_letter(term)}){re.escape(term[:-1] or term)}{_letter(term)}*")
    return re.compile("|".join(patterns))


def _letter(word: str) -> str:
    """A pattern for the letters of a word. Korean particles follow ASCII words immediately, as in kubernetes는."""
    return "[0-9a-z]" if word.isascii() else r"[^\W_]"


def _is_plain(character: str) -> bool:
    """Whether it is a letter or digit of a script with spaces between words."""
    return character.isalnum() and not cjk.has_cjk(character)
