"""When evidence is enough for an answer, with and without a known closeness in meaning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

import kebab
from kebab.answering.evidence import gather
from kebab.answering.extractive import quotations_for
from kebab.answering.gate import Refusal, refusal
from kebab.answering.question import read_question
from kebab.core.deadline import time_limit
from kebab.core.errors import TimedOut
from kebab.core.ports import ColumnWeights
from kebab.core.search import SearchFilters, SearchHit

NOTES = {
    "meeting.md": "# 주간 회의\n\n로그인 장애의 원인은 만료된 인증서였다.\n",
    "outage.md": "# Login outage\n\nThe certificate of the login service had expired.\n",
    "weather.md": "# Weather\n\nIt rained in March, and the wind was strong.\n",
}

WORDS = {"meeting.md": "로그인", "outage.md": "login", "weather.md": "rained"}


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kebab.KnowledgeBase]:
    root = tmp_path_factory.mktemp("evidence")
    (root / "notes").mkdir()
    for path, text in NOTES.items():
        (root / "notes" / path).write_text(text, "utf-8")
    with kebab.open(root / "kb.sqlite") as knowledge_base:
        knowledge_base.ingest(root / "notes")
        yield knowledge_base


def found(notes: kebab.KnowledgeBase, path: str, similarity: float | None, floor: float | None) -> SearchHit:
    """A hit with the only passage of a note, and with these vector scores."""
    (hit,) = notes.search(WORDS[path], mode="lexical", doc=[path], full_text=True)
    detail = hit.retrieval._replace(fusion_score=0.5, vector_score=similarity, vector_floor=floor)
    return hit._replace(retrieval=detail)


def refused(notes: kebab.KnowledgeBase, question: str, hits: Sequence[SearchHit]) -> Refusal | None:
    with notes.session.store.reading() as reading:
        assert reading is not None
        index = reading.lexical_index(ColumnWeights(8, 2, 1, 1))
        asked = read_question(question, index, SearchFilters())
        return refusal(asked, gather(asked, hits, index.tokenizer, score_gate=0.05, max_tokens=3000))


def test_a_korean_question_is_judged_by_words_although_an_english_passage_is_known_to_be_distant(
    notes: kebab.KnowledgeBase,
) -> None:
    """The model that compares Korean has no scale, and the one passage in another language that has lent its own to
    all.
    """
    hits = [found(notes, "meeting.md", 0.5, None), found(notes, "outage.md", 0.34, 0.33)]
    assert refused(notes, "로그인 장애의 원인은?", hits) is None
    unfound = [
        found(notes, "meeting.md", None, None),
        found(notes, "weather.md", 0.4, None),
        found(notes, "outage.md", 0.34, 0.33),
    ]
    assert refused(notes, "로그인 장애의 원인은?", unfound) is None


def test_a_passage_with_all_words_close_together_is_enough_however_distant_in_meaning(
    notes: kebab.KnowledgeBase,
) -> None:
    assert refused(notes, "When had the certificate expired?", [found(notes, "outage.md", 0.58, 0.57)]) is None


def test_a_distant_passage_with_some_of_the_words_is_not_enough(notes: kebab.KnowledgeBase) -> None:
    why_not = refused(
        notes, "When had the strong certificate of Kubernetes expired?", [found(notes, "outage.md", 0.58, 0.57)]
    )
    assert why_not is not None
    assert why_not.reason == "weak_evidence"


def test_an_answer_that_is_given_up_stops_between_passages(notes: kebab.KnowledgeBase) -> None:
    """Regression: it used the processor for up to a second more, and was finished."""
    hits = [found(notes, "outage.md", None, None)]
    with time_limit(None) as deadline, notes.session.store.reading() as reading:
        assert reading is not None
        index = reading.lexical_index(ColumnWeights(8, 2, 1, 1))
        asked = read_question("Why did the login fail?", index, SearchFilters())
        deadline.give_up()
        with pytest.raises(TimedOut):
            gather(asked, hits, index.tokenizer, score_gate=0.05, max_tokens=3000)


def test_the_first_quotation_is_from_a_passage_that_is_enough_by_itself(notes: kebab.KnowledgeBase) -> None:
    """Another passage lets the answer pass, but this one is not enough by itself."""
    hits = [found(notes, "outage.md", 0.58, 0.57)]
    with notes.session.store.reading() as reading:
        assert reading is not None
        index = reading.lexical_index(ColumnWeights(8, 2, 1, 1))
        quoted = []
        for question in ("Is the strong certificate of Kubernetes expired?", "Is the certificate expired?"):
            asked = read_question(question, index, SearchFilters())
            evidence = gather(asked, hits, index.tokenizer, score_gate=0.05, max_tokens=3000)
            quoted.append(quotations_for(asked, evidence.passages, index.tokenizer).quotations)
    assert quoted[0] == ()
    assert len(quoted[1]) == 1
