"""E-books, built by this module."""

from __future__ import annotations

import io
import zipfile

import pytest

from kebab.chunking.by_structure import StructureChunker
from kebab.config.settings import ChunkingSettings
from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.parsing.registry import parser_for

CHAPTER = '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml"><head><title>no</title></head><body>{}</body></html>'
PARTS = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
    "OEBPS/book.opf": """<package xmlns:dc="urn:dc"><metadata><dc:title>The
  Book</dc:title><dc:title>Second title</dc:title><dc:creator>이상</dc:creator><dc:language>ko-KR</dc:language></metadata>
<manifest><item id="a" href="text/one%201.xhtml" media-type="application/xhtml+xml"/><item id="b" href="two.html" media-type="text/html"/>
<item id="c" href="cover.jpg" media-type="image/jpeg"/></manifest>
<spine><itemref idref="b"/><itemref idref="a"/><itemref idref="c"/><itemref idref="b"/><itemref idref="nothing"/></spine></package>""",
    "OEBPS/two.html": CHAPTER.format("<h1>First &amp; last</h1><p>One\n  two.</p><script/><p>Three.</p>"),
    "OEBPS/text/one 1.xhtml": CHAPTER.format(
        "<h2>Next</h2><pre>a\n  b</pre><table><tr><td>x</td><td>y</td></tr>\n<tr><td>1</td></tr></table>"
    ),
}


def epub(parts: dict[str, str | None] | None = None) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**PARTS, **(parts or {})}.items():
            if content is not None:
                archive.writestr(name, content)
    return packed.getvalue()


def parse(data: bytes) -> ParsedDocument:
    return parser_for("a.epub").parse(data, "folder/a.epub")


def test_chapters_come_in_reading_order() -> None:
    document = parse(epub())
    assert document.text == "First & last\nOne two.\nThree.\n\nNext\na\n  b\nx | y\n1\n"
    assert [(block.kind, block.level, block.title) for block in document.blocks] == [
        ("heading", 1, "First & last"),
        ("paragraph", 0, ""),
        ("paragraph", 0, ""),
        ("heading", 2, "Next"),
        ("code", 0, ""),
        ("table", 0, ""),
    ]
    assert (document.title, document.lang, document.metadata, document.warnings) == (
        "The Book",
        "ko",
        {"author": "이상"},
        (),
    )
    assert (document.doc_type, document.format, document.paged) == ("note", "epub", False)


def test_no_passage_spans_two_chapters() -> None:
    chapters: dict[str, str | None] = {
        "OEBPS/two.html": CHAPTER.format(
            "<h1>Part One</h1><h1>Chapter 1</h1><p>It begins.</p><h2>Later</h2><p>It ends.</p>"
        ),
        "OEBPS/text/one 1.xhtml": CHAPTER.format("<p>Without a heading.</p><h1>Chapter 3</h1><p>Third.</p>"),
    }
    chunks = StructureChunker(ChunkingSettings()).chunk(parse(epub(chapters)))
    assert [chunk.text for chunk in chunks] == [
        "Part One\nChapter 1\nIt begins.\nLater\nIt ends.",
        "Without a heading.",
        "Chapter 3\nThird.",
    ]


def test_a_missing_chapter_is_a_warning_and_a_book_without_chapters_is_damaged() -> None:
    assert parse(epub({"OEBPS/two.html": None})).warnings == ("1 of 2 chapters are missing in the file",)
    with pytest.raises(ParseError, match="None of the chapters"):
        parse(epub({"OEBPS/two.html": None, "OEBPS/text/one 1.xhtml": None}))


def test_a_protected_book_is_refused_and_scrambled_fonts_are_not() -> None:
    fonts = '<encryption><CipherReference URI="OEBPS/font.otf"/></encryption>'
    assert parse(epub({"META-INF/encryption.xml": fonts})).blocks
    with pytest.raises(ParseError) as refused:
        parse(epub({"META-INF/encryption.xml": fonts.replace("font.otf", "two.html")}))
    assert refused.value.reason == "encrypted"


@pytest.mark.parametrize(
    ("part", "content", "reason"),
    [
        ("META-INF/container.xml", None, "damaged"),
        ("META-INF/container.xml", "<container/>", "damaged"),
        ("OEBPS/book.opf", None, "damaged"),
        ("OEBPS/book.opf", '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', "unsafe"),
        ("OEBPS/book.opf", "<a>" * 100_000, "unsafe"),
        ("OEBPS/two.html", "<p>" * 20 * 2**20, "unsafe"),
        ("../../evil.html", "<p>out</p>", "unsafe"),
        (
            "META-INF/container.xml",
            '<container><rootfiles><rootfile full-path="../../etc/passwd"/></rootfiles></container>',
            "unsafe",
        ),
    ],
)
def test_missing_malformed_or_harmful_parts_are_refused(part: str, content: str | None, reason: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(epub({part: content}))
    assert refused.value.reason == reason


def test_entities_of_a_chapter_are_not_expanded_and_deep_nesting_is_read() -> None:
    evil = '<!DOCTYPE html [<!ENTITY a "aaaa">]><p>&a;</p>' + "<div>" * 100_000
    assert "aaaa" not in parse(epub({"OEBPS/two.html": evil})).text.partition("&a;")[2]
