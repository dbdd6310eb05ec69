"""Suggests corrected queries for a query that found nothing because its words are misspelt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, product
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

from kebab.analysis import cjk, korean
from kebab.analysis.word_forms import edit_distance
from kebab.core.ports import NearWord
from kebab.core.query_tree import Bag, Phrase, Raw, Word, parse
from kebab.core.search import SearchFilters
from kebab.core.text import nfc
from kebab.search.listing import Contexts

if TYPE_CHECKING:
    from kebab.core.store_ports import LexicalIndex

MOST_SUGGESTIONS = 3
_MOST_WORDS = 64
"""How many words of a query are checked, in case a whole page was pasted."""
_MOST_UNKNOWN = 3
"""How many unknown words are corrected; each costs a scan of the vocabulary."""
_MOST_CHOICES = 3
_MOST_TRIED = 6
"""How many corrected queries are tried; each costs a search."""
_SHORTEST = 4
"""The length of the shortest word that is corrected; shorter words resemble too many others."""
_LONG = 8
"""From this length on, two letters may be wrong. Of Korean words, the letters inside the syllables are counted."""
_PASSAGES_READ = 20
_WORD = re.compile(r"[^\W_]+")


class _Slip(NamedTuple):
    """A word of the query that is in no passage, and its possible corrections."""

    start: int
    end: int
    choices: list[str]


def suggestions(text: str, index: LexicalIndex, contexts: Contexts, finds: Callable[[str], bool]) -> list[str]:
    """Queries with unknown words replaced by known ones, the likeliest first; only those that `finds` accepts."""
    if isinstance(parse(text), Raw):
        return []
    text = nfc(text)
    slips = [slip for slip in islice(_slips(text, index, contexts), _MOST_UNKNOWN) if slip.choices]
    if not slips:
        return []
    ways = sorted(product(*(range(len(slip.choices)) for slip in slips)), key=lambda way: (sum(way), way))
    tried = (_mended(text, slips, way) for way in ways[:_MOST_TRIED])
    return list(islice((query for query in tried if finds(query)), MOST_SUGGESTIONS))


def _mended(text: str, slips: list[_Slip], way: tuple[int, ...]) -> str:
    """The query with one choice for each slip. Replaces from the end, so that earlier offsets stay valid."""
    for slip, choice in reversed(list(zip(slips, way, strict=True))):
        text = text[: slip.start] + slip.choices[choice] + text[slip.end :]
    return text


def _slips(text: str, index: LexicalIndex, contexts: Contexts) -> Iterator[_Slip]:
    for match in islice(_WORD.finditer(text), _MOST_WORDS):
        start = match.start()
        for run in cjk.runs(match[0]):
            word = korean.strip_particle(run.text) if run.script == "hangul" else run.text
            if run.script in ("hangul", "other") and _is_unknown(word, run.script, index):
                is_korean = run.script == "hangul"
                choices = _korean_choices(word, index, contexts) if is_korean else _choices(word, index)
                yield _Slip(start, start + len(word), choices)
            start += len(run.text)


def _is_unknown(word: str, script: str, index: LexicalIndex) -> bool:
    """Whether a word needs correction. Numbers never do, because a similar number means something else."""
    long_enough = len(word) >= (2 if script == "hangul" else _SHORTEST)
    return long_enough and word.isalpha() and not _passages_with(word, index)


def _choices(word: str, index: LexicalIndex) -> list[str]:
    folded = index.tokenizer.words(word)
    if len(folded) != 1:
        return []
    for edits in (1, 2) if len(word) >= _LONG else (1,):
        choices = _by_frequency(index.near_words(folded[0], edits), index)
        if choices:
            return choices
    return []


def _korean_choices(word: str, index: LexicalIndex, contexts: Contexts) -> list[str]:
    """Corrections of a Korean word. The index has no Korean words, only pairs of syllables, so the words of passages
    that share a pair with the word are compared with it.
    """
    letters = normalize("NFD", word)
    most = 2 if len(letters) >= _LONG else 1
    found = index.search(
        Bag((Word(word),)), match="any", drop_stop_words=False, filters=SearchFilters(), limit=_PASSAGES_READ
    )
    chunks = contexts([match.chunk_id for match in found.matches]).values()
    words = {other for chunk in chunks for other in _korean_words(nfc(chunk.text))}
    near = ((other, edit_distance(letters, normalize("NFD", other), most)) for other in words)
    return _by_frequency([NearWord(other, edits) for other, edits in near if edits], index)


def _korean_words(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        yield from (korean.strip_particle(run.text) for run in cjk.runs(word) if run.script == "hangul")


def _by_frequency(near: Iterable[NearWord], index: LexicalIndex) -> list[str]:
    """The best corrections: the fewest edits first, then the most frequent. Words in no passage are removed."""
    counted = [(edits, -_passages_with(word, index), word) for word, edits in near]
    return [word for _, passages, word in sorted(counted) if passages][:_MOST_CHOICES]


def _passages_with(word: str, index: LexicalIndex) -> int:
    return index.count(Bag((Phrase(word),)), match="all", drop_stop_words=False, filters=SearchFilters())
