"""Finds words of a claim that a model finds similar to words of a passage: an answer may use other words, but not speak
of another thing. A model also finds opposites and things of one kind similar: Monday and Friday, seminar and
laboratory. Therefore words in the tables are compared by the tables only, countable things are never similar, a word
that the passage has elsewhere is not replaced, and verbs may differ more than nouns.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kebab.answering.claim_facts import names_in
from kebab.answering.claim_words import ClaimWord, Said, is_action
from kebab.answering.source_reading import Reading
from kebab.answering.word_kinds import are_of_one_kind
from kebab.answering.word_senses import Senses, korean_opposites
from kebab.core.ports import WordsAlike

_LIKE_THINGS = 0.62
_LIKE_ACTIONS = 0.5
_LIKE_KOREAN_ACTIONS = 0.55
_LIKE_TWO_OF_CHINESE_ORIGIN = 0.68
_KINDRED = 0.45
"""Least cosines, measured on pairs of words (benchmarks/README.md). 삭제하다 and 저장하다 have half of their letters in common.
"""
_TOO_COMMON = frozenset("a an the of to in on at is are be it and or for by with as that this".split())
_KOREAN_NAME = re.compile("[김이박최정강조윤장임한오서신권황안송류전홍][가-힣]{2}")
"""A Korean name, or a noun that looks like one, which then must be said literally."""
_PHRASAL = "in|out|up|off|over|back|on|down|away"


def learned_senses(
    text: str, words: Sequence[ClaimWord], reading: Reading, senses: Senses, alike: WordsAlike
) -> Senses:
    """The senses, extended by the words of a claim that are similar to words of the passage."""
    missing = [word for word in words if word.script in ("other", "hangul") and not reading.said.says(word, senses)]
    missing = [word for word in missing if not _is_named(word, text)]
    if not missing:
        return senses
    mine = Said(frozenset(word.key for word in words), frozenset(word.key for word in words), text)
    theirs = {
        word.key: (word, clause.text)
        for sentence in reading.sentences
        for clause in sentence.clauses
        for word in clause.words
        if word.script in ("other", "hangul") and word.key not in mine.stems and not _is_named(word, clause.text)
    }
    others = [one for one in reading.every_word if one not in _TOO_COMMON]
    written = [_written(word, text) for word in missing]
    kindred = frozenset(
        word.key
        for word, cosines in zip(missing, alike(written, others), strict=True)
        if max(cosines, default=0.0) >= _KINDRED
    )
    found = alike(written, [_written(word, where) for word, where in theirs.values()])
    learned = {
        word.key: frozenset(
            other.key
            for (other, where), cosine in zip(theirs.values(), cosines, strict=True)
            if cosine >= _least(word, text, other, where) and not _differ(word, other, senses)
        )
        for word, cosines in zip(missing, found, strict=True)
    }
    return senses._replace(learned={key: others for key, others in learned.items() if others}, kindred=kindred)


def _written(word: ClaimWord, text: str) -> str:
    if word.script == "hangul":
        return word.form
    phrasal = re.search(rf"\b{re.escape(word.text)}\s+({_PHRASAL})\b", text, re.IGNORECASE)
    return f"{word.text} {phrasal[1]}".lower() if phrasal else word.text


def _least(word: ClaimWord, text: str, other: ClaimWord, where: str) -> float:
    if not is_action(word, text):
        return _LIKE_THINGS
    if word.script == other.script == "hangul":
        both = word.form.endswith("하다") and other.form.endswith("하다")
        return (
            _LIKE_TWO_OF_CHINESE_ORIGIN if both else _LIKE_KOREAN_ACTIONS if other.form.endswith("다") else _LIKE_THINGS
        )
    return _LIKE_ACTIONS if is_action(other, where) else _LIKE_THINGS


def _differ(word: ClaimWord, other: ClaimWord, senses: Senses) -> bool:
    return (
        senses.are_opposite(word.key, other.key)
        or are_of_one_kind(word.text, other.text)
        or korean_opposites(word.form, other.form) > 0
    )


def _is_named(word: ClaimWord, text: str) -> bool:
    if word.script == "hangul":
        return len(word.form) < 2 or _KOREAN_NAME.fullmatch(word.text) is not None
    if re.match(rf"\s*{re.escape(word.text.capitalize())}\s+(?!is|was|has)[a-z]+[^s\W]s\b", text):
        return True  # without an article
    return any(map(str.isdigit, word.text)) or any(word.text in name.lower() for name in names_in(text))
