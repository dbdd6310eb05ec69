"""Text put together on the lines of its file: line N of one is line N of the other, whatever stands in between."""

from __future__ import annotations

from typing import NamedTuple


class Placed(NamedTuple):
    """Where a piece stands in the text."""

    start: int
    end: int


class LinedText:
    """Add the pieces in order, each on its line. Two on the same line are parted by a space; only `go_to` makes line feeds."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0
        self.line = 0
        """Counted from 0."""

    def go_to(self, line: int) -> None:
        """Never backwards: what has no line left to itself goes on where the text is."""
        feeds = line - self.line
        if feeds > 0:
            self._pieces.append("\n" * feeds)
            self._length += feeds
            self.line = line

    def write(self, text: str) -> Placed:
        """`text` is one line, or lines that are the file's too."""
        if self._pieces and not self._pieces[-1].endswith("\n"):
            self._pieces.append(" ")
            self._length += 1
        start = self._length
        self._pieces.append(text)
        self._length += len(text)
        self.line += text.count("\n")
        return Placed(start, self._length)

    @property
    def length(self) -> int:
        return self._length

    @property
    def text(self) -> str:
        return "".join(self._pieces)
