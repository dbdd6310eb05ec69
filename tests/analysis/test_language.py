"""The language of a text, judged by its script."""

from __future__ import annotations

import time
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.analysis.language import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Install git on a new laptop.", "en"),
        ("Crème brûlée à la carte", "en"),
        ("새 노트북에 깃을 설치한다.", "ko"),
        ("kubectl get pods 명령으로 상태를 확인하고 kubectl describe pod 로 이벤트를 본다", "ko"),
        ("日本語の文章です。", "ja"),
        ("カタカナ", "ja"),
        ("漢字只有中文的句子", "zh"),
        ("Съешь ещё этих булок", "und"),
        ("Съешь ещё этих мягких французских булок and tea", "und"),
        ("12345 + 678 = ???", "und"),
        ("", "und"),
        ("🙂🙂", "und"),
    ],
)
def test_the_script_of_a_text_decides_its_language(text: str, language: str) -> None:
    assert language_of(text) == language


def test_decomposed_korean_is_korean() -> None:
    assert language_of(normalize("NFD", "한글 정규화")) == "ko"


def test_one_korean_word_in_a_long_english_text_does_not_make_it_korean() -> None:
    assert language_of("An English page about many things. " * 50 + "한글") == "en"


@given(st.text())
def test_the_language_of_any_text_is_one_of_five(text: str) -> None:
    assert language_of(text) in {"ko", "ja", "zh", "en", "und"}


def test_a_long_text_is_judged_by_its_beginning() -> None:
    started = time.process_time()
    assert language_of("문서 " * 2_000_000) == "ko"
    assert time.process_time() - started < 0.5
