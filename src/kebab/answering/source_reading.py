"""A passage as it is read to check claims: sentences and clauses, rows of tables under their heads, without text that
reads like orders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from kebab.analysis.orders import speaks_to_a_machine
from kebab.answering.claim_words import NOTHING_SAID, Said, said_by, words_of
from kebab.answering.clauses import Clause, clauses_of
from kebab.answering.sentences import Sentence
from kebab.core.ports import Tokenizer

_WINDOW = 3
"""The number of consecutive sentences in which a claim must be said."""
_SPACES = re.compile(r"\s+")
_PARAGRAPH = re.compile(r"(?:[^\n]*\S[^\n]*(?:\n|$))+")
_CELL = re.compile(r"(?<!\\)\|")
_CONTINUED = re.compile(r"\s*\\\n\s*")
_RULE_OF_TABLE = re.compile(r"\s*\|[\s|:-]+\|\s*$")


_PRONOUN = re.compile(r"\b(?:he|she|we|his|her|our)\b|^\s*(?:it|they|its|their)\b", re.IGNORECASE)


class Source(NamedTuple):
    """A passage that an answer may cite."""

    marker: int
    text: str
    context: str
    """Title and headings: what its sentences need not repeat."""
    sentences: tuple[Sentence, ...]
    quoted: frozenset[str] = frozenset()
    """Verbatim quotations from it that span several sentences."""


class Window(NamedTuple):
    """One sentence, or a few consecutive ones."""

    text: str
    """The text with title and headings."""
    clauses: tuple[Clause, ...]
    said: Said
    """What it says with title and headings."""


class _Topic(NamedTuple):
    text: str
    said: Said


class Reading:
    """A source with the parts that checks need, each computed on first use: quotations need only their own words."""

    def __init__(self, source: Source, tokenizer: Tokenizer, *, with_orders: bool = False) -> None:
        """`with_orders`: also reads text that looks like orders, to tell whether something is in the source at all."""
        self.source = source
        self._tokenizer = tokenizer
        self._with_orders = with_orders
        self._every = source.sentences or (Sentence(0, len(source.text)),)

    @cached_property
    def _cut(self) -> tuple[Sentence, ...]:
        return tuple(
            one for one in self._every if not any(start < one.end and one.start < end for start, end in self._orders)
        )

    @cached_property
    def _orders(self) -> list[tuple[int, int]]:
        return [] if self._with_orders else list(orders_in(self.source.text, self._every))

    def quotes(self, text: str) -> bool:
        """Whether a text is exactly one of its sentences. A part of a sentence may lack the word that reverses its
        meaning.
        """
        if text in self.source.quoted:
            place = self.source.text.find(text)
            return not any(start < place + len(text) and place < end for start, end in self._orders)
        return plain(text) in self._plain_sentences

    def lacks_of_code(self, text: str) -> tuple[str, ...]:
        """The lines of a block of code that the source lacks; all of them if the block is empty."""
        lines = [line for line in map(plain, _unbroken(text.strip()).split("\n")[1:]) if line and not is_code(line)]
        return tuple(line for line in lines if line not in self._plain_lines) if lines else (text,)

    @cached_property
    def _plain_lines(self) -> frozenset[str]:
        return frozenset(plain(line) for one in self._cut for line in _unbroken(one.of(self.source.text)).split("\n"))

    @cached_property
    def _plain_sentences(self) -> frozenset[str]:
        return frozenset(plain(one.of(self.source.text)) for one in self._cut)

    @cached_property
    def texts(self) -> list[str]:
        """The texts of its sentences, also of orders."""
        return [one.of(self.source.text) for one in self._every]

    @cached_property
    def every_word(self) -> list[str]:
        """All words in dictionary form, also stop words, each once."""
        return list(
            dict.fromkeys(word.form or word.text for text in self.texts for word in words_of(text, self._tokenizer))
        )

    @cached_property
    def context(self) -> Said:
        return said_by(self.source.context, words_of(self.source.context, self._tokenizer), self._tokenizer)

    @cached_property
    def sentences(self) -> list[Window]:
        found: list[Window] = []
        for one in self._cut:
            text = self._row(one) if one.kind == "row" else one.of(self.source.text)
            clauses = clauses_of(text, self._tokenizer, found[-1].clauses if found else ())
            topic = self._topic(found, text) if one.kind != "row" else None
            said = self.context.with_(*(clause.said for clause in clauses), *((topic.said,) if topic else ()))
            found.append(Window(f"{self.source.context}\n{topic.text if topic else ''}\n{text}", tuple(clauses), said))
        return found

    def _topic(self, before: Sequence[Window], text: str) -> _Topic | None:
        """The words that the passage begins with: whom or what a sentence with she, it or we is about."""
        if not before or not before[0].clauses or _PRONOUN.search(text) is None:
            return None
        first = before[0].clauses[0]
        word = next((one for one in first.words if first.tokens[:1] == (one.key,)), None)
        return _Topic(word.text.title(), said_by(word.text, [word], self._tokenizer)) if word else None

    @cached_property
    def said(self) -> Said:
        return self.context.with_(*(sentence.said for sentence in self.sentences))

    @cached_property
    def windows(self) -> list[Window]:
        """All windows of one to three consecutive sentences. A row of a table is a window by itself."""
        return [
            _together(self.sentences[first : last + 1])
            for first, one in enumerate(self._cut)
            for last in range(first, min(first + _WINDOW, len(self._cut)))
            if first == last or "row" not in {sentence.kind for sentence in self._cut[first : last + 1]}
        ]

    def _row(self, row: Sentence) -> str:
        """The cells of a row, each behind its head: port: 5001."""
        lines = self.source.text[: row.start].split("\n")[:-1]
        cells = _cells(row.of(self.source.text))
        for number in range(len(lines) - 1, 0, -1):
            if _RULE_OF_TABLE.match(lines[number]):
                heads = _cells(lines[number - 1])
                return ", ".join(f"{head} {cell}" for head, cell in zip(heads, cells, strict=False))
            if "|" not in lines[number]:
                break
        return ", ".join(cells)


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in _CELL.split(row.strip().strip("|"))]


def _together(sentences: Sequence[Window]) -> Window:
    if len(sentences) == 1:
        return sentences[0]
    return Window(
        "\n".join(one.text for one in sentences),
        tuple(clause for one in sentences for clause in one.clauses),
        NOTHING_SAID.with_(*(one.said for one in sentences)),
    )


def orders_in(text: str, cut: Sequence[Sentence]) -> Iterator[tuple[int, int]]:
    """Ranges that support no claim: from a text that reads like an order to the end of its paragraph, which may contain
    what the order wants said.
    """
    if not speaks_to_a_machine(text) or (
        len(cut) == 1 and cut[0].kind == "code"
    ):  # in a program it is text of the program
        return
    for paragraph in _PARAGRAPH.finditer(text):
        if speaks_to_a_machine(paragraph[0]):
            inside = [one for one in cut if paragraph.start() <= one.start < paragraph.end()]
            first = next((one for one in inside if speaks_to_a_machine(one.of(text))), None)
            yield (first.start if first else paragraph.start()), paragraph.end()


def is_code(text: str) -> bool:
    return text.lstrip().startswith(("```", "~~~"))


def _unbroken(code: str) -> str:
    """A text with commands that continue behind a backslash joined to one line."""
    return _CONTINUED.sub(" ", code)


def plain(text: str) -> str:
    return _SPACES.sub(" ", text).strip(" .").casefold()
