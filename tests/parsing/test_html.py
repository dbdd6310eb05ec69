"""HTML: the words of a page on the lines of its source."""

from __future__ import annotations

import time
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.text import LineTable
from kebab.parsing.registry import parser_for

PAGE = """<!DOCTYPE html>
<html lang="ko-KR">
<head><title>A &amp; B
 guide</title>
<style>p { color: red }</style>
<script>
 if (a < b) document.write("<p>no</p>")
</script></head>
<body>
<nav><ul><li>Home</li></ul></nav>
<h1>Getting <em>started</em></h1>
<p>One &lt;two&gt;
three.</p><p>Four</p>
<!-- not
this -->
<ul><li>first</li><li>second</li></ul>
<h2>Code</h2>
<pre><code>
  def f():
      return 1 &amp; 2
</code></pre>
<table><tr><th>a</th><th>b</th></tr>
<tr><td>1</td><td>2</td></tr></table>
<blockquote><p>said</p></blockquote>
<footer>imprint</footer>
</body></html>
"""


def parse(text: str | bytes, path: str = "page.html") -> ParsedDocument:
    return parser_for(path).parse(text if isinstance(text, bytes) else text.encode(), path)


def seen(document: ParsedDocument) -> list[tuple[str, str]]:
    return [(block.kind, document.text[block.start : block.end]) for block in document.blocks]


def test_blocks_hold_the_text_that_a_reader_sees() -> None:
    document = parse(PAGE)
    assert (document.title, document.lang, document.doc_type, document.format) == ("A & B guide", "ko", "note", "html")
    assert seen(document) == [
        ("heading", "Getting started"),
        ("paragraph", "One <two>\nthree."),
        ("paragraph", "Four"),
        ("list", "first"),
        ("list", "second"),
        ("heading", "Code"),
        ("code", "  def f():\n      return 1 & 2"),
        ("table", "a | b \n1 | 2"),
        ("quote", "said"),
    ]
    assert [(block.level, block.title) for block in document.blocks if block.kind == "heading"] == [
        (1, "Getting started"),
        (2, "Code"),
    ]


def test_each_block_is_on_its_lines_of_the_source() -> None:
    document = parse(PAGE)
    lines = LineTable(document.text)
    cited = {
        document.text[block.start : block.end]: lines.lines_of(block.start, block.end) for block in document.blocks
    }
    assert cited["Getting started"] == (11, 11)
    assert cited["One <two>\nthree."] == (12, 13)
    assert cited["Four"] == (13, 13)
    assert cited["  def f():\n      return 1 & 2"] == (19, 20)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a<br>b", [("paragraph", "a b")]),
        ("a &#10; b", [("paragraph", "a   b")]),
        ("1 < 2 and 3 > 2", [("paragraph", "1 < 2 and 3 > 2")]),
        ("<a title='>'>x</a>", [("paragraph", "x")]),
        ('<a title=">x</a>', [("paragraph", "x")]),
        ("<h1><div>In a div</div></h1><p>b", [("heading", "In a div"), ("paragraph", "b")]),
        ("<h1>never closed<p>b", [("heading", "never closed"), ("paragraph", "b")]),
        ("<nav>never closed <p>b", [("paragraph", "never closed"), ("paragraph", "b")]),
        ("<script>never closed", [("paragraph", "never closed")]),
        ("<nav>menu <main>text</main></nav>", [("paragraph", "text")]),
        ("<SCRIPT>x</SCRIPT>y", [("paragraph", "y")]),
        ("<nav><nav>a</nav>b</nav>c", [("paragraph", "c")]),
        ("<!-->a<!-- b", [("paragraph", "a")]),
        ("<![CDATA[a < b]]>", [("paragraph", "a < b")]),
        ("<p>가&nbsp;나</p>", [("paragraph", "가\xa0나")]),
        ("x</3 ></3 y><a b='>'>z", [("paragraph", "xz")]),
        ("", []),
        ("<p> </p>", []),
    ],
)
def test_malformed_markup_is_read_as_browsers_read_it(source: str, expected: list[tuple[str, str]]) -> None:
    assert seen(parse(source)) == expected


