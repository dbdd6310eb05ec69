"""Org files: headings, source blocks and keywords."""

from __future__ import annotations

from kebab.core.documents import ParsedDocument
from kebab.core.text import LineTable
from kebab.parsing.registry import parser_for

PAGE = """\
#+TITLE: My notes
#+FILETAGS: :work:회의:work:
#+author: Kim

* TODO [#A] Plan [[http://x][the thing]]   :tag1:tag2:
  Some text
** 둘째
#+BEGIN_SRC python :results output
* not a heading?
#+END_SRC
#+begin_src sh
ls
#+end_src
| a | b |
| 1 | 2 |

- item
- item
#+BEGIN_QUOTE
said
#+END_QUOTE
* Last
#+BEGIN_EXAMPLE
never closed
"""


def parse(text: str) -> ParsedDocument:
    return parser_for("a.org").parse(text.encode(), "folder/a.org")


def test_headings_and_blocks_keep_their_lines() -> None:
    document = parse(PAGE)
    lines = LineTable(document.text)
    assert document.text == PAGE
    assert [
        (block.kind, block.level, block.title, *lines.lines_of(block.start, block.end)) for block in document.blocks
    ] == [
        ("paragraph", 0, "", 1, 3),
        ("heading", 1, "Plan the thing", 5, 5),
        ("paragraph", 0, "", 6, 6),
        ("heading", 2, "둘째", 7, 7),
        ("paragraph", 0, "", 8, 8),
        ("heading", 1, "not a heading?", 9, 9),
        ("paragraph", 0, "", 10, 10),
        ("code", 0, "sh", 11, 13),
        ("table", 0, "", 14, 15),
        ("list", 0, "", 17, 18),
        ("quote", 0, "", 19, 21),
        ("heading", 1, "Last", 22, 22),
        ("paragraph", 0, "", 23, 24),
    ]


def test_keywords_give_title_tags_and_author() -> None:
    document = parse(PAGE)
    assert (document.title, document.tags, document.metadata) == ("My notes", ("work", "회의"), {"author": "Kim"})
    assert parse("* A heading\n#+TITLE: too late").title == "A heading"
    assert parse("** Lower\n* A heading\n").title == parse("text").title == "a"


def test_many_unclosed_blocks_take_little_time() -> None:
    assert len(parse("#+BEGIN_SRC\n" * 50_000).blocks) == 50_000
