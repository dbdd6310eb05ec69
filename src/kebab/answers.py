"""Answers: the parts behind `KnowledgeBase.ask`, wired from the settings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from kebab.pipelines.answer import answer, evidence_request
from kebab.retrievers import lexical_index

if TYPE_CHECKING:
    from kebab.config.settings import Settings
    from kebab.core.answers import Answer
    from kebab.core.search import SearchResponse
    from kebab.pipelines.search_request import SearchRequest
    from kebab.store.sqlite.store import SqliteReading


class Search(Protocol):
    def __call__(self, query: SearchRequest, /) -> SearchResponse: ...


def ask(
    request: SearchRequest,
    settings: Settings,
    search: Search,
    reading: Callable[[], AbstractContextManager[SqliteReading | None]],
    *,
    on_text: Callable[[str], None] | None = None,  # noqa: ARG001
    stop: Callable[[], bool] | None = None,  # noqa: ARG001
) -> Answer:
    response = search(evidence_request(request))
    with reading() as store:
        index = lexical_index(store, settings) if store is not None else None
        return answer(request, settings.ask, response, index)
