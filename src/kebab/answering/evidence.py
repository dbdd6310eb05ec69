"""Weighs evidence: what the passages say about a question, and whether that is enough to answer it. RRF scores are not
used, because they are made from ranks: the best one does not show whether anything relevant was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from kebab.analysis.orders import speaks_to_a_machine
from kebab.answering.identity import Identity
from kebab.answering.question import Question, Terms, joined, terms_of
from kebab.answering.sentences import Delimited, Sentence, sentences
from kebab.answering.source_reading import orders_in
from kebab.answering.units import WHOLES, Unit, read, units
from kebab.core import deadline
from kebab.core.citations import Citation
from kebab.core.paths import file_stem
from kebab.core.ports import Tokenizer
from kebab.core.search import Neighbour, Neighbours, SearchHit
from kebab.core.text import estimate_tokens

_NO_SCORE = 1e-3
"""bm25 scores below this mean that there are no scores: in a corpus of a few notes, FTS5 clamps the weight of a word
that is in half of all passages to almost nothing.
"""


_BY_MEANING = 0.43
"""The weight of full closeness in meaning, where having all the words weighs 1 (benchmarks/README.md)."""
_CLOSE = 0.15
"""From this closeness in meaning on, words count in full."""
_ALL_WORDS = 0.65
"""The least strength of a passage that has all words close together, however distant it is in meaning."""
LEAST_STRENGTH = 0.65
LEAST_BY_WORDS = 0.55
"""The least strength of evidence for an answer. The second is for corpora without vectors, where only words count."""

_HITS_WITH_NEIGHBOURS = 3
_TABLES = (".csv", ".tsv")


class Passage(NamedTuple):
    """A passage as evidence: a hit, or a neighbour of one."""

    hit: SearchHit
    chunk_id: str
    text: str
    headings: tuple[str, ...]
    citation: Citation
    sentences: tuple[Sentence, ...]
    units: tuple[Unit, ...]
    """The parts of it that can be quoted by themselves."""
    coverage: float
    """The share of the question's informative words, by weight, that the passage has with its title and headings."""
    focus: float
    """The same share for the best two consecutive sentences, with title and headings."""
    terms: Terms
    title: Terms
    """The terms of title and headings."""
    closeness: float | None
    """The closeness in meaning, from 0 (as close as by chance) to 1; None if it is unknown."""
    beside: bool = False
    """Whether it is only a neighbour of a hit."""
    left_out: tuple[tuple[Sentence, Terms], ...] = ()
    """The sentences that read like orders to a machine, which are neither quoted nor believed."""

    @property
    def strength(self) -> float:
        """How much the passage speaks for an answer: by its meaning, and by its words, which count less if it is
        distant in meaning.
        """
        words = (self.coverage + self.focus) / 2
        if self.closeness is None:
            return words
        least = _ALL_WORDS if self.focus > 0.99 else 0.0
        return words * max(least, min(1.0, self.closeness / _CLOSE)) + _BY_MEANING * self.closeness

    @property
    def is_enough(self) -> bool:
        return self.strength >= (LEAST_BY_WORDS if self.closeness is None else LEAST_STRENGTH)

    @property
    def titles(self) -> tuple[str, ...]:
        """The title of the document and the headings above the passage, each once."""
        return tuple(dict.fromkeys((self.hit.title, *self.headings)))

    @property
    def context(self) -> str:
        return "\n".join(self.titles)


class Evidence(NamedTuple):
    passages: tuple[Passage, ...]
    """The passages, best first."""
    strength: float
    """The strength of the strongest passage: words and meaning must meet in one passage."""
    coverage: float
    focus: float
    similarity: float | None
    """The best cosine; None if nothing was compared by meaning."""
    margin: float | None
    """How far the best cosine is above the middle of the list."""
    missing: tuple[str, ...]
    """The informative words that no passage has."""
    absent: tuple[str, ...] = ()
    """The things that the question names and no passage has; each of them is enough to refuse."""

    @property
    def by_meaning(self) -> bool:
        """Whether the closeness in meaning of any passage is known."""
        return any(passage.closeness is not None for passage in self.passages)

    def explained(self) -> dict[str, Any]:
        return {
            "strength": self.strength,
            "coverage": self.coverage,
            "focus": self.focus,
            "similarity": self.similarity,
            "by_meaning": self.by_meaning,
            "margin": self.margin,
            "missing_words": list(self.missing),
            "passages": [
                {
                    "chunk_id": passage.chunk_id,
                    "citation": passage.citation.text,
                    "strength": passage.strength,
                    "coverage": passage.coverage,
                    "closeness": passage.closeness,
                    "beside": passage.beside,
                }
                for passage in self.passages
            ],
        }


def gather(
    question: Question, hits: Sequence[SearchHit], tokenizer: Tokenizer, *, score_gate: float, max_tokens: int
) -> Evidence:
    """The evidence of hits with their whole text, and of their neighbours that have some of what a hit lacks."""
    strong = [hit for hit in hits if hit.score >= score_gate or _has_no_score(hit)]
    farthest = _farthest(strong)
    found = [_passage(question, hit, tokenizer, _closeness(hit, farthest)) for hit in strong]
    passages = _within_budget(_with_neighbours(question, found, tokenizer), max_tokens)
    similarities = [hit.retrieval.vector_score for hit in strong if hit.retrieval.vector_score is not None]
    absent = Identity(question).absent(passages)
    known = {named.lower() for named in absent}
    return Evidence(
        tuple(passages),
        max((passage.strength for passage in passages), default=0.0),
        max((passage.coverage for passage in passages), default=0.0),
        max((passage.focus for passage in passages), default=0.0),
        max(similarities, default=None),
        max(similarities) - median(similarities) if similarities else None,
        (
            *absent,
            *(word for word in question.missing(passage.terms for passage in passages) if word.lower() not in known),
        ),
        absent,
    )


