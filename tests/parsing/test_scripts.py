"""Files without an extension: scripts are code of the language in their first line, other files are text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import kebab
from kebab.core.documents import ParsedDocument
from kebab.parsing.file_types import classify
from kebab.parsing.registry import parser_for


def parsed(text: str, path: str = "bin/tool") -> ParsedDocument:
    return parser_for(path).parse(text.encode(), path)


@pytest.mark.parametrize(
    ("first_line", "format_"),
    [
        ("#!/usr/bin/env python3", "py"),
        ("#!/usr/bin/python3.12 -u", "py"),
        ("#!/usr/bin/env -S uv run --script", "py"),
        ("#!/bin/sh", "sh"),
        ("#! /bin/bash -e", "sh"),
        ("#!/bin/bash\r", "sh"),
        ("#!/usr/bin/env NODE_ENV=test node", "js"),
        ("#!/usr/bin/env ts-node", "ts"),
        ("#!/usr/bin/ruby", "rb"),
        ("#!/usr/bin/perl -w", "pl"),
        ("#!/usr/bin/env Rscript", "r"),
        ("#!/usr/bin/make -f", "makefile"),
        ("#!/usr/bin/env php", "php"),
        ("#!/opt/bin/gnuplot", "gnuplot"),
    ],
)
def test_the_first_line_of_a_script_tells_its_format(first_line: str, format_: str) -> None:
    document = parsed(f"{first_line}\nx = 1\n")
    assert (document.doc_type, document.format) == ("code", format_)


@pytest.mark.parametrize(
    "text",
    ["Read me.\n", "", "#! important\n", "#![feature(x)]\n", "#!/\n", "#!/usr/bin/env\n", "\n#!/bin/sh\n", "# Notes\n"],
)
def test_a_file_without_a_shebang_is_text(text: str) -> None:
    document = parsed(text)
    assert (document.doc_type, document.format, document.code_lang) == ("note", "txt", None)


def test_an_extension_takes_precedence_over_the_first_line() -> None:
    for path, expected in (
        ("a.txt", ("note", "txt")),
        ("a.md", ("markdown", "md")),
        ("a.js", ("code", "js")),
        ("a.odd", ("note", "odd")),
    ):
        assert classify(path, "#!/usr/bin/env python3\n") == expected
        document = parsed("#!/usr/bin/env python3\n", path)
        assert (document.doc_type, document.format) == expected


def test_a_script_is_found_as_code_of_its_format_and_cited_by_its_symbol(
    write_notes: Callable[..., Path], tmp_path: Path
) -> None:
    folder = write_notes(
        {
            "bin/deploy": "#!/usr/bin/env python3\nimport sys\n\n\ndef push_okapi():\n    return 1\n",
            "bin/start": "#!/bin/bash\nset -e\n\nstart_okapi() {\n  true\n}\n",
            "Dockerfile.dev": "FROM okapi:1\n",
            "README": "About the okapi.\n",
        }
    )
    with kebab.open(tmp_path / "kb.sqlite") as kb:
        kb.ingest(folder)
        by_format = {
            name: {hit.citation.path for hit in kb.search("okapi", formats=[name])}
            for name in ("py", "sh", "dockerfile", "txt")
        }
        code = {hit.citation.uri for hit in kb.search("okapi", types=["code"])}
    assert by_format == {"py": {"bin/deploy"}, "sh": {"bin/start"}, "dockerfile": {"Dockerfile.dev"}, "txt": {"README"}}
    assert code == {"bin/deploy#L5-L6", "bin/start#L4-L6", "Dockerfile.dev#L1-L1"}
