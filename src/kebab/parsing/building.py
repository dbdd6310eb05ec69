"""Shared code of parsers: builds text from pieces, turns lines into blocks, and finds titles and headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from kebab.analysis.language import language_of
from kebab.core.documents import PAGE_BREAK, Block, ParsedDocument
from kebab.core.paths import file_name, file_stem
from kebab.core.text import line_starts, nfc, storable, whole_characters
from kebab.parsing.file_types import classify

LINE_BREAK = "\u2028"
"""Separates lines of text that come from one line of the file: white space that does not count as a line end."""
BLOCK_BREAK = "\u2029"
"""Marks the start of code and the end of a heading where the extracted text itself would not show them."""
NEVER_INSIDE = str.maketrans({PAGE_BREAK: " ", "\0": " "})
"""Characters that extracted text must not contain."""
_LONGEST_HEADING = 200
_CALLED_BY_FOLDER = frozenset(("readme", "index", "_index"))
_ABOVE_TITLE = ("<", "[", "![", "(", "{", ".. ", ":", "%", "#", "import ")
"""How a paragraph begins that may stand above a title: badges, links, tags, labels, directives and includes."""

# Strings, which `re` compiles at first use: most searches read no heading with markup. Each takes linear time, because
# a whole paragraph of any length can be a heading.
_IMAGE_OR_LINK = r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])"
_WIKI_LINK = r"!?\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]"
_ATTRIBUTES = r" ?\{[#.:][^{}]*\}$"
_TAG_OR_COMMENT = r"<!--(?:(?!<!--).)*?-->|</?[A-Za-z][^<>]*>"
_STARS = r"(\*{1,3}|~~)(?=\S)(.{1,500}?)(?<=\S)\1"
_UNDERSCORES = r"(?<!\w)(_{1,3})(?=\S)(.{1,500}?)(?<=\S)\1(?!\w)"
CODE_MARK = r"(?<!`)(`{1,9})(?!`)"
"""A run of backticks. Of each length one at most has no partner, so only nine are looked for to the end of the text."""
_LITERAL = rf"\\([!-/:-@\[-`{{-~])|{CODE_MARK} ?(.+?) ?(?<!`)\2(?!`)"
_KEPT = "\ue000(\\d+)\ue001"
_MARKUP = re.compile(r"[\[<{*_~`\\]")


class FileParser:
    """Default attributes of a parser; `core.ports.Parser` explains them."""

    keeps_lines = True
    isolated = True


def document(path: str, text: str, blocks: Iterable[Block], title: str, **details: Any) -> ParsedDocument:
    """Makes a ParsedDocument: its type and format come from path and text, its language from `lang` or the text."""
    doc_type, format_ = classify(path, text)
    lang = details.pop("lang", None) or language_of(text)
    return ParsedDocument(text, title, tuple(blocks), doc_type, format_, lang, **details)


def title_of(declared: str, path: str, text: str = "", blocks: Iterable[Block] = ()) -> str:
    """The declared title, else the heading at the top, else the file's name: one line, never empty."""
    return storable(" ".join(declared.split())) or _top_heading(text, blocks) or _name_of(path) or path


def _top_heading(text: str, blocks: Iterable[Block]) -> str:
    """The heading of the first level that begins the text, or an empty string. A lower heading names a section."""
    for block in blocks:
        if block.kind == "heading":
            return block.title if block.level == 1 else ""
        above = text[block.start : block.end].lstrip()
        if block.kind not in ("paragraph", "html") or not above.startswith(_ABOVE_TITLE):
            return ""
    return ""


def _name_of(path: str) -> str:
    """The file's name without its extension; a README or an index is called by its folder."""
    folder, name = path.rpartition("/")[0], file_stem(path)
    if folder and name.casefold() in _CALLED_BY_FOLDER:
        name = file_name(folder)
    return storable(" ".join(name.split()))


