"""csv and tsv: blocks of rows in the unchanged file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.documents import ParsedDocument
from kebab.core.text import LineTable
from kebab.parsing.registry import parser_for


def parse(text: str, path: str = "folder/list of things.csv") -> ParsedDocument:
    return parser_for(path).parse(text.encode(), path)


def test_a_block_has_twenty_rows() -> None:
    text = "name,price\n" + "".join(f"thing {n},{n}\n" for n in range(45))
    document = parse(text)
    lines = LineTable(text)
    assert document.text == text
    assert [(block.kind, *lines.lines_of(block.start, block.end)) for block in document.blocks] == [
        ("table", 1, 20),
        ("table", 21, 40),
        ("table", 41, 46),
    ]
    assert (document.title, document.metadata) == ("list of things", {"columns": ["name", "price"]})
    assert (document.doc_type, document.format, document.warnings) == ("note", "csv", ())


def test_a_quoted_value_keeps_its_lines_together() -> None:
    rows = ["a;b\r\n", *('"x\n""y""";1\n' for _ in range(19)), "z;2\n"]
    document = parse("".join(rows))
    assert [document.text[block.start : block.end] for block in document.blocks] == ["".join(rows[:20]), "z;2\n"]
    assert document.metadata == {"columns": ["a", "b"]}


def test_large_tables_are_bounded_with_a_warning() -> None:
    document = parse("n\n" + "1\n" * 6000)
    assert len(document.blocks) == 250
    assert document.warnings == ("1,001 rows after the first 5,000 are left out",)


@pytest.mark.parametrize(
    ("text", "path", "columns"),
    [("a\tb,c", "x.tsv", ["a", "b,c"]), ("a\tb\n", "x.csv", ["a", "b"]), ('"a, b",c', "x.csv", ["a, b", "c"])],
)
def test_the_header_determines_the_delimiter(text: str, path: str, columns: list[str]) -> None:
    assert parse(text, path).metadata == {"columns": columns}


def test_an_unclosed_quote_affects_one_row_only() -> None:
    document = parse('a,b\n"open,1\n' + "x,y\n" * 1000)
    assert sum(document.text[block.start : block.end].count("\n") for block in document.blocks) == 1002
    assert len(document.blocks) == 51


@given(st.lists(st.sampled_from(['"', ",", "a", "\n", "\r\n", ";", "\t", "한"]), max_size=60).map("".join))
def test_all_rows_are_in_blocks(text: str) -> None:
    document = parse(text)
    assert "".join("".join(document.text[block.start : block.end] for block in document.blocks).split()) == "".join(
        text.split()
    )
