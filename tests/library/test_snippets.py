"""Snippets have a title, code without its fence, and no repeated heading."""

from __future__ import annotations

from typing import Any

import pytest

from kebab.config.settings import ChunkingSettings
from kebab.core.citations import Span
from kebab.core.libraries import LibrarySnippet
from kebab.core.ports import ChunkContext
from kebab.library.snippets import SnippetChunker, make_snippet
from kebab.parsing.registry import parser_for


def snippets(path: str, text: str) -> list[LibrarySnippet]:
    parsed = parser_for(path).parse(text.encode(), path)
    chunks = SnippetChunker(ChunkingSettings()).chunk(parsed)
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    assert all(chunk.text == parsed.text[chunk.start : chunk.end] for chunk in chunks)
    return [
        make_snippet(
            stored(chunk.text, parsed.title, chunk.heading_path, path, chunk.spans[0], chunk.kind), "Widget", 1.0
        )
        for chunk in chunks
    ]


def stored(text: str, title: str, headings: tuple[str, ...], path: str, span: Span, kind: str) -> ChunkContext:
    """A chunk as the store returns it; what a snippet does not show is made up."""
    about = dict.fromkeys(ChunkContext._fields, "")
    shown = {
        "chunk_id": "c",
        "text": text,
        "title": title,
        "heading_path": headings,
        "doc_path": path,
        "spans": (span,),
    }
    values: dict[str, Any] = {**about, **shown, "kind": kind, "section_label": None, "content_hash": None}
    return ChunkContext(**values)


RST = """Guide
=====

Return JSON
-----------

Return a dict from the view.

.. code-block:: python
    :caption: view.py

    @app.route("/me")
    def me():
        return {}

Cookies
```````

Use them like this::

    cookies.get("a")

Eat
~~~

.. click:example::

    @click.command()
    def eat(): ...

API
---

.. autoclass:: Dial
   :members:

.. _a-label:

Words
-----

Plain words.
"""


def test_code_of_restructured_text_comes_without_its_directive() -> None:
    found = [
        (snippet.kind, snippet.title, snippet.language, snippet.description, snippet.content)
        for snippet in snippets("a.rst", RST)
    ]
    assert found == [
        (
            "code",
            "Return JSON",
            "python",
            "Return a dict from the view.",
            '@app.route("/me")\ndef me():\n    return {}',
        ),
        ("code", "Cookies", "", "Use them like this:", 'cookies.get("a")'),
        ("code", "Eat", "", "", "@click.command()\ndef eat(): ..."),
        ("info", "Words", "", "", "Plain words."),
    ], "and what says nothing is no snippet"


@pytest.mark.parametrize(
    ("fence", "language", "code"),
    [
        ("```python\nx = 1\n```", "python", "x = 1"),
        ("```{code-block} python\n:caption: hello.py\n\nx = 1\n```", "python", "x = 1"),
        ("```{eval-rst}\nx = 1\n```", "", "x = 1"),
        ("~~~ js title=a.js\n\tx\n~~~", "js", "x"),
        ("```\n  a\n    b\n```", "", "a\n  b"),
    ],
)
def test_fences(fence: str, language: str, code: str) -> None:
    (snippet,) = snippets("a.md", f"# Title\n\nLike this:\n\n{fence}\n")
    assert (snippet.kind, snippet.language, snippet.description, snippet.content) == (
        "code",
        language,
        "Like this:",
        code,
    )


def test_sections_without_text_are_skipped_unless_there_is_nothing_else() -> None:
    assert [snippet.title for snippet in snippets("a.md", "# One\n\n## Two\n\nText.\n\n## Three\n")] == ["Two"]
    assert [snippet.title for snippet in snippets("a.md", "# One\n")] == ["One"]


def test_code_in_a_note_or_a_step_of_restructured_text_is_code() -> None:
    text = (
        "Guide\n=====\n\nIntro.\n\n.. note::\n\n   Use like so:\n\n   .. code-block:: c\n\n      int main(void) { return 0; }\n\n"
        ".. code:: sh\n\n   $ ls -l\n\n1. Item::\n\n      item_code()\n\n.. literalinclude:: foo.py\n\n.. class:: Foo\n\n"
        "   A class::\n\n       foo = Foo()\n\n   More words.\n"
    )
    found = [(snippet.language, snippet.content) for snippet in snippets("a.rst", text) if snippet.kind == "code"]
    assert found == [("c", "int main(void) { return 0; }"), ("sh", "$ ls -l"), ("", "item_code()"), ("", "foo = Foo()")]
    assert any("More words." in snippet.content for snippet in snippets("a.rst", text) if snippet.kind == "info")
