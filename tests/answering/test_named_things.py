"""Things that a question names and an answer must be about, and words that an answer may replace."""

from __future__ import annotations

import pytest

from kebab.answering.asked_for import asked_for
from kebab.answering.named import Named
from kebab.answering.named_things import named_in
from kebab.answering.question_parts import parts_of
from kebab.answering.roles import has_its_part, says_who_is


def named(question: str) -> dict[str, Named]:
    kind = asked_for(question)
    return {one.text: one for one in named_in(question, kind, parts_of(question, kind))}


@pytest.mark.parametrize(("question", "expected"), [
    ("What does error F.75 mean?", "F.75"),
    ("What does error E99 of the dishwasher mean?", "E99"),
    ("How much did the heating cost in 2023?", "2023"),
    ("Which servers run Debian 12?", "12"),
    ("How do I upgrade a cluster from 1.2 to 1.3?", "1.3"),
    ("How much was the cloud bill for March?", "March"),
    ("How much is the rent for flat C?", "C"),
    ("How much is the rent for flat A?", "A"),
    ("How do I install Terraform on macOS?", "Terraform"),
    ("How many employees does Red Hat have?", "Red Hat"),
    ("How many employees does Red Hat have?", "employees"),
    ("What is the salary of a Kubernetes administrator?", "administrator"),
    ("How much does a bed in a room for four cost?", "four"),
    ("How do I migrate the wiki?", "migrate"),
    ("7월 정기 산행은 언제인가요?", "7월"),
    ("재작년 회비는 얼마였나요?", "재작년"),
])  # fmt: skip
def test_the_things_that_a_question_names_are_recognised(question: str, expected: str) -> None:
    assert expected in named(question)


@pytest.mark.parametrize(("question", "other"), [
    ("What is the maximum size of a file?", "maximum"),
    ("Who pays for a repair of 300 euros?", "300"),
    ("Who may grant a discount of 25 percent?", "25"),
    ("Is the practice open on Thursdays?", "open"),
    ("When does the router reboot?", "reboot"),
    ("Why would it be done?", "done"),
    ("Who is the companion of the 10th series?", "10"),
    ("May I come on Monday?", "May"),
    ("What U.S. entity said so?", "U"),
    ("How do I use it?", "use"),
    ("고객 문의가 늘어난 원인은 무엇인가요?", "늘어난"),
    ("안경 맞추는 데 얼마 들었나요?", "맞추"),
])  # fmt: skip
def test_ordinary_words_of_a_question_are_not_named_things(question: str, other: str) -> None:
    assert other not in named(question)


@pytest.mark.parametrize(("question", "name", "written", "another"), [
    ("What does error F.75 mean?", "F.75", "Error F75: no water", "Error F.28: no gas"),
    ("Does v1.3 have it?", "v1.3", "since 1.3", "since 1.33"),
    ("How was the bill for March?", "March", "in Mar 2026", "in May 2026"),
    ("How was the bill for March?", "March", "2026-03-04", "2026-05-03"),
    ("Is plot 5000 free?", "5000", "plot 5,000", "plot 5,001"),
    ("What is in hall B?", "B", "hall B: books", "hall C: Books"),
])  # fmt: skip
def test_a_named_thing_is_found_in_every_spelling(question: str, name: str, written: str, another: str) -> None:
    pattern = named(question)[name].pattern
    assert pattern is not None
    assert pattern.search(written)
    assert not pattern.search(another)


@pytest.mark.parametrize(("question", "name", "text", "has"), [
    ("Who takes over the rota from Bea?", "Bea", "Bea takes over the rota from Ingrid.", False),
    ("Who takes over the rota from Ingrid?", "Ingrid", "Bea takes over the rota from Ingrid.", True),
    ("To whom does Lena lend her amplifier?", "Lena", "Omar lends his amplifier to Lena.", False),
    ("To whom does Omar lend his amplifier?", "Omar", "Omar lends his amplifier to Lena.", True),
    ("Who works with Bea?", "Bea", "Bea and Ingrid share the desk.", True),
])  # fmt: skip
def test_a_name_must_have_the_role_that_the_question_gives_it(question: str, name: str, text: str, has: bool) -> None:
    assert has_its_part(name, question, text) is has


@pytest.mark.parametrize(("text", "says"), [
    ("Escalate to Ingrid, never directly to the CEO.", False),
    ("The CEO is Ingrid.", True),
    ("It was signed by CEO Ingrid Holm.", True),
    ("Ingrid became CEO in May.", True),
])  # fmt: skip
def test_a_person_who_is_only_addressed_does_not_answer_who_that_is(text: str, says: bool) -> None:
    assert says_who_is("Who is the CEO?", text) is says
