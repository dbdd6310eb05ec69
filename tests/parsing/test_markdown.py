"""Markdown becomes a title, metadata and blocks that are ranges of the file's own text."""

from __future__ import annotations

import pytest

from kebab.core.documents import ParsedDocument
from kebab.parsing.building import plain_heading
from kebab.parsing.markdown import MarkdownParser, parse_markdown

NOTE = """---
title: Front title
tags: [rust, "#ops"]
aliases: [Other name]
lang: en
trust: secondary
date: 2024-01-15
mood: good
---

# First heading

A paragraph
of two lines.

```sh
# not a heading
```

| a | b |
|---|---|
| 1 | 2 |

- one
- two

> quoted

## Second `code` [link](x)
"""


def parsed(text: str, path: str = "notes/a.md") -> ParsedDocument:
    return MarkdownParser().parse(text.encode(), path)


def test_blocks_are_ranges_of_the_unchanged_text_in_order() -> None:
    document = parsed(NOTE)
    assert document.text == NOTE
    shown = [(block.kind, NOTE[block.start : block.end].strip().splitlines()[0]) for block in document.blocks]
    assert shown == [
        ("heading", "# First heading"),
        ("paragraph", "A paragraph"),
        ("code", "```sh"),
        ("table", "| a | b |"),
        ("list", "- one"),
        ("quote", "> quoted"),
        ("heading", "## Second `code` [link](x)"),
    ]
    assert [(block.level, block.title) for block in document.blocks if block.kind == "heading"] == [
        (1, "First heading"),
        (2, "Second code link"),
    ]


def test_front_matter_gives_title_tags_aliases_language_trust_date_and_keeps_the_rest() -> None:
    document = parsed(NOTE)
    assert (document.title, document.tags, document.aliases) == ("Front title", ("rust", "ops"), ("Other name",))
    assert (document.lang, document.trust_level, document.date) == ("en", "secondary", "2024-01-15")
    assert document.metadata["mood"] == "good"
    assert document.warnings == ()
    assert (document.doc_type, document.format, document.encoding) == ("markdown", "md", "utf-8")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: From matter\n---\n# Heading\n", "From matter"),
        ("# First\n\ntext\n\n# Second\n", "First"),
        ("Whole\n=====\n\ntext\n", "Whole"),
        ("## Lower\n\n# Higher\n", "a"),
        ("text\n\n# Section\n", "a"),
        ("- a list\n\n# Section\n", "a"),
        ("> quoted\n\n# Section\n", "a"),
        ("---\n\n# Section\n", "a"),
        ("## Only\n", "a"),
        ("no heading at all\n", "a"),
        ("#\n\ntext\n", "a"),
    ],
)
def test_the_title_comes_from_front_matter_else_the_heading_at_the_top_else_the_file_name(
    text: str, title: str
) -> None:
    assert parsed(text).title == title


@pytest.mark.parametrize(
    "above",
    [
        "[![badge](a.svg)](https://b.org) [Home](c.md)",
        '<p align="center"><img src="logo.svg"></p>',
        "<!-- a comment -->",
        "#tag #other",
        "(a-label)=",
        ":::{note}",
        "{% include nav.html %}",
        "import Tabs from '@theme/Tabs';",
        "[[Home]] | [[Index]]",
    ],
)
def test_marks_and_links_may_stand_above_the_title(above: str) -> None:
    assert parsed(f"{above}\n\n# Title\n\ntext\n").title == "Title"


@pytest.mark.parametrize("name", ["README.md", "readme.markdown", "index.md", "_index.md"])
def test_a_readme_or_an_index_is_called_by_its_folder(name: str) -> None:
    assert parsed("text", f"work/garden/{name}").title == "garden"
    assert parsed("# Own\n", f"work/garden/{name}").title == "Own"
    assert parsed("text", name).title == name.partition(".")[0]


def test_malformed_front_matter_is_a_warning_and_still_searchable_text() -> None:
    document = parsed("---\ntitle: [x\n---\n# Real\n")
    assert document.warnings
    assert document.title == "Real"
    assert document.blocks[0].start == 0