def plain_heading(source: str) -> str:
    """A Markdown heading as a reader sees it: without links, emphasis, code marks, tags and {#anchors}."""
    source = " ".join(source.split())
    if not _MARKUP.search(source):
        return nfc(source)
    literals: list[str] = []

    def keep(match: re.Match[str]) -> str:
        """Replaces code or an escaped character by a placeholder, so that the next steps do not change it."""
        literals.append(match[1] or match[3])
        return f"\ue000{len(literals) - 1}\ue001"

    source = re.sub(_ATTRIBUTES, "", source)
    source = re.sub(_LITERAL, keep, source)
    source = re.sub(_TAG_OR_COMMENT, "", source)
    source = re.sub(_WIKI_LINK, r"\1", source)
    source = re.sub(_IMAGE_OR_LINK, r"\1", source)
    for emphasis in (_STARS, _UNDERSCORES) * 2:  # twice, because emphasis may be nested
        source = re.sub(emphasis, r"\2", source)
    source = re.sub(_KEPT, lambda match: literals[int(match[1])] if int(match[1]) < len(literals) else "", source)
    return nfc(" ".join(source.split()))


class LineBlock(NamedTuple):
    """A block of the whole lines `first_line` <= n < `end_line`, counted from 0."""

    kind: str
    first_line: int
    end_line: int
    level: int = 0
    """The level of a heading, 0 for everything else."""
    text: str = ""
    """The text of a heading, the language of code, "" for everything else."""


def as_ranges(lines: Sequence[str], found: Iterable[LineBlock], start: int = 0) -> tuple[Block, ...]:
    """Converts blocks of `lines`, which have no line feeds and begin at `start` in the text, to ranges of the text."""
    starts = line_starts(lines, start)
    starts[-1] -= 1  # no line feed follows the last line
    return tuple(
        Block(kind, starts[first_line], starts[end_line], level, title)
        for kind, first_line, end_line, level, title in found
    )


class _Pieces:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0

    def _append(self, piece: str) -> None:
        self._pieces.append(piece)
        self.length += len(piece)

    @property
    def text(self) -> str:
        return "".join(self._pieces)


class LinedText(_Pieces):
    """Builds a text whose line N holds the text from line N of the file. Pieces must be added in order."""

    line = 0
    """The current line, counted from 0."""

    def go_to(self, line: int) -> None:
        """Adds line feeds up to this line, or nothing if the text is already there or further down."""
        if line > self.line:
            self._append("\n" * (line - self.line))
            self.line = line

    def write(self, text: str, separator: str = " ") -> int:
        """Adds text, after `separator` if its line has text, and returns its start. The file has its line feeds."""
        if self._pieces and not self._pieces[-1].endswith("\n"):
            self._append(separator)
        start = self.length
        self._append(text)
        self.line += text.count("\n")
        return start


class ExtractedText(_Pieces):
    """Builds the text of a binary file, such as docx, block by block, with its pages or chapters."""

    def __init__(self) -> None:
        super().__init__()
        self._chapter_has_text = False
        self.blocks: list[Block] = []
        self.chapters: list[int] = []
        """Where each chapter but the first begins."""

    def add(self, kind: str, text: str, level: int = 0) -> None:
        """Adds a block of whole lines, unless it is blank. A heading of the first level begins a chapter."""
        text = whole_characters(text.translate(NEVER_INSIDE).rstrip().lstrip("\r\n"))
        if not text.strip():
            return
        if kind == "heading" and level == 1:
            self.begin_chapter()
        self._chapter_has_text = self._chapter_has_text or kind != "heading"
        title = nfc(" ".join(text.split()))[:_LONGEST_HEADING].rstrip() if kind == "heading" else ""
        self.blocks.append(Block(kind, self.length, self.length + len(text), level, title))
        self._append(text + "\n")

    def begin_chapter(self) -> None:
        """Begins a chapter here, unless the current one has only headings: a title page belongs to the next chapter."""
        if self._chapter_has_text:
            self.chapters.append(self.length)
            self._chapter_has_text = False

    def blank_line(self) -> None:
        if self._pieces and self._pieces[-1] not in (PAGE_BREAK, "\n"):
            self._append("\n")

    def end_page(self) -> None:
        self._append(PAGE_BREAK)
