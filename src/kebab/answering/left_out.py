"""What was left out of an answer because it reads like orders to a machine: whoever is refused one should know, and see
for himself.
"""

from __future__ import annotations

from collections.abc import Sequence

from kebab.answering.citing import place_of
from kebab.answering.evidence import Passage
from kebab.answering.question import Question

_MOST_PLACES = 2


def left_out(question: Question, passages: Sequence[Passage]) -> str:
    """Where it stands, of what has words of the question; empty where there is none."""
    places = dict.fromkeys(
        place_of(passage, sentence).text
        for passage in passages
        for sentence, terms in passage.left_out
        if question.touches(terms | passage.title)
    )
    if not places:
        return ""
    return f"Text was left out because it reads like orders to a machine: {', '.join(list(places)[:_MOST_PLACES])}."
