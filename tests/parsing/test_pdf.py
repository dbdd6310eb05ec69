"""PDFs, written byte by byte by `pdf_bytes`, so that the expected text is known exactly."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.parsing.pdf_bytes import At, Entry, make_pdf

from kebab.chunking.by_structure import StructureChunker
from kebab.config.settings import ChunkingSettings
from kebab.core.citations import PageSpan
from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.parsing import pdf_reading
from kebab.parsing.pdf import PdfParser
from kebab.parsing.pdf_blocks import Style, TypeLine, outline_by_type
from kebab.parsing.pdf_repair import mended_pages


def parsed(data: bytes, path: str = "papers/a file.pdf", password: str = "") -> ParsedDocument:
    return PdfParser(password).parse(data, path)


def text_of(*lines: At | str) -> str:
    return parsed(make_pdf([lines])).text


def refusal(data: bytes, password: str = "") -> ParseError:
    with pytest.raises(ParseError) as raised:
        parsed(data, password=password)
    assert raised.value.hint
    return raised.value


def headings(document: ParsedDocument) -> list[tuple[int, str, str]]:
    """Level, title and text of each heading."""
    return [
        (block.level, block.title, document.text[block.start : block.end].strip())
        for block in document.blocks
        if block.kind == "heading"
    ]


def check(document: ParsedDocument) -> None:
    """Asserts what holds for every PDF: ordered blocks that hold all text, none across pages, all of it printable."""
    text, position = document.text, 0
    for block in document.blocks:
        assert position <= block.start <= block.end <= len(text)
        assert not text[position : block.start].strip()
        # A title that only the outline has takes up no text, and stands before some of its page.
        assert text[block.start : block.end].strip() or (
            block.kind == "heading" and text[block.start :].partition("\f")[0].strip()
        )
        assert "\f" not in text[block.start : block.end]
        assert block.start == 0 or text[block.start - 1] in "\n\f"
        position = block.end
    assert not text[position:].strip()
    assert all(character.isprintable() or character in "\n\f\t" or ord(character) >= 0xA0 for character in text)
    text.encode()
    assert text.count("\f") + 1 == document.metadata["page_count"] == len(document.page_labels)
    assert document.title == " ".join(document.title.split()) != ""
    assert document.paged


# Pages


def test_page_n_is_the_nth_part_of_the_text_even_after_empty_pages() -> None:
    document = parsed(make_pdf([["First page"], [], ["Third", "page"], []]))
    assert document.text.split("\f") == ["First page", "", "Third\npage", ""]
    assert document.warnings == ("2 of 4 pages have no text (scanned?)",)
    check(document)


def test_a_chunk_is_on_one_page_and_cites_it() -> None:
    document = parsed(make_pdf([["One."], ["Two."], ["Three."]], labels="0 << /S /r >> 1 << /S /D >>"))
    chunks = StructureChunker(ChunkingSettings()).chunk(document)
    assert [(chunk.text, chunk.spans[0]) for chunk in chunks] == [
        ("One.", PageSpan(1, "i")),
        ("Two.", PageSpan(2, "1")),
        ("Three.", PageSpan(3, "2")),
    ]


def test_a_page_label_is_kept_if_it_differs_from_the_page_number() -> None:
    pages = [[f"page {number}"] for number in range(5)]
    assert parsed(make_pdf(pages)).page_labels == (None,) * 5
    assert parsed(make_pdf(pages, labels="0 << /S /D >>")).page_labels == (None,) * 5
    assert parsed(make_pdf(pages, labels="0 << /S /r >> 3 << /P (A-) /S /D >>")).page_labels == (
        "i",
        "ii",
        "iii",
        "A-1",
        "A-2",
    )


def test_korean_and_characters_beyond_the_basic_plane_are_read() -> None:
    document = parsed(make_pdf([["한글 문서의 첫 줄이다.", "둘째 줄 🙂 끝"]]))
    assert document.text == "한글 문서의 첫 줄이다.\n둘째 줄 🙂 끝"
    assert document.lang == "ko"


# Repairs


def test_ligatures_become_letters() -> None:
    assert (
        mended_pages(["e\ufb03cient \ufb01le \ufb02ow o\ufb00 \ufb04 \ufb05 \ufb06"])
        == "efficient file flow off ffl st st"
    )
    assert text_of("e\ufb03cient \ufb01le") == "efficient file"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["This is an exam-", "ple of it."], "This is an example of it."),
        (["한글 exam\u00ad", "ple of it."], "한글 example of it."),
        (["Anglo-", "Saxon law"], "Anglo-Saxon law"),
        (["send an e-", "mail"], "send an e-mail"),
        (["the FDA-", "approved one"], "the FDA-approved one"),
        (["an in-network doctor, an in-", "network one"], "an in-network doctor, an in-network one"),
        (["the body and the build of a body-", "build"], "the body and the build of a body-build"),
        (["problem, and again a prob-", "lem of an exam-", "ple"], "problem, and again a problem of an example"),
        (["a SEQUENCE, and a SE-", "QUENCE"], "a SEQUENCE, and a SEQUENCE"),
        (["from 2020-", "2021 on"], "from 2020-\n2021 on"),
        (["a dash -", "here"], "a dash -\nhere"),
    ],
)
def test_a_word_broken_at_the_end_of_a_line_is_joined(lines: list[str], expected: str) -> None:
    assert text_of(*lines) == expected


@pytest.mark.parametrize("hyphen", ["-\n", "\u00ad\n", "\u2010\n", "\ufffe", "\ufffe\n", "-\r\n"])
def test_every_kind_of_hyphen_marks_a_broken_word(hyphen: str) -> None:
    assert mended_pages([f"exam{hyphen}ple"]) == "example"


def test_a_word_is_never_joined_across_pages() -> None:
    assert mended_pages(["exam-", "ple"]) == "exam-\fple"


def test_a_document_that_does_not_break_words_keeps_its_hyphens() -> None:
    lines = ["self-paid and cost-free, once more self-", "paid and cost-", "free, and a bone-", "anchored aid"]
    assert mended_pages(["\n".join(lines)]).endswith("self-paid and cost-free, and a bone-anchored aid")


def test_a_soft_hyphen_that_is_drawn_inside_a_line_is_a_hyphen() -> None:
    assert mended_pages(["well\u00adknown"]) == "well-known"


def test_invisible_characters_are_dropped_and_a_form_feed_does_not_split_a_page() -> None:
    assert (
        mended_pages(["a\x00b\x07c\x85d\ufeffe\ud800f", "x\fy", "one \r\ntwo\rthree\u2028four\t\n"])
        == "abcdef\fx y\fone\ntwo\nthree\nfour\n"
    )


def test_decomposed_letters_stay_as_they_are() -> None:
    assert mended_pages(["cafe\u0301"]) == "cafe\u0301"


def test_glyphs_without_text_do_not_hide_the_rest_of_the_page() -> None:
    """pypdfium2 itself recurses once for each such glyph."""
    assert text_of("\x01" * 3000 + "text" + "\x01" * 3000) == "text"


# Paragraphs and headings


def test_a_short_line_that_ends_a_sentence_ends_a_paragraph() -> None:
    lines = [
        "The first paragraph goes on for a full line, and",
        "ends here.",
        "The second one is as long as the first one, and",
        "has its end.",
    ]
    document = parsed(make_pdf([lines]))
    assert [document.text[block.start : block.end] for block in document.blocks] == [
        f"{lines[0]}\n{lines[1]}\n",
        f"{lines[2]}\n{lines[3]}",
    ]


def test_headings_come_from_the_outline_and_are_found_on_their_page() -> None:
    pages = [
        ["Contents", "Introduction 1", "Methods 2"],
        ["1 INTRODUCTION", "Some text about the introduction of it all.", "1.1 Aims and", "Scope", "More text."],
        ["Methods", "Text."],
    ]
    outline = [Entry("Introduction", 2), Entry("1.1 Aims and Scope", 2, 1), Entry("3. Methods", 3)]
    document = parsed(make_pdf(pages, outline=outline))
    assert headings(document) == [
        (1, "Introduction", "1 INTRODUCTION"),
        (2, "1.1 Aims and Scope", "1.1 Aims and\nScope"),
        (1, "3. Methods", "Methods"),
    ]
    chunks = StructureChunker(ChunkingSettings(min_tokens=0)).chunk(document)
    assert chunks[-1].heading_path == ("3. Methods",)
    check(document)


def test_a_title_that_only_the_outline_has_begins_its_page() -> None:
    """Regression: such pages were cited under the chapter before. Only the first entry of a page has a known place."""
    pages = [["The great picture", "Text."], ["Nothing of the kind stands here, and this is one long sentence."]]
    document = parsed(make_pdf(pages, outline=[Entry("A great picture", 1), Entry("Appendix", 2)]))
    assert headings(document) == [(1, "A great picture", "The great picture"), (1, "Appendix", "")]
    chunks = StructureChunker(ChunkingSettings()).chunk(document)
    assert [chunk.heading_path for chunk in chunks] == [("A great picture",), ("Appendix",)]
    assert chunks[-1].text == "Nothing of the kind stands here, and this is one long sentence."
    check(document)


def test_two_entries_never_share_a_line() -> None:
    pages = [["Overview", "Text between.", "Overview", "More text."]]
    document = parsed(make_pdf(pages, outline=[Entry("Overview", 1), Entry("Overview", 1, 1), Entry("Overview", 1, 2)]))
    assert [level for level, _, _ in headings(document)] == [1, 2]
    check(document)


def test_a_circular_outline_ends() -> None:
    data = make_pdf([["One", "Two"]], outline=[Entry("One", 1), Entry("Two", 1)])
    assert b"/Next 12 0 R" in data
    assert headings(parsed(data.replace(b"/Next 12 0 R", b"/Next 11 0 R"))) == [(1, "One", "One")]
    nested = make_pdf([["One", "Two"]], outline=[Entry("One", 1), Entry("Two", 1, 1)])
    assert headings(parsed(nested.replace(b"/First 12 0 R", b"/First 11 0 R"))) == [(1, "One", "One")]


def test_an_outline_is_read_to_a_bounded_depth() -> None:
    outline = [Entry(f"Level {level}", 1, level) for level in range(30)]
    document = parsed(make_pdf([[f"Level {level}" for level in range(30)]], outline=outline))
    assert [level for level, _, _ in headings(document)] == list(range(1, 9))


# Headings by their type


def set_page(*lines: str | tuple[str, float, bool]) -> list[At]:
    """Lines below one another; those given as text, size and bold are set so, the others as body text."""
    placed, y = [], 740.0
    for line in lines:
        text, size, bold = (line, 12.0, False) if isinstance(line, str) else line
        y -= 1.2 * size
        placed.append(At(72, y, text, size, bold))
    return placed


BODY = [f"This is line {number} of a text that goes on and on for a while." for number in range(12)]


def test_without_an_outline_larger_or_bold_lines_are_headings_across_pages() -> None:
    document = parsed(
        make_pdf(
            [
                set_page(
                    ("Tea and Coffee", 24, False), *BODY, ("Green Tea", 16, True), *BODY, ("Brewing", 12, True), *BODY
                ),
                set_page(*BODY, ("Black", 16, True), ("Tea", 16, True), *BODY),
            ]
        )
    )
    assert headings(document) == [
        (1, "Tea and Coffee", "Tea and Coffee"),
        (2, "Green Tea", "Green Tea"),
        (3, "Brewing", "Brewing"),
        (2, "Black Tea", "Black\nTea"),
    ]
    assert document.title == "Tea and Coffee"
    chunks = StructureChunker(ChunkingSettings(min_tokens=0)).chunk(document)
    assert [
        chunk.heading_path for chunk in chunks if isinstance(chunk.spans[0], PageSpan) and chunk.spans[0].page == 2
    ] == [("Tea and Coffee", "Green Tea", "Brewing"), ("Tea and Coffee", "Black Tea")]
    check(document)


def test_an_outline_takes_precedence_over_the_type() -> None:
    document = parsed(
        make_pdf([set_page(("Large words", 24, True), *BODY, "Chapter", *BODY)], outline=[Entry("Chapter", 1)])
    )
    assert headings(document) == [(1, "Chapter", "Chapter")]


def test_a_bold_beginning_a_sentence_or_a_list_item_is_no_heading() -> None:
    run_in = [At(72, 400, "Note:", 12, True), At(110, 400, "this line goes on in plain letters")]
    large = set_page(
        *BODY, ("A whole sentence in large letters.", 18, True), ("• one of a list", 18, True), ("12", 18, True)
    )
    assert headings(parsed(make_pdf([[*set_page(*BODY), *run_in], large]))) == []


def test_a_running_head_and_a_frequent_style_are_no_headings() -> None:
    pages = [
        set_page((f"Annual Report {number}", 18, True), *BODY, (f"Part {'ABCDEFGHIJKL'[number]}", 15, True), *BODY)
        for number in range(12)
    ]
    assert [title for _, title, _ in headings(parsed(make_pdf(pages)))] == [
        f"Part {letter}" for letter in "ABCDEFGHIJKL"
    ]
    half_bold = set_page(*[(line, 12, number % 2 == 0) for number, line in enumerate(BODY)])
    assert headings(parsed(make_pdf([half_bold]))) == []


def test_a_one_word_title_is_completed_by_the_heading_below_it() -> None:
    title_page = set_page(("Acme", 40, False), ("Travel Expenses", 24, False))
    assert parsed(make_pdf([title_page, set_page(*BODY)]), "f.pdf").title == "Acme Travel Expenses"


@given(
    st.lists(
        st.lists(
            st.builds(
                TypeLine,
                st.text(min_size=1, max_size=20).filter(str.strip),
                st.builds(Style, st.sampled_from([0.0, 9.0, 11.0, 12.5, 16.0, 30.0]), st.booleans()),
            ),
            max_size=12,
        ),
        max_size=8,
    )
)
def test_headings_by_type_are_lines_of_their_page_in_order_with_levels_from_one(pages: list[list[TypeLine]]) -> None:
    entries = outline_by_type(pages)
    assert [entry.page for entry in entries] == sorted(entry.page for entry in entries)
    assert {entry.level for entry in entries} == set(range(1, 1 + len({entry.level for entry in entries})))
    for entry in entries:
        assert entry.title in " ".join(line.text for line in pages[entry.page])
    assert outline_by_type(pages) == entries


# Title and metadata


@pytest.mark.parametrize("title", ["A Study of Tea", "차에 대한 연구", "Notes on main.py and other files"])
def test_a_sensible_title_is_taken(title: str) -> None:
    assert parsed(make_pdf([["x"]], info={"Title": f"  {title}\n"})).title == title


@pytest.mark.parametrize(
    "title",
    [
        "",
        " ",
        "untitled",
        "Untitled-1",
        "Microsoft Word - draft 3.docx",
        "thesis.dvi",
        "Document1",
        "제목 없음",
        "1234",
        "-",
    ],
)
def test_a_meaningless_title_is_replaced_by_the_first_heading_or_the_file_name(title: str) -> None:
    info = {"Title": title}
    assert parsed(make_pdf([["x"]], info=info), "papers/green  tea.pdf").title == "green tea"
    assert parsed(make_pdf([["Chapter"]], info=info, outline=[Entry("Chapter", 1)])).title == "Chapter"


def test_a_numbered_heading_is_no_document_title() -> None:
    assert (
        parsed(make_pdf([["1 Introduction"]], outline=[Entry("1 Introduction", 1)]), "green tea.pdf").title
        == "green tea"
    )


def test_metadata_is_kept_with_dates_in_iso_form() -> None:
    info = {
        "Author": "Kim",
        "Subject": "Tea",
        "Keywords": "tea, cup",
        "CreationDate": "D:20230306135820-08'00'",
        "ModDate": "D:2024",
    }
    document = parsed(make_pdf([["x"], ["y"]], info=info))
    assert document.metadata == {
        "page_count": 2,
        "author": "Kim",
        "subject": "Tea",
        "keywords": "tea, cup",
        "created": "2023-03-06T21:58:20",
        "modified": "2024-01-01",
    }
    assert document.date is None


@pytest.mark.parametrize("date", ["", "yesterday", "D:20239999", "D:00000000000000", "D:20230306990000Z"])
def test_an_invalid_date_is_left_out(date: str) -> None:
    assert parsed(make_pdf([["x"]], info={"CreationDate": date})).metadata == {"page_count": 1}


def test_half_a_character_in_a_title_is_no_error() -> None:
    document = parsed(
        make_pdf(
            [["Tea"]],
            info={"Title": "Tea \ud800", "Author": "\udc00"},
            outline=[Entry("Tea \udfff", 1)],
            labels="0 << /P <feffd800> >>",
        )
    )
    assert (document.title, document.metadata, document.page_labels) == ("Tea", {"page_count": 1}, (None,))


# What cannot be read


def test_a_pdf_that_needs_a_password_says_so_and_opens_with_it() -> None:
    data = make_pdf([["Secret text"]], password="open sesame", info={"Title": "A Secret"})
    assert refusal(data).reason == "encrypted"
    assert "needs a password" in refusal(data).message
    assert "does not open" in refusal(data, password="wrong").message
    document = parsed(data, password="open sesame")
    assert (document.text, document.title) == ("Secret text", "A Secret")


def test_a_pdf_that_opens_without_a_password_is_read_with_or_without_one() -> None:
    assert parsed(make_pdf([["Text"]], password="")).text == "Text"
    assert parsed(make_pdf([["Text"]]), password="needless").text == "Text"


@pytest.mark.parametrize("data", [b"", b"\0", b"%PDF-1.7\n", b"# Notes\n", b"PK\x03\x04" + bytes(100)])
def test_a_file_that_is_no_pdf_is_damaged(data: bytes) -> None:
    assert refusal(data).reason == "damaged"


def test_a_pdf_without_pages_is_damaged() -> None:
    empty = make_pdf([["x"]]).replace(b"/Count 1 /Kids [9 0 R]", b"/Count 0 /Kids [     ]")
    for before in (b"", make_pdf([["x"]], password="secret")):
        refusal(before)
        assert refusal(empty).reason == "damaged"


def test_a_pdf_without_text_is_reported_as_such() -> None:
    assert refusal(make_pdf([[], []])).reason == "no_text"
    assert refusal(make_pdf([[" "]])).reason == "no_text"


def test_pages_that_are_missing_are_counted() -> None:
    document = parsed(make_pdf([["Here"]]).replace(b"/Count 1 ", b"/Count 3 "))
    assert document.text == "Here\f\f"
    assert document.warnings == ("2 of 3 pages could not be read (damaged?)",)


def test_too_many_pages_or_characters_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert refusal(make_pdf([["x"]]).replace(b"/Count 1 ", b"/Count 900000 ")).reason == "unsafe"
    monkeypatch.setattr(pdf_reading, "_MOST_CHARACTERS", 100)
    assert refusal(make_pdf([["twenty characters..."]] * 6)).reason == "unsafe"


SAMPLES = [
    make_pdf(
        [
            ["Introduction", "Some text of an exam-", "ple.", "한글 문장이다."],
            [],
            ["Methods", *["More text, line by line."] * 5],
        ],
        outline=[Entry("Introduction", 1), Entry("Example", 1, 1), Entry("Methods", 3)],
        labels="0 << /S /r >> 2 << /S /D >>",
        info={"Title": "A sample", "Author": "Kim", "CreationDate": "D:20230306135820-08'00'"},
    ),
    make_pdf([["Secret text"], ["한글"]], password="", info={"Title": "Secret"}),
]


@given(
    sample=st.sampled_from(SAMPLES),
    flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7)), max_size=20),
    cut=st.none() | st.integers(0, 10**6),
)
@example(sample=SAMPLES[0], flips=[], cut=None)
@example(sample=SAMPLES[1], flips=[], cut=None)
def test_a_damaged_pdf_gives_a_document_or_a_parse_error(
    sample: bytes, flips: list[tuple[int, int]], cut: int | None
) -> None:
    data = bytearray(sample)
    for place, bit in flips:
        data[place % len(data)] ^= 1 << bit
    if cut is not None:
        del data[cut % len(data) :]
    try:
        document = parsed(bytes(data))
    except ParseError as error:
        assert error.reason in ("damaged", "encrypted", "no_text", "unsafe")
        return
    check(document)


@given(pages=st.lists(st.text(), min_size=1, max_size=4))
def test_mending_keeps_the_number_of_pages(pages: list[str]) -> None:
    mended = mended_pages(pages)
    assert mended.count("\f") == len(pages) - 1
    mended.encode()


def test_the_same_bytes_give_the_same_document_in_any_order() -> None:
    first = [parsed(sample) for sample in SAMPLES]
    second = [parsed(sample) for sample in reversed(SAMPLES)]
    assert first == second[::-1]


def test_threads_can_parse_at_the_same_time() -> None:
    """PDFium crashes without a lock."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(4) as pool:
        documents = list(pool.map(parsed, SAMPLES * 20))
    assert documents == [parsed(sample) for sample in SAMPLES] * 20


