"""Text put together on the lines of its file: line N of one is line N of the other, whatever stands in between."""

from __future__ import annotations

from typing import NamedTuple

LINE_BREAK = "\u2028"
"""Parts lines that stand on one line of the file. White space that no line is counted by."""
BLOCK_BREAK = "\u2029"
"""Where code begins that nothing else marks in the text, and where a heading ends that could run into what follows."""


class Placed(NamedTuple):
    """Where a piece stands in the text."""

    start: int
    end: int


class LinedText:
    """Add the pieces in order, each on its line. Two on the same line are parted; only `go_to` makes line feeds."""

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

    def write(self, text: str, parting: str = " ") -> Placed:
        """`text` is one line, or lines that are the file's too."""
        if self._pieces and not self._pieces[-1].endswith("\n"):
            self._pieces.append(parting)
            self._length += len(parting)
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
