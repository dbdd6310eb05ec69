"""reStructuredText: titles, literal blocks and paragraphs on their own lines."""

from __future__ import annotations

import pytest

from kebab.core.documents import ParsedDocument
from kebab.core.text import LineTable
from kebab.parsing.registry import parser_for

PAGE = """\
=====
Whole
=====

Part :ref:`one <x>`
===================
Text of it
goes on::

  literal
    more

  end

한글 제목
---------

.. code-block:: python
   :linenos:

   print(1)

- item
- item

Next ``part``
=============

+---+
| a |
+---+

----

.. note:: this
   here
"""


def parse(text: str) -> ParsedDocument:
    return parser_for("a.rst").parse(text.encode(), "folder/a.rst")


def test_the_order_of_adornments_gives_the_levels_of_titles() -> None:
    document = parse(PAGE)
    lines = LineTable(document.text)
    assert document.text == PAGE
    assert [
        (block.kind, block.level, block.title, *lines.lines_of(block.start, block.end)) for block in document.blocks
    ] == [
        ("heading", 1, "Whole", 1, 3),
        ("heading", 2, "Part one", 5, 6),
        ("paragraph", 0, "", 7, 8),
        ("code", 0, "", 10, 13),
        ("heading", 3, "한글 제목", 15, 16),
        ("code", 0, "python", 18, 21),
        ("list", 0, "", 23, 24),
        ("heading", 2, "Next part", 26, 27),
        ("table", 0, "", 29, 31),
        ("rule", 0, "", 33, 33),
        ("paragraph", 0, "", 35, 36),
    ]
    assert (document.title, document.doc_type, document.format) == ("Whole", "note", "rst")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a longer line\n--\n", ["paragraph"]),
        ("ab\n--\n", ["heading"]),
        ("  indented\n==========\n", ["paragraph"]),
        ("text\n\n::\n\n  code\n", ["paragraph", "paragraph", "code"]),
        ("====\n====\n====\n", ["paragraph"]),
        ("=====  =====\nA      B\n=====  =====\n", ["table"]),
        ("Title\r\n=====\r\n\r\ntext\r\n", ["heading", "paragraph"]),
        ("text\n=====\nTitle\n=====\n", ["heading", "heading"]),
        ("", []),
    ],
)
def test_only_adorned_lines_are_titles(text: str, expected: list[str]) -> None:
    assert [block.kind for block in parse(text).blocks] == expected


def test_the_title_is_the_heading_at_the_top_below_labels_and_directives() -> None:
    assert parse(":orphan:\n\n.. _pip list:\n\n========\npip list\n========\n\ntext\n").title == "pip list"
    assert parse("A sentence.\n\nSection\n=======\n").title == "a"
