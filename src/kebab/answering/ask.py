"""Answers: the parts behind `KnowledgeBase.ask`, wired from the settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kebab.answering.pipeline import Dictation, answer, evidence_request
from kebab.search.pipeline import lexical_index, search

if TYPE_CHECKING:
    from kebab.answering.chat_client import ChatClient
    from kebab.config.settings import AskSettings
    from kebab.core.answers import Answer
    from kebab.search.options import SearchRequest
    from kebab.session import Session


def ask(
    session: Session,
    request: SearchRequest,
    *,
    on_text: Callable[[str], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Answer:
    settings = session.settings
    writer = _writer(settings.ask)
    alike = session.words_alike() if writer is not None else None  # quotations need no model
    response = search(session, evidence_request(request))
    with session.reading() as reading:
        index = lexical_index(reading, settings) if reading is not None else None
        return answer(request, settings.ask, response, index, Dictation(writer, alike, on_text, stop))


def _writer(settings: AskSettings) -> ChatClient | None:
    if not settings.model.strip():
        return None
    from kebab.answering.chat_client import chat_client

    return chat_client(settings)
