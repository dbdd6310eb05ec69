"""The edit distance of misspellings, compared with a plain implementation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.analysis.word_forms import edit_distance

LETTERS = st.text("abc", max_size=7)


def textbook(typed: str, meant: str) -> int:
    rows, columns = len(typed) + 1, len(meant) + 1
    table = [[row + column if not row or not column else 0 for column in range(columns)] for row in range(rows)]
    for row in range(1, rows):
        for column in range(1, columns):
            differs = typed[row - 1] != meant[column - 1]
            table[row][column] = min(
                table[row - 1][column] + 1, table[row][column - 1] + 1, table[row - 1][column - 1] + differs
            )
            if row > 1 < column and typed[row - 1] == meant[column - 2] and typed[row - 2] == meant[column - 1]:
                table[row][column] = min(table[row][column], table[row - 2][column - 2] + 1)
    return table[-1][-1]


@pytest.mark.parametrize(
    ("typed", "meant", "edits"),
    [
        ("same", "same", 0),
        ("sam", "same", 1),
        ("samee", "same", 1),
        ("sane", "same", 1),
        ("smae", "same", 1),
        ("asem", "same", 2),
        ("", "ab", 2),
        ("one", "entirely", None),
    ],
)
def test_insertion_deletion_replacement_and_swap_are_one_edit(typed: str, meant: str, edits: int | None) -> None:
    assert edit_distance(typed, meant, 2) == edits


@given(LETTERS, LETTERS, st.integers(1, 4))
def test_the_edit_distance_equals_a_plain_implementation_up_to_the_limit(typed: str, meant: str, most: int) -> None:
    expected = textbook(typed, meant)
    assert edit_distance(typed, meant, most) == (expected if expected <= most else None)
