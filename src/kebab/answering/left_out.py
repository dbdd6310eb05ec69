"""Names the passages that were left out of an answer because they read like orders to a machine."""

from __future__ import annotations

from collections.abc import Sequence

from kebab.answering.citing import place_of
from kebab.answering.evidence import Passage
from kebab.answering.question import Question

_MOST_PLACES = 2


def left_out(question: Question, passages: Sequence[Passage]) -> str:
    """The first places of sentences that were left out and have words of the question; empty if there are none."""
    places = dict.fromkeys(
        place_of(passage, sentence).text
        for passage in passages
        for sentence, terms in passage.left_out
        if question.touches(terms | passage.title)
    )
    return ", ".join(list(places)[:_MOST_PLACES])
