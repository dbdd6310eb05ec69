"""The text of a file that has none of its own: put together piece by piece, with its blocks."""

from __future__ import annotations

from kebab.core.documents import PAGE_BREAK, Block
from kebab.core.text import nfc, whole_characters
from kebab.parsing.html_text import Page

_LONGEST_HEADING = 200
_NEVER_INSIDE = str.maketrans({PAGE_BREAK: " ", "\0": " "})


class ExtractedText:
    """Add the pieces in order; then `text` and `blocks` fit together."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._blocks: list[Block] = []
        self._chapters: list[int] = []
        self._chapter_has_text = False

    def add(self, kind: str, text: str, level: int = 0) -> None:
        """A block of whole lines; nothing at all if it is blank."""
        text = whole_characters(text.translate(_NEVER_INSIDE).rstrip().lstrip("\r\n"))
        if not text.strip():
            return
        if kind == "heading" and level == 1:
            self.begin_chapter()
        self._chapter_has_text = self._chapter_has_text or kind != "heading"
        title = nfc(" ".join(text.split()))[:_LONGEST_HEADING].rstrip() if kind == "heading" else ""
        self._blocks.append(Block(kind, self._length, self._length + len(text), level, title))
        self._write(text + "\n")

    def add_page(self, page: Page) -> None:
        """The blocks of a page of HTML. The lines of its source mean nothing here: a paragraph is one line."""
        for block in page.blocks:
            text = page.text[block.start : block.end]
            if block.kind != "code":
                lines = (" ".join(line.split()) for line in text.split("\n"))
                text = ("\n" if block.kind == "table" else " ").join(line for line in lines if line)
            self.add(block.kind, text, block.level)

    def begin_chapter(self) -> None:
        """A heading of the first level does it too. What has only headings so far, such as a title page, belongs to
        what follows.
        """
        if self._chapter_has_text:
            self._chapters.append(self._length)
            self._chapter_has_text = False

    def blank_line(self) -> None:
        if self._parts and self._parts[-1] not in (PAGE_BREAK, "\n"):
            self._write("\n")

    def end_page(self) -> None:
        self._write(PAGE_BREAK)

    def _write(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def chapters(self) -> tuple[int, ...]:
        """Where each but the first begins."""
        return tuple(self._chapters)

    @property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(self._blocks)
