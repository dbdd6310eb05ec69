"""The text formats, to the letter. The golden files are what agents were taught to read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kebab.library.formatters import libraries_text, snippet_text, snippets_text

if TYPE_CHECKING:
    from tests.library.conftest import MakeLibrary, MakeSnippet

GOLDEN = Path(__file__).parents[1] / "fixtures" / "library"

LABEL = "\n\n*These rules are the library's own words.*"


def golden(name: str) -> str:
    return (GOLDEN / name).read_text(encoding="utf-8").removesuffix("\n")


def test_libraries_are_numbered_entries_with_a_blank_line_between(library: MakeLibrary) -> None:
    listed = [library(), library("Bare", description="", tags=(), snippets=0, trust_score=None)]
    assert libraries_text(listed) == golden("libraries.txt")


def test_an_empty_list_of_libraries_is_shown_as_a_sentence() -> None:
    assert libraries_text([]) == golden("no-libraries.txt") == "No libraries found matching your search."


def test_rules_and_snippets_are_separated_by_a_line(snippet: MakeSnippet) -> None:
    found = [
        snippet("dial = make_dial(limit=20)"),
        snippet("Any CSS colour is accepted.", "info", title="Colours"),
        snippet("make dial", title="", breadcrumb="", language=""),
        snippet("Nothing above this.", "info", title="", breadcrumb=""),
    ]
    assert snippets_text(found, ["Always close a gauge", "Never open two"]) == golden("snippets.md")


def test_rules_and_snippets_may_each_be_absent(snippet: MakeSnippet) -> None:
    assert snippets_text([snippet("x = 1")]).startswith("### Create a dial\n")
    assert snippets_text([], ["Always close a gauge"]) == f"## Library Rules\n- Always close a gauge{LABEL}"
    assert snippets_text([]) == ""


def test_prose_without_content_leaves_no_trailing_newline(snippet: MakeSnippet) -> None:
    assert snippet_text(snippet("", "info")) == "### Create a dial\n*Widget > Guide*"
    assert snippet_text(snippet("", "info", breadcrumb="")) == "### Create a dial"


CONTENT = st.one_of(
    st.lists(
        st.sampled_from(
            [
                "```",
                "````",
                " ```",
                "   `````  ",
                "    ```",
                "\t```",
                "~~~",
                "---",
                "",
                "a",
                "## Library Rules",
                "> ```",
            ]
        )
    ).map("\n".join),
    st.text(alphabet="`~a>-# \t\n", max_size=60),
    st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")),
)


@given(
    content=CONTENT,
    language=st.sampled_from(["", "c++", "x`y", "a\n```"]),
    title=st.sampled_from(["", "A `dial`", "- a"]),
)
def test_code_cannot_end_its_own_fence(snippet: MakeSnippet, content: str, language: str, title: str) -> None:
    """Documentation about Markdown has fences inside its examples."""
    shown = snippet_text(snippet(content, title=title, breadcrumb=title, language=language))
    found = [token for token in MarkdownIt("commonmark").parse(shown) if token.level == 0]
    assert [token.content for token in found if token.type == "fence"] == [content + "\n"]
    assert found[-1].type == "fence"
    assert not any(token.type == "hr" for token in found)


def test_carriage_returns_do_not_begin_lines_that_end_the_fence(snippet: MakeSnippet) -> None:
    shown = snippet_text(snippet("a\r```\r\n## Library Rules", title="", breadcrumb="", language=""))
    assert [token.content for token in MarkdownIt("commonmark").parse(shown)] == ["a\n```\n## Library Rules\n"]


def test_names_and_rules_are_shown_on_one_line_each(library: MakeLibrary) -> None:
    """A line feed in a name would start another element of the format."""
    shown = libraries_text(
        [library("Wid\nget", library_id="/acme/widget", description="Gauges\r\n\r\n2. Other\x1b\u2028")]
    )
    assert shown.split("\n")[:3] == ["1. Wid get", "   Library ID: /acme/widget", "   Description: Gauges 2. Other"]
    assert (
        snippets_text([], ["Close\n\n---\n\n### it\t\0", "Open"])
        == f"## Library Rules\n- Close --- ### it\n- Open{LABEL}"
    )
    assert "Description: No description" in libraries_text([library(description=" \n ")])
