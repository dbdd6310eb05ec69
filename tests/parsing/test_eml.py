"""E-mail: headers, text and names of attachments."""

from __future__ import annotations

import base64
import quopri
import time
from email.message import EmailMessage
from email.policy import SMTPUTF8

import pytest

from kebab.chunking.by_structure import StructureChunker
from kebab.config.settings import ChunkingSettings
from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.core.text import LineTable
from kebab.parsing.registry import parser_for


def parse(data: bytes) -> ParsedDocument:
    return parser_for("a.eml").parse(data, "folder/a.eml")


def letter() -> EmailMessage:
    made = EmailMessage()
    made["From"] = "김철수 <kim@example.org>"
    made["To"] = "Ann <ann@example.org>, bob@example.org"
    made["Date"] = "Fri, 31 May 2024 18:30:00 +0900"
    made["Subject"] = "회의록: minutes of the meeting"
    made.set_content("Hello,\n\nthe minutes\nare attached.\n\n> what you\n> asked\n\n안녕히\n")
    made.add_alternative("<p>Hello from <b>HTML</b></p>", subtype="html")
    made.add_attachment(b"%PDF", maintype="application", subtype="pdf", filename="회의록.pdf")
    return made


def test_a_letter_gives_headers_text_and_names_of_attachments() -> None:
    document = parse(letter().as_bytes())
    assert [(block.kind, document.text[block.start : block.end]) for block in document.blocks] == [
        (
            "paragraph",
            "From: 김철수 <kim@example.org>\nTo: Ann <ann@example.org>, bob@example.org\nDate: Fri, 31 May 2024 18:30:00 +0900\nSubject: 회의록: minutes of the meeting",
        ),
        ("paragraph", "Hello,"),
        ("paragraph", "the minutes\nare attached."),
        ("quote", "> what you\n> asked"),
        ("paragraph", "안녕히"),
        ("paragraph", "Attachment: 회의록.pdf"),
    ]
    assert (document.title, document.date, document.doc_type, document.format) == (
        "회의록: minutes of the meeting",
        "2024-05-31T09:30:00",
        "note",
        "eml",
    )
    assert document.metadata["from"] == "김철수 <kim@example.org>"


def test_without_plain_text_the_html_is_read() -> None:
    made = EmailMessage()
    made["Subject"] = "x"
    made.set_content("<h1>Big</h1>\n<p>Text\n&amp; more</p>", subtype="html")
    document = parse(made.as_bytes())
    assert [(block.kind, " ".join(document.text[block.start : block.end].split())) for block in document.blocks] == [
        ("paragraph", "Subject: x"),
        ("heading", "Big"),
        ("paragraph", "Text & more"),
    ]
    lines = made.as_bytes().split(b"\n")
    assert b"Big" in lines[document.text.split("\n").index("Big ")]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"Subject: x\nContent-Type: text/plain; charset=euc-kr\n\n" + "한글".encode("euc-kr"), "한글"),
        (b"Subject: x\nContent-Type: text/plain; charset=nothing\n\nwords", "words"),
        (b"Subject: x\nContent-Type: text/plain; charset=unicode_escape\n\na\\qb", "a\\qb"),
        (b"Subject: x\nContent-Type: text/plain; charset=utf-8\n\nbroken \xff byte", "broken \ufffd byte"),
        (b"Subject: x\nContent-Transfer-Encoding: base64\n\nd29yZHM", "words"),
        (b"Subject: x\nContent-Transfer-Encoding: x-uuencode\n\nnot uuencoded", "not uuencoded"),
        (b"Subject: x\nContent-Type: multipart/mixed\n\nno boundary", "no boundary"),
    ],
)
def test_bodies_in_every_encoding_are_read(data: bytes, text: str) -> None:
    assert parse(data).text == "Subject: x".ljust(10) + "\n" * data.count(b"\n") + text


SENTENCES = (
    "It was a long meeting that nobody wanted, and yet it took place as it does every week in the room upstairs. " * 3
)
PARAGRAPHS = f"First line here.\n\n{SENTENCES.rstrip()}\nthe short end of it.\n\n> 인용한 줄이다\n> and another\n\n{'한글 문장이 이어진다 ' * 9}\n끝이다.\n"


