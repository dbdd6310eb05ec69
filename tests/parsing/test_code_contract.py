"""The contract of the code parser in every language: any bytes, and any lines of code."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parsing.test_code import TABLE, check_blocks, cited
from tests.parsing.test_damaged_files import outcome
from tests.parsing.test_parser_contract import BYTES

from kebab.parsing.registry import parser_for

LINES = {path: text.splitlines(keepends=True) for path, (text, _) in TABLE.items()}


def holds(path: str, data: bytes) -> None:
    document = outcome(path, data)
    if document is not None:
        check_blocks(document)
        cited(document)  # every span slices back to its passage
        assert parser_for(path).parse(data, path) == document


@pytest.mark.parametrize("path", TABLE)
@settings(derandomize=True)  # a grammar may crash on some bytes; the product parses code in a process of its own
@given(data=BYTES)
def test_any_bytes_give_a_parse_error_or_a_document_whose_spans_slice_back(path: str, data: bytes) -> None:
    holds(path, data)


@pytest.mark.parametrize("path", TABLE)
@settings(derandomize=True)
@given(data=st.data())
def test_any_lines_of_the_language_give_a_document_whose_spans_slice_back(path: str, data: st.DataObject) -> None:
    signs = st.sampled_from(
        ["{", "}", "(", ")", "<", '"', "'", "`", "/*", "*/", "$$", "\n", "\r\n", "\t", "가", "\u2028", "e\u0301"]
    )
    holds(path, "".join(data.draw(st.lists(st.sampled_from(LINES[path]) | signs, max_size=25))).encode())
