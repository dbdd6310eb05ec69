"""Whole files of formats with a form of their own, and of each programming language, with a byte changed or cut off
anywhere: a document or a parse error, nothing else.

PDF has more ways to be damaged, and a test of its own.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parsing.test_code import TABLE as CODE
from tests.parsing.test_docx import docx
from tests.parsing.test_eml import letter
from tests.parsing.test_epub import epub
from tests.parsing.test_notebook import SAMPLE as NOTEBOOK
from tests.parsing.test_parser_contract import check
from tests.parsing.test_pptx import pptx
from tests.parsing.test_xlsx import xlsx

from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.ingest.report import SKIP_REASONS
from kebab.parsing.registry import parser_for

SAMPLES = {
    "a.docx": docx(),
    "a.eml": letter().as_bytes(),
    "a.epub": epub(),
    "a.ipynb": json.dumps(NOTEBOOK, indent=1).encode(),
    "a.pptx": pptx(),
    "a.xlsx": xlsx(),
    **{path: text.encode() for path, (text, _) in CODE.items()},
}


def outcome(path: str, data: bytes) -> ParsedDocument | None:
    """The document, after its checks, or the reason of the ParseError."""
    parser = parser_for(path)
    try:
        document = parser.parse(data, path)
    except ParseError as error:
        assert error.reason in SKIP_REASONS
        return None
    check(parser, document, data)
    return document


@pytest.mark.parametrize("path", SAMPLES)
def test_the_whole_file_is_read(path: str) -> None:
    assert parser_for(path).parse(SAMPLES[path], path).text.strip()


@pytest.mark.parametrize("path", SAMPLES)
@given(place=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_a_changed_or_truncated_file_gives_a_document_or_a_parse_error(path: str, place: float, flip: int) -> None:
    sample = SAMPLES[path]
    position = int(place * len(sample))
    changed = bytearray(sample)
    changed[position] ^= flip
    outcome(path, bytes(changed))
    outcome(path, sample[:position])
