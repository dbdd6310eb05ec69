"""Every requirement of this floor is named by the test that proves it, so that `grep -r R045 tests` finds the proof.

Some rows say what is in scope or what is a risk; they are named where it is decided: R041 (no vectors, no fusion, no morphology) and
R072 (what the default Korean index cannot do) beside the analysis they speak of, R107 (what hybrid search does not do) beside the
hybrid retriever.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def rows(*ranges: tuple[int, int]) -> list[str]:
    return [f"R{number:03}" for first, last in ranges for number in range(first, last + 1)]


REQUIRED = rows((1, 179))


@pytest.fixture(scope="module")
def named() -> set[str]:
    found: set[str] = set()
    for path in TESTS.rglob("*.py"):
        if path != Path(__file__):
            text = path.read_text(encoding="utf-8")
            found |= set(re.findall(r"(?<![A-Za-z0-9])R\d{3}(?!\d)", text))
    return found


@pytest.mark.parametrize("row", REQUIRED)
def test_the_requirement_is_named_by_a_test(named: set[str], row: str) -> None:
    assert row in named
