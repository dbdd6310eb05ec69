"""Answers without a model to questions that people ask of their notes, English and Korean: the right quotation first,
and nothing else.

Each answer is judged by what must stand in it; the shares below must not fall.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import kebab
from kebab.core.answers import Answer

PARTS: dict[str, dict[str, Any]] = yaml.load(
    (Path(__file__).parents[1] / "fixtures/answers/notes_and_questions.yaml").read_bytes(),
    getattr(yaml, "CSafeLoader", yaml.SafeLoader),
)
LEAST_RIGHT = 0.88
"""The least share of answerable questions whose answer is exactly the expected quotation. Measured: .89 to 1."""
LEAST_REFUSED = 0.90
"""The least share of unanswerable questions that are refused. Measured: all."""
MOST_WRONG = 0.03


def verdict(answer: Answer, says: list[str], beside: list[str], or_refuses: bool) -> str:
    if answer.text is None:
        return "rightly refused" if or_refuses or not says else "wrongly refused"
    quotes = [claim.text for claim in answer.claims]
    if not says or not all(any(said in quote for quote in quotes) for said in says):
        return "wrong"
    if says[0] not in quotes[0] and not any(said in quotes[0] for said in beside):
        return "not first"
    extra = [quote for quote in quotes if not any(said in quote for said in (*says, *beside))]
    return "noisy" if extra else "right"


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory, model_cache: Path) -> Callable[[str], Path]:
    """A function that returns the knowledge base of one part of the questions, made on first use."""

    @cache
    def made(part: str) -> Path:
        root = tmp_path_factory.mktemp(part)
        (root / "notes").mkdir()
        for path, text in PARTS[part]["notes"].items():
            (root / "notes" / path).write_text(text, "utf-8")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_CACHE_HOME", str(model_cache))
            with kebab.open(root / "kb.sqlite", embedding_model="bundled") as knowledge_base:
                knowledge_base.ingest(root / "notes")
        return root / "kb.sqlite"

    return made


@pytest.mark.parametrize("mode", ["lexical", "hybrid"])
@pytest.mark.parametrize("part", PARTS)
def test_the_expected_quotation_is_the_whole_answer_or_the_question_is_refused(
    notes: Callable[[str], Path], part: str, mode: str, bundled_models: None, record_property: Any
) -> None:
    questions = PARTS[part]["questions"]
    judged: dict[str, str] = {}
    with kebab.open(notes(part)) as knowledge_base:
        for entry in questions:
            answer = knowledge_base.ask(entry["ask"], mode=mode)
            judged[entry["ask"]] = verdict(
                answer, entry.get("says", []), entry.get("beside", []), entry.get("or_refuses", False)
            )
            assert answer.text is None or answer.grounded
    answerable = [entry["ask"] for entry in questions if "says" in entry]
    refusable = [entry["ask"] for entry in questions if "says" not in entry]
    counted = Counter(judged.values())
    for name, number in counted.items():
        record_property(name, number)
    wrong = {question: said for question, said in judged.items() if said not in ("right", "rightly refused")}
    assert sum(judged[question] in ("right", "rightly refused") for question in answerable) >= LEAST_RIGHT * len(
        answerable
    ), wrong
    assert sum(judged[question] == "rightly refused" for question in refusable) >= LEAST_REFUSED * len(refusable), wrong
    assert counted["wrong"] <= MOST_WRONG * len(questions), wrong