def test_xhtml_elements_close_themselves() -> None:
    document = parse(
        '<?xml version="1.0"?><html><head><title/><script src="a.js"/></head><body><p>text</p></body></html>', "a.xhtml"
    )
    assert seen(document) == [("paragraph", "text")]
    assert document.title == "a"


def test_a_page_without_a_title_is_called_by_its_h1_at_the_top_else_by_its_file() -> None:
    assert parse("<h1>Top</h1><p>text</p>").title == "Top"
    assert parse("<h2>Section</h2><h1>Later</h1>", "site/plan.html").title == "plan"
    assert parse("<p>text</p>", "site/index.html").title == "site"


@pytest.mark.parametrize("charset", ["euc-kr", "utf-8", "shift_jis", "windows-1252", "gb2312"])
def test_the_declared_encoding_is_taken(charset: str) -> None:
    words = {"euc-kr": "한글 문서", "utf-8": "한글 é", "shift_jis": "日本語", "windows-1252": "café", "gb2312": "中文"}[
        charset
    ]
    document = parse(f'<meta charset="{charset}"><p>{words}</p>'.encode(charset))
    assert seen(document) == [("paragraph", words)]


def test_a_page_with_a_wrong_encoding_declaration_is_read() -> None:
    assert seen(parse('<meta charset="euc-kr"><p>한글</p>'.encode())) == [("paragraph", "한글")]
    assert seen(parse("<meta charset='unicode_escape'>a\\nb")) == [("paragraph", "a\\nb")]
    assert seen(parse("<meta charset='euc-kr'>한글".encode("utf-16"))) == [("paragraph", "한글")]
    with pytest.raises(ParseError):
        parse(b"<meta charset=euc-kr>\xff\xff\xff")


PIECES = st.sampled_from(
    ["<p>", "</p>", "<h1>", "</h1>", "<h3>", "<table>", "<tr>", "<td>", "</table>", "<pre>", "</pre>", "<nav>", "</nav>", "<li>", "<script>",
     "</script>", "<title>", "</title>", "<!--", "-->", "<a b='", '<a b="', "'>", '">', "<", ">", "&amp;", "&#10;", "&lt", "\n", "\r\n", " ",
     "word", "한글", "<br/>", "<![CDATA[", "]]>", "</", "<?", "<main>", "\n\n  x"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=40).map("".join))
def test_the_words_of_a_block_are_on_the_lines_it_cites(source: str) -> None:
    document = parse(source)
    assert document.text.count("\n") == source.count("\n")
    lines = LineTable(document.text)
    sources = source.split("\n")
    for block in document.blocks:
        first, last = lines.lines_of(block.start, block.end)
        cited = document.text[block.start : block.end].split("\n")
        assert len(cited) == last - first + 1
        for words, line in zip(cited, sources[first - 1 : last], strict=True):
            for word in words.replace("|", " ").split():
                assert all(part in unescape(line) for part in ("word", "한글", "x") if part in word)


@pytest.mark.parametrize(
    "piece",
    [
        "<div>",
        '<a "',
        "<a '>",
        '<a ">" ',
        '<a "" ',
        "<!--",
        "<![CDATA[",
        "</",
        "<title>",
        "<nav>",
        "<script>",
        "<td>",
        "<h1>",
        "&",
        "<p\n",
        "<?",
        "<nav></nav",
    ],
)
def test_endless_repetition_takes_little_time(piece: str) -> None:
    started = time.process_time()
    parse(piece * 100_000)
    parse(piece * 100_000 + ">\"'>")
    parse('<a ">"' + piece * 100_000)
    assert time.process_time() - started < 4.0


def test_a_page_of_little_but_markup_is_read_in_linear_time() -> None:
    """Two megabytes take a second or two on an idle machine; quadratic time would take minutes."""
    source = PAGE * (2_000_000 // len(PAGE))
    started = time.process_time()
    parse(source)
    assert time.process_time() - started < 10


def test_words_of_neighbouring_blocks_stay_apart() -> None:
    assert parse("a<h1>b</h1>c<pre>d</pre>e<td>f</td>").text.split() == ["a", "b", "c", "d", "e", "f"]
