"""Markdown as a page: no content becomes active, and exactly the cited blocks are marked."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.interfaces.http.live_parts import LiveParts

from kebab.interfaces.http.markdown_page import MarkdownPage

PIECES = (
    *(
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<!--",
        "-->",
        "<br>",
        "<a href='javascript:alert(1)'>",
        "<svg/onload=alert(1)>",
    ),
    *(
        "[x](javascript:alert(1))",
        "[x](//evil.example)",
        "![x](http://evil.example/p)",
        "<javascript:alert(1)>",
        "[r]",
        "[r]: data:text/html,x\n",
    ),
    *(
        "```",
        "~~~\n",
        "`",
        "\n",
        "\n\n",
        "# ",
        "- ",
        "> ",
        "|a|b|\n|-|-|\n|",
        "    ",
        "&lt;",
        "&#106;",
        '"',
        "'",
        "<",
        ">",
        "\\",
        "\0",
        "*",
        "](",
        "quoted",
    ),
)


def html_of(
    text: str, cited: tuple[int, int] | None = None, known: tuple[str, ...] = (), path: str = "notes/a.md"
) -> str:
    page = MarkdownPage(text, path)
    return page.html(cited, page.targets() & set(known), lambda target: f"/read?uri={target}")


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=25).map("".join))
def test_hostile_markdown_gives_no_active_content(text: str) -> None:
    assert LiveParts(html_of(text, (1, 3))).found == []


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), st.integers(1, 20), st.integers(0, 10))
def test_at_most_one_block_of_a_page_has_the_id_of_the_cited_text(text: str, first: int, more: int) -> None:
    assert html_of(text, (first, first + more)).count('id="cited"') <= 1


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("b.md", "/read?uri=notes/b.md"),
        ("./b.md", "/read?uri=notes/b.md"),
        ("b", "/read?uri=notes/b.md"),
        ("../c%20d.md", "/read?uri=c d.md"),
        ("/c%20d.md#Some%20Heading", "/read?uri=c d.md#h-some-heading"),
        ("sub/", "/read?uri=notes/sub/_index.md"),
        ("#here", "#h-here"),
        ("https://example.org/x?y=1&z=2", "https://example.org/x?y=1&amp;z=2"),
        ("MAILTO:a@example.org", "MAILTO:a@example.org"),
    ],
)
def test_links_lead_to_the_web_or_to_indexed_documents(link: str, target: str) -> None:
    html = html_of(f"[x]({link})", known=("notes/b.md", "c d.md", "notes/sub/_index.md"))
    assert re.findall('<a href="([^"]*)"', html) == [target]


@pytest.mark.parametrize(
    "link",
    [
        "missing.md",
        "../../etc/passwd",
        "javascript:x",
        "data:x",
        "file:///x",
        "//example.org",
        "/\\example.org",
        "ftp://x",
        "?q=1",
        "",
    ],
)
def test_unsafe_links_and_links_to_unknown_documents_are_not_clickable(link: str) -> None:
    assert "<a" not in html_of(f"[x]({link})")


def test_a_block_that_is_cited_in_part_is_marked_and_its_neighbours_are_not() -> None:
    text = "# A\n\nfirst\nparagraph\n\nsecond\n\n- one\n\n- two\n\n  more\n\n> quoted\n"
    assert 'class="cited"' not in html_of(text)
    marked = re.compile(r'<(\w+)[^>]*class="cited"')
    assert marked.findall(html_of(text, (4, 4))) == ["p"]
    assert marked.findall(html_of(text, (1, 6))) == ["h2", "p", "p"]
    assert marked.findall(html_of(text, (10, 13))) == ["li"]
    assert marked.findall(html_of(text, (12, 12))) == ["p"]
    assert marked.findall(html_of(text, (14, 14))) == ["blockquote"]


def test_a_cited_comment_alone_is_not_marked() -> None:
    html = html_of("<!-- hidden -->\n\nshown\n", (1, 3))
    assert "hidden" not in html
    assert '<p class="cited" id="cited">shown' in html


def test_deeply_nested_lists_keep_their_text() -> None:
    assert "item17" in html_of("".join("  " * depth + f"- item{depth}\n" for depth in range(18)))


@pytest.mark.parametrize(
    "text",
    ["[" * 20_000, "![" * 10_000, "<!--" * 12_000, "a <!-- " * 7000, ">" * 50_000, "*a _b " * 8000, "`a " * 16_000],
)
def test_text_crafted_to_be_slow_is_rendered_quickly(text: str) -> None:
    began = time.process_time()
    html_of(text, (1, 1))
    assert time.process_time() - began < 4
