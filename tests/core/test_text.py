"""Bytes become text unchanged or not at all; a line ends at "\\n" and nowhere else."""

from __future__ import annotations

from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.errors import ParseError
from kebab.core.text import LineTable, count_lines, decode, estimate_tokens, nfc

KOREAN = "한글 문서를 읽고 찾는다. 코드는 utf-8 이다.\n"


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"", "", "utf-8"),
        (b"plain ascii\n", "plain ascii\n", "utf-8"),
        ("café ☕ 한글\n".encode(), "café ☕ 한글\n", "utf-8"),
        (BOM_UTF8 + "한글".encode(), "한글", "utf-8"),
        (BOM_UTF16_LE + "한글 a\n".encode("utf-16-le"), "한글 a\n", "utf-16"),
        (BOM_UTF16_BE + "한글 a\n".encode("utf-16-be"), "한글 a\n", "utf-16"),
        ("한글".encode("utf-32"), "한글", "utf-32"),
        (KOREAN.encode("cp949"), KOREAN, "cp949"),
        (b"a\r\nb\rc\n", "a\r\nb\rc\n", "utf-8"),
        ("e\u0301".encode(), "e\u0301", "utf-8"),
        (b"\x1b[31mred\x1b[0m log line, and more of it\n", "\x1b[31mred\x1b[0m log line, and more of it\n", "utf-8"),
    ],
    ids=[
        "empty",
        "ascii",
        "utf-8",
        "bom",
        "utf-16-le",
        "utf-16-be",
        "utf-32",
        "cp949",
        "line-ends-kept",
        "no-nfc",
        "terminal-colours",
    ],
)
def test_bytes_are_decoded_without_changing_the_text(data: bytes, text: str, encoding: str) -> None:
    assert decode(data) == (text, encoding)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("Überraschung für die Gäste: Äpfel, Öl, süß\n".encode("latin-1"), "encoding"),
        ("déjà vu, où êtes-vous, français, naïve\n".encode("latin-1"), "encoding"),
        ("Съешь ещё этих мягких французских булок".encode("koi8-r"), "encoding"),
        ("日本語の文章です。漢字とかな。".encode("shift-jis"), "encoding"),
        (b"\xff\xfe\x00", "encoding"),
        (BOM_UTF16_LE + b"\x00\xd8", "encoding"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
        (b"abc\0def", "binary"),
        (bytes(range(1, 32)) * 20, "binary"),
    ],
    ids=[
        "latin-1-german",
        "latin-1-french",
        "koi8-r",
        "shift-jis",
        "odd-utf-16",
        "lone-surrogate",
        "png",
        "nul",
        "control",
    ],
)
def test_bytes_in_an_uncertain_encoding_are_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        decode(data)
    assert caught.value.reason == reason


@given(st.text())
def test_valid_utf8_is_decoded_unchanged(text: str) -> None:
    try:
        decoded, encoding = decode(text.encode())
    except ParseError as error:
        assert error.reason == "binary"
    else:
        assert decoded.encode() == text.encode().removeprefix(BOM_UTF8)
        assert encoding == "utf-8"


@given(st.binary(max_size=300))
def test_any_bytes_give_text_or_a_parse_error(data: bytes) -> None:
    try:
        text, encoding = decode(data)
    except ParseError as error:
        assert error.reason in {"binary", "encoding"}
    else:
        assert text.encode(encoding) is not None


def test_megabytes_on_one_line_are_decoded() -> None:
    assert len(decode(b"x" * 5_000_000)[0]) == 5_000_000


LINES = st.text(st.one_of(st.sampled_from("\n\n\r\u2028\x0b\x0c\x85a b한🙂\u0301"), st.characters(codec="utf-8")))


def file_lines(text: str) -> list[str]:
    """The lines of a file as grep, sed and git count them."""
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] or len(lines) == 1 else lines[:-1]


@given(LINES, st.data())
def test_a_slice_of_the_line_table_equals_the_lines_of_the_file(text: str, data: st.DataObject) -> None:
    lines, table = file_lines(text), LineTable(text)
    assert len(table) == len(lines) == count_lines(text)
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    assert table.slice(first, last) == "".join(lines[first - 1 : last])


@given(LINES.filter(bool), st.data())
def test_the_line_number_of_an_offset_is_the_line_that_contains_it(text: str, data: st.DataObject) -> None:
    table = LineTable(text)
    offset = data.draw(st.integers(0, len(text) - 1))
    line = table.line_of(offset)
    assert table.start_of(line) <= offset < table.start_of(line + 1)
    assert line == text.count("\n", 0, offset) + 1


def test_only_a_line_feed_ends_a_line() -> None:
    assert len(LineTable("a\rb\x0bc\x0cd\x85e\u2028f\u2029g")) == 1
    assert LineTable("a\r\nb\n").slice(1, 1) == "a\r\n"


def test_the_lines_of_a_range_are_those_of_its_first_and_last_character() -> None:
    table = LineTable("one\ntwo\nthree\n")
    assert table.lines_of(0, 3) == (1, 1)
    assert table.lines_of(0, 4) == (1, 1)
    assert table.lines_of(2, 5) == (1, 2)
    assert table.lines_of(4, 14) == (2, 3)


@given(st.text())
def test_our_fast_nfc_equals_that_of_the_standard_library(text: str) -> None:
    assert nfc(text) == normalize("NFC", text)


@given(st.text(), st.text(), st.booleans())
def test_the_token_estimate_grows_with_the_text(text: str, more: str, code: bool) -> None:
    assert (
        0
        < estimate_tokens(text, code=code)
        <= estimate_tokens(text + more, code=code)
        <= len((text + more).encode("utf-8", "surrogatepass")) + 1
    )


def test_code_and_korean_are_estimated_at_more_tokens_than_prose() -> None:
    assert estimate_tokens("x" * 100, code=True) > estimate_tokens("x" * 100)
    assert estimate_tokens("가" * 100) > 100 > estimate_tokens("x" * 100)


@pytest.mark.parametrize(
    "letter", "\u1100\u11ff\u3040\u30ff\u3130\u318f\u3400\u4dbf\u4e00\u9fff\uac00\ud7a3\uf900\ufaff"
)
def test_a_cjk_letter_is_one_token(letter: str) -> None:
    assert estimate_tokens(letter * 100) == 101


@pytest.mark.parametrize("letter", "\u10ff\u1200\u2014\u303f\u3100\u3190\u4dc0\ua000\ud7a4\ufb00")
def test_any_other_letter_counts_as_half_a_token_per_byte(letter: str) -> None:
    assert estimate_tokens(letter * 100) == 151
