"""Whether a claim is said by the passage that it cites. No model is asked: the same claim always gets the same verdict.

A passage supports a claim when, within a few sentences that follow each other, it has most of the claim's words, all of its numbers (with
their units, and beside the same words), all of its names and every quotation, and says neither the contrary nor its negation.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from kebab.analysis.orders import reads_like_orders
from kebab.answering.claim_facts import Facts, contradicts, contraries, facts_of, lacking, misplaced
from kebab.answering.question import QuestionWord, Terms, claim_words, share_of, terms_of
from kebab.answering.quotations import Placement, placed, quotations
from kebab.answering.sentences import Sentence
from kebab.core.answers import Claim, Verdict
from kebab.core.ports import Tokenizer

CHECKER_VERSION = "1"
_WINDOW = 3
"""Sentences in which a claim must be said."""
_ENOUGH = 0.66
"""Share of a claim's words; below that, texts about the same thing that say something else come in (the table in the tests)."""
_ENOUGH_TOGETHER = 0.75
"""The same where several places are put together: more of them say more."""
_SAME_WORD = 0.5
"""Share of a Korean word, whose ending may differ."""
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


_NOTHING = _Support((), (), -1.0, False)


class _Claim(NamedTuple):
    """A claim, or a clause of one, read."""

    text: str
    words: tuple[QuestionWord, ...]
    facts: Facts


class _Window(NamedTuple):
    text: str
    context: str
    terms: Terms
    facts: Facts


class _Read(NamedTuple):
    """A source, read."""

    plain: str
    terms: Terms
    single: list[_Window]
    """Its sentences."""
    windows: list[_Window]
    """Every one to three of them in a row."""


