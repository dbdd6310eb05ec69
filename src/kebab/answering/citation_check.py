"""Whether a claim is said by the passage that it cites. No model is asked: the same claim always gets the same verdict.

A passage supports a claim when, within a few sentences that follow each other, it has the claim's words, all of its
numbers (with their units, and beside the same words), all of its names and days and every quotation, and when, clause
by clause, the place that comes nearest says neither the contrary nor the same of somebody else. What reads like orders
to a machine supports nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from kebab.analysis.korean import root
from kebab.answering.agreement import contradicts, is_about_another, is_denied, tells
from kebab.answering.claim_facts import is_implied, lacking, misplaced, names_in
from kebab.answering.claim_words import ClaimWord, claim_words, distinct, is_action, is_thing
from kebab.answering.claims import spoken_out
from kebab.answering.clauses import Clause, clauses_of, joined
from kebab.answering.labelled_statements import is_said_of_another_label
from kebab.answering.likeness import learned_senses
from kebab.answering.parallel_clauses import is_crossed
from kebab.answering.polarity import YES_OR_NO, speaks_of_each
from kebab.answering.quotations import Placement, is_another_speaker, placed, presents, quotations
from kebab.answering.relative_clauses import is_of_another, is_of_whom_it_began_with
from kebab.answering.source_reading import Reading, Source, Window, is_code
from kebab.answering.turned_round import is_excluded
from kebab.answering.word_senses import Senses, senses
from kebab.answering.wording import closeness, is_only_worded
from kebab.core.answers import Claim, Verdict
from kebab.core.errors import ModelError
from kebab.core.ports import Tokenizer, WordsAlike

CHECKER_VERSION = "5"
_ENOUGH_TOGETHER = 0.75
"""The least share of a claim's words that several places must have together."""
_LEAST_OF_A_CLAUSE = 3
"""The least number of words of a clause that is checked by itself; shorter clauses say too little."""
_MOST_OF_IT = 0.5
"""The least share of a claim's words that the passage must have literally, even if the other words have the same sense.
"""
_MANY_WORDS = 5
"""In a claim of at least this many words, one word that names no thing may be missing from the passage."""
_ANSWERED = re.compile(rf"\s*{YES_OR_NO}\s*[,.!:;]\s+(?=\S)", re.IGNORECASE)
_AT_A_TIME = frozenset({"start", "begin", "run", root("시작")})
"""Verbs of beginning, which a time of day implies: what happens at two o'clock starts at two."""


class _Support(NamedTuple):
    matched: tuple[str, ...]
    missing: tuple[str, ...]
    share: float
    holds: bool


_NOTHING = _Support((), (), -1.0, False)


class _Claim(NamedTuple):
    """A claim, or one clause of it, with its words, numbers and names."""

    text: str
    words: tuple[ClaimWord, ...]
    clauses: tuple[Clause, ...]
    names: tuple[str, ...]
    is_speech: bool
    """Whether the claim presents words as a quotation of the passage."""

    @property
    def of_everything(self) -> bool:
        return any(clause.polarity.of_everything for clause in self.clauses)


