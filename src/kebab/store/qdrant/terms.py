"""Turns the words of a chunk into a sparse vector. Its dot product with a query's vector is BM25, as FTS5 computes it.

Every term is a dimension: the hash of its text. Its value in a chunk is the part of BM25 that depends on the chunk; its
value in a query is the rarity of the term in the whole corpus. The store counts terms itself, because a server knows
only its own shards.

The user's own documents and those of libraries are two corpora with separate dimensions, so that libraries do not
change the ranking of the user's own documents.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from functools import lru_cache
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
_TOLERANCE = 1.05  # the most by which the average for new weights may differ from the current one
_TOO_FAR = 1.1
_IN_CJK = "c:"
_BEGINNING = "^:"


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


def counted(columns: ChunkColumns, corpus: str, tokenizer: Tokenizer, weights: ColumnWeights) -> Counted:
    """Counts the terms of a chunk: plain words in every column, CJK terms in the column `cjk` only, because the
    tokenizer does not cut CJK text.
    """
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
    """The average length for new weights: the previous one, moved only as far as _TOLERANCE demands, so that few chunks
    need new weights.
    """
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
