"""kb ask: its output as text and as JSON, and its exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jsonschema

from kebab.core.answers import Answer
from kebab.interfaces.cli import ask
from kebab.wire import schemas

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from tests.conftest import Kb


def test_an_answer_is_printed_with_markers_and_the_citation_of_each(sample: Kb) -> None:
    ran = sample("ask", "how do I undo the last commit?")
    assert ran.code == 0, ran.err
    assert "[1]" in ran.out
    assert "\n[1] git/undo.md:L" in ran.out


def test_json_is_answer_v1(sample: Kb) -> None:
    answered = sample("ask", "how do I undo the last commit?", "--json", "--explain").json()
    refused = sample("ask", "what is the capital of Australia?", "--json")
    assert refused.code == 1
    for value in (answered, refused.json()):
        jsonschema.Draft202012Validator(schemas.schema("answer")).validate(value)
    assert answered["grounded"]
    assert answered["refusal_reason"] is None
    assert answered["citations"][0]["citation"]["path"] == "git/undo.md"
    assert answered["explanation"]["evidence"]["coverage"] > 0.5
    assert (refused.json()["answer"], refused.json()["grounded"]) == (None, False)


def test_a_refusal_exits_with_1_and_shows_the_nearest_passages(sample: Kb) -> None:
    ran = sample("ask", "who pays for the wildcard certificate of the museum in Oslo?")
    assert ran.code == 1
    assert ran.out.startswith("No answer: ")
    assert "Nearest passages:" in ran.out
    assert "ops/tls-renewal.md" in ran.out


def test_ask_accepts_the_filters_of_search(sample: Kb) -> None:
    question = "how do I undo the last commit?"
    assert sample("ask", question, "--path", "git/*").code == 0
    assert sample("ask", question, "--tag", "recipe").code == 1


def test_explain_shows_evidence_retrieval_and_verdicts(sample: Kb) -> None:
    out = sample("ask", "how do I undo the last commit?", "--explain").out
    for beginning in ("evidence: ", "passage: ", "retrieval: 1. ", "claim: supported [1]"):
        assert f"\n{beginning}" in out


def test_ask_without_a_question_is_an_error_with_a_hint(sample: Kb) -> None:
    ran = sample("ask", "--json")
    assert ran.code == 2
    assert ran.json()["code"] == "usage"


def test_a_question_may_come_from_the_standard_input(sample: Kb) -> None:
    ran = sample("ask", "-", input="How long are reflog entries kept?\n")
    assert ran.code == 0, ran.err
    assert "\n[1] git/undo.md:L70-L71 (Undoing things in Git)" in ran.out


def test_quoted_code_keeps_its_tabs_and_cites_a_single_line_once(kb: Kb, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "cache.go").write_text("// Flush empties the cache.\nfunc Flush() {\n\tlock()\n}\n", "utf-8")
    (tmp_path / "notes" / "cache.md").write_text("# Cache\n\nThe cache holds 40 entries.\n", "utf-8")
    database = tmp_path / "kb.sqlite"
    kb("--db", database, "ingest", tmp_path / "notes")
    assert "\n\tlock()\n" in kb("--db", database, "ask", "How do I flush the cache?", "--type", "code").out
    assert "[1] cache.md:L3 (Cache)" in kb("--db", database, "ask", "How many entries does the cache hold?").out


def test_streamed_text_is_withdrawn_if_the_answer_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    refused = Answer("Is it so?", None, False, "unsupported_claims", "The model made claims that nothing supports.")
    ask._print_answer(refused, streamed=True)
    assert "Withdrawn: what the model wrote above does not count as an answer.\nNo answer: " in capsys.readouterr().out
    for answer, streamed in ((refused, False), (refused._replace(refusal_reason="model_declined"), True)):
        ask._print_answer(answer, streamed=streamed)
        assert "Withdrawn" not in capsys.readouterr().out
