"""What a model wrote, cut into claims: which markers belong to which, and where marks go."""

from __future__ import annotations

import pytest

from kebab.answering.claims import claims_of, declines, marked


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
def test_markers_belong_to_the_sentence_they_follow_or_end(text: str) -> None:
    assert read(text) == [("It takes 30 seconds.", (1,)), ("It can be forced.", (2, 3))]


def test_items_of_a_list_are_claims_and_what_announces_them_is_none() -> None:
    assert read("There are two:\n\n- apples [1]\n- pears [2]\n") == [("apples", (1,)), ("pears", (2,))]


def test_indexes_in_code_are_no_markers() -> None:
    text = "Take the first [2]:\n\n```python\nitems[0]\n```\n[1]\n\nOr `items[1]` [2]."
    assert [markers for _, markers in read(text)] == [(2,), (1,), (2,)]
    assert "items[0]" in read(text)[1][0]


def test_marks_go_behind_the_claim_and_its_markers() -> None:
    text = "It is so [1]. It is not. [2] End [1]."
    ends = [claim.end for claim in claims_of(text)]
    assert marked(text, [(ends[1], "unsupported")]) == "It is so [1]. It is not. [2] [unsupported] End [1]."


@pytest.mark.parametrize(
    "text", ["NO_ANSWER", "`NO_ANSWER`", "The evidence does not say [1].", "I cannot answer this.", "문서에 해당 내용이 없습니다."]
)
def test_declining_is_told_from_answering(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize(
    "text", ["The subPath mount does not receive updates [1].", "No. Pushed commits are not amended [1].", "값이 없으면 기본값을 쓴다 [1]."]
)
def test_an_answer_that_says_no_is_an_answer(text: str) -> None:
    assert not declines(text)
