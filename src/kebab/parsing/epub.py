"""E-books: the chapters in reading order, each read like a page of HTML."""

from __future__ import annotations

from posixpath import dirname
from typing import NamedTuple
from urllib.parse import unquote

from kebab.analysis.language import language_of
from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.parsing.extracted_text import ExtractedText
from kebab.parsing.file_types import classify
from kebab.parsing.html import decode_page
from kebab.parsing.html_text import read_page
from kebab.parsing.office_parts import Properties, member_name
from kebab.parsing.safe_xml import read_xml
from kebab.parsing.titles import title_of
from kebab.parsing.zip_container import ZipContainer, damaged

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = frozenset(("application/xhtml+xml", "text/html", "application/x-dtbook+xml", ""))
_MOST_CHAPTERS = 5000


class EpubParser:
    version = "epub-2"
    keeps_lines = False
    isolated = True

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        container = ZipContainer(data)
        package_name = _package_name(container)
        package = _Package()
        read_xml(container.read(package_name), package)
        chapters = [
            member_name(dirname(package_name), unquote(href)) for href in package.reading_order()[:_MOST_CHAPTERS]
        ]
        _refuse_encrypted(container, chapters)
        extracted, missing = ExtractedText(), 0
        for chapter in chapters:
            if chapter in container:
                extracted.blank_line()
                extracted.begin_chapter()
                extracted.add_page(read_page(decode_page(container.read(chapter))[0]))
            else:
                missing += 1
        if chapters and missing == len(chapters):
            raise damaged("None of the chapters is in the file.")
        doc_type, format_ = classify(path)
        return ParsedDocument(
            text=extracted.text,
            title=title_of(package.property("title"), extracted.blocks, path),
            blocks=extracted.blocks,
            doc_type=doc_type,
            format=format_,
            lang=_primary(package.property("language")) or language_of(extracted.text),
            chapters=extracted.chapters,
            metadata={"author": author} if (author := package.property("creator")) else {},
            warnings=(f"{missing} of {len(chapters)} chapters are missing in the file",) if missing else (),
        )


def _primary(language: str) -> str:
    """ko-KR → ko; "" for what is no language."""
    primary = language.replace("_", "-").partition("-")[0].lower()
    return primary if primary.isascii() and primary.isalpha() and 2 <= len(primary) <= 3 else ""


def _package_name(container: ZipContainer) -> str:
    found = _Attributes("rootfile", "full-path")
    read_xml(container.read(_CONTAINER), found)
    if not found.values:
        raise damaged(f"{_CONTAINER} does not say where the book is.")
    return member_name("", found.values[0])


def _refuse_encrypted(container: ZipContainer, chapters: list[str]) -> None:
    """Fonts are often scrambled, which takes nothing from the text; chapters are encrypted by shops."""
    if _ENCRYPTION not in container:
        return
    encrypted = _Attributes("CipherReference", "URI")
    read_xml(container.read(_ENCRYPTION), encrypted)
    if {member_name("", unquote(uri)) for uri in encrypted.values} & set(chapters):
        raise ParseError(
            "The book is protected by its seller.",
            reason="encrypted",
            hint="Only books without copy protection can be read.",
        )


class _Attributes:
    """Collects one attribute of one kind of element."""

    def __init__(self, element: str, attribute: str) -> None:
        self.values: list[str] = []
        self._wanted = (element, attribute)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == self._wanted[0] and self._wanted[1] in attributes:
            self.values.append(attributes[self._wanted[1]])

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...


class _Item(NamedTuple):
    href: str
    media_type: str


class _Package:
    """Handles the package document: what the book is, what it holds, and in which order to read it."""

    def __init__(self) -> None:
        self._properties = Properties()
        self._items: dict[str, _Item] = {}
        self._spine: list[str] = []

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "item":
            self._items[attributes.get("id", "")] = _Item(attributes.get("href", ""), attributes.get("media-type", ""))
        elif name == "itemref":
            self._spine.append(attributes.get("idref", ""))
        # The first of several titles or authors is the main one.
        self._properties.start("" if name in self._properties.values else name, attributes)

    def end(self, name: str) -> None:
        self._properties.end(name)

    def text(self, data: str) -> None:
        self._properties.text(data)

    def property(self, name: str) -> str:
        return " ".join(self._properties.values.get(name, "").split())

    def reading_order(self) -> list[str]:
        """Each page once; a book that repeats a chapter says nothing new."""
        items = [self._items[id_] for id_ in dict.fromkeys(self._spine) if id_ in self._items]
        return [item.href for item in items if item.media_type.lower() in _PAGES]
