"""Chunks are slices of the file with exact lines; structure decides where they are cut, and nothing is lost."""

from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kebab.chunking.by_structure import StructureChunker
from kebab.config.settings import ChunkingSettings
from kebab.core.citations import LineSpan
from kebab.core.documents import Chunk, ParsedDocument, context_of
from kebab.core.errors import ParseError
from kebab.core.text import LineTable, estimate_tokens
from kebab.parsing.markdown import read_front_matter
from kebab.parsing.registry import all_parsers, parser_for

DEFAULTS = ChunkingSettings()
SMALL = ChunkingSettings(target_tokens=48, max_tokens=64, min_tokens=12)

SENTENCES = [
    "A short sentence. ",
    "한국어 문장은 이렇게 끝난다. ",
    "日本語の文。",
    "It’s “quoted”! ",
    "no stop here ",
    "https://example.org/a/very/long/path ",
]
CHARACTERS = [
    "🙂",
    "👩‍👩‍👧‍👦",
    "👍🏽",
    "e\u0301",
    "ক্ষ",
    "n\u0303\u0323",
    "\u1112\u1161\u11ab",
    "\u00a0",
    "\u2028",
    "\x0c",
    "\ufeff",
    "️⃣",
]


def block(kind: str, body: str, times: int, ending: str) -> str:
    line = body.strip() or "x"
    rows = {
        "heading": f"## {line}\n",
        "title": f"# {line}\n",
        "deep": f"#### {line}\n",
        "paragraph": body * times + "\n",
        "lines": (line + "\n") * times,
        "code": "```py\n" + (line + "\n") * times + "```\n",
        "open-code": "~~~\n" + line + "\n",
        "table": "| a | b |\n|---|---|\n" + f"| {line.replace('|', '')} | 2 |\n" * times,
        "list": f"- {line}\n" * times,
        "nested": f"- {line}\n  - {line}\n\n    {line}\n" * times,
        "quote": f"> {line}\n" * times,
        "html": f"<div>\n{line}\n</div>\n",
        "rule": "***\n",
        "long-line": line.replace(" ", "") * times * 20 + "\n",
        "blank": "\n" * times,
    }
    return rows[kind].replace("\n", ending)


BODIES = st.lists(
    st.sampled_from(SENTENCES + CHARACTERS) | st.text(st.characters(codec="utf-8"), max_size=6), min_size=1, max_size=6
).map("".join)
KINDS = st.sampled_from(
    [
        "heading",
        "title",
        "deep",
        "paragraph",
        "lines",
        "code",
        "open-code",
        "table",
        "list",
        "nested",
        "quote",
        "html",
        "rule",
        "long-line",
        "blank",
    ]
)
ENDINGS = st.sampled_from(["\n", "\n", "\r\n"])


@st.composite
def markdown(draw: st.DrawFn) -> str:
    ending = draw(ENDINGS)
    matter = draw(
        st.sampled_from(["", "", "---\ntitle: A title of its own\ntags: [x]\n---\n", "---\nbroken: [\n---\n"])
    ).replace("\n", ending)
    parts = draw(st.lists(st.tuples(KINDS, BODIES, st.integers(1, 30)), max_size=12))
    gap = draw(st.sampled_from(["", ending]))
    return matter + "".join(block(*part, ending) + gap for part in parts)


def documents(text: str, path: str = "a.md") -> list[ParsedDocument]:
    try:
        return [parser.parse(text.encode(), path) for parser in all_parsers()]
    except ParseError:
        return []


def parsed(text: str, path: str = "notes/a.md") -> ParsedDocument:
    return parser_for(path).parse(text.encode(), path)


def chunks_of(text: str, settings: ChunkingSettings = DEFAULTS, path: str = "notes/a.md") -> list[Chunk]:
    return StructureChunker(settings).chunk(parsed(text, path))


def tokens_with_context(document: ParsedDocument, chunk: Chunk) -> int:
    """The tokens of the embedded text: title, headings and chunk. White space has no tokens."""
    body = " ".join(chunk.text.split())
    return estimate_tokens(context_of(document.title, chunk.heading_path)) + estimate_tokens(body) - 1


SETTINGS = st.sampled_from([DEFAULTS, SMALL, ChunkingSettings(target_tokens=32, max_tokens=512, min_tokens=0)])


