"""Cutting what a model wrote into claims: which markers belong to a claim, and where marks are inserted."""

from __future__ import annotations

import pytest

from kebab.answering.claims import borrowed_markers, claims_of, declines, marked, spoken_out


def read(text: str) -> list[tuple[str, tuple[int, ...]]]:
    return [(claim.text, claim.markers) for claim in claims_of(text)]


@pytest.mark.parametrize(
    "text",
    [
        "It takes 30 seconds [1]. It can be forced [2][3].",
        "It takes 30 seconds. [1] It can be forced. [2] [3]",
        "It takes 30 seconds[1]. It can be forced[2, 3].",
    ],
)
def test_markers_belong_to_the_sentence_before_them(text: str) -> None:
    assert read(text) == [("It takes 30 seconds.", (1,)), ("It can be forced.", (2, 3))]


def test_list_items_are_claims_and_their_introduction_is_recognised_by_its_form() -> None:
    said = claims_of("There is more:\n\n- apples [1]\n- pears [2]\n")
    assert [(claim.text, claim.markers, claim.leads_up) for claim in said] == [
        ("There is more:", (), True),
        ("apples", (1,), False),
        ("pears", (2,), False),
    ]
    assert borrowed_markers(said, 0) == (1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "# Gold is free\n\nTin is not [1].",
        "## Gold is free ##\n\nTin is not [1].",
        "| Gold is free |\n|---|\n| Tin is not [1]. |",
        "Gold is free\n---\nTin is not [1].",
        "<!-- Gold is free -->\nTin is not [1].",
        "[1]: Gold is free\n\nTin is not [1].",
        "- Gold is free\n- Tin is not [1].",
    ],
)
def test_every_part_of_a_written_answer_belongs_to_a_claim(text: str) -> None:
    """Headings, heads of tables and comments state something too."""
    first, *_, last = read(text)
    assert "Gold is free" in first[0]
    assert "Tin is not" in last[0]
    assert last[1] == (1,)


@pytest.mark.parametrize(
    ("text", "markers"),
    [
        ("It is so (1).", (1,)),
        ("It is so [1-3].", (1, 2, 3)),
        ("It is so [1–2][4].", (1, 2, 4)),
        ("It is so [^2].", (2,)),
        ("It is so 【3†source】.", (3,)),
        ("See step (1) first [2].", (2,)),
    ],
)
def test_markers_are_recognised_in_other_forms(text: str, markers: tuple[int, ...]) -> None:
    (claim,) = claims_of(text)
    assert claim.markers == markers


def test_yes_and_no_are_replaced_by_the_statement_of_the_question() -> None:
    assert spoken_out("No.", "Do hotfixes need approval?") == "Do hotfixes need approval, not"
    assert spoken_out("네", "승인이 필요한가요?") == "승인이 필요한가요"
    assert spoken_out("No hotfix needs it.", "Do they?") == "No hotfix needs it."


def test_indexes_in_code_are_not_read_as_markers() -> None:
    text = "Take the first [2]:\n\n```python\nitems[0]\n```\n[1]\n\nOr `items[1]` [2]."
    assert [markers for _, markers in read(text)] == [(2,), (1,), (2,)]
    assert "items[0]" in read(text)[1][0]


def test_a_mark_is_inserted_behind_the_claim_and_its_markers() -> None:
    text = "It is so [1]. It is not. [2] End [1]."
    ends = [claim.end for claim in claims_of(text)]
    assert marked(text, [(ends[1], "unsupported")]) == "It is so [1]. It is not. [2] [unsupported] End [1]."


@pytest.mark.parametrize(
    "text",
    [
        "NO_ANSWER",
        "`NO_ANSWER`",
        "The evidence does not say [1].",
        "I cannot answer this.",
        "문서에 해당 내용이 없습니다.",
    ],
)
def test_a_text_that_only_says_that_there_is_no_answer_is_a_refusal(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "The subPath mount does not receive updates [1].",
        "No. Pushed commits are not amended [1].",
        "값이 없으면 기본값을 쓴다 [1].",
        "According to the document, breakfast is not included [1].",
        "문서에 따르면 야간 백업은 시각이 바뀌지 않고 새벽 2시 30분에 시작된다 [2].",
        "The text field does not contain the token [1].",
        "Information on this is not available. Never open the valve [1].",
        "정보는 저장되지 않는다 [1].",
    ],
)
def test_a_sentence_that_begins_with_no_is_not_a_refusal(text: str) -> None:
    assert not declines(text)