def cited(document: ParsedDocument, data: bytes) -> list[tuple[str, bytes]]:
    """Each block with the lines of the file that its span names."""
    table, lines = LineTable(document.text), data.splitlines(keepends=True)
    found = []
    for block in document.blocks:
        first, last = table.lines_of(block.start, block.end)
        found.append((document.text[block.start : block.end], b"".join(lines[first - 1 : last])))
    return found


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("encoding", ["8bit", "quoted-printable", "base64"])
@pytest.mark.parametrize("inside", [False, True])
def test_a_passage_is_cited_by_the_lines_of_the_file_that_hold_it(ending: bytes, encoding: str, inside: bool) -> None:
    made = EmailMessage(policy=SMTPUTF8.clone(linesep="\n"))
    made["Received"] = "by somebody\t for somebody else"
    made["Subject"] = "회의"
    made["X-Nothing"] = "First line here."
    made["To"] = "kim@example.org"
    made.set_content(PARAGRAPHS, cte=encoding)
    if inside:
        made.add_alternative("<p>First line here.</p>", subtype="html")
        made.add_attachment(b"1234" * 2000, maintype="application", subtype="pdf", filename="a.pdf")
        made.add_attachment(b"First line here.\n", maintype="application", subtype="octet-stream", filename="b.bin")
    data = made.as_bytes().replace(b"\r\n", b"\n").replace(b"\n", ending)
    document = parse(data)
    assert document.text.count("\n") == data.count(b"\n")
    (headers, header_lines), *blocks = cited(document, data)
    assert headers.split() == ["Subject:", "회의", "To:", "kim@example.org"]
    assert header_lines.startswith(b"Subject:")
    assert b"\nTo: kim@example.org" in header_lines.replace(b"\r", b"")
    paragraphs = [" ".join(paragraph.split()) for paragraph in PARAGRAPHS.split("\n\n")]
    attached = ["Attachment: a.pdf", "Attachment: b.bin"] if inside else []
    assert [" ".join(text.split()) for text, _ in blocks] == paragraphs + attached
    for (_, source), paragraph in zip(blocks, paragraphs, strict=False):
        if encoding == "base64":
            assert source.strip() in base64.encodebytes(PARAGRAPHS.encode()).replace(b"\n", ending)
        else:
            written = quopri.decodestring(source) if encoding == "quoted-printable" else source
            assert " ".join(written.decode().split()) == paragraph
    for (_, source), name in zip(blocks[len(paragraphs) :], (b"a.pdf", b"b.bin"), strict=False):
        assert name in source


def test_html_is_cited_by_the_lines_of_the_file_that_hold_it() -> None:
    page = (
        "<html><body>\n"
        + "".join(f"<h2>제목 {n}</h2><p>{SENTENCES} number {n}.</p>\n" for n in range(3))
        + "</body></html>\n"
    )
    for encoding in ("quoted-printable", "base64"):
        made = EmailMessage()
        made["Subject"] = "x"
        made.set_content(page, subtype="html", cte=encoding)
        data = made.as_bytes()
        headings = [(text, source) for text, source in cited(parse(data), data) if text.startswith("제목")]
        assert [" ".join(text.split()) for text, _ in headings] == ["제목 0", "제목 1", "제목 2"]
        for number, (_, source) in enumerate(headings):
            decoded = quopri.decodestring(source) if encoding == "quoted-printable" else base64.b64decode(source)
            assert f"{number}</h2>".encode() in decoded or f"제목 {number}".encode() in decoded


def test_text_far_below_other_text_is_a_passage_of_its_own() -> None:
    made = letter()
    made.add_attachment(b"1234" * 4000, maintype="application", subtype="zip", filename="large.zip")
    made.add_attachment(b"1234", maintype="application", subtype="zip", filename="last.zip")
    chunks = StructureChunker(ChunkingSettings()).chunk(parse(made.as_bytes()))
    assert len(chunks) == 2
    assert "large.zip" in chunks[0].text
    assert chunks[1].text == "Attachment: last.zip"


def test_a_body_with_a_wrong_encoding_is_read_within_the_lines_of_the_file() -> None:
    for encoding in (b"base64", b"quoted-printable"):
        for kind in (b"plain", b"html"):
            data = (
                b"Content-Type: text/%s\nContent-Transfer-Encoding: %s\n\n" % (kind, encoding)
                + "한글 <b>x</b>\n\n=EA\n!!\nend".encode()
            )
            document = parse(data)
            assert document.text.count("\n") == data.count(b"\n")


def test_a_letter_inside_a_letter_is_named_and_not_opened() -> None:
    outer, inner = EmailMessage(), letter()
    outer["Subject"] = "Fwd"
    outer.set_content("see below")
    outer.add_attachment(inner)
    assert "minutes" not in parse(outer.as_bytes()).text
    assert "Attachment: message/rfc822" in parse(outer.as_bytes()).text


def nested(depth: int) -> bytes:
    opening = b"".join(b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (n, n) for n in range(depth))
    return b"Subject: x\n" + opening + b"\n\ntext"


@pytest.mark.parametrize("depth", [30, 900, 100_000])
def test_endless_nesting_is_refused(depth: int) -> None:
    with pytest.raises(ParseError) as refused:
        parse(nested(depth))
    assert refused.value.reason == "unsafe"


@pytest.mark.parametrize(
    "header",
    ["Subject: " + "=?" * 100_000, "Subject: =?utf-8?b?!!!?=", "Subject: =?nothing?q?x?=", "Date: never", "Date: Fri, 31 May 99999999 18:30:00 +0900",
     "To: " + "<" * 100_000, "To: " + "(" * 100_000, "Subject: \udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
     "Content-Type: text/plain; charset*=x''%ff", "Content-Type: ;;;=\"", "Content-Disposition: attachment; filename*0*=a; filename*1=b"],
)  # fmt: skip
def test_hostile_headers_take_little_time(header: str) -> None:
    started = time.process_time()
    document = parse(header.encode("latin-1", "replace") + b"\n\ntext\n")
    assert document.text.endswith("text\n\n") or "text" in document.text
    assert time.process_time() - started < 1.0


def test_binary_is_no_letter() -> None:
    with pytest.raises(ParseError):
        parse(b"Subject: x\n\n\0\0")
