"""Turns the words of a chunk into a sparse vector. Its dot product with a query's vector is BM25, as FTS5 computes it.

Every term is a dimension: the hash of its text. Its value in a chunk is the part of BM25 that depends on the chunk; its
value in a query is the rarity of the term in the whole corpus. The store counts terms itself, because a server knows
only its own shards. The user's own documents and those of libraries are two corpora with separate dimensions, so that
libraries do not change the ranking of the user's own documents.

The unstemmed words of all texts are stored too, for half-typed and misspelt words.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple
from zlib import crc32

from kebab.analysis.cjk import has_cjk
from kebab.core.ports import ColumnWeights, NearWord, Tokenizer
from kebab.store.fts5.chunk_columns import ChunkColumns
from kebab.store.fts5.known_words import MAX_EXPANSIONS, nearest, worth_keeping
from kebab.store.fts5.tokenizer import SqliteTokenizer
from kebab.store.fts5.wanted_terms import IndexTerm
from kebab.store.qdrant import codec
from kebab.store.qdrant.collection import Collection, Payload, Point, PointId, point_id, where
from kebab.store.qdrant.schema import SPELLING

OWN = "own"
LIBRARIES = "lib"
CORPORA = (OWN, LIBRARIES)
WITH_COUNTS = {"must_not": [{"is_empty": {"key": "chunks"}}]}  # the points of terms that have a count
STORED_WEIGHTS = ColumnWeights()  # how much each column counts in the stored vectors

_K1 = 1.2
_B = 0.75
_LEAST_IDF = 1e-6
_TOLERANCE = 1.05  # the most by which the average for new weights may differ from the current one
_TOO_FAR = 1.1
_IN_CJK = "c:"
_BEGINNING = "^:"
_LONGEST_BEGINNING = 8  # letters of a prefix that servers look up; further letters are compared here
_MOST_READ = 400  # words with the same beginning, the shortest first; several may have one stem
word_id = partial(point_id, "word")
_CANDIDATES = 1000  # words with the most pairs of letters in common, which are then compared letter by letter


def term_id(corpus: str, term: str) -> int:
    """The dimension of a term, a hash of 32 bits: of a million words about a hundred share theirs with another one."""
    return crc32(f"{corpus} {term}".encode())


@lru_cache(500_000)
def _plain_id(corpus: str, stem: str) -> int | None:
    """The dimension of a word, or None for CJK text, whose terms are made by `analysis`."""
    return None if has_cjk(stem) else term_id(corpus, stem)


def id_of(corpus: str, term: IndexTerm) -> int:
    """The dimension of a term of a query."""
    kind = _BEGINNING if term.is_beginning else _IN_CJK if term.in_cjk else ""
    return term_id(corpus, f"{kind}{term.text}")


class Counted(NamedTuple):
    """The term frequencies and the length of a chunk, which BM25 needs."""

    frequencies: dict[int, float]  # by dimension, weighted by column
    length: int  # tokens in all columns

    def vector(self, average: float) -> dict[str, Any]:
        """The sparse vector of the chunk. `average`: the average length of a chunk in the corpus."""
        frequencies = self.frequencies.values()
        weights = {frequency: round(weight_of(frequency, self.length, average), 5) for frequency in set(frequencies)}
        return {"indices": list(self.frequencies), "values": [weights[frequency] for frequency in frequencies]}


def counted(
    columns: ChunkColumns, corpus: str, tokenizer: Tokenizer, weights: ColumnWeights = STORED_WEIGHTS
) -> Counted:
    """Counts the terms of a chunk. CJK terms count in the column `cjk` only: the tokenizer does not cut CJK text."""
    frequencies: defaultdict[int, float] = defaultdict(float)
    length = 0
    for text, weight, is_cjk in (
        (columns.title, weights.title, False),
        (columns.heading_path, weights.heading, False),
        (columns.text, weights.text, False),
        (columns.cjk, weights.cjk, True),
    ):
        stems = tokenizer.stems(text) if text else []
        length += len(stems)
        for stem, count in Counter(stems).items():
            if (plain := _plain_id(corpus, stem)) is not None:
                frequencies[plain] += count * weight
            elif is_cjk:
                frequencies[term_id(corpus, f"{_IN_CJK}{stem}")] += count * weight
                frequencies[term_id(corpus, f"{_BEGINNING}{stem[0]}")] += count * weight
    return Counted(dict(frequencies), length)


def word_fields(columns: ChunkColumns, chunk: Payload, tokenizer: Tokenizer) -> tuple[Payload, Counted]:
    """The fields of a chunk that follow from its columns, and its words. Primary spaces that it has are kept."""
    words = counted(columns, chunk["corpus"], tokenizer)
    homes = codec.primaries(columns, chunk["kind"], chunk["homes"])
    fields = {"terms": list(words.frequencies), "length": words.length, "homes": homes}
    return {**fields, "columns_hash": codec.hash_of(*columns)}, words


def reweighed(vector: dict[str, Any], length: int, before: float, after: float) -> dict[str, Any]:
    """Converts the vector of a chunk, whose weights are for one average length, to another average length."""
    old = _norm(length, before)
    # weight = f (k1 + 1) / (f + norm), so f = weight norm / (k1 + 1 - weight)
    frequencies = [weight * old / max(_K1 + 1 - weight, 1e-6) for weight in vector["values"]]
    values = [round(weight_of(frequency, length, after), 5) for frequency in frequencies]
    return {"indices": vector["indices"], "values": values}


def idf(chunks: int, with_term: int) -> float:
    if with_term > chunks:
        return _LEAST_IDF
    return max(_LEAST_IDF, math.log((chunks - with_term + 0.5) / (with_term + 0.5)))


def settled_average(average: float, before: float | None) -> float:
    """The average length for new weights: the previous one, moved only as far as _TOLERANCE demands."""
    if average <= 0:
        return before or 1.0
    return average if before is None else min(max(before, average / _TOLERANCE), average * _TOLERANCE)


def is_far_from(average: float, current: float | None) -> bool:
    """Whether weights for this average are wrong for the current one: a tenth changes a score by about 3 percent."""
    return current is not None and not 1 / _TOO_FAR <= average / current <= _TOO_FAR


def weight_of(frequency: float, length: int, average: float) -> float:
    """The part of BM25 that depends on the chunk."""
    return frequency * (_K1 + 1) / (frequency + _norm(length, average))


def _norm(length: int, average: float) -> float:
    return _K1 * (1 - _B + _B * length / average)


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
        self._chunks: dict[PointId, int | None] = {}  # of a term, how many have it; 0 for a word; None: not stored
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
