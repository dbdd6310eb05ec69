"""Whether a claim is said by the passage that it cites. No model is asked: the same claim always gets the same verdict.

A passage supports a claim when, within a few sentences that follow each other, it has most of the claim's words, all of its numbers (with
their units, and beside the same words), all of its names and every quotation, and says neither the contrary nor its negation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kebab.answering.claim_facts import Facts, contradicts, facts_of, lacking, misplaced
from kebab.answering.question import QuestionWord, Terms, claim_words, share_of, terms_of
from kebab.answering.quotations import Placement, placed, quotations
from kebab.answering.sentences import Sentence
from kebab.core.answers import Claim, Verdict
from kebab.core.ports import Tokenizer

CHECKER_VERSION = "1"
_WINDOW = 3
"""Sentences in which a claim must be said."""
_ENOUGH = 0.62
"""Share of a claim's words; below that, texts about the same thing that say something else come in (the table in the tests)."""
_FEW_WORDS = 3
"""A clause with fewer content words says too little by itself."""
_CLAUSES = re.compile(r";|,?\s+(?:and|but|while|whereas)\s+|,\s+|(?<=[고며]),?\s+|(?<=지만),?\s+")
_SPACES = re.compile(r"\s+")


class Source(NamedTuple):
    """A passage that may be cited."""

    marker: int
    text: str
    context: str
    """Title and headings: what its sentences need not repeat."""
    sentences: tuple[Sentence, ...]


class _Support(NamedTuple):
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    share: float
    holds: bool


class CitationChecker:
    """Checks the claims of one answer against its sources."""

    def __init__(self, sources: Sequence[Source], tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._sources = {source.marker: source for source in sources}
        self._windows: Mapping[int, list[_Window]] = {}
        self._plain = {source.marker: _plain(source.text) for source in sources}

    def check(self, text: str, markers: Sequence[int]) -> Claim:
        """`text` without its markers; markers that no source has are as good as none."""
        cited = [marker for marker in dict.fromkeys(markers) if marker in self._sources]
        verbatim = [marker for marker in self._sources if _plain(text) in self._plain[marker]] if text.strip() else []
        words = tuple(claim_words(text, self._tokenizer))
        if set(verbatim) & set(cited):
            return Claim(text, tuple(markers), "supported", tuple(word.text for word in words), (), tuple(verbatim))
        support = {marker: self._support(text, words, [marker]) for marker in self._sources}
        holding = tuple(marker for marker, one in support.items() if one.holds)
        best = max((support[marker] for marker in cited or support), key=lambda one: (one.holds, one.share), default=_NOTHING)
        verdict = self._verdict(text, cited, holding)
        if verdict == "misattributed":
            best = support[holding[0]]
        return Claim(text, tuple(markers), verdict, best.matched, best.missing, holding)

    def _verdict(self, text: str, cited: Sequence[int], holding: Sequence[int]) -> Verdict:
        quoted = [placed(quotation, [source.text for source in self._sources.values()]) for quotation in quotations(text)]
        if Placement.NOWHERE in quoted:
            return "unsupported"
        if Placement.IN_PIECES in quoted:
            return "stitched"
        if set(holding) & set(cited):
            return "supported"
        if holding:
            return "misattributed"
        clauses = _clauses(text, self._tokenizer)
        if len(clauses) > 1 and all(any(self._support(one, words, [marker]).holds for marker in cited) for one, words in clauses):
            return "supported"
        together = self._support(text, tuple(claim_words(text, self._tokenizer)), cited or list(self._sources), anywhere=True)
        return "stitched" if together.holds else "unsupported"

    def _support(self, text: str, words: tuple[QuestionWord, ...], markers: Sequence[int], *, anywhere: bool = False) -> _Support:
        """`anywhere`: by all that these sources say, wherever they say it."""
        facts = facts_of(text, self._tokenizer)
        windows = [_joined(self._windows_of(marker) for marker in markers)] if anywhere else self._windows_of(markers[0]) if markers else []
        best = _NOTHING
        for window in windows:
            found = _supported(words, facts, window)
            if (found.holds, found.share) > (best.holds, best.share):
                best = found
        return best

    def _windows_of(self, marker: int) -> list[_Window]:
        if marker not in self._windows:
            made = list(_windows(self._sources[marker], self._tokenizer))
            self._windows = {**self._windows, marker: made}
        return self._windows[marker]


class _Window(NamedTuple):
    text: str
    context: str
    terms: Terms
    facts: Facts


_NOTHING = _Support((), (), -1.0, False)


def _supported(words: tuple[QuestionWord, ...], facts: Facts, window: _Window) -> _Support:
    matched = tuple(word.text for word in words if share_of(word, window.terms) >= 0.5)
    missing = tuple(word.text for word in words if share_of(word, window.terms) < 0.5)
    share = len(matched) / len(words) if words else 0.0
    absent = lacking(facts, window.facts, window.text + "\n" + window.context)
    holds = share >= _ENOUGH and not absent and not misplaced(facts, window.facts) and not contradicts(facts, window.facts)
    return _Support(matched, (*missing, *(fact for fact in absent if fact not in missing)), share, holds)


def _windows(source: Source, tokenizer: Tokenizer) -> Iterator[_Window]:
    """Every one to three sentences in a row."""
    cut = source.sentences or (Sentence(0, len(source.text)),)
    for number, first in enumerate(cut):
        for last in cut[number : number + _WINDOW]:
            yield _window(source.text[first.start : last.end], source.context, tokenizer)


def _window(text: str, context: str, tokenizer: Tokenizer) -> _Window:
    return _Window(text, context, terms_of(f"{context}\n{text}", tokenizer), facts_of(text, tokenizer))


def _joined(sources: Iterator[list[_Window]]) -> _Window:
    windows = [window for made in sources for window in made]
    return _Window(
        "\n".join(window.text for window in windows),
        "\n".join(window.context for window in windows),
        Terms(frozenset().union(*(window.terms.stems for window in windows)), "\n".join(window.terms.text for window in windows)),
        Facts.union(window.facts for window in windows),
    )


def _clauses(text: str, tokenizer: Tokenizer) -> list[tuple[str, tuple[QuestionWord, ...]]]:
    """Those that say something by themselves; none when one of them does not."""
    clauses = [(clause, tuple(claim_words(clause, tokenizer))) for clause in _CLAUSES.split(text) if clause.strip()]
    return clauses if all(len(words) >= _FEW_WORDS for _, words in clauses) else []


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text).strip().casefold()
