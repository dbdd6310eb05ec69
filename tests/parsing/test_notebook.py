"""Notebooks: cells on the lines of the .ipynb file."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.text import LineTable
from kebab.parsing.registry import parser_for


def cell(kind: str, source: Any, outputs: list[Any] | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"cell_type": kind, "id": "x", "metadata": {"source": "not this"}}
    if outputs is not None:
        made["outputs"] = outputs
    return {**made, "source": source}


def notebook(*cells: dict[str, Any]) -> dict[str, Any]:
    return {"cells": list(cells), "metadata": {"language_info": {"name": "python"}}, "nbformat": 4, "nbformat_minor": 5}


SAMPLE = notebook(
    cell("markdown", ["# Ice *cream*\n", "\n", "How it \"melts\".\n", "- 한글\n", "- two"]),
    cell("code", ["def melt(t):\n", "    return t > 0"], [
        {"output_type": "stream", "name": "stdout", "text": ["warm\n", "\u001b[31mhot\u001b[0m\n"]},
        {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo", "text/html": ["<b>no</b>"], "text/plain": ["<Figure>"]}},
        {"output_type": "error", "ename": "E", "evalue": "too warm", "traceback": ["no"]},
    ]),
    cell("raw", "as it is"),
)  # fmt: skip


def parse(content: Any, **form: Any) -> ParsedDocument:
    data = content if isinstance(content, bytes) else json.dumps(content, **form).encode()
    return parser_for("a.ipynb").parse(data, "folder/a.ipynb")


def seen(document: ParsedDocument) -> list[tuple[str, str, str]]:
    return [
        (block.kind, block.title, " ".join(document.text[block.start : block.end].split())) for block in document.blocks
    ]


EXPECTED = [
    ("heading", "Ice cream", "# Ice *cream*"),
    ("paragraph", "", 'How it "melts".'),
    ("list", "", "- 한글 - two"),
    ("code", "python", "def melt(t): return t > 0"),
    ("code", "output", "warm hot <Figure> too warm"),
    ("paragraph", "", "as it is"),
]


@pytest.mark.parametrize("form", [{"indent": 1}, {"indent": None}, {"indent": 2, "ensure_ascii": False}])
def test_the_layout_of_the_json_does_not_change_the_blocks(form: dict[str, Any]) -> None:
    document = parse(SAMPLE, **form)
    assert seen(document) == EXPECTED
    assert (document.title, document.doc_type, document.format, document.metadata) == (
        "Ice cream",
        "note",
        "ipynb",
        {"language": "python"},
    )


def test_a_line_of_a_cell_is_cited_by_its_line_in_the_file() -> None:
    source = json.dumps(SAMPLE, indent=1, ensure_ascii=False)
    document = parse(source.encode())
    assert document.text.count("\n") == source.count("\n")
    lines = LineTable(document.text)
    code = next(block for block in document.blocks if block.title == "python")
    first, last = lines.lines_of(code.start, code.end)
    assert [json.loads(line.rstrip(",")) for line in source.split("\n")[first - 1 : last]] == [
        "def melt(t):\n",
        "    return t > 0",
    ]


def test_output_follows_its_code_whatever_the_order_of_the_keys() -> None:
    made = cell("code", ["a = 1\n", "a"], [{"text": ["one\n", "two\n", "three\n", "four"]}])
    sorted_keys = parse(notebook(made, cell("code", ["b"])), indent=1)  # as Jupyter writes them
    code_first = parse(notebook({"source": made["source"], **made}, cell("code", ["b"])), indent=1)
    for document in (sorted_keys, code_first):
        assert [text for _, _, text in seen(document)] == ["a = 1 a", "one two three four", "b"]
    for document, data in ((sorted_keys, notebook(made)), (code_first, notebook({"source": made["source"], **made}))):
        source, lines = json.dumps(data, indent=1).split("\n"), LineTable(document.text)
        code, output = ([lines.line_of(block.start), lines.line_of(block.end - 1)] for block in document.blocks[:2])
        assert [json.loads(source[line - 1].rstrip(",")) for line in code] == ["a = 1\n", "a"]
        assert code[1] < output[0] <= output[1] <= len(source) - 9, (
            "inside its cell, which ends ten lines before the file"
        )
    assert (
        '"one'
        in json.dumps(notebook({"source": made["source"], **made}), indent=1).split("\n")[
            LineTable(code_first.text).line_of(code_first.blocks[1].start) - 1
        ]
    )


@given(
    st.lists(st.lists(st.text('ab #-|`\n\r"\\한🙂\u0085\u2028', max_size=8), max_size=4), max_size=4),
    st.sampled_from(["markdown", "code"]),
    st.sampled_from([None, 1]),
)
def test_every_word_is_on_the_line_of_its_string(sources: list[list[str]], kind: str, indent: int | None) -> None:
    source = json.dumps(notebook(*(cell(kind, lines, []) for lines in sources)), indent=indent, ensure_ascii=False)
    document = parse(source.encode())
    assert document.text.count("\n") == source.count("\n")
    lines = LineTable(document.text)
    for block in document.blocks:
        first, last = lines.lines_of(block.start, block.end)
        for text, line in zip(
            document.text[block.start : block.end].split("\n"), source.split("\n")[first - 1 : last], strict=True
        ):
            assert all(letter in line for letter in text if letter in "ab#한🙂")
    words = "".join("".join(lines) for lines in sources)
    inside = "".join(document.text[block.start : block.end] for block in document.blocks)
    assert "".join(inside.split()) == "".join(words.split())


def test_output_is_bounded_and_old_notebooks_are_read() -> None:
    long = parse(notebook(cell("code", [], [{"text": ["x" * 1500 + "\n", "y" * 1500 + "\n", "z"]}])), indent=1)
    assert (long.text.count("x"), long.text.count("y"), long.text.count("z")) == (1500, 499, 0)
    old = parse({"worksheets": [{"cells": [{"cell_type": "code", "input": ["x = 1"], "outputs": []}]}]})
    assert seen(old) == [("code", "", "x = 1")]


def test_lone_surrogates_and_nulls_do_not_reach_the_text() -> None:
    assert parse(b'{"cells": [{"cell_type": "code", "source": "a\\ud800b\\u0000c"}]}').text.split() == ["a?b", "c"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"[" * 100_000, "unsafe"),
        (b'{"cells": ' + b"[" * 500 + b"]" * 500 + b"}", "unsafe"),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, "unsafe"),
        (json.dumps(SAMPLE).encode()[:-20], "damaged"),
        (b"[]", "damaged"),
        (b'{"cells": 1' + b"0" * 10_000 + b"}", "damaged"),
        (b"\x80\x00", "binary"),
    ],
)
def test_a_file_that_is_no_notebook_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(data)
    assert refused.value.reason == reason
