"""Stop words, which say nothing about the subject of a query."""

from __future__ import annotations

import pytest

from kebab.analysis.language import ENGLISH, KOREAN, is_stop_word


@pytest.mark.parametrize("word", ["how", "How", "THE", "do", "i", "what", "어떻게", "무엇인가요", "방법은"])
def test_question_words_and_articles_are_stop_words_in_any_case(word: str) -> None:
    assert is_stop_word(word)


@pytest.mark.parametrize("word", ["git", "install", "all", "only", "before", "between", "문서", "검색", "c", "go", ""])
def test_nouns_and_verbs_with_meaning_are_not_stop_words(word: str) -> None:
    assert not is_stop_word(word)


def test_the_lists_are_lower_case_single_words() -> None:
    assert all(word == word.lower() and word.isalpha() for word in ENGLISH)
    assert all(word.isalpha() and not word.isascii() for word in KOREAN)
