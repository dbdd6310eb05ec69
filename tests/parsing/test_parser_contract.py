"""The contract of every registered parser."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.ports import Parser
from kebab.core.search import DOC_TYPES, TRUST_LEVELS
from kebab.core.text import decode
from kebab.ingest.report import SKIP_REASONS
from kebab.parsing.registry import all_parsers, parser_for

PIECES = st.sampled_from(
    ["# Heading\n", "## 한글 제목\r\n", "text\n", "긴 문장이다. ", "```\n", "| a | b |\n|---|---|\n", "- item\n", "> q\n", "\n", "\r\n", "    code\n",
     "---\n", "+++\n", "title: x\n", "<div>\n", "🙂👩‍👩‍👧", "e\u0301", "\t", "***\n", "===\n", "\u2028", "[a]: /b\n", "<!--\n", "<p>", "<pre>\n", "</pre>",
     "Title\n=====\n", "::\n\n  x\n", ".. code-block:: c\n", "* org\n", "#+BEGIN_SRC c\n", "#+END_SRC\n", "a,b\n", '"', "<h1>", "</h1>", "<table>", "<td>", "</table>", "<nav>", "</nav>", "<title>", "</title>", "&#10;", "&lt;", "<meta charset=euc-kr>", "\x00", "\x0c"]
)  # fmt: skip
TEXT = st.lists(PIECES | st.text(max_size=8), max_size=25).map("".join)
BYTES = st.one_of(
    st.binary(max_size=400),
    TEXT.map(lambda text: text.encode()),
    TEXT.map(lambda text: text.encode("utf-16")),
    TEXT.map(lambda text: text.encode("cp949", "ignore")),
)
CONTAINERS = frozenset("docx-3 epub-3 ipynb-4 pdf-5 pptx-2 xlsx-2".split())
"""Formats with a form that not every text has."""
PARSERS = [pytest.param(parser, id=parser.version) for parser in all_parsers()]
TEXT_PARSERS = [param for param in PARSERS if param.id not in CONTAINERS]
CONTAINER_PARSERS = [param for param in PARSERS if param.id in CONTAINERS]


EXTENSIONS = {"code": "py", "markdown": "md", "text": "txt"}


def path_for(parser: Parser) -> str:
    """A file name that this parser is registered for."""
    name = parser.version.partition("-")[0]
    path = "folder/file name" if name == "script" else f"folder/file name.{EXTENSIONS.get(name, name)}"
    assert parser_for(path) is parser
    return path


def line_feeds(data: bytes) -> int:
    """Every encoding except UTF-16 and UTF-32 writes a line feed as one byte."""
    return (
        decode(data)[0].count("\n")
        if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"))
        else data.count(b"\n")
    )


def check(parser: Parser, document: ParsedDocument, data: bytes) -> None:
    text = document.text
    if parser.keeps_lines:
        assert text.count("\n") == line_feeds(data)
    position = 0
    for block in document.blocks:
        assert position <= block.start < block.end <= len(text)
        assert text[block.start : block.end].strip(" \t\r\n") or block.kind == "code"
        assert not (document.paged and "\f" in text[block.start : block.end])
        if document.doc_type == "code" or document.format in ("md", "mdx", "txt", "rst", "org", "csv"):
            assert text == decode(data)[0]
            assert block.start == 0 or text[block.start - 1] == "\n"
        assert (block.level > 0) == (block.kind == "heading")
        position = block.end
    assert document.title
    assert document.title == " ".join(document.title.split())
    assert document.doc_type in DOC_TYPES
    assert document.trust_level in (None, *TRUST_LEVELS)
    assert document.lang
    _check_values(document.metadata)


def _check_values(value: Any) -> None:
    assert value is None or isinstance(value, str | int | float | bool | list | dict)
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_values(item)


@pytest.mark.parametrize("parser", PARSERS)
@given(data=BYTES)
@example(data=b"")
@example(data=b"---\n---\n")
@example(data=b"\xff\xfe")
@example(data="---\ntitle: '　'\n---\nx".encode())
def test_any_bytes_give_a_parse_error_or_a_document_with_ordered_blocks_inside_its_text(
    parser: Parser, data: bytes
) -> None:
    try:
        document = parser.parse(data, path_for(parser))
    except ParseError as error:
        assert error.reason in SKIP_REASONS
        return
    check(parser, document, data)


@pytest.mark.parametrize("parser", PARSERS)
@given(text=TEXT.map(lambda text: text.replace("\0", "")))
def test_every_line_with_text_is_in_a_block_or_in_the_front_matter(parser: Parser, text: str) -> None:
    try:
        document = parser.parse(text.encode(), path_for(parser))
    except ParseError:
        return
    inside = [document.text[block.start : block.end] for block in document.blocks]
    outside = len("".join(document.text.split())) - sum(len("".join(part.split())) for part in inside)
    assert outside == 0 or document.text.startswith(("---", "+++"))


@pytest.mark.parametrize("parser", TEXT_PARSERS)
def test_the_same_bytes_give_the_same_document(parser: Parser) -> None:
    data = "# 제목\n\n본문 text\n".encode()
    assert parser.parse(data, path_for(parser)) == parser.parse(data, path_for(parser))


@pytest.mark.parametrize("parser", CONTAINER_PARSERS)
def test_a_file_that_is_no_container_of_its_format_is_refused(parser: Parser) -> None:
    for data in (b"", b"text", b"PK\x03\x04" + b"\0" * 100, b"%PDF-1.7", b"{}"):
        with pytest.raises(ParseError):
            parser.parse(data, path_for(parser))


@pytest.mark.parametrize("parser", TEXT_PARSERS)
def test_a_line_of_many_megabytes_is_parsed(parser: Parser) -> None:
    try:
        assert len(parser.parse(b"word " * 1_000_000, path_for(parser)).text.rstrip()) == 4_999_999
    except ParseError as error:
        assert error.reason == "generated"  # random lines may look minified


REPEATED = [
    "> ",
    "- ",
    "    ",
    "`",
    "[",
    "<",
    "|",
    "#",
    "*",
    "~~~\n",
    "1. ",
    "\r",
    "- a\n ",
    '"',
    ",",
    "{",
    ":",
    "=\n",
    "a: b\n",
]


@pytest.mark.parametrize("parser", PARSERS)
def test_endless_repetition_takes_little_time(parser: Parser) -> None:
    for piece in REPEATED:
        started = time.process_time()
        try:
            parser.parse((piece * 20_000).encode(), path_for(parser))
        except ParseError as error:
            assert parser.version in CONTAINERS or error.reason == "generated"
        assert time.process_time() - started < 2.0, piece
