"""Word forms that the stemmer separates although they are one word, or joins although they are different words."""

from __future__ import annotations

import apsw
import pytest

from kebab.analysis.korean import forms_of, verb_stem
from kebab.answering.question import QuestionWord, read_question, share_of, terms_of
from kebab.core.search import SearchFilters
from kebab.store.fts5.tokenizer import SqliteTokenizer

TOKENIZER = SqliteTokenizer(apsw.Connection(":memory:"))


class NoIndex:
    """An index of an empty corpus, in which every word is equally rare."""

    tokenizer = TOKENIZER

    def size(self) -> int:
        return 10

    def count(self, *_: object, **__: object) -> int:
        return 0


def word_of(question: str) -> QuestionWord:
    words = read_question(question, NoIndex(), SearchFilters()).words  # type: ignore[arg-type]
    return max(words, key=lambda word: word.weight)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Was it stolen?", "They steal bicycles."),
        ("Why did they leave?", "The contractors left in October."),
        ("Which one did we choose?", "We chose the second one."),
        ("Is there a deployment?", "We deploy on Tuesdays."),
        ("Who deploys?", "The deployment is quick."),
        ("Are photos allowed?", "Photography is forbidden."),
        ("Is email needed?", "Not for e-mail."),
        ("Is e-mail needed?", "Not for email."),
        ("Is there Wi-Fi?", "The wifi is slow."),
        ("Where is the sign-up?", "They sign up on the website."),
        ("Who owns it?", "Owner: Priya Natarajan."),
        ("Who is the conductor?", "She conducts the choir."),
    ],
)
def test_two_forms_of_a_word_are_the_same_word(question: str, text: str) -> None:
    assert share_of(word_of(question), terms_of(text, TOKENIZER)) == 1.0


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is the capital?", "Capitalization of titles."),
        ("Is there a party?", "A part of it."),
        ("What is in the basement?", "The base of the tower."),
        ("Where is the corn?", "At the corner."),
    ],
)
def test_different_words_are_not_the_same_word(question: str, text: str) -> None:
    assert share_of(word_of(question), terms_of(text, TOKENIZER)) == 0.0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("냈나요", "계약금을 냈다"),
        ("쓰나요", "ruff를 쓴다"),
        ("넣나요", "두부를 넣고"),
        ("끓이나요", "15분 끓인다"),
        ("미뤄졌나요", "8월로 미룬다"),
        ("바뀌었나요", "이름이 바뀐다"),
        ("오르나요", "산에 올랐다"),
        ("올랐나요", "산에 오른다"),
        ("만드나요", "가상환경을 만든다"),
        ("먹어도", "하루에 먹는다"),
    ],
)
def test_a_korean_verb_is_found_with_any_ending(asked: str, said: str) -> None:
    stem = verb_stem(asked)
    assert stem
    assert forms_of(stem).search(said)


def test_korean_nouns_that_end_like_verbs_are_not_read_as_verbs() -> None:
    assert [verb_stem(noun) for noun in ("휴가", "창고", "화면", "바나나")] == [None] * 4


def test_a_short_stem_is_not_found_inside_nouns() -> None:
    stem = verb_stem("가나요")
    assert stem is not None
    assert not forms_of(stem).search("가격은 강남에서")
