"""The informative words of a Korean question: without words that only ask, and with verbs as stems."""

from __future__ import annotations

import pytest

from kebab.answering.korean_words import korean_words


@pytest.mark.parametrize(
    ("question", "informative"),
    [
        ("나는 무슨 알레르기가 있나요?", ["알레르기"]),
        ("돼지고기는 얼마나 필요한가요?", ["돼지고기"]),
        ("계약금은 얼마를 냈나요?", ["계약금", "내"]),
        ("테스트는 어떻게 실행하나요?", ["테스트", "실행"]),
        ("이사는 토요일인가요?", ["이사", "토요일"]),
        ("돼지고기 몇 그램?", ["돼지고기"]),
        ("히터를 써도 되나요?", ["히터", "써"]),
        ("인터넷은 SK에 예약하나요?", ["인터넷", "예약"]),
        ("신입 회원도 올 수 있나요?", ["신입", "회원"]),
        ("헬멧은 무슨 색인가요?", ["헬멧", "색"]),
    ],
)
def test_the_informative_words_of_a_korean_question(question: str, informative: list[str]) -> None:
    assert [word.text for word in korean_words(question)] == informative


def test_korean_verbs_and_short_words_are_weak_unless_asked_about() -> None:
    weak = {word.text: word.weak for word in korean_words("앱은 무슨 색을 쓰나요?")}
    assert weak == {"앱": True, "색": False, "쓰": True} or weak == {"앱은": True, "색을": False, "쓰": True}