def test_each_page_is_closed_before_the_next_one_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """PDFium keeps what is drawn on an open page. Counted at the C functions."""
    import pypdfium2.raw as real

    opened: dict[str, int] = {"pages": 0, "most": 0}

    class Counting:
        def __getattr__(self, name: str) -> Any:
            change = {"FPDF_LoadPage": 1, "FPDFText_LoadPage": 1, "FPDF_ClosePage": -1, "FPDFText_ClosePage": -1}.get(
                name, 0
            )
            opened["pages"] += change
            opened["most"] = max(opened["most"], opened["pages"])
            return getattr(real, name)

    data = make_pdf([[f"page {number}"] for number in range(50)])
    monkeypatch.setattr(pdf_reading, "pdfium", Counting())
    assert parsed(data).text.endswith("page 49")
    assert opened == {"pages": 0, "most": 2}


@pytest.mark.parametrize("piece", ["-\n", "a-\nb", "a\ufffe", " ", "가", "\u00ad", "a", "- "])
def test_endless_repetition_is_mended_in_little_time(piece: str) -> None:
    import time

    started = time.process_time()
    mended_pages([piece * 100_000])
    assert time.process_time() - started < 2.0


def test_random_bytes_inside_a_page_give_a_document_or_a_parse_error() -> None:
    chance = random.Random(7)
    for _ in range(30):
        sample = bytearray(SAMPLES[0])
        place = chance.randrange(len(sample))
        sample[place : place + 40] = chance.randbytes(40)
        try:
            check(parsed(bytes(sample)))
        except ParseError as error:
            assert error.reason
