"""Text without structure of its own: paragraphs; source code goes this way too."""

from __future__ import annotations

import pytest

from kebab.core.documents import ParsedDocument
from kebab.core.search import DOC_TYPES
from kebab.parsing.file_types import classify
from kebab.parsing.plain_text import PlainTextParser
from kebab.parsing.registry import parser_for


def parsed(text: str, path: str = "notes/a.txt") -> ParsedDocument:
    return PlainTextParser().parse(text.encode(), path)


def test_paragraphs_are_runs_of_lines_that_are_not_blank() -> None:
    text = "\n\none\ntwo\n \t\n\nthree\r\n\r\nfour"
    assert [text[block.start : block.end].strip() for block in parsed(text).blocks] == ["one\ntwo", "three", "four"]


@pytest.mark.parametrize("text", ["", "\n", " \n\t\r\n "])
def test_a_text_of_nothing_has_no_blocks(text: str) -> None:
    assert parsed(text).blocks == ()


def test_the_title_is_the_file_name() -> None:
    assert parsed("x", "a/b/packing-list.txt").title == "packing-list.txt"


def test_a_hash_in_a_text_file_is_no_heading_and_dashes_are_no_front_matter() -> None:
    document = parsed("---\ntitle: x\n---\n# not a heading\n")
    assert {block.kind for block in document.blocks} == {"paragraph"}
    assert document.metadata == {}


def test_source_code_is_code_blocks_of_a_code_document() -> None:
    """R133."""
    document = parsed("def f():\n    pass\n\n\ndef g():\n    pass\n", "tools/x.py")
    assert (document.doc_type, document.format) == ("code", "py")
    assert [block.kind for block in document.blocks] == ["code", "code"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.md", ("markdown", "md")),
        ("a.mdx", ("markdown", "mdx")),
        ("papers/A.PDF", ("pdf", "pdf")),
        ("src/main.RS", ("code", "rs")),
        ("Dockerfile", ("code", "dockerfile")),
        ("sub/Makefile", ("code", "makefile")),
        ("config.yaml", ("code", "yaml")),
        (".gitignore", ("code", "gitignore")),
        ("todo.txt", ("note", "txt")),
        ("README", ("note", "txt")),
        ("page.rst", ("note", "rst")),
        ("table.csv", ("note", "csv")),
        ("mail.eml", ("note", "eml")),
        ("v1.2/notes", ("note", "txt")),
    ],
)
def test_the_name_of_a_file_tells_type_and_format(path: str, expected: tuple[str, str]) -> None:
    """R133."""
    assert classify(path) == expected
    assert classify(path)[0] in DOC_TYPES


def test_markdown_and_pdf_have_parsers_of_their_own_and_everything_else_is_text() -> None:
    assert parser_for("a.md").version.startswith("markdown")
    assert parser_for("a.py") is parser_for("a.txt")
    assert parser_for("a.pdf").version.startswith("pdf")
