"""Answers: the parts behind `KnowledgeBase.ask`, wired from the settings."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from kebab.answering.pipeline import Dictation, answer, evidence_request
from kebab.search.retrievers import lexical_index

if TYPE_CHECKING:
    from kebab.answering.chat_client import ChatClient
    from kebab.config.settings import AskSettings, Settings
    from kebab.core.answers import Answer
    from kebab.core.ports import WordsAlike
    from kebab.core.search import SearchResponse
    from kebab.core.store_ports import Reading
    from kebab.search.request import SearchRequest


class Search(Protocol):
    def __call__(self, query: SearchRequest, /) -> SearchResponse: ...


def ask(
    request: SearchRequest,
    settings: Settings,
    search: Search,
    reading: Callable[[], AbstractContextManager[Reading | None]],
    alike: Callable[[], WordsAlike | None],
    *,
    on_text: Callable[[str], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Answer:
    writer = _writer(settings.ask)
    dictation = Dictation(writer, alike() if writer is not None else None, on_text, stop)  # quotations need no model
    response = search(evidence_request(request))
    with reading() as store:
        index = lexical_index(store, settings) if store is not None else None
        return answer(request, settings.ask, response, index, dictation)


def _writer(settings: AskSettings) -> ChatClient | None:
    if not settings.model.strip():
        return None
    from kebab.answering.chat_client import chat_client

    return chat_client(settings)
