"""E-mail: headers, text and names of attachments."""

from __future__ import annotations

import time
from email.message import EmailMessage

import pytest

from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
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
        ("paragraph", "Attachments: 회의록.pdf"),
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
    assert document.text == "Subject: x\n\nBig\nText & more\n"
    assert [block.kind for block in document.blocks] == ["paragraph", "heading", "paragraph"]


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
def test_bodies_as_they_are_found(data: bytes, text: str) -> None:
    assert parse(data).text == f"Subject: x\n\n{text}\n\n".replace("\n\n\n", "\n\n")


def test_a_letter_inside_a_letter_is_named_and_not_opened() -> None:
    outer, inner = EmailMessage(), letter()
    outer["Subject"] = "Fwd"
    outer.set_content("see below")
    outer.add_attachment(inner)
    assert "minutes" not in parse(outer.as_bytes()).text
    assert "Attachments: message/rfc822" in parse(outer.as_bytes()).text


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
def test_headers_made_to_harm_take_little_time(header: str) -> None:
    started = time.process_time()
    document = parse(header.encode("latin-1", "replace") + b"\n\ntext\n")
    assert document.text.endswith("text\n\n") or "text" in document.text
    assert time.process_time() - started < 1.0


def test_binary_is_no_letter() -> None:
    with pytest.raises(ParseError):
        parse(b"Subject: x\n\n\0\0")
