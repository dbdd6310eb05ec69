"""Workbooks, built by this module."""

from __future__ import annotations

import io
import zipfile

import pytest

from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.parsing.registry import parser_for

NAMESPACES = 'xmlns="urn:s" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'


def sheet(rows: str) -> str:
    return f"<worksheet {NAMESPACES}><sheetData>{rows}</sheetData></worksheet>"


FIRST = sheet(
    '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row><row r="2"><c r="A2" s="1"/></row>'
    '<row r="3"><c r="A3"><v>0.30000000000000004</v></c><c r="B3" t="b"><v>1</v></c><c r="C3" t="str"><f>A3&amp;"x"</f><v>sum</v></c>'
    '<c r="D3" t="inlineStr"><is><r><t>in</t></r><r><t>line</t></r><rPh><t>reading</t></rPh></is></c><c t="e"><v>#N/A</v></c></row>'
)
PARTS = {
    "xl/workbook.xml": f'<workbook {NAMESPACES}><sheets><sheet name="Prices" sheetId="4" r:id="b"/><sheet name="빈 시트" sheetId="1" r:id="a"/><sheet name="Chart" r:id="c"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": '<R><Relationship Id="a" Type="x/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="b" Type="x/worksheet" Target="/xl/worksheets/sheet2.xml"/></R>',
    "xl/sharedStrings.xml": f"<sst {NAMESPACES}><si><t>Ice_x000D_\n cream</t></si><si><r><t>Pri</t></r><r><t>ce</t></r><rPh><t>no</t></rPh></si></sst>",
    "xl/worksheets/sheet1.xml": sheet(""),
    "xl/worksheets/sheet2.xml": FIRST,
}


def xlsx(**changed: str) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {
            **PARTS,
            **{f"xl/{name.replace('__', '/')}.xml": text for name, text in changed.items()},
        }.items():
            if content:
                archive.writestr(name, content)
    return packed.getvalue()


def parse(data: bytes) -> ParsedDocument:
    return parser_for("a.xlsx").parse(data, "folder/prices 2024.xlsx")


def test_each_sheet_is_a_page_and_each_row_a_line() -> None:
    document = parse(xlsx())
    assert document.paged
    assert document.text == "Prices\nIce cream |  | Price\n0.3 | TRUE | sum | inline | #N/A\n\f빈 시트\n\fChart\n"
    assert [(block.kind, block.level, block.title) for block in document.blocks] == [
        ("heading", 1, "Prices"),
        ("table", 0, ""),
        ("heading", 1, "빈 시트"),
        ("heading", 1, "Chart"),
    ]
    assert (document.title, document.doc_type, document.format, document.warnings) == (
        "prices 2024",
        "note",
        "xlsx",
        (),
    )


def test_dates_are_shown_as_dates() -> None:
    styles = f"""<styleSheet {NAMESPACES}><numFmts><numFmt numFmtId="164" formatCode="yyyy&quot;년&quot; m"/><numFmt numFmtId="165" formatCode="[Red]0.0 &quot;d&quot;"/></numFmts>
<cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs></styleSheet>"""
    cells = "".join(
        f'<c s="{style}"><v>{value}</v></c>'
        for style, value in [
            (0, 45443),
            (1, 45443),
            (2, 45443.5),
            (3, 45443),
            (1, -1),
            (1, "x"),
            (1, "nan"),
            (1, 1e300),
        ]
    )
    document = parse(xlsx(styles=styles, worksheets__sheet2=sheet(f"<row>{cells}</row>")))
    assert document.text.split("\n")[1] == "45443 | 2024-05-31 | 2024-05-31 12:00 | 45443 | -1 | x | nan | 1e+300"


def test_large_sheets_are_bounded_with_a_warning() -> None:
    rows = "".join(f"<row><c><v>{n}</v></c></row>" for n in range(20_005)) + '<row><c r="ZZ1"><v>1</v></c></row>'
    document = parse(xlsx(worksheets__sheet1=sheet(rows)))
    assert document.warnings == (
        "sheet 빈 시트: 5 rows after the first 20,000 are left out",
        "sheet 빈 시트: columns after the first 100 are left out",
    )
    assert "\n19999\n" in document.text
    assert "20000" not in document.text
    tables = [block for block in document.blocks if block.kind == "table"]
    assert len(tables) == 1 + 1000
    assert document.text[tables[1].start : tables[1].end].count("\n") == 19


@pytest.mark.parametrize(
    ("part", "content", "reason"),
    [
        ("workbook", "", "damaged"),
        ("worksheets__sheet2", "", "damaged"),
        ("sharedStrings", "", "damaged"),
        ("worksheets__sheet2", '<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>', "unsafe"),
        ("sharedStrings", "<a>" * 100_000, "unsafe"),
        ("worksheets__sheet2", " " * 60 * 2**20, "unsafe"),
        ("worksheets__sheet2", '<row><c t="s"><v>99999999999999999999</v></c></row>', "damaged"),
    ],
)
def test_missing_malformed_or_harmful_parts_are_refused(part: str, content: str, reason: str) -> None:
    with pytest.raises(ParseError) as refused:
        parse(xlsx(**{part: content}))
    assert refused.value.reason == reason