class CitationChecker:
    """Checks the claims of one answer against its sources."""

    def __init__(self, sources: Sequence[Source], tokenizer: Tokenizer, alike: WordsAlike | None = None) -> None:
        """`alike`: a model that compares words by meaning. Without one, two words mean the same only if the tables say
        so.
        """
        self._tokenizer = tokenizer
        self._alike = alike
        self._sources = {source.marker: Reading(source, tokenizer) for source in sources}

    def check(self, text: str, markers: Sequence[int]) -> Claim:
        """The verdict on a claim, whose `text` is without markers. A claim with a marker that no source has is not
        supported.
        """
        cited = [marker for marker in dict.fromkeys(markers) if marker in self._sources]
        all_known = self.knows(markers)
        quoted = tuple(marker for marker in cited if self._sources[marker].quotes(text))
        if quoted:
            words = tuple(word.text for word in claim_words(text, self._tokenizer))
            return Claim(text, tuple(markers), "supported" if all_known else "misattributed", words, (), quoted)
        if is_code(text):
            return self._check_code(text, markers, cited)
        claim = self._claim(text)
        support = {marker: self._support(claim, marker, cited) for marker in self._sources}
        holding = tuple(marker for marker, one in support.items() if one.holds)
        verdict = self._verdict(claim, cited, holding)
        if verdict == "supported" and not holding:
            holding = self._by_clauses(claim, cited)
        if verdict == "supported" and not all_known:
            verdict = "misattributed"
        shown = holding if verdict == "misattributed" else cited or list(support)
        best = max((support[marker] for marker in shown), key=lambda one: (one.holds, one.share), default=_NOTHING)
        return Claim(text, tuple(markers), verdict, best.matched, best.missing, holding)

    def knows(self, markers: Sequence[int]) -> bool:
        return all(marker in self._sources for marker in markers)

    def says_nothing(self, text: str) -> bool:
        """Whether the text only introduces what follows, such as "Steps:"."""
        claim = self._claim(text)
        return (
            not claim.words
            and not claim.names
            and not any(clause.quantities or clause.polarity.denies for clause in claim.clauses)
        )

    def answers_wrongly(self, text: str, question: str, markers: Sequence[int]) -> bool:
        """Whether an answer that is otherwise supported begins with a yes or no that its own rest, or else the passage,
        denies.
        """
        begins = _ANSWERED.match(text)
        asked = self._claim(question.strip().rstrip("?？ "))
        if (
            begins is None or not asked.words or asked.clauses[0].polarity.denies
        ):  # yes and no to "is there no fee?" may mean the same
            return False
        says_yes = begins["yes"] is not None
        first = max(
            self._claim(text).clauses,
            key=lambda clause: closeness(asked.clauses[0], clause, self._senses),
            default=None,
        )
        agrees = tells(asked.clauses[0], first, self._senses) if first else None
        if agrees is not None:
            return agrees != says_yes
        contrary = spoken_out("no" if says_yes else "yes", question)
        return self.check(contrary, markers).verdict == "supported"

    def has_numbers(self, text: str) -> bool:
        return any(clause.quantities for clause in self._claim(text).clauses)

    def _check_code(self, text: str, markers: Sequence[int], cited: Sequence[int]) -> Claim:
        """Checks a block of code line by line: a command with another option is another command."""
        lacks = {marker: reading.lacks_of_code(text) for marker, reading in self._sources.items()}
        holding = tuple(marker for marker, lines in lacks.items() if not lines)
        shown = min((lacks[marker] for marker in cited or lacks), key=len, default=())
        supported = bool(set(holding) & set(cited)) and self.knows(markers)
        verdict: Verdict = "supported" if supported else "misattributed" if holding else "unsupported"
        return Claim(text, tuple(markers), verdict, (), () if holding else shown, holding)

    def _verdict(self, claim: _Claim, cited: Sequence[int], holding: Sequence[int]) -> Verdict:
        texts = [self._sources[marker].source.text for marker in cited]
        every = [reading.source.text for reading in self._sources.values()]
        for quotation in quotations(claim.text):
            if placed(quotation, texts) is not Placement.VERBATIM:
                anywhere = placed(quotation, every)
                return (
                    "stitched"
                    if anywhere is Placement.IN_PIECES
                    else "misattributed"
                    if holding and not cited
                    else "unsupported"
                )
            if all(is_another_speaker(claim.text, quotation, self._sources[marker].texts) for marker in cited):
                return "unsupported"
        if set(holding) & set(cited):
            return "supported"
        if holding:
            return "misattributed"
        if self._by_clauses(claim, cited):
            return "supported"
        return "stitched" if self._is_stitched(claim, cited or list(self._sources)) else "unsupported"

    def _by_clauses(self, claim: _Claim, cited: Sequence[int]) -> tuple[int, ...]:
        """The markers of the sources that each support one clause, if every clause says something and has such a
        source; otherwise none.
        """
        clauses = [self._claim(clause.text) for clause in claim.clauses]
        if len(clauses) < 2 or any(len(clause.words) < _LEAST_OF_A_CLAUSE for clause in clauses):
            return ()
        holding = [{marker for marker in cited if self._support(clause, marker, [marker]).holds} for clause in clauses]
        return tuple(sorted(set().union(*holding))) if all(holding) else ()

    @cached_property
    def _senses(self) -> Senses:
        return senses(self._tokenizer)

    def _senses_for(self, claim: _Claim, reading: Reading) -> Senses:
        if self._alike is None:
            return self._senses
        try:
            return learned_senses(claim.text, claim.words, reading, self._senses, self._alike)
        except ModelError:  # the search has told already
            self._alike = None
            return self._senses

    def _claim(self, text: str) -> _Claim:
        begins = _ANSWERED.match(text)
        said = text[begins.end() :] if begins else text
        clauses = tuple(joined(clauses_of(said, self._tokenizer), self._tokenizer))
        words = distinct(word for clause in clauses for word in clause.words)
        return _Claim(text, tuple(words), clauses, names_in(said), presents(text))

    def _support(self, claim: _Claim, marker: int, cited: Sequence[int]) -> _Support:
        """How a source supports a claim, judged by its best window. What the claim says beyond it, and another cited
        source says, counts as taken from that source.
        """
        reading = self._sources[marker]
        if claim.is_speech and placed(next(quotations(claim.text)), [reading.source.text]) is Placement.VERBATIM:
            reading = Reading(reading.source, self._tokenizer, with_orders=True)
        best, known = _NOTHING, self._senses_for(claim, reading)
        for window in reading.windows:
            found = self._compared(claim, window, reading, known)
            if (found.holds, found.share) > (best.holds, best.share):
                best = found
        if not best.holds:
            return best
        lacks = [word for word in claim.words if word.text in best.missing]
        borrowed = any(
            self._sources[other].said.says(word, self._senses) for word in lacks for other in cited if other != marker
        )
        return best._replace(holds=not borrowed and self._agrees(claim, reading, known))

    def _compared(self, claim: _Claim, window: Window, reading: Reading, known: Senses) -> _Support:
        at_a_time = any(quantity.unit == "clock" for clause in claim.clauses for _, quantity in clause.quantities)
        negated = any(clause.polarity.denies for clause in (*claim.clauses, *window.clauses))
        lacks = [
            word
            for word in claim.words
            if not window.said.says(word, known, or_opposite=negated) and not (at_a_time and word.key in _AT_A_TIME)
        ]
        missing = [word.text for word in lacks if not is_implied(word, claim.clauses, window)]
        matched = tuple(word.text for word in claim.words if word.text not in missing)
        share = len(matched) / len(claim.words) if claim.words else 1.0
        allowed = int(len(claim.words) + sum(len(clause.quantities) for clause in claim.clauses) >= _MANY_WORDS)
        if any(
            word.text in missing
            and (word.key in _measured(claim) or is_thing(word, claim.text) or is_action(word, claim.text))
            for word in claim.words
        ):
            allowed = 0
        measured = any(word.text in missing and word.key in _measured(claim) for word in claim.words)
        if share >= _MOST_OF_IT and not measured and is_only_worded(claim.clauses, missing, window, reading, known):
            allowed = max(allowed, len(missing))
        absent = lacking(claim.clauses, claim.names, window.clauses, window.text)
        of_everything = any(clause.polarity.of_everything for clause in window.clauses)
        if claim.of_everything and not of_everything and not speaks_of_each(claim.text, window.text):
            absent.append("all")
        says_something = bool(claim.words or claim.names or any(clause.quantities for clause in claim.clauses))
        holds = (
            says_something and len(missing) <= allowed and not absent and not misplaced(claim.clauses, window.clauses)
        )
        return _Support(matched, tuple(dict.fromkeys((*missing, *absent))), share, holds)

    def _agrees(self, claim: _Claim, reading: Reading, known: Senses) -> bool:
        """Whether for each clause of the claim one of the nearest clauses says neither its contrary nor the same of
        somebody else.
        """
        sentences = [sentence.clauses for sentence in reading.sentences]
        for clause in claim.clauses:
            if is_said_of_another_label(clause, sentences, known.without_learned):
                return False
            nearest = self._nearest(clause, reading, known)
            if nearest and all(_says_otherwise(clause, one, sentence, reading, known) for one, sentence in nearest):
                return False
        return True

    def _nearest(self, clause: Clause, reading: Reading, known: Senses) -> list[tuple[Clause, Window]]:
        """The clauses of a window that come nearest to a clause of the claim, each with its sentence."""
        every = [(one, sentence) for sentence in reading.sentences for one in sentence.clauses]
        scores = [closeness(clause, one, known) for one, _ in every]
        most = max(scores, default=0.0)
        return [one for one, score in zip(every, scores, strict=True) if score == most > 0]

    def _is_stitched(self, claim: _Claim, markers: Sequence[int]) -> bool:
        """Whether these sources together have the claim's words, numbers and names, but no single place has them."""
        windows = [window for marker in markers for window in self._sources[marker].sentences]
        if not windows or not claim.words:
            return False
        shares = [
            sum(window.said.says(word, self._senses) for word in claim.words) / len(claim.words) for window in windows
        ]
        if max(shares) == 1.0:
            return False  # what is wrong with it is something else
        found = [word for word in claim.words if any(window.said.says(word, self._senses) for window in windows)]
        if max(shares) >= len(found) / len(claim.words):
            return False
        clauses = [clause for window in windows for clause in window.clauses]
        absent = lacking(claim.clauses, claim.names, clauses, "\n".join(window.text for window in windows))
        if len(found) / len(claim.words) < _ENOUGH_TOGETHER or absent:
            return False
        if len(markers) == 1:
            return self._agrees(claim, self._sources[markers[0]], self._senses) and not misplaced(
                claim.clauses, clauses
            )
        nearest = (
            (clause, one)
            for marker in markers
            for clause in claim.clauses
            for one, _ in self._nearest(clause, self._sources[marker], self._senses)
        )
        return not any(
            is_denied(clause, one, self._senses) for clause, one in nearest
        )  # one of them may say it of somebody else


def _says_otherwise(clause: Clause, one: Clause, sentence: Window, reading: Reading, known: Senses) -> bool:
    return (
        contradicts(clause, one, known)
        or is_about_another(clause, one, reading, known)
        or is_crossed(clause, sentence.clauses, known.without_learned)
        or is_excluded(clause, sentence.clauses, known)
        or is_of_another(clause, one, sentence.clauses, known)
        or is_of_whom_it_began_with(clause, one)
    )


def _measured(claim: _Claim) -> frozenset[str]:
    """The words right behind the claim's numbers, which say what is counted."""
    return frozenset(
        token
        for clause in claim.clauses
        for place, _ in clause.quantities
        for token in clause.tokens[place + 1 : place + 2]
    )
