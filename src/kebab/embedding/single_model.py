"""One model for everything."""

from __future__ import annotations

from kebab.core.ports import Embedder, SpaceQuery


class SingleModel:
    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.embedders = (embedder,)

    def home_of(self, _text: str) -> Embedder:
        return self._embedder

    def also_of(self, _text: str) -> Embedder | None:
        return None

    def second_home(self, *, other_scripts: bool) -> Embedder | None:  # noqa: ARG002 - there is only one home
        return None

    def for_query(self, _text: str) -> list[SpaceQuery]:
        return [SpaceQuery(self._embedder)]
