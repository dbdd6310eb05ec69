"""Preprocessing of typed queries."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.query_tree import parse
from kebab.library.libraries import preprocess


@pytest.mark.parametrize(
    ("typed", "searched"),
    [
        ("  create   a\t\ndial  ", "create a dial*"),
        ("make_dial(limit)", "make_dial limit*"),
        ("(a OR b) AND cat", "a OR b AND cat*"),
        ('say "exact phrase"', 'say "exact phrase"'),
        ('say "open phrase', 'say "open phrase'),
        ("dial*", "dial*"),
        ("go", "go"),
        ("how to use C++", "how to use C++"),
        ("what is the gauge for", "what is the gauge for"),
        ("dial to", "dial to"),
        ("dial NOT", "dial NOT"),
        ("c++ api", "c++ api*"),
        ("다이얼 만들기", "다이얼 만들기*"),
        ("", ""),
        (" () ", ""),
    ],
)
def test_whitespace_parentheses_operators_and_the_last_word(typed: str, searched: str) -> None:
    assert preprocess(typed) == searched


@given(st.text())
def test_every_text_becomes_a_query_with_single_spaces_and_no_parentheses(typed: str) -> None:
    searched = preprocess(typed)
    assert not {"(", ")"} & set(searched)
    assert searched == " ".join(searched.split())
    parse(searched)


@given(st.text())
def test_preprocessing_is_idempotent(typed: str) -> None:
    assert preprocess(preprocess(typed)) == preprocess(typed)
