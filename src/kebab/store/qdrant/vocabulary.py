"""Stores the unstemmed words of all texts, for half-typed and misspelt words; looks up the words of a search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any
from zlib import crc32

from kebab.core.ports import NearWord
from kebab.store.fts5.known_words import MAX_EXPANSIONS, nearest, worth_keeping
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.qdrant.collection import Collection, Point, PointId, point_id, where
from kebab.store.qdrant.schema import SPELLING

_LONGEST_BEGINNING = 8  # letters of a prefix that servers look up; further letters are compared here
_MOST_READ = 400  # words with the same beginning, the shortest first; several may have one stem
word_id = partial(point_id, "word")
_CANDIDATES = 1000  # words with the most pairs of letters in common, which are then compared letter by letter


class Vocabulary:
    """The stored words. Writing a document only adds words; `forget_unseen` deletes those that no text has any more."""

    def __init__(self, terms: Collection) -> None:
        self._terms = terms
        self._tokenizer = SqliteTokenizer()
        self._seen: set[str] = set()

    def add(self, texts: Iterable[str]) -> None:
        self._terms.upsert(_point(word, stem) for word, stem in self.unseen(texts).items())

    def unseen(self, texts: Iterable[str]) -> dict[str, str]:
        """Returns the words of these texts, with their stems, that no earlier call was given."""
        words = set(self._tokenizer.words("\n".join(texts))) - self._seen
        kept = sorted(word for word in words if worth_keeping(word))
        self._seen |= words
        return dict(zip(kept, self._tokenizer.stems("\n".join(kept)), strict=True))

    def missing(self, texts: Iterable[str]) -> set[str]:
        """Returns words of these texts that are not stored, or stored wrongly. Each word is looked up once."""
        words = self.unseen(texts)
        stored = {point["id"]: point for point in self._terms.retrieve(map(word_id, words), vectors=[SPELLING])}
        return {word for word, stem in words.items() if not _is_equal(_point(word, stem), stored.get(word_id(word)))}

    def forget_unseen(self) -> None:
        """Deletes the stored words that no earlier call was given. The caller first gives it all texts."""
        seen = set(map(word_id, self._seen))
        points = self._terms.scroll({"must_not": [{"is_empty": {"key": "word"}}]}, payload=False)
        self._terms.delete([point["id"] for point in points if point["id"] not in seen])


class TermLookup:
    """Looks up the words and terms of one search, each of them once."""

    def __init__(self, terms: Collection) -> None:
        self._terms = terms
        self._chunks: dict[PointId, int | None] = {}
        """By the id of a word or term: how many chunks have the term (0 for a word); None if it is not stored."""
        self._expanded: dict[str, list[str]] = {}

    def fetch(self, ids: Iterable[PointId]) -> None:
        unknown = [number for number in dict.fromkeys(ids) if number not in self._chunks]
        if unknown:
            self._chunks.update(dict.fromkeys(unknown))
            for point in self._terms.retrieve(unknown, payload=["chunks"]):
                self._chunks[point["id"]] = point["payload"].get("chunks", 0)

    def known(self, words: AnyCollection[str]) -> set[str]:
        self.fetch(map(word_id, words))
        return {word for word in words if self._chunks[word_id(word)] is not None}

    def chunks_with(self, terms: AnyCollection[int]) -> dict[int, int]:
        self.fetch(terms)
        return {term: self._chunks[term] or 0 for term in terms}

    def expand(self, prefix: str) -> Sequence[str]:
        """Known words with this beginning, one for each stem, the shortest first."""
        if prefix in self._expanded:
            return self._expanded[prefix]
        chosen, fields = where("begins", prefix[:_LONGEST_BEGINNING]), ["word", "stem"]
        by_stem: defaultdict[str, list[str]] = defaultdict(list)
        for point in self._terms.first_by("length", "asc", chosen, _MOST_READ, fields):
            word, stem = point["payload"]["word"], point["payload"]["stem"]
            if word.startswith(prefix):
                by_stem[stem].append(word)
        ordered = sorted((min(map(len, words)), min(words)) for words in by_stem.values())
        self._expanded[prefix] = [word for _, word in ordered[:MAX_EXPANSIONS]]
        return self._expanded[prefix]

    def near(self, word: str, edits: int) -> list[NearWord]:
        """Known words within this many edits, one for each stem, the nearest first."""
        lengths = {"key": "length", "range": {"gte": len(word) - edits, "lte": len(word) + edits}}
        search = {
            "query": _letter_pairs(word),
            "using": SPELLING,
            "filter": {"must": [lengths]},
            "limit": _CANDIDATES,
            "with_payload": ["word", "stem"],
        }
        known = [(point["payload"]["word"], point["payload"]["stem"]) for point in self._terms.query(search)[0]]
        return nearest(word, known, edits)


def _point(word: str, stem: str) -> Point:
    begins = [word[:end] for end in range(1, min(len(word), _LONGEST_BEGINNING) + 1)]
    payload = {"word": word, "stem": stem, "length": len(word), "begins": begins}
    return {"id": word_id(word), "vector": {SPELLING: _letter_pairs(word)}, "payload": payload}


def _is_equal(wanted: Point, stored: Point | None) -> bool:
    if stored is None or stored["payload"] != wanted["payload"]:
        return False
    indices = (stored["vector"].get(SPELLING) or {}).get("indices") or ()
    return set(indices) == set(wanted["vector"][SPELLING]["indices"])


def _letter_pairs(word: str) -> dict[str, Any]:
    """The sparse vector of a word: its pairs of letters, with ^ for the beginning and $ for the end of the word."""
    indices = sorted({crc32((first + second).encode()) for first, second in pairwise(f"^{word}$")})
    return {"indices": indices, "values": [1.0] * len(indices)}
