"""Many chunks from a few thousand real Markdown files, and questions to ask of them; the same for the same seed.

New passages are spliced from phrases of real ones. What decides the speed of a ranked query stays as it is in real
text: how often words occur (a tail of new identifiers keeps growing with the corpus), that words of one subject come
together, and that phrases are phrases.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from kebab.core.citations import LineSpan
from kebab.core.documents import Chunk, ParsedDocument
from kebab.core.ports import FileState, IndexedDocument

SOURCE = "synthetic"
TAGS = {"half": 2, "tenth": 10, "hundredth": 100, "thousandth": 1000}
"""Every how manieth document carries the tag."""

_CHUNKS_PER_DOCUMENT = 10
_NEIGHBOURHOOD = 4000
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*(?:\{.*\})?$", re.MULTILINE)
_PLAIN = re.compile(r"[A-Za-z][a-z-]*[,.]?")
_FRAMES = (
    "How do I {}?",
    "What is {}?",
    "Why does {} fail?",
    "Where can I find {}?",
    "Which {} should we use?",
    "Can you explain {}?",
)


@dataclass(frozen=True)
class RealText:
    """The words of all files in one row, and the headings with the position of the word they stand before."""

    words: list[str]
    heading_places: list[int]
    headings: list[str]

    def heading_at(self, place: int) -> str:
        return self.headings[max(0, bisect_right(self.heading_places, place) - 1)]


def read(folder: Path) -> RealText:
    words: list[str] = []
    places: list[int] = []
    headings: list[str] = []
    for file in sorted(folder.rglob("*.md")):
        text = file.read_text(encoding="utf-8", errors="replace")
        last = 0
        for match in _HEADING.finditer(text):
            words.extend(text[last : match.start()].split())
            places.append(len(words))
            headings.append(match[1])
            last = match.start()
        words.extend(text[last:].split())
    return RealText(words, places, headings)


def documents(real: RealText, chunks: int, seed: int = 1) -> Iterator[IndexedDocument]:
    chance = random.Random(seed)
    for number in range(chunks // _CHUNKS_PER_DOCUMENT):
        base = chance.randrange(len(real.words) - _NEIGHBOURHOOD)
        yield _document(number, real, base, chance)


def _document(number: int, real: RealText, base: int, chance: random.Random) -> IndexedDocument:
    title = real.heading_at(base)
    chunks: list[Chunk] = []
    text = ""
    for ordinal in range(_CHUNKS_PER_DOCUMENT):
        place = base + chance.randrange(_NEIGHBOURHOOD - 60)
        passage = _passage(real, base, chance)
        start, line = len(text), 2 * ordinal + 1
        text += passage + "\n\n"
        chunks.append(
            Chunk(
                ordinal, start, start + len(passage), passage, (title, real.heading_at(place)), (LineSpan(line, line),)
            )
        )
    tags = tuple(tag for rest, (tag, every) in enumerate(TAGS.items()) if number % every == rest)
    parsed = ParsedDocument(text, title, (), "markdown", "md", "en", tags=tags)
    data = text.encode()
    return IndexedDocument(
        source=SOURCE,
        path=f"{number % 97:02d}/{number:06d}.md",
        state=FileState(len(data), 0, sha256(data).hexdigest(), "synthetic"),
        parsed=parsed,
        chunks=chunks,
        chunker_version="synthetic",
        date="2026-01-01",
        trust_level="primary",
    )


def _passage(real: RealText, base: int, chance: random.Random) -> str:
    """90 to 190 words: phrases of one neighbourhood, one word in twelve from anywhere, now and then an identifier
    nobody knows.
    """
    length = chance.randrange(90, 190)
    words: list[str] = []
    while len(words) < length:
        start = base + chance.randrange(_NEIGHBOURHOOD - 60)
        words += real.words[start : start + chance.randrange(12, 60)]
    del words[length:]
    for _ in range(length // 12):
        words[chance.randrange(length)] = real.words[chance.randrange(len(real.words))]
    if chance.random() < 0.55:
        words[chance.randrange(length)] = f"id{int(chance.paretovariate(0.3)) % 3_000_000:x}"
    return " ".join(words)


def questions(real: RealText, count: int, seed: int = 2) -> list[str]:
    """A question word and five to ten consecutive words of prose."""
    chance = random.Random(seed)
    made: list[str] = []
    while len(made) < count:
        start = chance.randrange(len(real.words) - 12)
        words = real.words[start : start + chance.randrange(5, 11)]
        if all(map(_PLAIN.fullmatch, words)):
            made.append(chance.choice(_FRAMES).format(" ".join(words).strip(".,").lower()))
    return made
