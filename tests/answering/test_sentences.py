"""Cutting a passage into sentences and other parts, each of which is a range of the passage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.answering.sentences import sentences


def cut(text: str, *headings: str, code: bool = False) -> list[str]:
    return [sentence.of(text) for sentence in sentences(text, headings, code=code)]


def test_paragraphs_are_cut_into_sentences_across_line_ends() -> None:
    text = "A Pod gets 30 seconds. It\nends then. Is that all?\n\nYes!\n"
    assert cut(text) == ["A Pod gets 30 seconds.", "It\nends then.", "Is that all?", "Yes!"]


@pytest.mark.parametrize(
    "text",
    [
        "Use a proxy, e.g. Envoy, in front of it.",
        "It was v1.2 before.",
        "Ask Mr. Brown about it.",
        "See docs/a.md for more.",
        "Costs 3.5 euros.",
    ],
)
def test_dots_of_abbreviations_and_numbers_do_not_end_a_sentence(text: str) -> None:
    assert cut(text) == [text]


def test_korean_sentences_end_like_others() -> None:
    assert cut("배포는 화요일에 한다. 금요일에는 하지 않는다.") == ["배포는 화요일에 한다.", "금요일에는 하지 않는다."]
    assert cut("これは文です。次の文です。") == ["これは文です。", "次の文です。"]


def test_a_code_block_is_one_unit_with_its_fence_even_in_a_list() -> None:
    text = "1. Run it:\n\n   ```sh\n   kubectl get pods\n   kubectl get nodes\n   ```\n\n2. Done."
    assert cut(text) == ["Run it:", "   ```sh\n   kubectl get pods\n   kubectl get nodes\n   ```", "Done."]
    assert [sentence.kind for sentence in sentences(text)] == ["item", "code", "item"]


def test_list_items_and_table_rows_are_separate_units() -> None:
    text = "- one thing\n- [x] another. And more.\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert cut(text) == ["one thing", "another.", "And more.", "quoted", "| 1 | 2 |"]


def test_a_block_quote_of_several_lines_is_read_as_continuous_text() -> None:
    assert cut("> It is kept for\n> 90 days. Then not.\n") == ["It is kept for\n> 90 days.", "Then not."]


def test_headings_and_markup_are_no_sentences() -> None:
    text = "## Limits\n\nSetext\n======\n\n{{< note >}}\nMind the gap.\n{{< /note >}}\n<!-- hidden -->\n<br/>\n"
    assert cut(text, "Setext") == ["Mind the gap."]


def test_a_passage_of_code_is_one_piece() -> None:
    assert cut("\ndef f():\n    return 1. \n", code=True) == ["def f():\n    return 1."]


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-03 02:11 ERROR disk failed. Sector 9.\n2024-05-03 07:55 Rashid replaced the disk\n2024-05-19 13:20 certificate expired",
        "3 May repotted the orchid and put it by the window of the kitchen because of the light\n14 May watered it",
        "Anna Berg 555-1234\nBen 555-9876\nDr. Cole 555-4433",
        "Director: Ottilie Kern.\nDeputy: Ivo Sand. He is away.\nOpening hours: 9 to 5",
        "김민수 010-1234-5678\n이영희 010-8765-4321",
    ],
)
def test_lines_of_logs_diaries_and_unmarked_lists_are_separate_units(text: str) -> None:
    blocks = {sentence.block: sentence.start for sentence in reversed(sentences(text))}
    assert sorted(blocks.values()) == [text.index(line) for line in text.split("\n")]
    assert {sentence.kind for sentence in sentences(text)} == {"item"}


def test_the_introduction_of_such_a_list_is_not_an_entry() -> None:
    text = "Phone numbers:\nAnna 555-1234\nBen 555-9876"
    assert [(sentence.of(text), sentence.kind) for sentence in sentences(text)] == [
        ("Phone numbers:", "prose"),
        ("Anna 555-1234", "item"),
        ("Ben 555-9876", "item"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "We met on\n12 May to talk about the\nRoof of the garage",
        "The picnic is on Sunday at\n12:30 by the lake",
        "Note: whatever you do about the\nboiler, write it down",
        "회의는 화요일에\n한다",
        "2024-05-03 we began with\nthe roof and the walls",
    ],
)
def test_a_sentence_may_continue_on_the_next_line(text: str) -> None:
    assert cut(text) == [text]


def test_indented_lines_belong_to_the_entry_above() -> None:
    assert cut("web:\n  port: 80\n\nhost: alder\n  port: 80\nsite: Basel") == [
        "web:\n  port: 80",
        "host: alder\n  port: 80",
        "site: Basel",
    ]


@given(st.text(alphabet="aB1.?! \n#|-`>*다。", max_size=200))
def test_sentences_are_ranges_of_the_passage_in_order(text: str) -> None:
    end = 0
    for sentence in sentences(text):
        assert end <= sentence.start < sentence.end <= len(text)
        end = sentence.end
