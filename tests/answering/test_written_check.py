"""Yes and no before a sentence are checked: they must fit the question and the sentence."""

from __future__ import annotations

import apsw
import pytest

from kebab.answering.citation_check import CitationChecker
from kebab.answering.sentences import sentences
from kebab.answering.source_reading import Source
from kebab.answering.written_check import checked
from kebab.store.fts5.tokenizer import SqliteTokenizer

NOTE = (
    "The copies of the archive are encrypted. Only admins can export the list. The gallery is closed on Mondays. "
    "The limit is 10 MB. Guests may not park. 사본은 암호화된다. 손님은 주차할 수 없다."
)


@pytest.mark.parametrize(
    ("question", "reply", "supported"),
    [
        ("Are the archive copies encrypted?", "Yes, copies are encrypted [1].", True),
        ("Are the archive copies encrypted?", "No, copies are encrypted [1].", False),
        ("Can everyone export the list?", "No, only admins can export the list [1].", True),
        ("Is the gallery open on Mondays?", "No, it is closed on Mondays [1].", True),
        ("Is the gallery open on Mondays?", "Yes, it is closed on Mondays [1].", False),
        ("Is the limit 5 MB?", "No, the limit is 10 MB [1].", True),
        ("Is the limit 5 MB?", "Yes, the limit is 10 MB [1].", False),
        ("Is the limit more than 5 MB?", "Yes, the limit is 10 MB [1].", True),
        ("May guests park?", "No, guests may not park [1].", True),
        ("May guests park?", "Yes, guests may not park [1].", False),
        ("사본은 암호화되나요?", "네, 사본은 암호화됩니다 [1].", True),
        ("사본은 암호화되나요?", "아니요, 사본은 암호화됩니다 [1].", False),
        ("손님은 주차할 수 있나요?", "아니요, 손님은 주차할 수 없습니다 [1].", True),
        ("손님은 주차할 수 있나요?", "네, 손님은 주차할 수 없습니다 [1].", False),
    ],
)
def test_yes_and_no_must_fit_the_question_and_what_follows(question: str, reply: str, supported: bool) -> None:
    checker = CitationChecker(
        [Source(1, NOTE, "", tuple(sentences(NOTE)))], SqliteTokenizer(apsw.Connection(":memory:"))
    )
    [(_, claim)] = checked(reply, question, checker)
    assert (claim.verdict == "supported") is supported