@given(markdown(), SETTINGS)
def test_every_chunk_is_a_slice_of_the_file_and_its_first_span_its_exact_lines(
    text: str, settings: ChunkingSettings
) -> None:
    for document in documents(text):
        lines, position = LineTable(document.text), 0
        for ordinal, chunk in enumerate(StructureChunker(settings).chunk(document)):
            assert chunk.ordinal == ordinal
            assert chunk.text == document.text[chunk.start : chunk.end]
            assert chunk.text.strip()
            assert chunk.start >= position, "chunks are in order and do not overlap"
            position = chunk.end
            (span,) = chunk.spans
            assert isinstance(span, LineSpan)
            assert chunk.text in lines.slice(span.start, span.end)
            assert span.start == document.text.count("\n", 0, chunk.start) + 1
            assert span.end == document.text.count("\n", 0, chunk.end - 1) + 1


@given(markdown(), SETTINGS)
def test_chunks_leave_out_only_front_matter_and_white_space(text: str, settings: ChunkingSettings) -> None:
    for number, document in enumerate(documents(text)):
        start = read_front_matter(document.text).end if number == 0 else 0
        covered = "".join("".join(chunk.text.split()) for chunk in StructureChunker(settings).chunk(document))
        whole = "".join(document.text[start:].split())
        assert covered == whole or (not whole and covered == "".join(document.text.split()))


@given(markdown(), SETTINGS)
def test_no_chunk_is_longer_than_the_maximum_with_its_title_and_headings(text: str, settings: ChunkingSettings) -> None:
    for document in documents(text):
        for chunk in StructureChunker(settings).chunk(document):
            context = estimate_tokens(context_of(document.title, chunk.heading_path))
            least = context + 32  # however long the headings are, a chunk has some text of its own
            assert tokens_with_context(document, chunk) <= max(settings.max_tokens, least)


def is_cut_inside_a_character(text: str, cut: int) -> bool:
    after, before = text[cut], text[cut - 1]
    return (
        unicodedata.category(after) in ("Mn", "Me", "Mc")
        or "\u200d" in (after, before)
        or 0x1F3FB <= ord(after) <= 0x1F3FF
        or (0x1160 <= ord(after) <= 0x11FF and 0x1100 <= ord(before) <= 0x11FF)
    )


@pytest.mark.parametrize(
    "cluster",
    ["e\u0301", "👩‍👩‍👧‍👦", "👍🏽", "n\u0303\u0323", "ক্ষ", "क्षि", "\u1112\u1161\u11ab", "1️⃣", "❤️‍🔥", "กำ"],
    ids=[
        "acute",
        "family",
        "skin-tone",
        "two-marks",
        "bengali",
        "devanagari",
        "decomposed-hangul",
        "keycap",
        "heart",
        "thai",
    ],
)
@pytest.mark.parametrize("path", ["a.txt", "a.py"])
def test_no_cut_splits_a_visible_character(cluster: str, path: str) -> None:
    for shift in range(4):
        text = "x" * shift + cluster * 400
        chunks = chunks_of(text, SMALL, path)
        assert len(chunks) > 1
        assert not [chunk.start for chunk in chunks[1:] if is_cut_inside_a_character(text, chunk.start)]


def test_an_endless_line_is_cut_and_every_part_cites_that_line() -> None:
    text = "# One\n\n" + "word" * 50_000 + "\n"
    chunks = chunks_of(text)
    assert len(chunks) > 100
    assert {chunk.spans[0] for chunk in chunks[1:]} == {LineSpan(3, 3)}
    assert "".join(chunk.text for chunk in chunks).endswith("word" * 1000)


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    sentences = [f"Sentence number {number} says something of its own." for number in range(200)]
    chunks = chunks_of(" ".join(sentences), path="a.txt")
    assert len(chunks) > 2
    assert all(chunk.text.endswith("own.") for chunk in chunks)


def test_korean_is_cut_between_sentences_too() -> None:
    chunks = chunks_of(" ".join(f"이 문장은 {number}번째로 쓰인 것이다." for number in range(200)), path="a.txt")
    assert len(chunks) > 2
    assert all(chunk.text.endswith("다.") for chunk in chunks)


def section(heading: str, size: int) -> str:
    return f"## {heading}\n\n" + f"Some words about {heading.lower()}. " * size + "\n\n"


def test_code_blocks_and_tables_stay_whole_while_they_fit() -> None:
    code = "```sh\n" + "run --this-command --with=options\n" * 20 + "```\n"
    table = "| name | value |\n|---|---|\n" + "| some name | some value |\n" * 20
    text = f"# T\n\n{'Words before it. ' * 40}\n\n{code}\n{'Words between. ' * 40}\n\n{table}\n{'Words after. ' * 40}\n"
    texts = [chunk.text for chunk in chunks_of(text)]
    assert len(texts) > 2
    assert sum(code.strip() in part for part in texts) == 1
    assert sum(table.strip() in part for part in texts) == 1


