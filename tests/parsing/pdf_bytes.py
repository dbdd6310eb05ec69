"""Writes small PDFs for tests: pages with text at given places, outlines, page labels, metadata, a password."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5
from typing import NamedTuple

_PADDING = bytes.fromhex("28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a")
_FILE_ID = b"0123456789abcdef"
_CATALOG, _PAGES, _HELVETICA, _ANY_SCRIPT, _INFO, _OUTLINE, _CMAP, _ENCRYPT = range(1, 9)
_FIRST_FREE = 9
_BOLD = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>"


class At(NamedTuple):
    """A line of text and where it begins, in points from the lower left corner of the page."""

    x: float
    y: float
    text: str
    size: float = 12
    bold: bool = False


class Entry(NamedTuple):
    """An entry of the outline; pages count from 1, levels from 0. The levels make the tree."""

    title: str
    page: int
    level: int = 0


def lines_at(x: float, y: float, lines: Sequence[str], leading: float = 14) -> list[At]:
    return [At(x, y - number * leading, line) for number, line in enumerate(lines)]


def make_pdf(
    pages: Sequence[Sequence[At | str]],
    *,
    outline: Sequence[Entry] = (),
    labels: str = "",
    info: dict[str, str] | None = None,
    password: str | None = None,
) -> bytes:
    """A page is a list of lines. `labels` is the inside of a /Nums array, such as `0 << /S /r >> 4 << /S /D >>`."""
    key = _encryption_key(password) if password is not None else None
    objects = {
        _HELVETICA: b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        _ANY_SCRIPT: b"<< /Type /Font /Subtype /Type0 /BaseFont /Any /Encoding /Identity-H /ToUnicode %d 0 R /DescendantFonts [<< /Type /Font "
        b"/Subtype /CIDFontType2 /BaseFont /Any /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /DW 600 "
        b"/FontDescriptor << /Type /FontDescriptor /FontName /Any /Flags 4 /Ascent 800 /Descent -200 /FontBBox [0 -200 1000 800] >> >>] >>" % _CMAP,
    }  # fmt: skip
    characters = _Characters()
    page_numbers: list[int] = []
    for page in pages:
        content = b"\n".join(_draw(item, characters) for item in _placed(page))
        number = _FIRST_FREE + 2 * len(page_numbers)
        objects[number] = (
            b"<< /Type /Page /Parent %d 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F1 %d 0 R /F2 %d 0 R /F3 %s >> >> >>"
            % (_PAGES, number + 1, _HELVETICA, _ANY_SCRIPT, _BOLD)
        )
        objects[number + 1] = _stream(content, number + 1, key)
        page_numbers.append(number)
    objects[_CMAP] = _stream(characters.cmap(), _CMAP, key)
    kids = b" ".join(b"%d 0 R" % number for number in page_numbers)
    objects[_PAGES] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (len(page_numbers), kids)
    objects[_INFO] = b"<< %s >>" % b" ".join(
        b"/%s %s" % (name.encode(), _string(value, _INFO, key)) for name, value in (info or {}).items()
    )
    objects.update(_outline(outline, page_numbers, _FIRST_FREE + 2 * len(page_numbers), key))
    numbering = f"/PageLabels << /Nums [{labels}] >>".encode() if labels else b""
    objects[_CATALOG] = b"<< /Type /Catalog /Pages %d 0 R /Outlines %d 0 R %s >>" % (_PAGES, _OUTLINE, numbering)
    if password is not None:
        objects[_ENCRYPT] = b"<< /Filter /Standard /V 1 /R 2 /P -1 /O <%s> /U <%s> >>" % (
            _owner_entry(password).hex().encode(),
            _rc4(_encryption_key(password), _PADDING).hex().encode(),
        )
    return _file(objects)


def _placed(page: Sequence[At | str]) -> list[At]:
    return [item if isinstance(item, At) else At(72, 720 - 14 * number, item) for number, item in enumerate(page)]


class _Characters:
    """The characters beyond Latin: code n of the second font is the n-th of them. Nothing is embedded, reading needs no
    glyphs.
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, character: str) -> int:
        return self._codes.setdefault(character, len(self._codes) + 1)

    def cmap(self) -> bytes:
        pairs = [
            f"<{code:04x}> <{character.encode('utf-16-be', 'surrogatepass').hex()}>"
            for character, code in self._codes.items()
        ]
        parts = [
            f"{len(pairs[at : at + 100])} beginbfchar\n" + "\n".join(pairs[at : at + 100]) + "\nendbfchar\n"
            for at in range(0, len(pairs), 100)
        ]
        return (
            "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Any def /CMapType 2 def\n"
            "1 begincodespacerange <0000> <ffff> endcodespacerange\n" + "".join(parts) + "endcmap end end"
        ).encode()


