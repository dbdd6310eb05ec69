"""Hostile zip files and XML."""

from __future__ import annotations

import io
import time
import zipfile

import pytest

from kebab.core.errors import ParseError
from kebab.parsing.zipped_xml import XmlHandler, ZipContainer, part_name, read_xml


def pack(parts: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed.getvalue()


def bomb(name: str, size: int = 2**30) -> bytes:
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(name, "w", force_zip64=True) as member,
    ):
        for _ in range(size // 2**20):
            member.write(bytes(2**20))
    return packed.getvalue()


class Recorder(XmlHandler):
    def __init__(self) -> None:
        self.events: list[object] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.events.append((name, attributes))

    def end(self, name: str, text: str) -> None:
        self.events.append((name, text))


def refused(data: bytes) -> str:
    with pytest.raises(ParseError) as error:
        read_xml(data, Recorder())
    return error.value.reason


def test_members_are_read_by_name() -> None:
    container = ZipContainer(pack({"a/b.xml": b"text"}))
    assert "a/b.xml" in container
    assert container.read("a/b.xml") == b"text"
    with pytest.raises(ParseError, match="missing"):
        container.read("other.xml")


def test_a_zip_bomb_is_refused_while_it_is_unpacked() -> None:
    container = ZipContainer(bomb("word/document.xml"))
    started = time.process_time()
    with pytest.raises(ParseError) as error:
        container.read("word/document.xml")
    assert error.value.reason == "unsafe"
    assert time.process_time() - started < 5.0


def test_many_parts_that_are_large_together_are_refused() -> None:
    container = ZipContainer(pack({f"{n}.xml": bytes(9 * 2**20) for n in range(3)}))
    container.read("0.xml")
    with pytest.raises(ParseError) as error:
        container.read("1.xml")
        container.read("2.xml")
    assert error.value.reason == "unsafe"


def test_too_many_members_are_refused() -> None:
    with pytest.raises(ParseError) as error:
        ZipContainer(pack({str(n): b"" for n in range(20_001)}, zipfile.ZIP_STORED))
    assert error.value.reason == "unsafe"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "damaged"),
        (b"PK\x03\x04 and nothing more", "damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 100 + "EncryptedPackage".encode("utf-16-le"), "encrypted"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 100 + "WordDocument".encode("utf-16-le"), "damaged"),
    ],
)
def test_a_container_that_cannot_be_opened_is_refused_with_a_reason(data: bytes, reason: str) -> None:
    with pytest.raises(ParseError) as error:
        ZipContainer(data)
    assert error.value.reason == reason


def test_a_member_with_a_password_or_a_wrong_checksum_is_refused_with_a_reason() -> None:
    data = pack({"a": b"some text that is long enough"}, zipfile.ZIP_STORED)
    central = data.rindex(b"PK\x01\x02")
    encrypted = bytearray(data)
    encrypted[6] |= 1
    encrypted[central + 8] |= 1
    with pytest.raises(ParseError) as error:
        ZipContainer(bytes(encrypted)).read("a")
    assert error.value.reason == "encrypted"
    with pytest.raises(ParseError) as error:
        ZipContainer(data.replace(b"some text", b"some TEXT")).read("a")
    assert error.value.reason == "damaged"


@pytest.mark.parametrize(
    "name", ["../evil", "../../etc/passwd", "/etc/passwd", "a/../../b", "..\\evil", "C:/evil", "\\evil"]
)
def test_names_that_lead_outside_are_refused(name: str) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
        archive.writestr(name, "root")
    with pytest.raises(ParseError, match="leads out of it") as caught:
        ZipContainer(packed.getvalue())
    assert caught.value.reason == "unsafe"


def test_a_reference_that_leads_outside_is_refused() -> None:
    with pytest.raises(ParseError, match="leads out of it"):
        part_name("word", "../../../etc/passwd")
    assert part_name("word", "../docProps/core.xml") == "docProps/core.xml"
    assert part_name("word", "/ppt/a.xml") == "ppt/a.xml"
    assert part_name("", "word/document.xml") == "word/document.xml"


def test_names_have_no_namespace_except_the_id_of_a_relationship() -> None:
    recorder = Recorder()
    read_xml(
        b'<a:x xmlns:a="urn:a" xmlns:r="http://x/relationships" a:val="1" id="2" r:id="3"><y>t&amp;</y></a:x>', recorder
    )
    assert recorder.events == [("x", {"val": "1", "id": "2", "r:id": "3"}), ("y", {}), ("y", "t&"), ("x", "")]


def test_entity_bombs_and_outside_entities_are_refused() -> None:
    laughs = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    assert refused(f'<!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]><x>&l9;</x>'.encode()) == "unsafe"
    assert refused(b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>') == "unsafe"
    assert refused(b"<!DOCTYPE x><x/>") == "unsafe"


def test_endless_depth_is_refused() -> None:
    assert refused(b"<a>" * 100_000 + b"</a>" * 100_000) == "unsafe"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<a>",
        b"<a>&unknown;</a>",
        b"\xff\xfe\x00",
        b"<?xml version='1.0' encoding='nothing'?><a/>",
        b"<?xml version='1.0' encoding='euc-kr'?><a/>",
    ],
)
def test_malformed_xml_is_damaged(data: bytes) -> None:
    assert refused(data) == "damaged"
