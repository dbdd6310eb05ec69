"""The words inside identifiers."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.analysis.terms import inner_words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("parseHTTPHeader", "parse HTTP Header"),
        ("HTTPServer2", "HTTP Server 2"),
        ("XMLHttpRequest", "XML Http Request"),
        ("getURLFromID", "get URL From ID"),
        ("iPhone", "i Phone"),
        ("utf8Decode", "utf 8 Decode"),
        ("parseHTTPHeader2Lines", "parse HTTP Header 2 Lines"),
        ("Base64Encoder", "Base 64 Encoder"),
        ("sha256sum", "sha 256 sum"),
        ("HTTP2Server", "HTTP 2 Server"),
        ("getX", "get X"),
        ("aB", "a B"),
        ("getURLs", "get URLs"),
        ("userIDsOf", "user IDs Of"),
        ("isDNSserver", "is DN Sserver"),
        ("ÜberGröße", "Über Größe"),
        ("größeÄndern", "größe Ändern"),
        ("parseÜberschrift", "parse Überschrift"),
        ("читатьФайл", "читать Файл"),
        ("parse_HTTPHeader", "HTTP Header"),
        ("outer.innerName(fooBar)", "inner Name foo Bar"),
        ("--dry-run parse-fastMode", "fast Mode"),
    ],
)
def test_an_identifier_is_cut_into_its_words(name: str, words: str) -> None:
    assert " ".join(inner_words(name)) == words


@pytest.mark.parametrize(
    "text",
    [
        "",
        "word",
        "Word",
        "snake_case",
        "ALLCAPS",
        "SCREAMING_SNAKE",
        "kebab-case",
        "a.b.c",
        "2024",
        "x1",
        "문서",
        "Über",
        "größe",
        "_private",
        "__init__",
    ],
)
def test_identifiers_that_the_tokenizer_cuts_or_of_one_word_give_no_words(text: str) -> None:
    assert list(inner_words(text)) == []


def test_encoded_data_is_not_cut_into_words() -> None:
    assert list(inner_words("aB" * 100)) == []


LOWER, UPPER = "abcäßя", "XYZÖЖ"
LETTERS = st.text(alphabet="abcXYZ019_. -äÖßЖя문中\u0301", max_size=40)


@given(LETTERS | st.text(max_size=40))
def test_words_of_an_identifier_are_in_text_order_and_of_one_kind_of_letters(text: str) -> None:
    position = 0
    for piece in inner_words(text):
        position = text.index(piece, position) + len(piece)
        assert piece.isdigit() or not any(letter.isdecimal() for letter in piece)
        assert not any(before in LOWER and after in UPPER for before, after in pairwise(piece))


@given(st.lists(st.sampled_from(["parse", "header", "größe", "line", "файл"]), min_size=2, max_size=6))
def test_words_joined_in_camel_case_are_found_again(words: list[str]) -> None:
    camel = words[0] + "".join(word.capitalize() for word in words[1:])
    assert [piece.lower() for piece in inner_words(camel)] == words


@pytest.mark.parametrize("piece", ["a", "A", "1", "aA", "a1", "Aa", "AA1", "문", "é", "_", "A_", "aaaa1"])
def test_the_time_to_cut_identifiers_is_linear_in_the_text(piece: str) -> None:
    started = time.process_time()
    list(inner_words(piece * 200_000))
    assert time.process_time() - started < 2.0
