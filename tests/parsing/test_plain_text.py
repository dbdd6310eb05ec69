"""Plain text and configuration files: paragraphs."""

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
def test_an_empty_text_has_no_blocks(text: str) -> None:
    assert parsed(text).blocks == ()


def test_the_title_is_the_file_name_without_an_extension_that_says_nothing() -> None:
    assert parsed("x", "a/b/packing-list.txt").title == "packing-list"
    assert parsed("x", "a/b/server.log").title == "server.log"
    assert parsed("x", "a/b/LICENSE").title == "LICENSE"
    assert parsed("x", "a/b/README.txt").title == parsed("x", "a/b/README").title == "b"


def test_a_hash_in_a_text_file_is_no_heading_and_dashes_are_no_front_matter() -> None:
    document = parsed("---\ntitle: x\n---\n# not a heading\n")
    assert {block.kind for block in document.blocks} == {"paragraph"}
    assert document.metadata == {}


@pytest.mark.parametrize("path", ["x.yaml", "x.toml", "x.json", "Dockerfile", "Makefile", "x.ini", "x.hs"])
def test_configuration_and_code_without_a_grammar_are_code_blocks_of_a_code_document(path: str) -> None:
    document = parser_for(path).parse(b"one: 1\ntwo: 2\n\n\nthree: 3\n", path)
    assert (document.doc_type, document.code_lang) == ("code", None)
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
        ("Dockerfile.dev", ("code", "dockerfile")),
        ("build/Dockerfile-web", ("code", "dockerfile")),
        ("web.dockerfile", ("code", "dockerfile")),
        ("Containerfile", ("code", "dockerfile")),
        ("GNUmakefile", ("code", "makefile")),
        ("Makefile.am", ("code", "makefile")),
        ("makefile_common", ("code", "makefile")),
        ("Procfile.dev", ("code", "procfile")),
        ("Dockerfile.md", ("markdown", "md")),
        ("Dockerfile.txt", ("note", "txt")),
        ("Gemfile.lock", ("code", "lock")),
        ("makefiles", ("note", "txt")),
    ],
)
def test_a_file_name_gives_type_and_format(path: str, expected: tuple[str, str]) -> None:
    assert classify(path) == expected
    assert classify(path)[0] in DOC_TYPES


def test_each_format_has_its_parser_and_other_files_are_text() -> None:
    for path, parser in (
        ("a.md", "markdown"),
        ("a.pdf", "pdf"),
        ("a.py", "code"),
        ("a.htm", "html"),
        ("a.xhtml", "html"),
    ):
        assert parser_for(path).version.startswith(parser)
    assert parser_for("a.yaml") is parser_for("a.txt")
