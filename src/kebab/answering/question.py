"""A question: what it asks for, its informative words with their weights, and what share of them a text has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import log
from typing import TYPE_CHECKING, NamedTuple

from kebab.analysis import cjk
from kebab.analysis.language import is_stop_word
from kebab.analysis.terms import ContentWord, content_words, inner_words
from kebab.analysis.word_forms import base_of, other_words, related_stems, short_compounds, told_apart
from kebab.answering.asked_for import asked_for, only_says_so
from kebab.answering.kinds import Kind
from kebab.answering.korean_words import korean_words
from kebab.answering.named import Named
from kebab.answering.named_things import named_in, spelt_with_marks
from kebab.answering.question_parts import Parts, parts_of
from kebab.core.ports import Tokenizer
from kebab.core.query_tree import Bag, Phrase
from kebab.core.search import SearchFilters
from kebab.core.text import nfc

if TYPE_CHECKING:
    from kebab.core.store_ports import LexicalIndex

_MOST_WORDS = 40
"""The most words that are weighed, because each is counted in the whole corpus; of a longer question, the first."""
_LEAST_WEIGHT = 0.1
_WEAK = 0.3
"""The weight of a word that an answer may lack: one that only names what is asked for, a number, a Korean verb."""
_SETS_APART = 2.0
"""The factor for the weight of a letter: vitamin C is not vitamin D."""
_LEAST_SHARE = 0.5
"""The least share of a Korean word that a text must have: 김치 is not 김치찌개."""
_COMMON = 0.1
"""The share of passages that is assumed for a word that cannot be counted."""
_OF_MANY = 0.05
_LEAST_COMMON = 5
"""A word that is in more passages than this number and this share is too common to identify one of them."""
# What a question is made with, and no answer has to repeat.
_ASKING = frozenset(
    """able about actually all allow allowed already also any anyone best between called currently describe difference different do does
    ever exactly example examples explain exist exists fewer find get give given happen happens help just kind know less let like list long
    many mean means more much name named need needed needs often old one ones only possible question really
    reason recommended say says some still tell thing things use used using want way ways whether work works yes yet
    across against along among around behind beside besides during inside near off onto out outside over through throughout toward towards
    under upon via while within without""".split()
)
_LIGHT_VERBS = frozenset("bring come comes go goes going make makes making put puts take takes took went".split())
"""Verbs whose meaning is in another word."""
_LETTER_OR_DIGIT = re.compile(r"(?<![\w.,:-])(?:\d|(?<=\w\s)[B-HJ-Z])(?=[\s?!.,;가-힣]|$)(?![.,:]\d)")
"""A letter or digit by itself, which distinguishes one thing from others: class A, vitamin C, week 3."""
_NUMBERED = re.compile(r"\b(version|release|chapter|section|page|step|number|no|room) v?\d")
"""Nouns that only say what a number is the number of."""
_NEEDS_ANOTHER = re.compile(
    r"\b(?:it|they|them|he|she|him|that one|this one)\b|(?:^|\s)(?:그거|그건|그게|그것|이거|이건|이것)", re.IGNORECASE
)
_LEAST_WORDS = 2
_IP_ADDRESS = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.]*\d)")
_MAIL_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.\w")


class QuestionWord(NamedTuple):
    text: str
    key: str
    script: str
    weight: float
    """The IDF of the word in the corpus: the rarer, the higher."""
    others: frozenset[str] = frozenset()
    """The stems of its other forms."""
    pattern: re.Pattern[str] | None = None
    """A pattern for the beginning of a Korean word."""
    weak: bool = False
    """Whether an answer may lack the word."""
    common: bool = False
    """Whether so many passages have the word that it identifies none."""
    unknown: bool = False
    """Whether no passage has the word."""
    parts: frozenset[str] = frozenset()
    """The stems of all parts of a compound, which a text may write as several words."""


class Terms(NamedTuple):
    """A text prepared for comparison with a question."""

    stems: frozenset[str]
    text: str
    """The text in NFC, for words of scripts that have no stems."""

    def __or__(self, other: Terms) -> Terms:
        return Terms(
            self.stems | other.stems,
            f"{self.text}\n{other.text}" if self.text and other.text else self.text or other.text,
        )


NO_TERMS = Terms(frozenset(), "")


def joined(terms: Sequence[Terms]) -> Terms:
    return Terms(frozenset().union(*(one.stems for one in terms)), "\n".join(one.text for one in terms if one.text))


def terms_of(text: str, tokenizer: Tokenizer) -> Terms:
    """The terms of a text, with the words inside identifiers (imagePullPolicy is about image, pull and policy) and the
    words whose forms its words are.
    """
    plain = told_apart(cjk.without_cjk(text))
    more = " ".join((*inner_words(plain), *other_words(plain), *_told_by_form(plain)))
    stems = tokenizer.stems(f"{plain}\n{more}" if more else plain)
    return Terms(frozenset(stems), nfc(text) if cjk.has_cjk(text) else "")


def _told_by_form(text: str) -> Iterator[str]:
    """Words that the form of an address implies, so that no text has to say them."""
    if _IP_ADDRESS.search(text):
        yield "IP"
    if "@" in text and _MAIL_ADDRESS.search(text):
        yield "email"


class Question(NamedTuple):
    text: str
    words: tuple[QuestionWord, ...]
    kind: Kind | None = None
    """The kind of thing that is asked for."""
    parts: Parts = Parts()
    named: tuple[Named, ...] = ()
    """The things that an answer must be about."""

    @property
    def wants_steps(self) -> bool:
        return self.kind is Kind.STEPS

    @property
    def stands_alone(self) -> bool:
        """Whether the question can be understood by itself, unlike "and who pays for it?"."""
        strong = sum(not word.weak for word in self.words)
        return strong > 0 and (strong >= _LEAST_WORDS or not _NEEDS_ANOTHER.search(self.text))

    def coverage(self, terms: Terms) -> float:
        """The share of the informative words, by weight, that a text has; 0 for a question without any. A weak word
        adds to the share if the text has it, and subtracts nothing if not.
        """
        has = whole = 0.0
        for word in self.words:
            share = share_of(word, terms)
            has += word.weight * share
            whole += word.weight * (share if word.weak else 1.0)
        return has / whole if whole else 0.0

    def share(self, terms: Terms) -> float:
        """The same share with weak words counted in full, to choose between texts."""
        whole = sum(word.weight for word in self.words)
        return sum(word.weight * share_of(word, terms) for word in self.words) / whole if whole else 0.0

    def touched(self, terms: Terms) -> frozenset[str]:
        """The words of the question that a text has and an answer must not lack."""
        return frozenset(word.key for word in self.words if not word.weak and share_of(word, terms) > 0)

    @property
    def thing(self) -> QuestionWord | None:
        """The kind of thing that the answer is an instance of, if that word is informative."""
        named = self.parts.thing
        return next((word for word in self.words if named and not word.weak and word.text in named), None)

    def touches(self, terms: Terms) -> bool:
        """Whether a text has any word of the question that an answer must not lack."""
        return any((not word.weak or word.pattern is not None) and share_of(word, terms) > 0 for word in self.words)

    def missing(self, terms: Iterable[Terms]) -> tuple[str, ...]:
        """The informative words that none of these texts has in any form, the heaviest first."""
        texts = list(terms)
        absent = [word for word in self.words if not word.weak and not any(_stands_in(word, one) for one in texts)]
        return tuple(word.text for word in sorted(absent, key=lambda word: -word.weight))


def read_question(text: str, index: LexicalIndex, filters: SearchFilters) -> Question:
    """Reads a question. `filters`: only the library in them is used, to count words in that library or in the user's
    own documents.
    """
    corpus = SearchFilters(library=filters.library)
    text = nfc(text)
    kind = asked_for(text)
    total = index.size()
    words = {word.key: word for word in _informative(text, kind, index.tokenizer)}
    if all(word.weak for word in words.values()):  # then these are all there is
        words = {key: word._replace(weak=word.text.isdigit(), weight=1.0) for key, word in words.items()}
    parts = parts_of(text, kind)
    weighed = tuple(_weighed(word, index, corpus, total) for word in list(words.values())[:_MOST_WORDS])
    return Question(text, weighed, kind, parts, named_in(text, kind, parts))


def is_asking(word: str) -> bool:
    """Whether a word only makes a text a question, and says nothing about its subject."""
    return word.lower() in _ASKING or is_stop_word(word)


def _informative(text: str, kind: Kind | None, tokenizer: Tokenizer) -> Iterator[QuestionWord]:
    """The informative words, each with the weight 1 or _WEAK."""
    joined = {compound: compound.replace("-", "").lower() for compound in short_compounds(text)}
    plain = text
    for compound, one in joined.items():
        plain = plain.replace(compound, one)
    shown = {one: compound for compound, one in joined.items()}
    numbered = frozenset(_NUMBERED.findall(plain.lower()))
    for word in content_words(cjk.without_hangul(plain), tokenizer):
        if word.text in _ASKING or word.key in _ASKING or (word.text == "may" and "May" not in text[1:]):
            continue
        weak = (
            only_says_so(word.text, kind) or word.text.isdigit() or word.text in _LIGHT_VERBS or word.text in numbered
        )
        read = _read(word, tokenizer, who=kind is Kind.PERSON)
        compound = shown.get(word.text, "")
        parts = frozenset(tokenizer.stems(compound.replace("-", " ")))
        yield read._replace(text=compound or word.text, weight=_WEAK if weak else 1.0, weak=weak, parts=parts)
    for match in _LETTER_OR_DIGIT.finditer(plain):
        weak = match[0].isdigit()
        yield QuestionWord(match[0], match[0].lower(), "other", _WEAK if weak else _SETS_APART, weak=weak)
    for code in spelt_with_marks(plain):
        yield QuestionWord(code, code.lower(), "other", 1.0, parts=frozenset(tokenizer.stems(code)))
    for found in korean_words(plain):
        weak = found.weak or only_says_so(found.text, kind)
        yield QuestionWord(found.text, found.text, "hangul", _WEAK if weak else 1.0, pattern=found.pattern, weak=weak)


def _read(word: ContentWord, tokenizer: Tokenizer, *, who: bool = False) -> QuestionWord:
    """A word of the question with the stems of its other forms."""
    if word.script != "other":
        return QuestionWord(*word, 1.0)
    apart = told_apart(word.text)
    key = word.key if apart == word.text else "".join(tokenizer.stems(apart)[:1])
    base = base_of(word.text)
    stems = tokenizer.stems(base)[:1] if base else []
    related = frozenset().union(*(related_stems(stem, who=who) for stem in (key, *stems)))
    return QuestionWord(word.text, key, word.script, 1.0, related.union(stems))


def _weighed(word: QuestionWord, index: LexicalIndex, corpus: SearchFilters, total: int) -> QuestionWord:
    if word.pattern is not None:
        passages = _COMMON * total
    else:
        phrase = Phrase(word.text.replace("-", " "))
        passages = index.count(Bag((phrase,)), match="all", drop_stop_words=False, filters=corpus)
    common = passages > max(_LEAST_COMMON, _OF_MANY * total)
    return word._replace(
        common=common,
        unknown=not passages,
        weight=word.weight * max(_LEAST_WEIGHT, log((total + 1) / (passages + 0.5))),
    )


def share_of(word: QuestionWord, terms: Terms) -> float:
    """What share of this word a text has: 0 or 1; in between for a Korean word with another ending."""
    if word.script == "other":
        in_parts = bool(word.parts) and word.parts <= terms.stems
        return float(word.key in terms.stems or in_parts or not word.others.isdisjoint(terms.stems))
    if word.text in terms.text and word.pattern is None:
        return 1.0
    if word.pattern is not None:
        return float(word.pattern.search(terms.text) is not None)
    pairs = cjk.pairs(word.text)
    if len(pairs) < 2 or pairs[0] not in terms.text:
        return 0.0
    share = sum(pair in terms.text for pair in pairs) / len(pairs)
    return share if share >= _LEAST_SHARE else 0.0


def _stands_in(word: QuestionWord, terms: Terms) -> bool:
    """Whether a text has any form of this word, or a longer word that begins with it."""
    if share_of(word, terms) > 0:
        return True
    return word.script == "other" and len(word.key) > 3 and any(stem.startswith(word.key) for stem in terms.stems)
