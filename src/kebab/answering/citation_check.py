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
from kebab.answering.claim_facts import Facts, contradicts, contraries, facts_of, lacking, misplaced, without_numbers
from kebab.answering.question import QuestionWord, Terms, claim_words, share_of, terms_of
from kebab.answering.quotations import Placement, placed, quotations
from kebab.answering.sentences import Sentence
from kebab.core.answers import Claim, Verdict
from kebab.core.ports import Tokenizer

CHECKER_VERSION = "1"
_WINDOW = 3
"""Sentences in which a claim must be said."""
_ENOUGH = 0.66
"""Share of a claim's words; below that, texts about the same thing that say something else come in (the tables in the tests)."""
_ENOUGH_TOGETHER = 0.75
"""The same where several places are put together: more of them say more."""
_SAME_WORD = 0.5
"""Share of a Korean word, whose ending may differ."""
_FEW_WORDS = 3
"""With no more than these, every word counts; a clause with fewer says too little by itself."""
_CLAUSES = re.compile(r";|,?\s+(?:and|but|while|whereas)\s+|,\s+|(?<=[고며]),?\s+|(?<=지만),?\s+")
_SPACES = re.compile(r"\s+")
_BEGINS_WITH_SUBJECT = re.compile(r"(?:the|an?|each|every|all)\s", re.IGNORECASE)
_GOES_ON = re.compile(r"\s*(?:it|its|they|their|this|these|those|such|he|she|이는|그는|이것은)\b", re.IGNORECASE)
"""A sentence about what the one before it is about."""


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


class _Reading:
    """A source as it is read, each part when it is first needed: quotations need only the first."""

    def __init__(self, source: Source, tokenizer: Tokenizer) -> None:
        self._source = source
        self._tokenizer = tokenizer
        self._cut = source.sentences or (Sentence(0, len(source.text)),)

    @cached_property
    def text(self) -> str:
        """Without what reads like an order to whoever reads it, which is evidence of nothing."""
        text = self._source.text
        if not reads_like_orders(text):
            return text
        for order in (one for one in self._cut if one.kind != "code" and reads_like_orders(one.of(self._source.text))):
            text = text[: order.start] + " " * (order.end - order.start) + text[order.end :]
        return text

    @cached_property
    def terms(self) -> Terms:
        return terms_of(f"{self._source.context}\n{self.text}", self._tokenizer)

    @cached_property
    def sentences(self) -> list[_Window]:
        return [self._window(one, one) for one in self._cut]

    @cached_property
    def windows(self) -> list[_Window]:
        """Every one to three sentences in a row."""
        return [self._window(first, last) for number, first in enumerate(self._cut) for last in self._cut[number : number + _WINDOW]]

    def quotes(self, text: str) -> bool:
        """Whether this is one of its sentences, all of it: a part may leave out the word that turns its meaning round."""
        return _plain(text) in self._plain_sentences

    @cached_property
    def _plain_sentences(self) -> frozenset[str]:
        return frozenset(_plain(one.of(self._source.text)) for one in self._cut)

    def _window(self, first: Sentence, last: Sentence) -> _Window:
        text, context = self.text[first.start : last.end], self._source.context
        return _Window(text, context, terms_of(f"{context}\n{text}", self._tokenizer), facts_of(text, self._tokenizer))


