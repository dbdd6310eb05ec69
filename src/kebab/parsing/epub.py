"""Parses e-books: the chapters in reading order, each as a page of HTML."""

from __future__ import annotations

from posixpath import dirname
from urllib.parse import unquote

from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.parsing.building import ExtractedText, FileParser, document, title_of
from kebab.parsing.html import PageReader, decode_page
from kebab.parsing.zipped_xml import XmlElement, ZipContainer, damaged, part_name, properties

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = frozenset(("application/xhtml+xml", "text/html", "application/x-dtbook+xml", ""))
_MOST_CHAPTERS = 5000


class EpubParser(FileParser):
    version = "epub-3"
    keeps_lines = False

    def parse(self, data: bytes, path: str) -> ParsedDocument:
        container = ZipContainer(data)
        package_name = _package_name(container)
        package = container.elements(package_name, "item", "itemref", "title", "creator", "language")
        known = properties(package)
        folder = dirname(package_name)
        chapters = [part_name(folder, unquote(href)) for href in _reading_order(package)[:_MOST_CHAPTERS]]
        _refuse_encrypted(container, chapters)
        extracted, missing = ExtractedText(), 0
        for chapter in chapters:
            if chapter in container:
                extracted.blank_line()
                extracted.begin_chapter()
                _add_page(extracted, decode_page(container.read(chapter))[0])
            else:
                missing += 1
        if chapters and missing == len(chapters):
            raise damaged("None of the chapters is in the file.")
        return document(
            path,
            extracted.text,
            extracted.blocks,
            title_of(known.get("title", ""), path, extracted.text, extracted.blocks),
            lang=_primary(known.get("language", "")),
            chapters=tuple(extracted.chapters),
            metadata={"author": author} if (author := known.get("creator")) else {},
            warnings=(f"{missing} of {len(chapters)} chapters are missing in the file",) if missing else (),
        )


def _add_page(extracted: ExtractedText, source: str) -> None:
    """Adds the blocks of a page. Each paragraph becomes one line, because citations do not name lines of its source."""
    page = PageReader(source).read()
    for block in page.blocks:
        text = page.text[block.start : block.end]
        if block.kind != "code":
            lines = (" ".join(line.split()) for line in text.split("\n"))
            text = ("\n" if block.kind == "table" else " ").join(line for line in lines if line)
        extracted.add(block.kind, text, block.level)


def _primary(language: str) -> str:
    """The primary language of a tag (ko-KR → ko), or an empty string if it is malformed."""
    primary = language.replace("_", "-").partition("-")[0].lower()
    return primary if primary.isascii() and primary.isalpha() and 2 <= len(primary) <= 3 else ""


def _package_name(container: ZipContainer) -> str:
    for file in container.elements(_CONTAINER, "rootfile"):
        if "full-path" in file.attributes:
            return part_name("", file.attributes["full-path"])
    raise damaged(f"{_CONTAINER} does not say where the book is.")


def _refuse_encrypted(container: ZipContainer, chapters: list[str]) -> None:
    """Raises ParseError if a chapter is encrypted, as in books from shops. Encrypted fonts do not matter."""
    if _ENCRYPTION not in container:
        return
    encrypted = [element.attributes for element in container.elements(_ENCRYPTION, "CipherReference")]
    if {part_name("", unquote(each["URI"])) for each in encrypted if "URI" in each} & set(chapters):
        hint = "Only books without copy protection can be read."
        raise ParseError("The book is protected by its seller.", reason="encrypted", hint=hint)


def _reading_order(package: list[XmlElement]) -> list[str]:
    """The addresses of the pages in reading order, each once."""
    items = {element.attributes.get("id", ""): element.attributes for element in package if element.name == "item"}
    spine = [element.attributes.get("idref", "") for element in package if element.name == "itemref"]
    pages = [items[id_] for id_ in dict.fromkeys(spine) if id_ in items]
    return [page.get("href", "") for page in pages if page.get("media-type", "").lower() in _PAGES]