def test_an_unknown_trust_level_is_a_warning() -> None:
    document = parsed("---\ntrust: very\n---\ntext\n")
    assert document.trust_level is None
    assert any("very" in warning for warning in document.warnings)


def test_a_file_of_front_matter_alone_can_still_be_found() -> None:
    document = parsed("---\ntitle: Only\ntags: [x]\n---\n")
    assert document.blocks
    assert document.title == "Only"


def test_the_language_is_that_of_the_body() -> None:
    assert parsed("---\nsummary: english words only here in front\n---\n한글 본문이다.\n").lang == "ko"


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_ends_do_not_change_the_blocks(ending: str) -> None:
    text = NOTE.replace("\n", ending)
    document = parsed(text)
    assert [block.kind for block in document.blocks] == [block.kind for block in parsed(NOTE).blocks]
    assert all(text[block.start : block.end].strip() for block in document.blocks)


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("Plain", "Plain"),
        ("**Bold** and *it* and `code`", "Bold and it and code"),
        ("**`both`**", "both"),
        ("[link](http://x.y/z)", "link"),
        ("![image](a.png) after", "image after"),
        ("[[wiki|shown]] and [[page]]", "shown and page"),
        ("Anchor {#install}", "Anchor"),
        ("A <b>tag</b> <!-- note -->", "A tag"),
        (r"\*not emphasis\*", "*not emphasis*"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("a < b and c > d", "a < b and c > d"),
        ("`` a`b `` and ``` `c", "a`b and ``` `c"),
        ("e\u0301", "é"),
    ],
)
def test_a_heading_has_no_markup(source: str, shown: str) -> None:
    assert plain_heading(source) == shown


_RUNS = " ".join("`" * length for length in range(1, 1400))


@pytest.mark.parametrize(
    "text",
    [
        *(f"# {'*a ' * 50_000}\n", f"{'_a ' * 50_000}\n===\n", f"# {'~~a ' * 50_000}\n", f"# {'<!--' * 50_000}\n"),
        *(f"# {_RUNS}\n", f"# [{' ' * 200_000}x\n", f"# {'`' * 200_000}\n", f"a #tag {_RUNS}\n"),
        f"a #tag {'`' * 4000}{' a' * 500_000}\n",
    ],
    ids=lambda text: text[:12] + text[-4:-1],
)
def test_hostile_markup_takes_linear_time(text: str) -> None:
    # No clock: quadratic code needs a minute or more for most of these.
    assert parsed(text).blocks


@pytest.mark.parametrize(("path", "format_"), [("a.md", "md"), ("a.MARKDOWN", "md"), ("a.mdx", "mdx")])
def test_the_format_is_finer_than_the_type(path: str, format_: str) -> None:
    document = parsed("text", path)
    assert (document.doc_type, document.format) == ("markdown", format_)


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("about #friend and #project/active, #요리\n", ("friend", "project/active", "요리")),
        ("#start of a line\n", ("start",)),
        ("- item #a-b\n> quote #c_d.\n", ("a-b", "c_d")),
        ("issue #123, colour #ff0033 and #a1b2c3, C#sharp, a#b, [link](#anchor), x/#y\n", ()),
        ("`#inline` and\n\n```\n#code\n```\n\n    #indented\n", ()),
        ("# Heading\n\n## Sub {#anchor}\n", ()),
        ("#2025 #2025-goals #v2\n", ("2025-goals", "v2")),
        ("#twice #twice #Twice\n", ("twice", "Twice")),
    ],
)
def test_tags_in_the_text_are_tags(text: str, tags: tuple[str, ...]) -> None:
    assert parse_markdown(text, "a.md", doc_type="markdown", format="md").tags == tags


def test_tags_of_the_front_matter_come_first() -> None:
    assert parse_markdown("---\ntags: [x, y]\n---\n#y #z\n", "a.md", doc_type="markdown", format="md").tags == (
        "x",
        "y",
        "z",
    )