def test_code_that_does_not_fit_is_cut_between_lines() -> None:
    lines = [f"value_{number} = compute({number})" for number in range(300)]
    chunks = chunks_of("\n".join(lines), path="a.py")
    assert len(chunks) > 3
    assert [line for chunk in chunks for line in chunk.text.splitlines()] == lines


def test_small_sections_are_merged_under_the_heading_they_share() -> None:
    text = "# Guide\n\nIntro.\n\n## One\n\nfirst\n\n## Two\n\nsecond\n"
    (chunk,) = chunks_of(text)
    assert chunk.text == text.strip()
    assert chunk.heading_path == ("Guide",)
    assert chunk.spans == (LineSpan(1, 11),)


def test_large_sections_are_separate_chunks_with_the_path_of_their_headings() -> None:
    text = (
        "# Guide\n\n"
        + section("Install", 30)
        + section("Use", 30)
        + "### Deep\n\n"
        + "Words go deeper. " * 40
        + "\n\n"
        + section("End", 30)
    )
    found = [(chunk.heading_path, chunk.text.splitlines()[0]) for chunk in chunks_of(text)]
    assert found == [
        (("Guide", "Install"), "# Guide"),
        (("Guide", "Use"), "## Use"),
        (("Guide", "Use", "Deep"), "### Deep"),
        (("Guide", "End"), "## End"),
    ]


def test_headings_without_text_do_not_hide_the_innermost_heading() -> None:
    """A hit shows `heading: Architecture > Rust workspace`; the section label is the innermost heading."""
    (chunk,) = chunks_of("# Architecture\n\n## Rust workspace\n\nA workspace groups packages.\n")
    assert chunk.heading_path == ("Architecture", "Rust workspace")
    assert chunk.section_label == "Rust workspace"


def test_a_heading_is_in_one_chunk_with_the_text_below_it() -> None:
    chunks = chunks_of("# A\n\n" + section("One", 40) + section("Two", 40))
    assert not any(chunk.text.rstrip().splitlines()[-1].startswith("#") for chunk in chunks)


def test_a_heading_with_empty_title_leaves_no_empty_name_in_the_path() -> None:
    assert all("" not in chunk.heading_path for chunk in chunks_of("#\n\n##\n\ntext\n"))


def test_two_headings_of_one_level_do_not_nest() -> None:
    chunks = chunks_of("## A\n\n" + "a word. " * 200 + "\n\n## B\n\n" + "b word. " * 200)
    assert {chunk.heading_path for chunk in chunks} == {("A",), ("B",)}


def test_front_matter_is_not_part_of_any_chunk_but_lines_are_counted_with_it() -> None:
    (chunk,) = chunks_of("---\ntitle: X\n---\n\n# Body\n")
    assert (chunk.text, chunk.spans) == ("# Body", (LineSpan(5, 5),))


def test_the_first_line_keeps_its_indentation() -> None:
    (chunk,) = chunks_of("\n\n    indented code\n")
    assert chunk.text == "    indented code"


@pytest.mark.parametrize("text", ["", "\n\n", "   ", "\r\n"])
def test_an_empty_document_has_no_chunks(text: str) -> None:
    assert chunks_of(text) == []


def test_overlap_repeats_the_end_of_the_part_before_and_spans_stay_exact() -> None:
    text = "word by word " * 1000
    chunks = chunks_of(text, ChunkingSettings(overlap_tokens=30), "a.txt")
    assert len(chunks) > 2
    for before, after in pairwise(chunks):
        assert before.start < after.start < before.end < after.end
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in chunks)


def test_chunks_depend_only_on_the_text_and_the_settings() -> None:
    text = "# A\n\n" + section("One", 40) + section("Two", 40)
    assert chunks_of(text) == chunks_of(text)
    assert chunks_of(text, SMALL) != chunks_of(text)


def test_a_long_title_leaves_less_room_for_the_text() -> None:
    title = "long title words " * 24
    text = f"---\ntitle: {title}\n---\n" + "".join(
        f"Paragraph {number} has a few words in it.\n\n" for number in range(200)
    )
    document = parsed(text)
    chunks = StructureChunker(DEFAULTS).chunk(document)
    assert max(tokens_with_context(document, chunk) for chunk in chunks) <= DEFAULTS.max_tokens