def _draw(item: At, characters: _Characters) -> bytes:
    if item.text.isascii():
        shown = item.text.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
        return f"BT /{'F3' if item.bold else 'F1'} {item.size} Tf {item.x} {item.y} Td ({shown}) Tj ET".encode()
    shown = "".join(f"{characters.code(character):04x}" for character in item.text)
    return f"BT /F2 {item.size} Tf {item.x} {item.y} Td <{shown}> Tj ET".encode()


def _outline(entries: Sequence[Entry], pages: Sequence[int], first: int, key: bytes | None) -> dict[int, bytes]:
    """Each entry is an object that knows its parent, its siblings and its first and last child."""
    parents = [_parent(entries, number) for number in range(len(entries))]
    children: dict[int, list[int]] = {}
    for number, parent in enumerate(parents):
        children.setdefault(parent, []).append(number)

    def links(parent: int) -> bytes:
        below = children.get(parent)
        return (
            b"/First %d 0 R /Last %d 0 R /Count %d" % (first + below[0], first + below[-1], len(below))
            if below
            else b""
        )

    objects = {_OUTLINE: b"<< /Type /Outlines %s >>" % links(-1)}
    for number, entry in enumerate(entries):
        siblings = children[parents[number]]
        place = siblings.index(number)
        after = b"/Next %d 0 R" % (first + siblings[place + 1]) if place + 1 < len(siblings) else b""
        parent = _OUTLINE if parents[number] < 0 else first + parents[number]
        objects[first + number] = b"<< /Title %s /Parent %d 0 R /Dest [%d 0 R /Fit] %s %s >>" % (
            _string(entry.title, first + number, key),
            parent,
            pages[entry.page - 1],
            after,
            links(number),
        )
    return objects


def _parent(entries: Sequence[Entry], number: int) -> int:
    return next((before for before in range(number - 1, -1, -1) if entries[before].level < entries[number].level), -1)


def _string(text: str, number: int, key: bytes | None) -> bytes:
    data = b"\xfe\xff" + text.encode("utf-16-be", "surrogatepass")
    return b"<%s>" % (_encrypted(data, number, key) if key else data).hex().encode()


def _stream(content: bytes, number: int, key: bytes | None) -> bytes:
    content = _encrypted(content, number, key) if key else content
    return b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content)


def _file(objects: dict[int, bytes]) -> bytes:
    out = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places = {}
    for number in sorted(objects):
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, objects[number])
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (max(objects) + 1)
    for number in range(1, max(objects) + 1):
        out += b"%010d 00000 n \n" % places[number] if number in places else b"0000000000 65535 f \n"
    encrypt = b"/Encrypt %d 0 R" % _ENCRYPT if _ENCRYPT in objects else b""
    identity = _FILE_ID.hex().encode()
    out += b"trailer\n<< /Size %d /Root %d 0 R /Info %d 0 R /ID [<%s> <%s>] %s >>\nstartxref\n%d\n%%%%EOF\n" % (
        max(objects) + 1,
        _CATALOG,
        _INFO,
        identity,
        identity,
        encrypt,
        table,
    )
    return bytes(out)


# Encryption after the standard handler of PDF 1.1: RC4 with 40 bits. Owner and user have the same password.


def _padded(password: str) -> bytes:
    return (password.encode("latin-1") + _PADDING)[:32]


def _owner_entry(password: str) -> bytes:
    return _rc4(md5(_padded(password)).digest()[:5], _padded(password))


def _encryption_key(password: str) -> bytes:
    permissions = (-1).to_bytes(4, "little", signed=True)
    return md5(_padded(password) + _owner_entry(password) + permissions + _FILE_ID).digest()[:5]


def _encrypted(data: bytes, number: int, key: bytes) -> bytes:
    return _rc4(md5(key + number.to_bytes(3, "little") + b"\0\0").digest()[:10], data)


def _rc4(key: bytes, data: bytes) -> bytes:
    state, swap = list(range(256)), 0
    for at in range(256):
        swap = (swap + state[at] + key[at % len(key)]) % 256
        state[at], state[swap] = state[swap], state[at]
    out, first, second = bytearray(), 0, 0
    for byte in data:
        first = (first + 1) % 256
        second = (second + state[first]) % 256
        state[first], state[second] = state[second], state[first]
        out.append(byte ^ state[(state[first] + state[second]) % 256])
    return bytes(out)
