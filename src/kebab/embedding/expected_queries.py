"""Models for somebody who knows what will be asked: the first of these queries has many of them embedded at once, which
takes half the time, and behind an endpoint a hundredth of the requests. A vector does not depend on what else is in its
batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from kebab.core.ports import Embedder, EmbeddingKind, EmbeddingModels, SpaceQuery

if TYPE_CHECKING:
    from kebab.core.ports import Vectors

_AT_ONCE = 1024


def models_expecting(models: EmbeddingModels | None, queries: Sequence[str]) -> EmbeddingModels | None:
    """The models themselves when there are none, or nothing is expected."""
    return ExpectedQueries(models, queries) if models is not None and queries else models


class ExpectedQueries:
    """The same models; only queries go through it, since nobody embeds passages with it."""

    def __init__(self, models: EmbeddingModels, queries: Sequence[str]) -> None:
        self._models = models
        by_name: dict[str, list[str]] = {}
        for query in dict.fromkeys(queries):
            for space in models.for_query(query)[:1]:  # others are entered only where this one has nothing
                by_name.setdefault(space.embedder.name, []).append(query)
        self._ahead = {
            embedder.name: _EmbedderAhead(embedder, by_name.get(embedder.name, [])) for embedder in models.embedders
        }
        self.embedders = models.embedders

    def primary_of(self, text: str, /) -> Embedder:
        return self._models.primary_of(text)

    def secondary_of(self, text: str, /) -> Embedder | None:
        return self._models.secondary_of(text)

    def secondary_for_all(self, *, other_scripts: bool) -> Embedder | None:
        return self._models.secondary_for_all(other_scripts=other_scripts)

    def for_query(self, text: str, /) -> list[SpaceQuery]:
        return [space._replace(embedder=self._ahead[space.embedder.name]) for space in self._models.for_query(text)]


class _EmbedderAhead:
    def __init__(self, embedder: Embedder, expected: list[str]) -> None:
        self._embedder = embedder
        self.name, self.version, self.dimension = embedder.name, embedder.version, embedder.dimension
        self._place = {text: place for place, text in enumerate(expected)}
        self._expected = expected
        self._blocks: dict[int, Vectors] = {}
        self._embedding = Lock()

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        place = self._place.get(texts[0]) if kind == "query" and len(texts) == 1 else None
        if place is None:
            return self._embedder.embed(texts, kind)
        number, row = divmod(place, _AT_ONCE)
        with self._embedding:  # who comes second finds it done
            if number not in self._blocks:
                self._blocks[number] = self._embedder.embed(
                    self._expected[number * _AT_ONCE : (number + 1) * _AT_ONCE], "query"
                )
        return self._blocks[number][row : row + 1]