class CitationChecker:
    """Checks the claims of one answer against its sources."""

    def __init__(self, sources: Sequence[Source], tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._sources = {source.marker: source for source in sources}
        self._reads: dict[int, _Read] = {}

    def check(self, text: str, markers: Sequence[int]) -> Claim:
        """`text` without its markers; markers that no source has are as good as none."""
        cited = [marker for marker in dict.fromkeys(markers) if marker in self._sources]
        claim = self._claim(text)
        verbatim = tuple(marker for marker in cited if self._is_verbatim(text, marker))
        if verbatim:
            return Claim(text, tuple(markers), "supported", tuple(word.text for word in claim.words), (), verbatim)
        support = {marker: self._support(claim, marker, cited) for marker in self._sources}
        holding = tuple(marker for marker, one in support.items() if one.holds)
        verdict = self._verdict(claim, cited, holding)
        shown = holding if verdict == "misattributed" else cited or list(support)
        best = max((support[marker] for marker in shown), key=lambda one: (one.holds, one.share), default=_NOTHING)
        return Claim(text, tuple(markers), verdict, best.matched, best.missing, holding)

    def _is_verbatim(self, text: str, marker: int) -> bool:
        """A sentence that reads like an order to whoever reads it is evidence of itself, as a whole, and of nothing else."""
        plain, source = _plain(text), self._sources[marker]
        return bool(plain) and (plain in self._read(marker).plain or any(plain == _plain(one.of(source.text)) for one in source.sentences))

    def _verdict(self, claim: _Claim, cited: Sequence[int], holding: Sequence[int]) -> Verdict:
        quoted = [placed(quotation, [source.text for source in self._sources.values()]) for quotation in quotations(claim.text)]
        if Placement.NOWHERE in quoted:
            return "unsupported"
        if Placement.IN_PIECES in quoted:
            return "stitched"
        if set(holding) & set(cited):
            return "supported"
        if holding:
            return "misattributed"
        clauses = [self._claim(clause) for clause in _CLAUSES.split(claim.text) if clause.strip()]
        says_something = len(clauses) > 1 and all(len(clause.words) >= _FEW_WORDS for clause in clauses)
        if says_something and all(any(self._support(clause, marker, [marker]).holds for marker in cited) for clause in clauses):
            return "supported"
        return "stitched" if self._is_stitched(claim, cited or list(self._sources)) else "unsupported"

    @cached_property
    def _contraries(self) -> Sequence[tuple[str, str]]:
        return contraries(self._tokenizer)

    def _claim(self, text: str) -> _Claim:
        return _Claim(text, tuple(claim_words(text, self._tokenizer)), facts_of(text, self._tokenizer))

    def _support(self, claim: _Claim, marker: int, cited: Sequence[int]) -> _Support:
        """By the best window of a source. What of the claim it lacks and another cited source has was taken from there."""
        source = self._read(marker)
        best = _NOTHING
        for window in source.windows:
            found = _compared(claim, window)
            if (found.holds, found.share) > (best.holds, best.share):
                best = found
        if not best.holds:
            return best
        lacks = [word for word in claim.words if word.text in best.missing]
        elsewhere = [self._read(other).terms for other in cited if other != marker]
        borrowed = any(share_of(word, terms) >= _SAME_WORD for word in lacks for terms in elsewhere)
        return best._replace(holds=not borrowed and not _lacks_subject(claim, lacks) and self._agrees(claim, source))

    def _agrees(self, claim: _Claim, source: _Read) -> bool:
        """Whether none of the sentences that come nearest to the claim says its contrary or its negation."""
        shares = [_share(claim, sentence) for sentence in source.single]
        nearest = [sentence for sentence, share in zip(source.single, shares, strict=True) if share >= max(shares)]
        return not any(contradicts(claim.facts, sentence.facts, self._contraries) for sentence in nearest)

    def _is_stitched(self, claim: _Claim, markers: Sequence[int]) -> bool:
        """Whether all that these sources say, wherever they say it, has the claim's words, numbers and names."""
        windows = [window for marker in markers for window in self._read(marker).single]
        together = _Window(
            "\n".join(window.text for window in windows),
            "\n".join(window.context for window in windows),
            Terms(frozenset().union(*(window.terms.stems for window in windows)), "\n".join(window.terms.text for window in windows)),
            Facts.union(window.facts for window in windows),
        )
        places = {number for word in claim.words for number, window in enumerate(windows) if share_of(word, window.terms) >= _SAME_WORD}
        lacks = [word for word in claim.words if share_of(word, together.terms) < _SAME_WORD]
        enough = len(places) > 1 and _share(claim, together) >= _ENOUGH_TOGETHER and not _lacks_subject(claim, lacks)
        agrees = all(self._agrees(claim, self._read(marker)) for marker in markers)
        return enough and agrees and not lacking(claim.facts, together.facts, together.context)

    def _read(self, marker: int) -> _Read:
        if marker not in self._reads:
            source = self._sources[marker]
            cut = source.sentences or (Sentence(0, len(source.text)),)
            text = source.text
            for order in (one for one in cut if one.kind != "code" and reads_like_orders(one.of(source.text))):
                text = text[: order.start] + " " * (order.end - order.start) + text[order.end :]
            windows = [
                _window(text[first.start : last.end], source.context, self._tokenizer)
                for number, first in enumerate(cut)
                for last in cut[number : number + _WINDOW]
            ]
            single = [_window(sentence.of(text), source.context, self._tokenizer) for sentence in cut]
            terms = terms_of(f"{source.context}\n{text}", self._tokenizer)
            self._reads[marker] = _Read(_plain(text), terms, single, windows)
        return self._reads[marker]


def _window(text: str, context: str, tokenizer: Tokenizer) -> _Window:
    return _Window(text, context, terms_of(f"{context}\n{text}", tokenizer), facts_of(text, tokenizer))


def _share(claim: _Claim, window: _Window) -> float:
    return sum(share_of(word, window.terms) >= _SAME_WORD for word in claim.words) / len(claim.words) if claim.words else 0.0


def _compared(claim: _Claim, window: _Window) -> _Support:
    matched = tuple(word.text for word in claim.words if share_of(word, window.terms) >= _SAME_WORD)
    missing = tuple(word.text for word in claim.words if word.text not in matched)
    share = len(matched) / len(claim.words) if claim.words else 0.0
    absent = lacking(claim.facts, window.facts, window.context)
    enough = share >= (1.0 if len(claim.words) < _FEW_WORDS else _ENOUGH)
    holds = enough and not absent and not misplaced(claim.facts, window.facts)
    return _Support(matched, (*missing, *(fact for fact in absent if fact not in missing)), share, holds)


def _lacks_subject(claim: _Claim, lacks: Sequence[QuestionWord]) -> bool:
    """In Korean the one who does it is marked; a claim about somebody else is another claim."""
    return any(
        re.search(rf"{re.escape(word.text)}(?:은|는|이|가|께서)(?![가-힣])", claim.text) for word in lacks if word.script == "hangul"
    )


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text).strip().casefold()
