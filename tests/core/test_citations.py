"""A citation names a place in a file in two forms, and one parser reads both back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.core.citations import (
    SPAN_KINDS,
    CaptionSpan,
    Citation,
    CodeSpan,
    LineSpan,
    PageSpan,
    RegionSpan,
    Span,
    TimeSpan,
    parse,
    span_kind,
)
from kebab.core.ports import ChunkContext
from kebab.wire import plain
from kebab.wire.search import citation_v1

NUMBER = st.integers(0, 999_999_999)
LABEL = st.text(
    st.one_of(st.sampled_from("Fig 3p=:L#%? "), st.characters(codec="utf-8")), min_size=1
) | st.sampled_from(["Figure 3", "see a:p3", "fig:L1-L2", "x#L1", "a:t=1,2", "a:caption=b"])
SPANS: dict[str, st.SearchStrategy[Span]] = {
    "line": st.builds(LineSpan, NUMBER, NUMBER),
    "page": st.builds(lambda page: PageSpan(page), NUMBER),
    "code": st.builds(CodeSpan, NUMBER, NUMBER, st.none() | LABEL, st.none() | LABEL),
    "region": st.builds(RegionSpan, NUMBER, NUMBER, NUMBER, NUMBER),
    "time": st.builds(TimeSpan, NUMBER, NUMBER, st.none() | LABEL),
    "caption": st.builds(CaptionSpan, LABEL),
}
PATH = st.text(
    st.one_of(st.sampled_from("/ #?%:.-L1p=한글노트%20"), st.characters(codec="utf-8", exclude_characters="\0")),
    min_size=1,
) | st.sampled_from(
    ["a b/c#d.md", "100%.md", "what?.md", "C:/x.md", "노트/한글 문서.md", "a#L1-L2", "a:L3", "x%20y.md", "a:p3#page=4"]
)


def typed(span: Span | None) -> tuple[type, Span | None]:
    """A span with its type, because named tuples are equal whatever their type."""
    return type(span), span


def parsed(citation: str) -> tuple[str, type, Span | None]:
    path, span = parse(citation)
    return (path, *typed(span))


@pytest.mark.parametrize(
    ("span", "uri", "text"),
    [
        (LineSpan(12, 34), "notes/rust/kb.md#L12-L34", "notes/rust/kb.md:L12-L34"),
        (LineSpan(3, 3), "notes/rust/kb.md#L3-L3", "notes/rust/kb.md:L3-L3"),
        (PageSpan(13), "notes/rust/kb.md#page=13", "notes/rust/kb.md:p13"),
        (CodeSpan(1, 9, "main", "rust"), "notes/rust/kb.md#L1-L9", "notes/rust/kb.md:L1-L9"),
        (RegionSpan(0, 1, 20, 30), "notes/rust/kb.md#xywh=0,1,20,30", "notes/rust/kb.md:xywh=0,1,20,30"),
        (TimeSpan(1500, 4000), "notes/rust/kb.md#t=1.5,4", "notes/rust/kb.md:t=1.5,4"),
        (TimeSpan(5, 61_010), "notes/rust/kb.md#t=0.005,61.01", "notes/rust/kb.md:t=0.005,61.01"),
        (CaptionSpan("Figure 3"), "notes/rust/kb.md#caption=Figure%203", "notes/rust/kb.md:caption=Figure%203"),
    ],
)
def test_each_kind_of_span_is_written_as_uri_fragment_and_as_text(span: Span, uri: str, text: str) -> None:
    citation = Citation("notes/rust/kb.md", span)
    assert (citation.uri, citation.text) == (uri, text)


@pytest.mark.parametrize(
    ("written", "path", "span"),
    [
        ("a.md#L3", "a.md", LineSpan(3, 3)),
        ("a.md:L3", "a.md", LineSpan(3, 3)),
        ("a.md#L3-9", "a.md", LineSpan(3, 9)),
        ("a.pdf#p=13", "a.pdf", PageSpan(13)),
        ("a.pdf#page=13", "a.pdf", PageSpan(13)),
        ("notes:git/setup.md#L1-L2", "notes:git/setup.md", LineSpan(1, 2)),
        ("한글%20문서.md#L1-L2", "한글 문서.md", LineSpan(1, 2)),
        ("100%.md:L1-L2", "100%.md", LineSpan(1, 2)),
        ("a%20b.md:L1-L2", "a%20b.md", LineSpan(1, 2)),
        ("a.md", "a.md", None),
        ("a.md#introduction", "a.md#introduction", None),
        ("", "", None),
    ],
)
def test_the_parser_also_reads_short_forms_source_prefixes_and_bare_paths(
    written: str, path: str, span: Span | None
) -> None:
    assert parsed(written) == (path, *typed(span))


def test_only_percent_hash_question_mark_and_space_of_a_path_are_encoded() -> None:
    citation = Citation("노트/a b#c?d%e:f&g+h.md", LineSpan(1, 2))
    assert citation.uri == "노트/a%20b%23c%3Fd%25e:f&g+h.md#L1-L2"
    assert citation.text == "노트/a b#c?d%e:f&g+h.md:L1-L2"


def as_read_back(span: Span) -> Span:
    """The span as it is read back: neither form contains a symbol, a language or a speaker."""
    match span:
        case CodeSpan(first, last):
            return LineSpan(first, last)
        case TimeSpan(start, end):
            return TimeSpan(start, end)
    return span


@pytest.mark.parametrize("kind", SPANS)
@given(path=PATH, data=st.data())
def test_both_forms_read_back_to_the_same_place_for_any_path(kind: str, path: str, data: st.DataObject) -> None:
    span = data.draw(SPANS[kind])
    citation = Citation(path, span)
    assert citation.kind == kind
    assert parsed(citation.uri) == (path, *typed(as_read_back(span)))
    assert parsed(citation.text) == (path, *typed(as_read_back(span)))


@given(st.text())
def test_any_text_is_parsed_as_a_citation_or_a_path(written: str) -> None:
    path, span = parse(written)
    assert span is not None or path == written


def cited(*spans: Span, section: str | None = "Install") -> Citation:
    chunk = ChunkContext(
        "c1", "d1", "notes/a.md", "A", ("Top", "Install"), section, "text", spans, "hash", "v1", "markdown", "en", (), "primary", "notes", "now", "2026-01-01", 0, "text", 0, 4
    )  # fmt: skip
    return chunk.citation


def test_the_citation_of_a_hit_comes_from_the_first_span() -> None:
    assert cited(LineSpan(3, 9), LineSpan(3, 4), LineSpan(7, 9)).span == LineSpan(3, 9)


def test_a_line_span_gives_a_line_citation_with_the_section_label() -> None:
    wire = plain(citation_v1(cited(LineSpan(3, 9))))
    assert {key: wire[key] for key in ("kind", "path", "start", "end", "section")} == {
        "kind": "line", "path": "notes/a.md", "start": 3, "end": 9, "section": "Install",
    }  # fmt: skip


def test_a_page_span_gives_a_page_citation_with_the_section_label() -> None:
    wire = plain(citation_v1(cited(PageSpan(13))))
    assert {key: wire[key] for key in ("kind", "path", "page", "section", "uri")} == {
        "kind": "page", "path": "notes/a.md", "page": 13, "section": "Install", "uri": "notes/a.md#page=13",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("span", "fields"),
    [
        (
            CodeSpan(1, 9, "main", "rust"),
            {"kind": "code", "line_start": 1, "line_end": 9, "symbol": "main", "lang": "rust"},
        ),
        (RegionSpan(1, 2, 3, 4), {"kind": "region", "x": 1, "y": 2, "w": 3, "h": 4}),
        (TimeSpan(1, 2, "Kim"), {"kind": "time", "start_ms": 1, "end_ms": 2, "speaker": "Kim"}),
        (CaptionSpan("Figure 3"), {"kind": "caption", "label": "Figure 3"}),
    ],
)
def test_every_other_span_has_its_own_wire_variant(span: Span, fields: dict[str, object]) -> None:
    wire = plain(citation_v1(cited(span)))
    assert {key: wire[key] for key in fields} == fields
    assert set(wire) - set(fields) == {"schema_version", "path", "uri", "text", "content_hash"}


def test_lines_are_known_for_the_kinds_that_have_lines() -> None:
    assert Citation("a", LineSpan(1, 2)).lines == Citation("a", CodeSpan(1, 2)).lines == (1, 2)
    assert Citation("a", PageSpan(1)).lines is None


def test_every_kind_of_span_has_its_name() -> None:
    assert sorted(SPAN_KINDS) == ["caption", "code", "line", "page", "region", "time"]
    assert span_kind(LineSpan(1, 2)) == "line"
