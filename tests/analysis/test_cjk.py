"""CJK text is cut into overlapping pairs, script by script; the same cut serves documents and queries."""

from __future__ import annotations

from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.analysis.cjk import Run, column_terms, has_cjk, pairs, runs

MIXED = st.text(
    st.one_of(st.sampled_from("한글문서를검색 kubernetesAPI는日本語かなカナ漢字-_.\n"), st.characters(codec="utf-8"))
)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("문서를", ["문서", "서를", "를"]),
        ("문서", ["문서", "서"]),
        ("문", ["문"]),
        ("문서 검색", ["문서", "서", "검색", "색"]),
        ("kubernetes는", ["kubernetes", "는"]),
        ("API서버", ["API", "서버", "버"]),
        ("漢字かな", ["漢字", "字", "かな", "な"]),
        ("カタカナ語", ["カタ", "タカ", "カナ", "ナ", "語"]),
        ("日本語", ["日本", "本語", "語"]),
        ("plain english, café", []),
        ("", []),
        ("english 한 words", ["한"]),
    ],
)
def test_a_run_gives_its_pairs_and_its_last_character(text: str, terms: list[str]) -> None:
    assert list(column_terms(text)) == terms


def test_decomposed_hangul_gives_the_same_terms_as_composed() -> None:
    text = "한글 정규화는 어렵다"
    assert list(column_terms(normalize("NFD", text))) == list(column_terms(text))


def test_a_word_is_cut_where_the_script_changes() -> None:
    assert runs("API서버v2漢字かな") == [
        Run("other", "API"),
        Run("hangul", "서버"),
        Run("other", "v2"),
        Run("han", "漢字"),
        Run("kana", "かな"),
    ]


@given(MIXED)
def test_runs_joined_together_give_the_word(text: str) -> None:
    assert "".join(run.text for run in runs(text)) == normalize("NFC", text)


@given(st.text("가나다라마바사", min_size=1))
def test_overlapping_pairs_joined_together_give_the_run(run: str) -> None:
    cut = pairs(run)
    assert cut[0] + "".join(pair[-1] for pair in cut[1:]) == run


@given(st.text("가나다라", min_size=2, max_size=12), st.data())
def test_any_part_of_a_run_is_found_as_the_phrase_of_its_pairs(run: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(run) - 2))
    end = data.draw(st.integers(start + 2, len(run)))
    indexed, asked = " ".join(column_terms(run)), " ".join(pairs(run[start:end]))
    assert f" {asked} " in f" {indexed} "


@given(MIXED)
def test_text_without_cjk_letters_has_no_terms_and_other_text_has_some(text: str) -> None:
    composed = normalize("NFC", text)
    assert bool(list(column_terms(text))) == any(character.isalpha() and has_cjk(character) for character in composed)


@given(MIXED)
def test_terms_are_words_without_white_space(text: str) -> None:
    assert all(term and not any(character.isspace() for character in term) for term in column_terms(text))


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("전화는 8812-3390이다", "8812 3390"),
        ("kubectl apply를 쓴다", "kubectl apply"),
        ("a b c d를", "b c d"),
        ("v2.5입니다", "v2 5"),
    ],
)
def test_a_phrase_of_plain_words_is_found_if_its_last_word_touches_korean_letters(text: str, phrase: str) -> None:
    assert f" {phrase} " in f" {' '.join(column_terms(text))} "


def test_plain_words_that_touch_no_cjk_letters_are_not_in_the_cjk_column() -> None:
    """They are in the column for words already, and would count twice."""
    assert list(column_terms("plain words here, 문서 and more")) == ["문서", "서"]
