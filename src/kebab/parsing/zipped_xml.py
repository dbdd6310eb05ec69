"""Reads zip files of XML parts: Word, PowerPoint and Excel files and e-books.

The files may be hostile. Nothing is written to disk, so the name of a part is a key and no path; archives inside are
not opened. Limits count the unpacked bytes, not the sizes that headers state. XML with a document type, with entities
or with deep nesting is refused, and nothing is fetched.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence
from io import BytesIO
from posixpath import dirname, join, normpath
from typing import NamedTuple
from xml.parsers.expat import ExpatError, ParserCreate
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile

from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.parsing.building import ExtractedText, document, title_of

_OLE = b"\xd0\xcf\x11\xe0"
_OLD_FORMATS = tuple(name.encode("utf-16-le") for name in ("WordDocument", "PowerPoint Document", "Workbook"))
_MOST_PARTS = 20_000
_MOST_BYTES = 200 * 2**20
_MOST_PART_BYTES = 100 * 2**20
_FREE_BYTES = 16 * 2**20
"""Up to here the compression ratio does not count: repeated small tables compress very well."""
_MOST_RATIO = 150
_STEP = 2**18
_DEEPEST = 1000
_REPETITIONS = frozenset(("Fallback", "rPh"))
"""Elements that repeat text: for older programs, and as the pronunciation of characters."""
_LONGEST_PROPERTY = 8192
_DAMAGED = (
    BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    OSError,
    RuntimeError,
    LookupError,
    OverflowError,
    EOFError,
)


class Relationship(NamedTuple):
    kind: str
    """The last word of its type: slide, notesSlide, styles, …"""
    part: str
    """The name of the part it leads to."""


class ZipContainer:
    """The parts of a zip file. Raises ParseError if the bytes are no zip file, or encrypted."""

    def __init__(self, data: bytes) -> None:
        if data.startswith(_OLE):  # Office puts encrypted files into the container of its old formats
            if any(name in data for name in _OLD_FORMATS):
                raise damaged("This is a file of Office 2003 or before, with a new extension.")
            raise _encrypted()
        self._allowed = min(_MOST_BYTES, max(_FREE_BYTES, _MOST_RATIO * len(data)))
        self._taken = 0
        self._relationships: dict[str, dict[str, Relationship]] = {}
        try:
            self._zip = ZipFile(BytesIO(data))
            self._names = frozenset(self._zip.namelist())
        except _DAMAGED as error:
            raise damaged("The file is no zip archive, or its end is missing.") from error
        if len(self._names) > _MOST_PARTS:
            raise unsafe(f"The file holds more than {_MOST_PARTS:,} parts.")
        outside = next((name for name in sorted(self._names) if _leads_out(name)), None)
        if outside is not None:
            raise unsafe(f"The file holds a part named {outside[:80]!r}, which leads out of it.")

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def read(self, name: str) -> bytes:
        """The bytes of a part; ParseError if it is missing."""
        if name not in self._names:
            raise damaged(f"The part {name} is missing.")
        part = self._zip.getinfo(name)
        if part.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise damaged(f"The part {name} is packed in a way that none of these formats use.")
        if part.flag_bits & 1:
            raise _encrypted()
        steps, length = [], 0
        try:
            with self._zip.open(name) as file:
                while step := file.read(_STEP):
                    length += len(step)
                    self._taken += len(step)
                    if length > _MOST_PART_BYTES or self._taken > self._allowed:
                        raise unsafe(f"The part {name} unpacks to far more than the file itself.")
                    steps.append(step)
        except _DAMAGED as error:
            raise damaged(f"The part {name} cannot be unpacked.") from error
        return b"".join(steps)

    def walk(self, name: str, handler: XmlHandler) -> None:
        """Calls the handler for every XML element of a part."""
        read_xml(self.read(name), handler)

    def elements(self, name: str, *wanted: str) -> list[XmlElement]:
        """All XML elements of a part with these names, in the order in which they end."""
        handler = _Elements(wanted)
        self.walk(name, handler)
        return handler.found

    def relationships(self, part: str) -> dict[str, Relationship]:
        """The relationships of a part by their ids; "" is the file as a whole. External links are left out."""
        if part not in self._relationships:
            folder = dirname(part)
            name = join(folder, "_rels", part.rpartition("/")[2] + ".rels")
            listed = self.elements(name, "Relationship") if name in self else []
            self._relationships[part] = {
                each.get("Id", ""): Relationship(
                    each.get("Type", "").rpartition("/")[2], part_name(folder, each.get("Target", ""))
                )
                for _, each, _ in listed
                if each.get("TargetMode") != "External"
            }
        return self._relationships[part]

    def related(self, part: str, kind: str, otherwise: str) -> str:
        """The part that the first relationship of this kind leads to, or `otherwise`."""
        return next((each.part for each in self.relationships(part).values() if each.kind == kind), otherwise)


def _leads_out(name: str) -> bool:
    path = name.replace("\\", "/")
    return path.startswith("/") or normpath(path).startswith("../") or path[1:3] == ":/"


def part_name(folder: str, target: str) -> str:
    """The name in the archive of the part that `target`, a path relative to `folder`, leads to."""
    if not target.startswith("/") and _leads_out(join(folder, target)):
        raise unsafe(f"A part of the file refers to {target[:80]!r}, which leads out of it.")
    return normpath(join("/", folder, target)).lstrip("/")


def _encrypted() -> ParseError:
    return ParseError("The file is encrypted.", reason="encrypted", hint="Save it without a password.")


def damaged(message: str) -> ParseError:
    hint = "Open it in the program it comes from and save it again."
    return ParseError(message, reason="damaged", hint=hint)


def unsafe(message: str) -> ParseError:
    hint = "If you trust the file, save it again from the program it comes from, or as PDF."
    return ParseError(message, reason="unsafe", hint=hint)


class XmlHandler:
    """Receives what `read_xml` reads. Each method does nothing unless overridden."""

    def start(self, name: str, attributes: dict[str, str]) -> None: ...

    def end(self, name: str, text: str) -> None:
        """`text` is all text of an element that contains no other."""


def read_xml(data: bytes, handler: XmlHandler) -> None:
    """Calls the handler for every element in order; raises ParseError for malformed or dangerous XML.

    Names come without their namespaces: these formats use each name for one thing only. The exception is `r:id`, which
    keeps its prefix because it occurs beside `id`. Elements in `_REPETITIONS` are left out.
    """
    names: dict[str, str] = {}
    pieces: list[str] = []
    depth = skipped = 0

    def local(name: str) -> str:
        known = names.get(name)
        if known is None:
            space, _, known = name.rpartition(" ")
            if known == "id" and space.endswith("/relationships"):
                known = "r:id"
            names[name] = known
        return known

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, skipped
        depth += 1
        if depth > _DEEPEST:
            raise unsafe("The XML inside is nested too deeply.")
        pieces.clear()
        skipped += skipped > 0 or local(name) in _REPETITIONS
        if not skipped:
            handler.start(local(name), {local(key): value for key, value in attributes.items()})

    def end(name: str) -> None:
        nonlocal depth, skipped
        depth -= 1
        if not skipped:
            handler.end(local(name), "".join(pieces))
        skipped -= skipped > 0
        pieces.clear()

    def refuse(*_: object) -> None:
        raise unsafe("The XML inside declares a document type, which these formats never do.")

    parser = ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = pieces.append
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)  # all at once: old versions of expat read an unfinished token again with every piece
    except (ExpatError, ValueError, LookupError) as error:
        raise damaged(f"The XML inside is not well-formed: {error}.") from error


class XmlElement(NamedTuple):
    name: str
    attributes: dict[str, str]
    text: str


class _Elements(XmlHandler):
    def __init__(self, names: Sequence[str]) -> None:
        self.found: list[XmlElement] = []
        self._names = names
        self._open: list[dict[str, str]] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:  # noqa: ARG002 - as in XmlHandler
        self._open.append(attributes)

    def end(self, name: str, text: str) -> None:
        attributes = self._open.pop()
        if name in self._names:
            self.found.append(XmlElement(name, attributes, text))


def properties(found: Iterable[XmlElement]) -> dict[str, str]:
    """The text of the first element of each name, on one line. The first of several titles or authors counts."""
    values: dict[str, str] = {}
    for element in found:
        if element.text:
            values.setdefault(element.name, " ".join(element.text[:_LONGEST_PROPERTY].split()))
    return values


def office_document(
    container: ZipContainer,
    extracted: ExtractedText,
    path: str,
    *,
    headings_title: bool = True,
    paged: bool = False,
    warnings: Sequence[str] = (),
) -> ParsedDocument:
    """Makes a document of the extracted text and the properties of the file. With `headings_title`, the heading at the
    top replaces a missing title.
    """
    names = {"creator": "author", "created": "created", "keywords": "keywords", "subject": "subject"}
    known: dict[str, str] = {}
    try:
        known = properties(container.elements("docProps/core.xml", "title", *names))
    except ParseError as error:  # properties that cannot be read are no reason to lose the document
        if error.reason == "unsafe":
            raise
    return document(
        path,
        extracted.text,
        extracted.blocks,
        title_of(known.get("title", ""), path, extracted.text, extracted.blocks if headings_title else ()),
        metadata={name: value for key, name in names.items() if (value := known.get(key))},
        warnings=tuple(warnings),
        paged=paged,
        chapters=() if paged else tuple(extracted.chapters),
    )
