"""Snippets are the same in every format: the code alone, its language, and its introduction."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.library.test_snippets import snippets, stored

CODE = "# a heading-like comment\nimport dial\n\n\nfor each in dial.all():\n    each.turn()"

MARKDOWN = f"""# Guide

## Turn

Turn all of
them:

```python
{CODE}
```

## Colours

Any colour.

Even red.
"""

RST = """Guide
=====

Turn
----

Turn all of
them:

.. code-block:: python
   :linenos:

   {code}

Colours
-------

Any colour.

Even red.
""".format(code=CODE.replace("\n", "\n   "))

HTML = f"""<!doctype html><title>Guide</title>
<h1>Guide</h1>
<h2>Turn</h2>
<p>Turn all of
them:</p>
<pre><code class="language-python">{CODE}</code></pre>
<h2>Colours</h2>
<p>Any colour.</p>

<p>Even red.</p>
"""

SPHINX = (
    "<h1>Guide</h1><h2>Turn</h2><p>Turn all of\nthem:</p>"
    f'<div class="highlight-python notranslate"><div class="highlight"><pre><span></span>{CODE}\n</pre></div></div>'
    "<h2>Colours</h2><p>Any colour.\n\nEven red.</p>"
)


def notebook(*, as_lines: bool = True, **form: Any) -> str:
    def source(text: str) -> list[str] | str:
        return text.splitlines(keepends=True) if as_lines else text

    outputs = [{"output_type": "stream", "name": "stdout", "text": source("# turned\n3 dials\n")}]
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": source("# Guide\n\n## Turn\n\nTurn all of\nthem:")},
        {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": outputs, "source": source(CODE)},
        {"cell_type": "markdown", "metadata": {}, "source": source("## Colours\n\nAny colour.\n\nEven red.")},
    ]
    metadata = {"language_info": {"name": "python"}}
    return json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}, **form)


DOCUMENTS = {
    "a.md": MARKDOWN,
    "b.md": MARKDOWN.replace("\n", "\r\n"),
    "c.md": MARKDOWN.replace("```python", "~~~ {#turn .python .numberLines}").replace("```", "~~~"),
    "a.mdx": "import Dial from 'dial'\n\n" + MARKDOWN,
    "llms.txt.md": MARKDOWN,
    "a.rst": RST,
    "b.rst": RST.replace("\n", "\r\n"),
    "a.html": HTML,
    "b.html": HTML.replace("\n", "\r\n"),
    "sphinx.html": SPHINX,
    "pretty.ipynb": notebook(indent=1),
    "compact.ipynb": notebook(),
    "sorted.ipynb": notebook(indent=1, sort_keys=True),
    "strings.ipynb": notebook(as_lines=False, indent=2),
    "tight.ipynb": notebook(as_lines=False, separators=(",", ":")),
}


def seen(path: str, text: str) -> list[tuple[str, str, str, str, str]]:
    return [
        (found.kind, found.title, found.language, found.description, found.content) for found in snippets(path, text)
    ]


@pytest.mark.parametrize("path", DOCUMENTS)
def test_all_formats_give_the_same_snippets(path: str) -> None:
    found = [snippet for snippet in seen(path, DOCUMENTS[path]) if "Dial from" not in snippet[-1]]
    output = [("info", "Turn", "", "", "# turned\n3 dials")] if path.endswith("ipynb") else []
    assert [(*snippet[:4], snippet[4].replace("colour. \n", "colour.\n")) for snippet in found] == [
        ("code", "Turn", "python", "Turn all of\nthem:", CODE),
        *output,
        ("info", "Colours", "", "", "Any colour.\n\nEven red."),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "# fossil comment one\n# fossil two\nfossil = body",
        "# only\n# comments",
        "Title\n=====\n\n.. note: 3\n\n``` not a fence\n    indented\n",
    ],
)
def test_snippets_of_plain_text_keep_all_text(text: str) -> None:
    (snippet,) = snippets("notes.txt", text)
    assert (snippet.kind, snippet.content) == ("info", text.strip("\n"))


def test_llms_txt_is_read_as_markdown() -> None:
    from kebab.library.snippets import format_of

    assert [format_of(path) for path in ("llms.txt", "docs/llms-full.txt", "notes.txt", "a.htm")] == [
        "md",
        "md",
        "txt",
        "html",
    ]


@pytest.mark.parametrize(
    ("text", "language", "description", "code"),
    [
        ("# T\n\n> Like this:\n>\n> ```js\n> a()\n>\n>   b()\n> ```\n", "js", "Like this:", "a()\n\n  b()"),
        ("# T\n\n>```js\n>a()\n>```\n> Words.\n", "js", "", "a()"),
        ("# T\n\nLike this:\n\n    # comment\n    a()\n\n      b()\n", "", "Like this:", "# comment\na()\n\n  b()"),
        ("# T\n\nLike this:\n\n```js\n# comment\na()\n", "js", "Like this:", "# comment\na()"),
        ("# T\n\n```js\n~~~\na()\n    ```\n````\n", "js", "", "~~~\na()\n    ```"),
        ("# T\n\n1. Do:\n\n   ```js\n   a()\n2. Then words.\n", "js", "1. Do:", "a()"),
        ("# T\n\n- a\n  - b\n\n    Deep:\n\n    ```js\n    a()\n    ```\n", "js", "Deep:", "a()"),
        ("# T\n\n1. Do:\r\n\r\n   ```js\r\n   a()\r\n   ```\r\n", "js", "1. Do:", "a()"),
    ],
    ids=[
        "quote",
        "tight quote",
        "indented",
        "unclosed",
        "other fences inside",
        "unclosed in a list",
        "deep",
        "carriage returns",
    ],
)
def test_code_is_found_anywhere_in_markdown(text: str, language: str, description: str, code: str) -> None:
    found = [snippet for snippet in snippets("a.md", text) if snippet.kind == "code"]
    assert [(snippet.language, snippet.description, snippet.content) for snippet in found] == [
        (language, description, code)
    ]


LONG = "\n".join(f"    call_number({number}, 'of a long example')" for number in range(400))
LONG_CODE = f"def long():\n{LONG}"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.md", f"# T\n\nLike this:\n\n```python\n{LONG_CODE}\n```\n\nAfter.\n"),
        ("a.md", f"# T\n\nLike this:\n\n```python\n{LONG_CODE}\n"),
        ("b.md", f"# T\n\nLike this:\n\n```{{code-block}} python\n:caption: a\n\n{LONG_CODE}\n```\n\nAfter.\n"),
        (
            "a.rst",
            "T\n=\n\nLike this:\n\n.. code-block:: python\n   :linenos:\n\n   "
            + LONG_CODE.replace("\n", "\n   ")
            + "\n\nAfter.\n",
        ),
        (
            "c.md",
            "# T\n\n1. Like this:\n\n   ```python\n   " + LONG_CODE.replace("\n", "\n   ") + "\n   ```\n\n   After.\n",
        ),
        ("a.html", f'<h1>T</h1><p>Like this:<pre class="language-python">\n{LONG_CODE}\n</pre><p>After.'),
        (
            "a.ipynb",
            json.dumps(
                {
                    "cells": [{"cell_type": "code", "source": LONG_CODE.splitlines(keepends=True)}],
                    "metadata": {"kernelspec": {"language": "python"}},
                },
                indent=1,
            ),
        ),
    ],
)
def test_parts_of_a_long_example_contain_only_code(path: str, text: str) -> None:
    found = snippets(path, text)
    parts = [snippet for snippet in found if snippet.kind == "code"]
    assert len(parts) > 1
    assert {(part.language, part.description) for part in parts} == {("python", "")}
    shown = [line.strip() for part in parts for line in part.content.split("\n")]
    assert shown == [line.strip() for line in LONG_CODE.split("\n")]
    assert not any("```" in snippet.content or "code-block" in snippet.content for snippet in found)
    for part in parts:
        assert part.citation.lines is not None
        first, last = part.citation.lines
        assert last - first + 1 == part.content.count("\n") + 1


def test_a_heading_is_removed_only_if_title_or_breadcrumb_has_it() -> None:
    (snippet,) = snippets("a.md", "## Small\n\n# Big\n\nText.\n")
    assert (snippet.breadcrumb, snippet.title, snippet.content) == ("Widget > a", "Big", "## Small\n\n# Big\n\nText.")


def test_titles_have_one_line() -> None:
    from kebab.core.citations import LineSpan
    from kebab.library.snippets import make_snippet

    chunk = stored("Words.", "A\r\n## Library Rules\x1b[0m", ("B\u2028\t c\0",), "a.md", LineSpan(1, 1), "info")
    made = make_snippet(chunk, "Wid\nget", 1.0)
    assert (made.breadcrumb, made.title) == ("Wid get > A ## Library Rules [0m", "B c")


def test_a_long_list_is_read_once() -> None:
    """A long list with one unclosed fence is read in linear time."""
    text = (
        "- step\n" + "".join(f"  word ``` {number}\n\n" for number in range(100_000)) + "  ```\n" + "  ~~~~\n" * 100_000
    )
    assert snippets("a.md", text)
