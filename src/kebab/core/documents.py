"""Sources, documents, blocks, chunks and their spans; ids that are the same on every machine."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Literal, NamedTuple

from kebab.core.citations import PageSpan, Span, lines_of
from kebab.core.paths import file_name, file_stem
from kebab.core.text import LineTable, content_hash, cut_to_tokens


class Block(NamedTuple):
    """A structural piece of a document, as a half-open range of its text; always whole lines."""

    kind: str
    """heading, paragraph, code, table, list, quote, html, rule, or symbol (a function, class or method)."""
    start: int
    end: int
    level: int = 0
    title: str = ""
    """The words of a heading, the language of a code block, the full name of a symbol (Class.method)."""


@dataclass(frozen=True)
class ParsedDocument:
    """The result of parsing one file. Blocks are ranges of `text`, in order.

    For a text format, `text` is the file's text, or at least has the same number of lines, so that line numbers agree.
    For other formats it is the extracted text. If `paged`, form feeds separate the pages, and no block crosses one.
    """

    text: str
    title: str
    blocks: tuple[Block, ...]
    doc_type: str
    format: str
    lang: str
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    trust_level: str | None = None
    date: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    encoding: str = "utf-8"
    paged: bool = False
    page_labels: tuple[str | None, ...] = ()
    """The printed number of each page, or None where it is unknown."""
    chapters: tuple[int, ...] = ()
    """Offsets in `text` where the chapters of a book begin, or similar boundaries that no passage may cross."""
    code_lang: str | None = None
    """The programming language, if passages cite symbols."""


_LONGEST_NAME = 300
_MOST_NAMES = 200


def bounded(document: ParsedDocument) -> ParsedDocument:
    """The document with long names shortened and surplus tags and aliases removed; its text is unchanged.

    Title and headings are stored with every passage, and a line of dashes can turn a pasted log into a heading.
    """
    names = (document.title, *document.tags, *document.aliases)
    too_many = len(document.tags) > _MOST_NAMES or len(document.aliases) > _MOST_NAMES
    if not too_many and all(
        len(name) <= _LONGEST_NAME for name in (*names, *(block.title for block in document.blocks))
    ):
        return document
    tags = tuple(tag for tag in document.tags if len(tag) <= _LONGEST_NAME)[:_MOST_NAMES]
    lost = len(document.tags) - len(tags) + max(0, len(document.aliases) - _MOST_NAMES)
    return replace(
        document,
        title=_cut(document.title),
        blocks=tuple(block._replace(title=_cut(block.title)) for block in document.blocks),
        tags=tags,
        aliases=tuple(map(_cut, document.aliases[:_MOST_NAMES])),
        warnings=(
            *document.warnings,
            *([f"{lost:,} of its tags and aliases are left out: too many, or too long"] if lost else []),
        ),
    )


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1].rstrip() + "…"


PAGE_BREAK = "\f"


def page_text(text: str, page: int) -> str | None:
    """The text of one page of a paged document, or None if it has no such page. Pages count from 1."""
    pages = text.split(PAGE_BREAK)
    return pages[page - 1] if 1 <= page <= len(pages) else None


def stands_there(text: str, start: int, end: int, span: Span, body: str, lines: LineTable) -> bool:
    """Whether `text` is at these offsets of `body`, and on the lines or page of its span. `lines` belongs to `body`."""
    if body[start:end] != text:
        return False
    if isinstance(span, PageSpan):
        return text in (page_text(body, span.page) or "")
    cited = lines_of(span)
    return cited is None or text in lines.slice(*cited)


class Chunk(NamedTuple):
    """A passage: `text` equals `document.text[start:end]`, and the first span covers all of it."""

    ordinal: int
    start: int
    end: int
    text: str
    heading_path: tuple[str, ...]
    spans: tuple[Span, ...]
    kind: str = "text"

    @property
    def section_label(self) -> str | None:
        return self.heading_path[-1] if self.heading_path else None


class Source(NamedTuple):
    """Where documents come from. `name` is part of every document id; `root` is not."""

    name: str
    kind: Literal["folder", "file", "stdin"]
    root: str | None
    trust_level: str = "primary"


class Repository(NamedTuple):
    """The git repository that contains a folder, with the branch and commit that are checked out."""

    name: str
    branch: str | None
    """None when a commit is checked out without a branch."""
    commit: str | None
    """None before the first commit."""


_DATED_NAME = re.compile(r"(?:19|20)\d\d-\d\d-\d\d(?!\d)")
_MOST_TITLE_TOKENS = 64
_MOST_HEADING_TOKENS = 96


def context_of(title: str, headings: tuple[str, ...]) -> str:
    """The title and headings, shortened, that are embedded with a chunk. A title that is also the first heading appears
    once.
    """
    below = headings[1:] if headings[:1] == (title,) else headings
    path = cut_to_tokens(" > ".join(below), _MOST_HEADING_TOKENS)
    return " > ".join(part for part in (cut_to_tokens(title, _MOST_TITLE_TOKENS), path) if part)


def embedded_text(path: str, title: str, headings: tuple[str, ...], text: str) -> str:
    """The text that a chunk's vector is made from. A title that is only the file name is left out, so that renaming
    a file keeps its vectors.
    """
    context = context_of("" if title in (file_name(path), file_stem(path)) else title, headings)
    return f"{context}\n\n{text}" if context else text


def date_in_name(path: str) -> str | None:
    """The date at the start of a file name, or None: 2025-03-01 for `daily/2025-03-01 Standup.md`."""
    match = _DATED_NAME.match(file_name(path))
    try:
        return date.fromisoformat(match[0]).isoformat() if match else None
    except ValueError:
        return None


def document_id(source: str, path: str) -> str:
    return content_hash("\0".join(("document", source, path)))[:16]


def chunk_id(doc_id: str, ordinal: int, text: str) -> str:
    """The id of a chunk. It begins with half of the document's id, so that indexes keep a document's chunks together.

    The ordinal gives two equal passages of one document different ids.
    """
    return doc_id[:8] + content_hash("\0".join(("chunk", doc_id, str(ordinal), text)))[:12]
