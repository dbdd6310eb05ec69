"""Which parts of a passage are quoted together, and what each is about."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import pytest

from kebab.answering.question import Terms
from kebab.answering.sentences import Delimited, sentences
from kebab.answering.units import Unit, read, units
from kebab.store.fts5.tokenizer import SqliteTokenizer

TOKENIZER = SqliteTokenizer(apsw.Connection(":memory:"))


def found(text: str, title: str = "", headings: Sequence[str] = (), delimited: Delimited | None = None) -> list[Unit]:
    cut = sentences(text, headings, delimited=delimited)
    return list(units(read(text, cut, title, headings, "notes", TOKENIZER), TOKENIZER))


def quotable(text: str, *kinds: str, **context: object) -> list[str]:
    return [unit.of(text) for unit in found(text, **context) if not kinds or unit.kind in kinds]  # type: ignore[arg-type]


def knows(terms: Terms, *words: str) -> bool:
    return all(stem in terms.stems for word in words for stem in TOKENIZER.stems(word))


@pytest.mark.parametrize(
    "text",
    [
        "**How long are they kept?** Ten years. The law demands it.\n",
        "**Q: How long are they kept?**\n\nTen years. The law demands it.\n",
        "How long are they kept?\nTen years. The law demands it.\n",
        "### How long are they kept?\n\nTen years. The law demands it.\n",
    ],
)
def test_a_question_is_not_quoted_but_says_what_its_answer_is_about(text: str) -> None:
    (answer,) = found(text)
    assert answer.of(text) == "Ten years. The law demands it."
    assert answer.answers is not None
    assert "How long are they kept?" in answer.answers
    assert knows(answer.near, "kept")


def test_an_answer_on_its_own_line_belongs_to_the_question_above() -> None:
    text = "Q: Is there a sauna?\nA: Yes, on the second floor.\n\nQ: And a pool?\nA: No.\n"
    assert quotable(text, "prose") == ["A: Yes, on the second floor.", "A: No."]


def test_yes_or_no_is_quoted_with_the_following_sentence() -> None:
    assert quotable("No. Cheques were abolished. Cash is fine.\n", "prose") == [
        "No. Cheques were abolished.",
        "Cash is fine.",
    ]


def test_a_sentence_that_qualifies_another_is_quoted_with_it() -> None:
    assert quotable("Up to 500 euros: any agent. Above that: the lead. It is quick.\n", "prose") == [
        "Up to 500 euros: any agent. Above that: the lead.",
        "It is quick.",
    ]


def test_a_list_item_is_one_unit_and_so_is_the_list_with_its_introduction() -> None:
    text = "Bring these:\n\n- Boots. Warm ones.\n- A map.\n\nThe end.\n"
    assert quotable(text, "item") == ["Boots. Warm ones.", "A map."]
    assert quotable(text, "list") == ["Bring these:\n\n- Boots. Warm ones.\n- A map."]
    assert all(knows(unit.near, "bring") for unit in found(text) if unit.kind == "item")


def test_steps_keep_their_numbers_and_a_long_list_is_cut_between_them() -> None:
    text = "## Steps\n\n1. Switch it off.\n2. Wait.\n"
    assert quotable(text, "list") == ["1. Switch it off.\n2. Wait."]
    many = "".join(f"{number}. {'do something ' * 10}\n" for number in range(1, 30))
    (cut,) = [unit for unit in found(many) if unit.kind == "list"]
    assert cut.cut
    assert cut.of(many).rstrip().endswith("do something")


def test_code_is_quoted_with_the_sentence_that_introduces_it() -> None:
    text = "Install it:\n\n```sh\nmake install\n```\n\nDone.\n"
    assert quotable(text, "code") == ["Install it:\n\n```sh\nmake install\n```"]


def test_headings_inside_a_passage_say_what_the_text_below_is_about() -> None:
    text = "# Diary\n\nIt rained.\n\n## 2024-11-04 Live\n\nIt went live at 06:15.\n"
    first, second, *_ = found(text, title="Diary")
    assert not knows(first.near, "diary")  # the title is what all of it is about
    assert knows(first.around, "diary")
    assert knows(second.near, "live", "2024")


def test_a_sentence_that_begins_with_a_pronoun_is_about_the_same_as_the_one_before() -> None:
    _, second, third, *_ = found("This handbook describes the warehouse. It was written by Olivia. Doors are locked.\n")
    assert knows(second.near, "handbook")
    assert not knows(third.near, "handbook")


def test_a_row_is_also_about_the_head_of_its_table() -> None:
    text = "| Code | Meaning |\n|---|---|\n| F28 | no flame |\n"
    (row,) = found(text)
    assert row.header is not None
    assert text[slice(*row.header)] == "| Code | Meaning |"
    assert knows(row.near, "meaning")


def test_lines_of_a_delimited_file_are_rows_under_its_first_line() -> None:
    text = "host,role\nalder,web\nbirch,database\n"
    rows = found(text, delimited=Delimited(headed=True))
    assert [row.of(text) for row in rows if row.kind == "row"] == ["alder,web", "birch,database"]
    assert all(knows(row.near, "role") for row in rows if row.kind == "row")


def test_a_heading_in_plain_text_is_not_quoted() -> None:
    assert quotable("GARDEN\n\nTomatoes like sun.\n", "prose") == ["Tomatoes like sun."]


def test_a_list_of_steps_includes_its_code_and_paragraphs() -> None:
    text = (
        "# Setup\n\n1. Build it:\n\n   ```sh\n   make\n   ```\n\n2. Push it:\n\n   ```sh\n   git push\n   ```\n\n   It takes a while.\n\n"
        "3. Restart.\n\nNever on a Friday.\n"
    )
    (steps,) = quotable(text, "list")
    assert steps.startswith("1. Build it:")
    assert "It takes a while." in steps
    assert steps.endswith("3. Restart.")


def test_a_list_that_is_too_long_is_cut() -> None:
    text = "\n".join(f"{number}. Do {'this and that ' * 20}." for number in range(1, 12))
    (steps,) = (unit for unit in found(text) if unit.kind == "list")
    assert steps.cut
    assert len(steps.of(text)) <= 1400


def test_a_korean_sentence_without_a_subject_is_about_the_same_as_the_one_before() -> None:
    tooth, cost, walk = found("치과에서 사랑니를 뽑았다. 8만 원 들었다. 동생은 산책했다.\n")[:3]
    assert "사랑니" in cost.near.text
    assert "8만" not in walk.near.text
    assert "8만" not in tooth.near.text
