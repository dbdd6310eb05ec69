"""Presentations, built by this module."""

from __future__ import annotations

import io
import zipfile

import pytest

from kebab.chunking.by_structure import StructureChunker
from kebab.config.settings import ChunkingSettings
from kebab.core.citations import PageSpan
from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.parsing.registry import parser_for

NAMESPACES = (
    'xmlns:a="urn:a" xmlns:p="urn:p" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
)


def shape(text: str, placeholder: str = "") -> str:
    kind = f'<p:nvPr><p:ph type="{placeholder}"/></p:nvPr>' if placeholder else ""
    lines = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f"<p:sp>{kind}<p:txBody>{lines}</p:txBody></p:sp>"


def slide(*shapes: str) -> str:
    return f"<p:sld {NAMESPACES}>{''.join(shapes)}</p:sld>"


def relations(**targets: str) -> str:
    links = "".join(
        f'<Relationship Id="{key}" Type="http://x/{kind}" Target="{to}"/>'
        for key, (kind, _, to) in {k: v.partition(":") for k, v in targets.items()}.items()
    )
    return f"<Relationships>{links}</Relationships>"


TABLE = "<p:graphicFrame><a:tbl><a:tr><a:tc><a:p><a:r><a:t>x</a:t></a:r></a:p></a:tc><a:tc><a:p><a:r><a:t>y</a:t></a:r></a:p></a:tc></a:tr></a:tbl></p:graphicFrame>"
PARTS = {
    "ppt/presentation.xml": f'<p:presentation {NAMESPACES}><p:sldIdLst><p:sldId id="256" r:id="r2"/><p:sldId id="257" r:id="r1"/><p:sldId id="258" r:id="r3"/><p:sldId id="9" r:id="none"/></p:sldIdLst></p:presentation>',
    "ppt/_rels/presentation.xml.rels": relations(
        r1="slide:slides/slide1.xml", r2="slide:/ppt/slides/slide2.xml", r3="slide:slides/slide3.xml"
    ),
    "ppt/slides/slide1.xml": slide(shape("Second\nshown"), shape("7", "sldNum"), TABLE),
    "ppt/slides/slide2.xml": slide(shape("Point one\nPoint two", "body"), shape("가장 먼저", "title")),
    "ppt/slides/slide3.xml": slide(),
    "ppt/slides/_rels/slide2.xml.rels": relations(n="notesSlide:../notesSlides/notes2.xml"),
    "ppt/notesSlides/notes2.xml": slide(shape("Say hello", "body"), shape("2", "sldNum")),
}


def pptx(parts: dict[str, str] = PARTS) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed.getvalue()


def parse(data: bytes) -> ParsedDocument:
    return parser_for("a.pptx").parse(data, "folder/talk.pptx")


def test_each_slide_is_a_page_in_the_order_of_the_show() -> None:
    document = parse(pptx())
    assert document.paged
    assert document.text == "가장 먼저\nPoint one\nPoint two\nSay hello\n\fSecond\nshown\nx | y\n\f"
    assert [(block.kind, document.text[block.start : block.end]) for block in document.blocks] == [
        ("heading", "가장 먼저"),
        ("paragraph", "Point one\nPoint two"),
        ("paragraph", "Say hello"),
        ("heading", "Second"),
        ("paragraph", "shown"),
        ("table", "x | y"),
    ]
    assert (document.title, document.doc_type, document.format) == ("가장 먼저", "note", "pptx")


def test_a_hit_is_cited_by_its_slide() -> None:
    chunks = StructureChunker(ChunkingSettings()).chunk(parse(pptx()))
    assert [(chunk.spans[0], chunk.heading_path) for chunk in chunks] == [
        (PageSpan(1), ("가장 먼저",)),
        (PageSpan(2), ("Second",)),
    ]


@pytest.mark.parametrize(
    ("part", "content", "reason"),
    [
        ("ppt/presentation.xml", None, "damaged"),
        ("ppt/slides/slide2.xml", None, "damaged"),
        ("ppt/slides/slide2.xml", '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', "unsafe"),
        ("ppt/slides/slide2.xml", "<a>" * 100_000, "unsafe"),
        ("ppt/slides/slide2.xml", " " * 60 * 2**20, "unsafe"),
        ("ppt/notesSlides/notes2.xml", "<a>", "damaged"),
    ],
)
def test_missing_malformed_or_harmful_parts_are_refused(part: str, content: str | None, reason: str) -> None:
    parts = {name: text for name, text in PARTS.items() if name != part} | ({part: content} if content else {})
    with pytest.raises(ParseError) as refused:
        parse(pptx(parts))
    assert refused.value.reason == reason
