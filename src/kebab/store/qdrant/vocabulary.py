"""The words that occur, unstemmed: what a half-typed word may become, and what a misspelt one is near to."""

from __future__ import annotations

from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any
from zlib import crc32

from kebab.core.ports import NearWord, Tokenizer
from kebab.store.fts5.known_words import MAX_EXPANSIONS, nearest, worth_keeping
from kebab.store.qdrant.collection import Collection, Point, point_id
from kebab.store.qdrant.schema import SPELLING

_LONGEST_BEGINNING = 8
"""Letters by which words are looked up; more are compared here."""
_LOOKED_AT = 400
"""Words that begin so, the shortest first; several may have one stem."""
_CANDIDATES = 1000
"""Words with the most pairs of letters in common, which are then compared letter by letter."""


class Vocabulary:
    def __init__(self, terms: Collection, tokenizer: Tokenizer) -> None:
        self._terms = terms
        self._tokenizer = tokenizer
        self._seen: set[str] = set()

    def add(self, texts: Iterable[str]) -> None:
        """Words are only ever added; `kb index --rebuild-fts` forgets those that no text has any more."""
        self.put(self.unseen(texts))

    def put(self, words: Mapping[str, str]) -> None:
        """With their stems."""
        self._terms.upsert(_word(word, stem) for word, stem in words.items())

    def unseen(self, texts: Iterable[str]) -> dict[str, str]:
        """Words of these, each with its stem, that nobody was given before: whoever asks stores them, or writes no
        more.
        """
        words = set(self._tokenizer.words("\n".join(texts))) - self._seen
        kept = sorted(word for word in words if worth_keeping(word))
        stems = self._tokenizer.stems("\n".join(kept))  # one call, one stem per word
        self._seen |= words
        return dict(zip(kept, stems, strict=True))

    def missing(self, texts: Iterable[str]) -> set[str]:
        """Words of these that should be known and are not, or not as they should; each is looked up once."""
        words = self.unseen(texts)
        stored = {point["id"]: point for point in self._terms.retrieve(map(word_id, words), vectors=[SPELLING])}
        return {word for word, stem in words.items() if not _is_known_so(_word(word, stem), stored.get(word_id(word)))}

    def forget_others(self) -> None:
        """All but the words that were added. They are not forgotten first, so that none is missing meanwhile."""
        seen = set(map(word_id, self._seen))
        points = self._terms.scroll({"must_not": [{"is_empty": {"key": "word"}}]}, payload=False)
        self._terms.delete([point["id"] for point in points if point["id"] not in seen])

    def known(self, words: AnyCollection[str]) -> set[str]:
        found = {point["id"] for point in self._terms.retrieve(map(word_id, words), payload=False)}
        return {word for word in words if word_id(word) in found}

    def expand(self, prefix: str) -> list[str]:
        """Known words that begin so, one for each stem, shortest first."""
        chosen = {"must": [{"key": "begins", "match": {"value": prefix[:_LONGEST_BEGINNING]}}]}
        points = self._terms.in_order("length", chosen, descending=False, limit=_LOOKED_AT, payload=["word", "stem"])
        by_stem: dict[str, list[str]] = {}
        for point in points:
            word, stem = point["payload"]["word"], point["payload"]["stem"]
            if word.startswith(prefix):
                by_stem.setdefault(stem, []).append(word)
        ordered = sorted((min(map(len, words)), min(words)) for words in by_stem.values())
        return [word for _, word in ordered[:MAX_EXPANSIONS]]

    def near(self, word: str, edits: int) -> list[NearWord]:
        """Known words that so many slips lead to, one for each stem, the nearest and those with the same first letter
        first.
        """
        indices = sorted(_pairs(word))
        query = {"indices": indices, "values": [1.0] * len(indices)}
        lengths = {"must": [{"key": "length", "range": {"gte": len(word) - edits, "lte": len(word) + edits}}]}
        search = {
            "query": query,
            "using": SPELLING,
            "filter": lengths,
            "limit": _CANDIDATES,
            "with_payload": ["word", "stem"],
        }
        known = [(point["payload"]["word"], point["payload"]["stem"]) for point in self._terms.query(search)[0]]
        return nearest(word, known, edits)


def _word(word: str, stem: str) -> Point:
    indices = sorted(_pairs(word))
    vector: dict[str, Any] = {"indices": indices, "values": [1.0] * len(indices)}
    begins = [word[:end] for end in range(1, min(len(word), _LONGEST_BEGINNING) + 1)]
    payload = {"word": word, "stem": stem, "length": len(word), "begins": begins}
    return {"id": word_id(word), "vector": {SPELLING: vector}, "payload": payload}


def _is_known_so(wanted: Point, stored: Point | None) -> bool:
    if stored is None or stored["payload"] != wanted["payload"]:
        return False
    return set((stored["vector"].get(SPELLING) or {}).get("indices") or ()) == set(
        wanted["vector"][SPELLING]["indices"]
    )


def word_id(word: str) -> str:
    return point_id("word", word)


def _pairs(word: str) -> set[int]:
    """Of letters, its beginning and its end among them."""
    return {crc32((first + second).encode()) for first, second in pairwise(f"^{word}$")}
