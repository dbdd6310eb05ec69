"""What of a passage can be quoted by itself: always a range of it."""

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
def test_dots_inside_a_sentence_do_not_end_it(text: str) -> None:
    assert cut(text) == [text]


def test_korean_sentences_end_like_others() -> None:
    assert cut("배포는 화요일에 한다. 금요일에는 하지 않는다.") == ["배포는 화요일에 한다.", "금요일에는 하지 않는다."]
    assert cut("これは文です。次の文です。") == ["これは文です。", "次の文です。"]


def test_code_is_one_piece_with_its_fence_even_in_a_list() -> None:
    text = "1. Run it:\n\n   ```sh\n   kubectl get pods\n   kubectl get nodes\n   ```\n\n2. Done."
    assert cut(text) == ["Run it:", "   ```sh\n   kubectl get pods\n   kubectl get nodes\n   ```", "Done."]
    assert [sentence.kind for sentence in sentences(text)] == ["prose", "code", "prose"]


def test_items_and_rows_stand_by_themselves() -> None:
    text = "- one thing\n- [x] another. And more.\n> quoted\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert cut(text) == ["one thing", "another.", "And more.", "quoted", "| 1 | 2 |"]


def test_a_quote_goes_on_over_its_lines() -> None:
    assert cut("> It is kept for\n> 90 days. Then not.\n") == ["It is kept for\n> 90 days.", "Then not."]


def test_headings_and_markup_are_no_sentences() -> None:
    text = "## Limits\n\nSetext\n======\n\n{{< note >}}\nMind the gap.\n{{< /note >}}\n<!-- hidden -->\n<br/>\n"
    assert cut(text, "Setext") == ["Mind the gap."]


def test_a_passage_of_code_is_one_piece() -> None:
    assert cut("\ndef f():\n    return 1. \n", code=True) == ["def f():\n    return 1."]


@given(st.text(alphabet="aB1.?! \n#|-`>*다。", max_size=200))
def test_every_sentence_is_a_range_in_order(text: str) -> None:
    end = 0
    for sentence in sentences(text):
        assert end <= sentence.start < sentence.end <= len(text)
        end = sentence.end
