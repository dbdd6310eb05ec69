"""Reads which action a question asks about: restore, back up, switch on. A sentence that says the contrary, or forbids
the action, is no answer. A verb with its particle is one word: "roll back" does not say how to back something up, and
"switched off at 23:00" not when something is switched on.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from kebab.analysis.word_forms import base_of
from kebab.answering.kinds import Kind
from kebab.answering.question import Question, QuestionWord, Terms, joined, share_of, terms_of
from kebab.answering.question_parts import Deed
from kebab.answering.units import WHOLES, Unit
from kebab.answering.word_senses import Senses, senses
from kebab.core.ports import Tokenizer

if TYPE_CHECKING:
    from kebab.answering.evidence import Passage

_CONTRARY = {"on": "off", "off": "on", "in": "out", "out": "in", "up": "down", "down": "up"}
_MAY_BE_EITHER = frozenset({Kind.DURATION, Kind.YES_OR_NO, Kind.REASON, Kind.MEANING, Kind.FREQUENCY})
"""Kinds of questions that the contrary may answer: what is kept for a month is deleted after a month."""
_TURNS_ROUND = re.compile(r"\b(?:until|till|unless|not|no longer|never|before)\b|n['’]t\b", re.IGNORECASE)
"""Words that reverse an action: valid until May means that it expires in May."""
_FORBIDS = r"\b(?:never|do not|don['’]t|must not|mustn['’]t|cannot|can['’]t|may not|avoid)\s(?:\w+\s){{0,2}}{}"


class DeedAsked:
    """The action that one question asks about, and what a text says of it."""

    def __init__(self, question: Question, tokenizer: Tokenizer) -> None:
        self._question = question
        self._deed = question.parts.deed
        self._tokenizer = tokenizer
        self._is_how = question.wants_steps
        self._is_sure = question.kind not in _MAY_BE_EITHER
        verb = self._deed.verb if self._deed else None
        self._word: QuestionWord | None = next((word for word in question.words if word.text == verb), None)

    @cached_property
    def _phrasal(self) -> re.Pattern[str] | None:
        return _with_particle(self._deed, self._deed.particle) if self._deed and self._deed.particle else None

    @cached_property
    def _contrary_phrasal(self) -> re.Pattern[str] | None:
        contrary = _CONTRARY.get(self._deed.particle) if self._deed and self._deed.particle else None
        return _with_particle(self._deed, contrary) if self._deed and contrary else None

    @property
    def text(self) -> str:
        """The action as the question has it."""
        return " ".join(filter(None, self._deed)) if self._deed else ""

    def allows(self, unit: Unit, passage: Passage) -> bool:
        """Whether a text may be quoted: it says the action where it must be said, and neither forbids it nor says the
        contrary.
        """
        if self._deed is None:
            return True
        text = unit.of(passage.text)
        if unit.kind not in (*WHOLES, "code", "row") and (self._is_forbidden(text) or self._is_contrary(text, unit)):
            return False
        if unit.kind in WHOLES and self._is_only_forbidden(unit, passage):
            return False
        return not self._must_be_said or self._is_said(unit, passage)

    def _is_only_forbidden(self, whole: Unit, passage: Passage) -> bool:
        """Whether something that the question is about occurs only where the action is forbidden: then the steps are
        for something else.
        """
        parts = [
            one for one in passage.units if one.kind not in WHOLES and whole.start <= one.start and one.end <= whole.end
        ]
        forbidding = [one for one in parts if self._is_forbidden(one.of(passage.text))]
        if not forbidding:
            return False
        rest = joined([passage.title, *(one.own for one in parts if one not in forbidding)])
        lacking = [word for word in self._question.words if not word.weak and share_of(word, rest) == 0]
        return any(share_of(word, one.own) for word in lacking for one in forbidding)

    @cached_property
    def _must_be_said(self) -> bool:
        """Whether an answer must say the action: in questions about how something is done, unless the action applies to
        anything.
        """
        deed = self._deed
        if deed is None or not self._is_how or not deed.says_something:
            return False
        return self._phrasal is not None or (self._word is not None and not self._word.weak)

    def _is_said(self, unit: Unit, passage: Passage) -> bool:
        """Whether a text says the action, also in a word with the same sense. Of several steps, what precedes or
        introduces them must say it: an action that one of them mentions is not what the steps are for.
        """
        text = unit.of(passage.text)
        above = (passage.hit.title, *(unit.headings or passage.headings)[-1:], unit.answers or "")
        said = text.strip("` \n").split("\n", 1)[0] if unit.kind in WHOLES else text
        if self._phrasal is not None:
            return any(self._phrasal.search(part) for part in (said, *above))
        terms = terms_of("\n".join((said, *above)), self._tokenizer) if unit.kind in WHOLES else unit.around
        return self._word is None or share_of(self._word, terms) > 0 or self._has_sense(terms, contrary=False)

    def _is_forbidden(self, text: str) -> bool:
        if self._deed is None or not self._is_how:
            return False
        return re.search(_FORBIDS.format(_forms(self._deed.verb)), text, re.IGNORECASE) is not None

    def _is_contrary(self, text: str, unit: Unit) -> bool:
        if not self._is_sure or _TURNS_ROUND.search(text):
            return False
        if self._contrary_phrasal is not None:
            return self._contrary_phrasal.search(text) is not None and (
                self._phrasal is None or not self._phrasal.search(text)
            )
        if self._word is None or share_of(self._word, unit.near) > 0:
            return False
        return self._has_sense(unit.own, contrary=True) and not self._has_sense(unit.near, contrary=False)

    @cached_property
    def _senses(self) -> Senses:
        return senses(self._tokenizer)

    def _has_sense(self, terms: Terms, *, contrary: bool) -> bool:
        if self._word is None:
            return False
        known = self._senses
        keys = (self._word.key, *self._word.others)
        is_it = known.are_opposite if contrary else known.are_same
        return any(is_it(key, stem) for key in keys for stem in terms.stems)


@lru_cache(maxsize=64)
def _with_particle(deed: Deed, particle: str) -> re.Pattern[str]:
    """A pattern for a verb with its particle: back up, backing it up, a backup, the back-up."""
    return re.compile(
        rf"\b{_forms(deed.verb)}(?:\s(?:[\w'’`./-]+\s){{0,4}}?{particle}\b|-?{particle}s?\b)", re.IGNORECASE
    )


def _forms(verb: str) -> str:
    root = re.escape(verb.removesuffix("e"))
    doubled = f"{root}{root[-1]}?"
    others = [word for word in (base_of(verb),) if word]
    return rf"(?:{'|'.join((f'{doubled}(?:e|es|s|ed|ing|ings)?', *others))})"