class CitationChecker:
    """Checks the claims of one answer against its sources."""

    def __init__(self, sources: Sequence[Source], tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._sources = {source.marker: _Reading(source, tokenizer) for source in sources}
        self._texts = [source.text for source in sources]

    def check(self, text: str, markers: Sequence[int]) -> Claim:
        """`text` without its markers; markers that no source has are as good as none."""
        cited = [marker for marker in dict.fromkeys(markers) if marker in self._sources]
        quoted = tuple(marker for marker in cited if self._sources[marker].quotes(text))
        if quoted:
            words = tuple(word.text for word in claim_words(text, self._tokenizer))
            return Claim(text, tuple(markers), "supported", words, (), quoted)
        claim = self._claim(text)
        support = {marker: self._support(claim, marker, cited) for marker in self._sources}
        holding = tuple(marker for marker, one in support.items() if one.holds)
        verdict = self._verdict(claim, cited, holding)
        shown = holding if verdict == "misattributed" else cited or list(support)
        best = max((support[marker] for marker in shown), key=lambda one: (one.holds, one.share), default=_NOTHING)
        return Claim(text, tuple(markers), verdict, best.matched, best.missing, holding)

    def _verdict(self, claim: _Claim, cited: Sequence[int], holding: Sequence[int]) -> Verdict:
        quoted = [placed(quotation, self._texts) for quotation in quotations(claim.text)]
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
        return _Claim(text, tuple(claim_words(without_numbers(text), self._tokenizer)), facts_of(text, self._tokenizer))

    def _support(self, claim: _Claim, marker: int, cited: Sequence[int]) -> _Support:
        """By the best window of a source. What of the claim it lacks and another cited source has was taken from there."""
        source = self._sources[marker]
        best = _NOTHING
        for window in source.windows:
            found = _compared(claim, window)
            if (found.holds, found.share) > (best.holds, best.share):
                best = found
        if not best.holds:
            return best
        lacks = [word for word in claim.words if word.text in best.missing]
        elsewhere = [self._sources[other].terms for other in cited if other != marker]
        borrowed = any(share_of(word, terms) >= _SAME_WORD for word in lacks for terms in elsewhere)
        return best._replace(holds=not borrowed and not _lacks_subject(claim, lacks) and self._agrees(claim, source))

    def _agrees(self, claim: _Claim, source: _Reading) -> bool:
        """Whether none of the sentences that come nearest to the claim says its contrary or its negation, and one is about its subject."""
        shares = [_share(claim, sentence) for sentence in source.sentences]
        nearest = [sentence for sentence, share in zip(source.sentences, shares, strict=True) if share >= max(shares)]
        if any(contradicts(claim.facts, sentence.facts, self._contraries) for sentence in nearest):
            return False
        subject = _subject(claim)
        if subject is None or share_of(subject, source.terms) < _SAME_WORD:
            return True
        return any(share_of(subject, sentence.terms) >= _SAME_WORD or _GOES_ON.match(sentence.text) for sentence in nearest)

    def _is_stitched(self, claim: _Claim, markers: Sequence[int]) -> bool:
        """Whether all that these sources say, wherever they say it, has the claim's words, numbers and names, and no one place has."""
        windows = [window for marker in markers for window in self._sources[marker].sentences]
        together = _Window(
            "\n".join(window.text for window in windows),
            "\n".join(window.context for window in windows),
            Terms(frozenset().union(*(window.terms.stems for window in windows)), "\n".join(window.terms.text for window in windows)),
            Facts.union(window.facts for window in windows),
        )
        places = {number for word in claim.words for number, window in enumerate(windows) if share_of(word, window.terms) >= _SAME_WORD}
        lacks = [word for word in claim.words if share_of(word, together.terms) < _SAME_WORD]
        if any(_share(claim, window) == 1.0 for window in windows):
            return False  # what is wrong with it is something else
        enough = len(places) > 1 and _share(claim, together) >= _ENOUGH_TOGETHER and not _lacks_subject(claim, lacks)
        agrees = all(self._agrees(claim, self._sources[marker]) for marker in markers)
        return enough and agrees and not lacking(claim.facts, together.facts, together.context)


def _share(claim: _Claim, window: _Window) -> float:
    return sum(share_of(word, window.terms) >= _SAME_WORD for word in claim.words) / len(claim.words) if claim.words else 0.0


def _compared(claim: _Claim, window: _Window) -> _Support:
    matched = tuple(word.text for word in claim.words if share_of(word, window.terms) >= _SAME_WORD)
    missing = tuple(word.text for word in claim.words if word.text not in matched)
    share = len(matched) / len(claim.words) if claim.words else 0.0
    absent = lacking(claim.facts, window.facts, window.context)
    enough = share >= (1.0 if len(claim.words) <= _FEW_WORDS else _ENOUGH)
    holds = enough and not absent and not misplaced(claim.facts, window.facts)
    return _Support(matched, (*missing, *(fact for fact in absent if fact not in missing)), share, holds)


def _subject(claim: _Claim) -> QuestionWord | None:
    """Who or what the claim is about, where its form tells: marked by a particle in Korean, by an article at the beginning in English."""
    marked = next((word for word in claim.words if word.script == "hangul" and _is_marked(word, claim.text)), None)
    begins = _BEGINS_WITH_SUBJECT.match(claim.text)
    return marked or (claim.words[0] if begins and claim.words and claim.words[0].script == "other" else None)


def _is_marked(word: QuestionWord, text: str) -> bool:
    return re.search(rf"{re.escape(word.text)}(?:은|는|이|가|께서)(?![가-힣])", text) is not None


def _lacks_subject(claim: _Claim, lacks: Sequence[QuestionWord]) -> bool:
    """In Korean the one who does it is marked; a claim about somebody else is another claim."""
    return any(_is_marked(word, claim.text) for word in lacks if word.script == "hangul")


def _plain(text: str) -> str:
    return _SPACES.sub(" ", text).strip(" .").casefold()
