"""The snippet in the page's list: 16 words, an ellipsis where it is cut, matches in `<b>`, everything else escaped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kebab.interfaces.http.templating import marked_snippet, shortened
from kebab.wire.search import HighlightV1

TEXT = " ".join(f"w{number}" for number in range(40))


def marks(text: str, *words: str) -> list[HighlightV1]:
    return [HighlightV1(start=text.index(word), end=text.index(word) + len(word)) for word in words]


def test_a_snippet_shows_sixteen_words_where_most_matches_are() -> None:
    shown = marked_snippet(TEXT, marks(TEXT, "w2 ", "w30", "w33"))
    assert shown.count("<b>") == 2
    assert len(shown.strip("…").split()) == 16
    assert shown.startswith("…w27 w28 w29 <b>w30</b>") or "<b>w30</b>" in shown
    assert "…" in shown


def test_a_snippet_without_a_match_shows_the_beginning() -> None:
    assert marked_snippet(TEXT, []) == "w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12 w13 w14 w15…"


def test_a_short_text_is_shown_whole() -> None:
    assert marked_snippet("a <b> &\n  c", marks("a <b> &\n  c", "<b>")) == "a <b>&lt;b&gt;</b> &amp; c"
    assert marked_snippet("", []) == ""


@given(st.text(max_size=80), st.lists(st.tuples(st.integers(0, 80), st.integers(1, 6)), max_size=4), st.integers(4, 16))
def test_marks_of_a_shortened_snippet_enclose_the_same_words(
    text: str, ranges: list[tuple[int, int]], words: int
) -> None:
    highlights = [(start, min(start + length, len(text))) for start, length in sorted(ranges) if start < len(text)]
    short, shown = shortened(text, highlights, words)
    allowed = {text[a:b] for a, b in highlights}
    assert all(any(short[start:end] in whole for whole in allowed) for start, end in shown)
