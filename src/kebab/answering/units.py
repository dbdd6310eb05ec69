"""Cuts a passage into units that can be quoted by themselves, and says what each is about. A question is never an
answer, but the text after it is. A sentence that introduces something belongs to it, and a list item is about one
thing, however many sentences it has. Headings, the head of a table and the question above an answer say what a unit is
about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple

from kebab.answering.question import NO_TERMS, Terms, joined, terms_of
from kebab.answering.sentences import Sentence
from kebab.core.ports import Tokenizer

UnitKind = Literal["prose", "item", "row", "code", "list", "section"]
WHOLES = ("list", "section")

_ASKS = re.compile(r"""\?["'”’)\]*_`]*$""")
_SHORT_ANSWER = re.compile(
    r"\W*(?:a\s?[:.)]\s*)?(?:yes|no|correct|right|sure|exactly|네|예|아니요|아니오|아뇨|맞습니다)[.!,]*\W*$",
    re.IGNORECASE,
)
_SAME_SUBJECT = re.compile(
    r"(?:it|its|they|their|them|this|these|those|such|he|she|his|her|there"
    r"|the (?:cause|reason)|이유는|원인은|이는|그는|이것은|이들은|그녀는)\b",
    re.IGNORECASE,
)
"""The beginning of a sentence that is about the same thing as the sentence before."""
_HAS_PRONOUN = re.compile(r"\b(?:it|them|him|her|there)\b", re.IGNORECASE)
_IN_KOREAN = re.compile(r"[가-힣]다\W*$")
_NAMES_SUBJECT = re.compile(r"[가-힣\w](?:은|는|이|가|께서|도|란)(?=\s|$)")
"""A Korean word with the particle of a subject. A sentence without one is about the same thing as the sentence before.
"""
_ADDS = re.compile(
    r"(?:otherwise|above that|below that|everything (?:above|else)|nothing else|else|except|but|however|only|in that case|then|so"
    r"|그 이상|그 외|다만|단,)\b",
    re.IGNORECASE,
)
"""The beginning of a sentence without which the sentence before would say too much."""
LONGEST_ITEM = 400
LONGEST_ANSWER = 600
SHORT_ANSWER = 300
"""The most characters of an answer under a heading that is a question, where the text may continue for pages."""
LONGEST_WHOLE = 1400
"""The most characters of a list or section; a longer one is cut between its parts."""


class Unit(NamedTuple):
    start: int
    end: int
    kind: UnitKind
    own: Terms
    near: Terms
    """The terms of the unit and of the text that says what it is about: its heading, the question it answers, its
    introduction, the head of its table.
    """
    around: Terms
    """The same terms with the title and all headings."""
    headings: tuple[str, ...] = ()
    header: tuple[int, int] | None = None
    answers: str | None = None
    """The question above it that it answers."""
    cut: bool = False
    """Whether the text continues after its end."""
    first: int = 0
    last: int = 0
    """The indexes of the first and the last sentence."""

    def of(self, text: str) -> str:
        return text[self.start : self.end]


class ReadPassage(NamedTuple):
    """A passage cut into sentences and units."""

    text: str
    sentences: tuple[Sentence, ...]
    terms: tuple[Terms, ...]
    """The terms of each sentence."""
    title: str
    context: Terms
    """The title and headings of the passage, and the name of its file."""
    headings: tuple[str, ...]

    def heading_of(self, sentence: Sentence) -> str:
        """The innermost heading above a sentence; empty if it is also the title, which is about the whole document."""
        above = sentence.headings or self.headings
        return above[-1] if above and above[-1] != self.title else ""


def read(
    text: str, cut: Sequence[Sentence], title: str, headings: Sequence[str], name: str, tokenizer: Tokenizer
) -> ReadPassage:
    """Reads a passage. `name`: the name of the file, which says what it is about if the title does not."""
    terms = tuple(terms_of(one.of(text), tokenizer) for one in cut)
    return ReadPassage(
        text, tuple(cut), terms, title, terms_of("\n".join((title, *headings, name)), tokenizer), tuple(headings)
    )


def units(reading: ReadPassage, tokenizer: Tokenizer) -> Iterator[Unit]:
    """The units of a passage: sentences, answers, items, rows and code in order; then whole lists and sections."""
    single = list(_Assembly(reading, tokenizer).units())
    yield from single
    yield from _wholes(reading, single)


