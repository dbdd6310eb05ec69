"""The words of a chunk as a sparse vector whose product with a query's is BM25, as FTS5 computes it.

Every term is a dimension: the hash of its text. Its value in a chunk is the part of BM25 that depends on the chunk
alone, and its value in a query the other one, how rare it is in the whole corpus. Servers know only their own shard; so
the store counts (`term_counts`).

One's own documents and those of libraries are two corpora: how rare a word is in other people's pages must not change
the order of one's own notes. They have dimensions of their own.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import Any, NamedTuple
from zlib import crc32

from kebab.analysis.cjk import has_cjk
from kebab.core.ports import ColumnWeights, Tokenizer
from kebab.store.fts5.chunk_columns import ChunkColumns
from kebab.store.fts5.wanted_terms import IndexTerm

OWN = "own"
LIBRARIES = "lib"
CORPORA = (OWN, LIBRARIES)

_K1 = 1.2
_B = 0.75
_LEAST_IDF = 1e-6
_LEASH = 1.05
"""How far the average length that weights are computed for may be from that of the chunks."""
_TOO_FAR = 1.1
_NONE = -1
_MOST_KNOWN = 500_000
_IN_CJK = "c:"
_BEGINNING = "^:"


def term_id(corpus: str, term: str) -> int:
    """32 bits are what a dimension has. Of a million words about a hundred share theirs with another one, which nobody
    will notice; where that other one is a word of the other corpus, `lexical` does."""
    return crc32(f"{corpus} {term}".encode())


class _PlainIds(dict[str, int]):
    """The dimensions of plain words of one corpus, made once each. CJK text has none: its terms are made by `analysis`."""

    def __init__(self, corpus: str) -> None:
        super().__init__()
        self._corpus = corpus

    def __missing__(self, stem: str) -> int:
        if len(self) > _MOST_KNOWN:
            self.clear()
        made = self[stem] = _NONE if has_cjk(stem) else term_id(self._corpus, stem)
        return made


def id_of(corpus: str, term: IndexTerm) -> int:
    """The dimension that a query asks for."""
    if term.is_beginning:
        return term_id(corpus, f"{_BEGINNING}{term.text}")
    return term_id(corpus, f"{_IN_CJK}{term.text}" if term.in_cjk else term.text)


_PLAIN_IDS = {corpus: _PlainIds(corpus) for corpus in CORPORA}


class Counted(NamedTuple):
    """What BM25 needs to know of a chunk."""

    frequencies: dict[int, float]
    """By dimension: how often, and in which columns."""
    length: int
    """Tokens of all columns."""

    def vector(self, average: float) -> dict[str, Any]:
        """`average`: length of a chunk in the corpus."""
        # Most of them are 1 or 2: each is computed once.
        weights = {
            frequency: round(weight_of(frequency, self.length, average), 5)
            for frequency in set(self.frequencies.values())
        }
        return {
            "indices": list(self.frequencies),
            "values": [weights[frequency] for frequency in self.frequencies.values()],
        }


def weight_of(frequency: float, length: int, average: float) -> float:
    """The part of BM25 that depends on the chunk."""
    return frequency * (_K1 + 1) / (frequency + _norm(length, average))


def counted(columns: ChunkColumns, corpus: str, tokenizer: Tokenizer, weights: ColumnWeights) -> Counted:
    """Plain words count in every column. CJK terms are those that `analysis` has made: the tokenizer leaves such text
    uncut.
    """
    frequencies: defaultdict[int, float] = defaultdict(float)
    length = 0
    plain = _PLAIN_IDS[corpus]
    for text, weight in (
        (columns.title, weights.title),
        (columns.heading_path, weights.heading),
        (columns.text, weights.text),
    ):
        if not text:
            continue
        stems = tokenizer.stems(text)
        length += len(stems)
        for stem, count in Counter(stems).items():
            number = plain[stem]
            if number != _NONE:
                frequencies[number] += count * weight
    if columns.cjk:
        stems = tokenizer.stems(columns.cjk)
        length += len(stems)
        for stem, count in Counter(stems).items():
            value = count * weights.cjk
            if plain[stem] == _NONE:
                frequencies[term_id(corpus, f"{_IN_CJK}{stem}")] += value
                frequencies[term_id(corpus, f"{_BEGINNING}{stem[0]}")] += value
            else:
                frequencies[plain[stem]] += value
    return Counted(dict(frequencies), length)


def reweighed(vector: dict[str, Any], length: int, before: float, after: float) -> dict[str, Any]:
    """The vector of the same chunk in a corpus where chunks are longer or shorter on average."""
    old, new = _norm(length, before), _norm(length, after)
    # weight = f (k1 + 1) / (f + norm), so f = weight norm / (k1 + 1 - weight)
    frequencies = {weight: weight * old / max(_K1 + 1 - weight, 1e-6) for weight in set(vector["values"])}
    weights = {weight: round(frequency * (_K1 + 1) / (frequency + new), 5) for weight, frequency in frequencies.items()}
    return {"indices": vector["indices"], "values": [weights[weight] for weight in vector["values"]]}


def idf(chunks: int, with_term: int) -> float:
    return (
        max(_LEAST_IDF, math.log((chunks - with_term + 0.5) / (with_term + 0.5))) if with_term <= chunks else _LEAST_IDF
    )


def settled_average(average: float, before: float | None) -> float:
    """What weights are computed for. It follows the average at a distance, as on a leash: it stays while documents come
    and go, and moves no further than it must, so that few chunks have to be weighed anew.
    """
    if average <= 0:
        return before or 1.0
    return average if before is None else min(max(before, average / _LEASH), average * _LEASH)


def is_far_from(average: float, current: float | None) -> bool:
    """Whether weights that were computed for one average are wrong by the other: a tenth changes a score by some three
    percent.
    """
    return current is not None and not 1 / _TOO_FAR <= average / current <= _TOO_FAR


def _norm(length: int, average: float) -> float:
    return _K1 * (1 - _B + _B * length / average)