def _has_no_score(hit: SearchHit) -> bool:
    return hit.score_kind == "bm25" and hit.score < _NO_SCORE


def _farthest(hits: Sequence[SearchHit]) -> float | None:
    """The closeness of the farthest passage that was found by meaning: others cannot be closer. None if some were
    compared by a model that knows the language of the question badly, because such a model misses close passages.
    """
    compared = [hit.retrieval for hit in hits if hit.retrieval.vector_score is not None]
    if any(detail.vector_floor is None for detail in compared):
        return None
    return min((closeness for hit in hits if (closeness := _closeness(hit)) is not None), default=None)


def _closeness(hit: SearchHit, unfound: float | None = None) -> float | None:
    """The closeness of a hit in meaning. `unfound`: the value for a hit that was not found by meaning."""
    score, floor = hit.retrieval.vector_score, hit.retrieval.vector_floor
    if score is None:
        return unfound
    return None if floor is None else max(0.0, (score - floor) / (1 - floor))


def _passage(
    question: Question, hit: SearchHit, tokenizer: Tokenizer, closeness: float | None, beside: Neighbour | None = None
) -> Passage:
    text, headings, citation = (
        (hit.text, hit.heading_path, hit.citation)
        if beside is None
        else (beside.text, beside.heading_path, beside.citation)
    )
    deadline.check()
    cut = sentences(text, headings, code=hit.doc_type == "code", delimited=_delimited(citation))
    if speaks_to_a_machine(text):
        cut = [one._replace(headings=_without_orders(one.headings)) for one in cut]
    (title,), above, (name,) = (
        _without_orders(part, instead="") for part in ((hit.title,), headings, (file_stem(citation.path),))
    )
    reading = read(text, cut, title, tuple(filter(None, above)), name, tokenizer)
    orders = list(orders_in(text, cut))  # they are no answer to anybody, and speak for none
    quotable = tuple(unit for unit in units(reading, tokenizer) if not _overlaps(unit, orders))
    said = [terms for one, terms in zip(cut, reading.terms, strict=True) if not _overlaps(one, orders)]
    terms = reading.context | joined([*said, *(unit.around for unit in quotable if unit.kind not in WHOLES)])
    return Passage(
        hit=hit,
        chunk_id=hit.chunk_id if beside is None else beside.chunk_id,
        text=text,
        headings=headings,
        citation=citation,
        sentences=tuple(cut),
        units=quotable,
        coverage=question.coverage(terms),
        focus=_focus(question, quotable),
        terms=terms,
        title=reading.context,
        closeness=closeness,
        beside=beside is not None,
        left_out=tuple((one, own) for one, own in zip(cut, reading.terms, strict=True) if _overlaps(one, orders))
        if orders
        else (),
    )


def _without_orders(titles: Sequence[str], *, instead: str | None = None) -> tuple[str, ...]:
    """The titles above a text without those that speak to a machine."""
    if not speaks_to_a_machine("\n".join(titles)):
        return tuple(titles)
    kept = (instead if speaks_to_a_machine(title) else title for title in titles)
    return tuple(title for title in kept if title is not None)


def _overlaps(part: Sentence | Unit, ranges: Sequence[tuple[int, int]]) -> bool:
    return any(start < part.end and part.start < end for start, end in ranges)


def _delimited(citation: Citation) -> Delimited | None:
    if not citation.path.lower().endswith(_TABLES):
        return None
    return Delimited(headed=citation.lines is not None and citation.lines[0] == 1)


def _focus(question: Question, quotable: Sequence[Unit]) -> float:
    single = [unit for unit in quotable if unit.kind not in WHOLES]
    windows = (first.around | last.own for first, last in zip(single, [*single[1:], *single[-1:]], strict=True))
    return max(map(question.coverage, windows), default=0.0)


def _with_neighbours(question: Question, found: Sequence[Passage], tokenizer: Tokenizer) -> list[Passage]:
    """The best hits with those neighbours that have informative words which the hits lack, or that the hits introduce."""
    known = {passage.chunk_id for passage in found}
    passages: list[Passage] = []
    for number, passage in enumerate(found):
        passages.append(passage)
        before, after = passage.hit.neighbours or Neighbours()
        for neighbour in (*before, *after) if number < _HITS_WITH_NEIGHBOURS else ():
            if neighbour.chunk_id in known:
                continue
            has = terms_of("\n".join((*neighbour.heading_path, neighbour.text)), tokenizer)
            leads_up_to_it = neighbour in after and question.wants_steps and passage.text.rstrip().endswith(":")
            if leads_up_to_it or question.coverage(passage.terms | has) > passage.coverage:
                known.add(neighbour.chunk_id)
                passages.append(_passage(question, passage.hit, tokenizer, passage.closeness, neighbour))
    return passages


def _within_budget(passages: list[Passage], max_tokens: int) -> list[Passage]:
    """The first whole passages that fit the budget, but at least one."""
    used = 0
    packed: list[Passage] = []
    for passage in passages:
        used += estimate_tokens(passage.text)
        if packed and used > max_tokens:
            break
        packed.append(passage)
    return packed
