"""What Word, PowerPoint and Excel files have in common: parts that name each other, and properties of the document."""

from __future__ import annotations

from collections.abc import Sequence
from posixpath import dirname, join, normpath
from typing import NamedTuple

from kebab.analysis.language import language_of
from kebab.core.documents import ParsedDocument
from kebab.core.errors import ParseError
from kebab.parsing.extracted_text import ExtractedText
from kebab.parsing.file_types import classify
from kebab.parsing.safe_xml import read_xml
from kebab.parsing.titles import title_of
from kebab.parsing.zip_container import ZipContainer, leads_out, unsafe


class Relationship(NamedTuple):
    kind: str
    """The last word of its type: slide, notesSlide, styles, …"""
    part: str
    """The name of the member it leads to."""


def relationships(container: ZipContainer, part: str) -> dict[str, Relationship]:
    """By their ids, those of one part; "" is the file as a whole. Links to anything outside are left out."""
    name = join(dirname(part), "_rels", part.rpartition("/")[2] + ".rels")
    if name not in container:
        return {}
    handler = _Relationships(dirname(part))
    read_xml(container.read(name), handler)
    return handler.found


def first_of_kind(found: dict[str, Relationship], kind: str, otherwise: str) -> str:
    return next((relationship.part for relationship in found.values() if relationship.kind == kind), otherwise)


def member_name(folder: str, target: str) -> str:
    """Where a target seen from a folder of the container leads."""
    if not target.startswith("/") and leads_out(join(folder, target)):
        raise unsafe(f"A part of the file refers to {target[:80]!r}, which leads out of it.")
    return normpath(join("/", folder, target)).lstrip("/")


class _Relationships:
    def __init__(self, folder: str) -> None:
        self.found: dict[str, Relationship] = {}
        self._folder = folder

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            kind = attributes.get("Type", "").rpartition("/")[2]
            self.found[attributes.get("Id", "")] = Relationship(
                kind, member_name(self._folder, attributes.get("Target", ""))
            )

    def end(self, name: str) -> None: ...

    def text(self, data: str) -> None: ...


class Properties:
    """Title, author and date, as docProps/core.xml and the metadata of an e-book have them: one element each."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self._name = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:  # noqa: ARG002 - for readers to override
        self._name = name

    def end(self, name: str) -> None:  # noqa: ARG002 - as above
        self._name = ""

    def text(self, data: str) -> None:
        if self._name and len(self.values.get(self._name, "")) < 1000:
            self.values[self._name] = self.values.get(self._name, "") + data


def core_properties(container: ZipContainer) -> tuple[str, dict[str, str]]:
    """The title, and what else is worth keeping. Properties that cannot be read are no reason to lose the document."""
    handler = Properties()
    try:
        read_xml(container.read("docProps/core.xml"), handler)
    except ParseError as error:
        if error.reason == "unsafe":
            raise
    found = {key: " ".join(value.split()) for key, value in handler.values.items()}
    kept = {"creator": "author", "created": "created", "keywords": "keywords", "subject": "subject"}
    return found.get("title", ""), {name: found[key] for key, name in kept.items() if found.get(key)}


def office_document(
    container: ZipContainer,
    extracted: ExtractedText,
    path: str,
    *,
    headings_title: bool = True,
    paged: bool = False,
    warnings: Sequence[str] = (),
) -> ParsedDocument:
    """What was extracted, with what the file says of itself. `headings_title`: whether the first heading may stand for
    a missing title.
    """
    title, metadata = core_properties(container)
    doc_type, format_ = classify(path)
    return ParsedDocument(
        text=extracted.text,
        title=title_of(title, extracted.blocks if headings_title else (), path),
        blocks=extracted.blocks,
        doc_type=doc_type,
        format=format_,
        lang=language_of(extracted.text),
        metadata=dict(metadata),
        warnings=tuple(warnings),
        paged=paged,
        chapters=() if paged else extracted.chapters,
    )