class _Assembly:
    """Builds units from sentences."""

    def __init__(self, reading: ReadPassage, tokenizer: Tokenizer) -> None:
        self._reading = reading
        self._tokenizer = tokenizer
        self._known: dict[str, Terms] = {}

    def units(self) -> Iterator[Unit]:
        cut, text = self._reading.sentences, self._reading.text
        asked: int | None = None
        place = 0
        while place < len(cut):
            if is_question(cut[place], text):
                asked = place
                place += 1
                continue
            if cut[place].of(text) == self._reading.title:
                place += 1
                continue
            if asked is not None and not _answers(cut[asked], cut[place]):
                asked = None
            under_question = self._reading.heading_of(cut[place]).endswith("?")
            last = self._last(
                place, longest=LONGEST_ANSWER if asked is not None else SHORT_ANSWER if under_question else 0
            )
            yield self._unit(place, last, asked)
            place = last + 1

    def _last(self, first: int, *, longest: int) -> int:
        """The index of the last sentence that is quoted with the first: of a whole block, if it is an answer of at most
        `longest` characters.
        """
        cut, text = self._reading.sentences, self._reading.text
        here = cut[first]
        if here.kind in ("row", "code"):
            return first
        block = first
        while block + 1 < len(cut) and cut[block + 1].block == here.block and not is_question(cut[block + 1], text):
            block += 1
        if cut[block].end - here.start <= max(longest, LONGEST_ITEM if here.kind == "item" else 0):
            last = block
        else:
            last = first
            while last < block and (_SHORT_ANSWER.match(cut[last].of(text)) or _ADDS.match(cut[last + 1].of(text))):
                last += 1
        follows = last + 1
        if (
            follows < len(cut)
            and cut[follows].kind == "code"
            and leads_up(cut[last], text)
            and cut[last].headings == cut[follows].headings
        ):
            return follows
        return last

    def _unit(self, first: int, last: int, asked: int | None) -> Unit:
        cut, terms, text = self._reading.sentences, self._reading.terms, self._reading.text
        own = joined(terms[first : last + 1])
        here = cut[first]
        heading = self._reading.heading_of(here)
        answered = cut[asked].of(text) if asked is not None else heading if heading.endswith("?") else None
        near = own | self._terms(heading) | (terms[asked] if asked is not None else NO_TERMS)
        if here.header:
            near |= self._terms(text[slice(*here.header)])
        if (lead := _lead(self._reading, first)) is not None:
            near |= terms[lead]
        if first and cut[first - 1].block == here.block and self._refers_back(first):
            near |= terms[first - 1]
        around = near | self._terms("\n".join(here.headings)) | self._reading.context
        kind: UnitKind = "code" if cut[last].kind == "code" else here.kind
        return Unit(
            here.start,
            cut[last].end,
            kind,
            own,
            near,
            around,
            here.headings,
            here.header,
            answered,
            first=first,
            last=last,
        )

    def _refers_back(self, place: int) -> bool:
        said = self._reading.sentences[place].of(self._reading.text)
        if _SAME_SUBJECT.match(said) or _HAS_PRONOUN.search(
            said.split(";", 1)[0]
        ):  # "the museum; it is closed" names what it is about
            return True
        return _IN_KOREAN.search(said) is not None and _NAMES_SUBJECT.search(said) is None

    def _terms(self, text: str) -> Terms:
        if text not in self._known:
            self._known[text] = terms_of(text, self._tokenizer) if text else NO_TERMS
        return self._known[text]


def is_question(sentence: Sentence, text: str) -> bool:
    return sentence.kind in ("prose", "item") and _ASKS.search(sentence.of(text)) is not None


def leads_up(sentence: Sentence, text: str) -> bool:
    return sentence.kind in ("prose", "item") and sentence.of(text).rstrip("*_ ").endswith((":", "："))


def _answers(question: Sentence, sentence: Sentence) -> bool:
    """Whether a sentence answers a question: it is in the rest of its block, or in the next block under the same
    heading.
    """
    return sentence.headings == question.headings and sentence.block <= question.block + 1


def _lead(reading: ReadPassage, place: int) -> int | None:
    """The sentence that introduces the list, table or code that a sentence belongs to."""
    cut = reading.sentences
    kind = cut[place].kind
    while (
        place
        and kind in ("item", "row")
        and cut[place - 1].kind == kind
        and cut[place - 1].headings == cut[place].headings
    ):
        place -= 1
    before = place - 1
    return (
        before
        if before >= 0
        and kind != "prose"
        and cut[before].headings == cut[place].headings
        and leads_up(cut[before], reading.text)
        else None
    )


def _wholes(reading: ReadPassage, single: Sequence[Unit]) -> Iterator[Unit]:
    """The whole lists with their introductions, and the sections."""
    for _, section in groupby(single, key=lambda unit: unit.headings):
        whole = list(section)
        for listed in _lists(reading, whole):
            if len(listed) > 1:
                lead = _lead(reading, listed[0].first)
                yield _whole(
                    "list",
                    reading.sentences[lead].start if lead is not None else _line_start(reading.text, listed[0].start),
                    listed,
                )
        if len(whole) > 1:
            header = whole[0].header
            yield _whole("section", header[0] if header else _line_start(reading.text, whole[0].start), whole)


def _lists(reading: ReadPassage, section: Sequence[Unit]) -> Iterator[list[Unit]]:
    """Consecutive list items, each with the indented code and paragraphs below it."""
    listed: list[Unit] = []
    for unit in section:
        if reading.sentences[unit.first].kind == "item" or (listed and _is_indented(reading.text, unit.start)):
            listed.append(unit)
        elif listed:
            yield listed
            listed = []
    if listed:
        yield listed


def _is_indented(text: str, place: int) -> bool:
    line = text[text.rfind("\n", 0, place) + 1 :]
    return line.startswith(("  ", "\t"))


def _whole(kind: UnitKind, start: int, group: Sequence[Unit]) -> Unit:
    kept = [unit for unit in group if unit.end - start <= LONGEST_WHOLE] or group[:1]
    own = joined([unit.own for unit in kept])
    first, last = kept[0], kept[-1]
    near = own | first.near
    return Unit(
        start,
        last.end,
        kind,
        own,
        near,
        near | first.around,
        first.headings,
        None,
        first.answers,
        len(kept) < len(group),
        first.first,
        last.last,
    )


def _line_start(text: str, place: int) -> int:
    """The start of a line, with the number or bullet of an item before it."""
    begin = text.rfind("\n", 0, place) + 1
    return begin if len(text[begin:place].strip()) <= len("100.  [x]") else place
