"""BM25 with other weights of the columns than those that are part of the stored vectors.

The best by the stored ones are ranked again, from their texts; what follows them keeps its order. So a list is the same
on every page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kebab.core.ports import ColumnWeights, Tokenizer
from kebab.store.fts5.chunk_columns import ChunkColumns
from kebab.store.qdrant.collection import Point
from kebab.store.qdrant.payloads import Payload
from kebab.store.qdrant.terms import counted, weight_of

RANKED_AGAIN = 256


def ranked_again(
    points: Sequence[Point],
    columns_of: Callable[[Payload], ChunkColumns],
    tokenizer: Tokenizer,
    weights: ColumnWeights,
    rarity: Mapping[int, float],
    average: float,
) -> list[Point]:
    """`rarity`: of the terms that are looked for, as often as they are."""
    scored = []
    for point in points[:RANKED_AGAIN]:
        payload = point["payload"]
        words = counted(columns_of(payload), payload["corpus"], tokenizer, weights)
        score = sum(
            rare * weight_of(words.frequencies[term], words.length, average)
            for term, rare in rarity.items()
            if term in words.frequencies
        )
        scored.append({**point, "score": score})
    scored.sort(key=lambda point: (-point["score"], point["payload"]["chunk"]))
    worst = scored[-1]["score"] if scored else 0.0
    return [*scored, *({**point, "score": min(point["score"], worst)} for point in points[RANKED_AGAIN:])]
