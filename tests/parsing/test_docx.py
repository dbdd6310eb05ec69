"""Word documents, built by this module."""

from __future__ import annotations

import io
import zipfile

import pytest

from kebab.chunking.by_structure import StructureChunker
from kebab.config.settings import ChunkingSettings
from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.parsing.registry import parser_for

NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:mc="urn:mc"'
STYLES = f"""<w:styles {NAMESPACE}>
<w:style w:styleId="a"><w:name w:val="Normal"/></w:style>
<w:style w:styleId="1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="Mine"><w:name w:val="My own"/><w:basedOn w:val="1"/></w:style>
<w:style w:styleId="Deep"><w:name w:val="Deep"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>
<w:style w:styleId="x"><w:name w:val="x"/><w:basedOn w:val="y"/></w:style>
<w:style w:styleId="y"><w:name w:val="y"/><w:basedOn w:val="x"/></w:style>
</w:styles>"""


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def styled(text: str, style: str) -> str:
    return paragraph(text, f'<w:pStyle w:val="{style}"/>')


ITEM = '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="3"/></w:numPr>'
BODY = (
    styled("서론", "1")
    + paragraph("One &amp; <!-- no -->two")
    + '<w:p><w:r><w:t xml:space="preserve">left </w:t><w:tab/><w:t>right</w:t><w:br/><w:t>below</w:t></w:r></w:p>'
    + paragraph("first", ITEM)
    + paragraph("second", ITEM)
    + styled("By style of style", "Mine")
    + styled("Third level", "Deep")
    + styled("Without styles.xml", "Heading2")
    + paragraph("By itself", '<w:outlineLvl w:val="3"/>')
    + "<w:tbl><w:tr><w:tc>" + paragraph("a") + paragraph("b") + "</w:tc><w:tc>" + paragraph("c") + "</w:tc></w:tr>"
    + "<w:tr><w:tc><w:tbl><w:tr><w:tc>" + paragraph("inner") + "</w:tc></w:tr></w:tbl></w:tc><w:tc>" + paragraph("") + "</w:tc></w:tr></w:tbl>"
    + "<w:p><w:r><mc:AlternateContent><mc:Choice><w:t>once</w:t></mc:Choice><mc:Fallback><w:t>twice</w:t></mc:Fallback></mc:AlternateContent></w:r></w:p>"
    + "<w:p><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del><w:r><w:instrText>PAGE</w:instrText></w:r></w:p>"
    + styled("Endless styles", "x")
)  # fmt: skip


def docx(body: str = BODY, **parts: str | bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:document {NAMESPACE}><w:body>{body}</w:body></w:document>")
        archive.writestr("word/styles.xml", STYLES)
        for name, content in parts.items():
            archive.writestr(name.replace("__", "/") + ("" if "." in name else ".xml"), content)
    return packed.getvalue()


def parse(data: bytes) -> ParsedDocument:
    return parser_for("a.docx").parse(data, "folder/a.docx")


def seen(document: ParsedDocument) -> list[tuple[str, int, str]]:
    return [(block.kind, block.level, document.text[block.start : block.end]) for block in document.blocks]


def test_a_document_gives_headings_paragraphs_lists_and_tables() -> None:
    document = parse(docx())
    assert seen(document) == [
        ("heading", 1, "서론"),
        ("paragraph", 0, "One & two"),
        ("paragraph", 0, "left \tright\nbelow"),
        ("list", 0, "- first\n- second"),
        ("heading", 1, "By style of style"),
        ("heading", 3, "Third level"),
        ("heading", 2, "Without styles.xml"),
        ("heading", 4, "By itself"),
        ("table", 0, "a b | c\ninner |"),
        ("paragraph", 0, "once"),
        ("paragraph", 0, "Endless styles"),
    ]
    assert (document.title, document.doc_type, document.format, document.paged) == ("서론", "note", "docx", False)
    assert document.text.startswith("서론\nOne & two\n")


def test_title_author_and_notes_come_from_their_own_parts() -> None:
    core = '<cp xmlns:dc="urn:dc"><dc:title>The  title</dc:title><dc:creator>Kim</dc:creator><dc:subject/></cp>'
    notes = f"<w:footnotes {NAMESPACE}><w:footnote>{paragraph('A note.')}</w:footnote></w:footnotes>"
    document = parse(docx(paragraph("x"), docProps__core=core, word__footnotes=notes))
    assert (document.title, document.metadata) == ("The title", {"author": "Kim"})
    assert document.text == "x\nA note.\n"


def test_the_main_part_may_have_another_name() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(
            "_rels/.rels", '<R><Relationship Id="1" Type="http://x/officeDocument" Target="/word/document2.xml"/></R>'
        )
        archive.writestr("word/document2.xml", f"<w:document {NAMESPACE}>{paragraph('text')}</w:document>")
    assert parse(packed.getvalue()).text == "text\n"


@pytest.mark.parametrize(
    ("body", "reason"), [("<w:p>" * 100_000, "unsafe"), ("<w:p>", "damaged"), ("&unknown;", "damaged")]
)
def test_harmful_or_malformed_xml_is_refused(body: str, reason: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(docx(body))
    assert refused.value.reason == reason


@pytest.mark.parametrize("part", ["word__footnotes", "docProps__core", "word___rels__document.xml.rels"])
def test_an_entity_bomb_in_any_part_is_refused(part: str) -> None:
    evil = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    with pytest.raises(ParseError) as refused:
        parse(docx(**{part: evil}))
    assert refused.value.reason == "unsafe"


def test_a_zip_bomb_is_refused() -> None:
    with pytest.raises(ParseError) as refused:
        parse(docx(word__endnotes=bytes(60 * 2**20)))
    assert refused.value.reason == "unsafe"


def test_a_document_without_its_main_part_is_damaged() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("other.xml", "<x/>")
    with pytest.raises(ParseError, match=r"word/document\.xml is missing"):
        parse(packed.getvalue())


def test_no_passage_spans_two_chapters() -> None:
    body = (
        styled("The report", "Title")
        + styled("Summary", "1")
        + paragraph("Short.")
        + styled("Details", "Deep")
        + paragraph("Few.")
        + styled("Outlook", "1")
        + paragraph("None.")
    )
    chunks = StructureChunker(ChunkingSettings()).chunk(parse(docx(body)))
    assert [chunk.text for chunk in chunks] == ["The report\nSummary\nShort.\nDetails\nFew.", "Outlook\nNone."]
