"""Puts the best passages in order with a cross-encoder, which reads the query and a passage together.

Its order is mixed with the one before: taken alone it is worse on some corpora (benchmarks/README.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from kebab.core.deadline import time_limit
from kebab.core.errors import ModelError
from kebab.core.notices import Notice, Says
from kebab.core.ports import ChunkContext, Reranker
from kebab.core.query_tree import excludes, meaning_of, parse
from kebab.core.search import MAX_MEANING_CHARS, SearchQuery
from kebab.search.fusion import Fused, Relevance


class Reranking(NamedTuple):
    model: Callable[[], Reranker]
    """Gives the loaded model, or raises ModelError."""
    seconds: float
    """How long loading and reading may take together."""


def reranked(
    best: Sequence[Fused], passages: Mapping[str, ChunkContext], query: SearchQuery, reranking: Reranking
) -> tuple[Sequence[Fused], tuple[Notice, ...]]:
    """`best` with those of `passages` in a better order, and notices about what was not reranked.

    Passages in a script that the model does not read stay where they are, and the others move around them.
    """
    from kebab.core.documents import embedded_text  # imported here, because most searches rerank nothing

    tree = parse(query.text)
    if excludes(tree):
        return best, (Says.WORDS_ONLY.notice(),)
    text = meaning_of(tree, query.text)[:MAX_MEANING_CHARS]
    with time_limit(reranking.seconds) as limit:
        try:
            model = reranking.model()
            if not model.reads(text, "query"):
                return best, (Says.NOT_RERANKED.notice(f"{model.name} does not read the script of this query."),)
            texts = {
                place: embedded_text(passage.doc_path, passage.title, passage.heading_path, passage.text)
                for place, fused in enumerate(best)
                if (passage := passages.get(fused.chunk_id)) and model.reads(passage.text, "passage")
            }
            scores = model.scores(text, list(texts.values()))
        except ModelError as error:
            if not limit.is_over():
                return best, (Says.NOT_RERANKED.notice(f"{error.message} {error.hint or ''}".strip()),)
            scores = []
    notices = () if len(scores) == len(texts) else (Says.PARTLY_RERANKED.notice(len(scores), len(texts)),)
    return _mixed(best, dict(zip(texts, scores, strict=False)), model.name), notices


def _mixed(best: Sequence[Fused], scores: Mapping[int, float], model: str) -> Sequence[Fused]:
    """The passages that have scores in a new order, in the same places. Both ranks, the one before and the one by the
    model, count alike: each adds 1 / (1 + rank). Of equal passages the one that stood before the other stays there.
    """
    shares = {place: 1 / (1 + rank) for rank, place in enumerate(scores, start=1)}
    for rank, place in enumerate(sorted(scores, key=lambda place: (-scores[place], place)), start=1):
        shares[place] += 1 / (1 + rank)
    mixed = list(best)
    for place, taken_from in zip(scores, sorted(shares, key=lambda place: (-shares[place], place)), strict=True):
        relevance = Relevance(model, scores[taken_from], taken_from + 1)
        mixed[place] = best[taken_from]._replace(relevance=relevance)
    return mixed
