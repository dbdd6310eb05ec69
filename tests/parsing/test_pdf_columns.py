"""Pages of two columns in every drawing order, and pages that only look like them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parsing.pdf_bytes import At, lines_at, make_pdf

from kebab.core.documents import ParsedDocument
from kebab.parsing.pdf import PdfParser
from kebab.parsing.pdf_columns import Box, misdrawn_columns

LEFT = [
    "The left column is read from its top to",
    "its very end, before anyone looks at the",
    "other side of the page.",
    "A new paragraph of it begins here and",
    "goes on to its fifth line.",
]
RIGHT = [
    "The right column comes after the left",
    "one and goes on for several lines, some",
    "of which end in the middle of a sentence",
    "that is continued below.",
    "Nothing else is on this page but these",
    "two, and this one is longer.",
]
KOREAN_LEFT = [
    "왼쪽 단은 위에서 아래로 끝까지",
    "먼저 읽어야 하며 그 다음에야",
    "오른쪽 단을 읽는 것이 맞다.",
    "이것이 왼쪽 단의 마지막 줄이다",
]
KOREAN_RIGHT = [
    "오른쪽 단은 왼쪽 단을 다 읽은",
    "뒤에 이어지는 글이며 여러 줄에",
    "걸쳐서 계속되는 문장이 있다.",
    "이것이 오른쪽 단의 마지막이다",
]
TITLE = At(72, 750, "A title that stands above both of the columns", 18, bold=True)


def parsed(*lines: At) -> ParsedDocument:
    return PdfParser().parse(make_pdf([lines]), "a.pdf")


def lines_of(*lines: At) -> list[str]:
    return parsed(*lines).text.split("\n")


def words_of(*lines: At) -> str:
    return " ".join(parsed(*lines).text.split())


def columns(left: list[str], right: list[str], y: float = 700) -> tuple[list[At], list[At]]:
    return lines_at(60, y, left), lines_at(330, y, right)


def by_rows(left: list[At], right: list[At]) -> list[At]:
    return sorted([*left, *right], key=lambda line: (-line.y, line.x))


@pytest.mark.parametrize(("left", "right"), [(LEFT, RIGHT), (KOREAN_LEFT, KOREAN_RIGHT), (RIGHT, LEFT)])
def test_two_columns_are_read_one_after_the_other_in_any_drawing_order(left: list[str], right: list[str]) -> None:
    one, other = columns(left, right)
    assert lines_of(*one, *other) == left + right
    assert lines_of(*by_rows(one, other)) == left + right
    assert lines_of(*other, *one) == left + right


def test_columns_whose_lines_are_not_level_are_read_one_after_the_other() -> None:
    one, other = lines_at(60, 700, LEFT), lines_at(330, 694, RIGHT)
    assert lines_of(*by_rows(one, other)) == LEFT + RIGHT


def test_lines_drawn_word_by_word_are_columns_too() -> None:
    one, other = columns(LEFT, RIGHT)
    words = [
        At(line.x + 6.5 * sum(len(word) for word in line.text.split()[:number]), line.y, f"{word} ")
        for line in by_rows(one, other)
        for number, word in enumerate(line.text.split())
    ]
    assert words_of(*words) == " ".join(LEFT + RIGHT)


def test_a_line_across_the_gutter_separates_the_columns_above_and_below() -> None:
    above, below = columns(LEFT, RIGHT, 700), columns(RIGHT, LEFT, 500)
    between = At(60, 560, "One line that goes from the left edge of the page to its right edge, over both columns.")
    footer = At(300, 40, "12")
    in_order = [TITLE.text, *LEFT, *RIGHT, between.text, *RIGHT, *LEFT, footer.text]
    assert lines_of(TITLE, *by_rows(*above), between, *by_rows(*below), footer) == in_order
    assert lines_of(TITLE, *above[1], *above[0], between, *below[1], *below[0], footer) == in_order
    assert lines_of(*by_rows(*above), *by_rows(*below), TITLE, between, footer) == in_order


def test_header_and_footer_stay_outside_of_the_columns() -> None:
    margins = [At(60, 760, "The Journal"), At(480, 760, "Page 12"), At(60, 40, "2024"), At(480, 40, "Vol. 3")]
    one, other = columns(LEFT, RIGHT)
    text = parsed(*margins[:2], *by_rows(one, other), *margins[2:]).text
    assert text.split("\n") == ["The Journal Page 12", *LEFT, *RIGHT, "2024 Vol. 3"]


def test_a_word_broken_in_a_column_is_mended_and_headings_are_found_there() -> None:
    left = [
        "Here is a word that is broken in an exam-",
        "ple at the end of its line, and there is",
        "more of it in the lines that follow.",
    ]
    one, other = columns(left, RIGHT)
    heading = other[0]._replace(text="Methods of the work that was done", bold=True)
    document = parsed(*by_rows(one, [heading, *other[1:]]))
    assert document.text.startswith(f"{left[0][:-1]}{left[1]}\n{left[2]}\nMethods")
    assert [block.title for block in document.blocks if block.kind == "heading"] == [heading.text]


# Pages that keep the drawing order


def table(rows: list[list[str]], *places: float, leading: float = 14) -> list[At]:
    return [
        At(x, 700 - leading * number, cell)
        for number, row in enumerate(rows)
        for x, cell in zip(places, row, strict=True)
    ]


SHORT_CELLS = [
    ["Plan", "Price a month"],
    ["Standard", "20 dollars"],
    ["Plus", "45 dollars"],
    ["Family of four", "80 dollars"],
    ["None", "0"],
]
NUMBERS = [[f"{year} was a year", f"{year % 7}", "12.50", f"{year * 3}"] for year in range(2000, 2012)]
TERMS = [
    ["Deductible", RIGHT[0]],
    ["Copay", RIGHT[1]],
    ["Premium", RIGHT[2]],
    ["Network", RIGHT[4]],
    ["Claim", RIGHT[5]],
]


@pytest.mark.parametrize(
    "cells",
    [table(SHORT_CELLS, 72, 330), table(NUMBERS, 72, 230, 330, 450), table(TERMS, 72, 330)],
    ids=["short cells", "many columns", "terms"],
)
def test_a_table_is_read_row_by_row(cells: list[At]) -> None:
    assert words_of(*cells) == " ".join(cell.text for cell in cells)


def test_cells_of_several_lines_stay_as_they_are_drawn() -> None:
    cells = [
        cell
        for row in range(4)
        for cell in (*lines_at(60, 700 - 34 * row, LEFT[:2]), *lines_at(330, 700 - 34 * row, RIGHT[:2]))
    ]
    assert lines_of(*cells) == [cell.text for cell in cells]


def test_one_column_with_indented_text_stays_as_it_is_drawn() -> None:
    full = "A line of the only column of this page, which goes from its left edge to its right edge."
    lines = [
        At(60 if number % 3 else 330, 700 - 14 * number, full if number % 3 else LEFT[number % 5])
        for number in range(20)
    ]
    assert lines_of(*lines) == [line.text for line in lines]
    upwards = list(reversed(lines))
    assert lines_of(*upwards) == [line.text for line in upwards]


def test_a_short_list_in_the_corner_is_no_column() -> None:
    left, right = columns(LEFT, ["one", "two", "three", "four"])
    drawn = [*right, *left]
    assert words_of(*drawn) == " ".join(line.text for line in drawn)


def test_text_from_right_to_left_stays_as_it_is_drawn() -> None:
    hebrew = [
        "הטור הימני נקרא ראשון מלמעלה",
        "ועד סופו לפני שמישהו מביט אל",
        "הצד השני של הדף הזה שלפנינו",
        "וזוהי השורה האחרונה של הטור",
    ]
    one, other = columns(hebrew, hebrew)
    assert parsed(*other, *one).text == parsed(*other).text + "\n" + parsed(*one).text


BOXES = st.builds(
    lambda x, y, w, h: Box(x, y, x + w, y + h), *[st.floats(0, 600)] * 2, st.floats(0, 300), st.floats(0, 30)
)


@given(st.lists(BOXES, max_size=30))
def test_any_boxes_give_columns_or_none(boxes: list[Box]) -> None:
    found = misdrawn_columns(boxes, 300)
    if found:
        assert all(found.region_of(box.left, box.middle) for box in boxes)
