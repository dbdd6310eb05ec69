"""A question: which of its words are informative, how much each of them weighs, and how much of that a text has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from math import log
from typing import NamedTuple

from kebab.analysis import cjk
from kebab.analysis.content_words import ContentWord, content_words
from kebab.analysis.identifiers import inner_words
from kebab.core.ports import LexicalIndex, Tokenizer
from kebab.core.query_tree import Bag, Phrase
from kebab.core.search import SearchFilters
from kebab.core.text import nfc

_MOST_WORDS = 40
"""Each one is counted in the whole corpus; of a pasted page the first are."""
_LEAST_WEIGHT = 0.1
# What a question is made with, and no answer has to repeat.
_ASKING = frozenset(
    """about actually allow allowed any anyone best between called describe difference different do does exactly example examples
    explain exist exists find get give given happen happens help kind know let like list long many mean means much name named need
    needed needs often old one ones only possible question reason recommended say says some tell thing things use used using want way
    ways whether work works yes
    경우 가능 궁금 까닭 나요 되나요 되는지 되나 뜻 말 무엇인가요 방법 방식 뭐 뭔가 비교 사용 설명 설명해 설명해줘 알고 알려 알려주세요
    어떤가요 얼마 의미 이유 있는지 있습니까 종류 주세요 차이 차이점 하는지 하나 하려면 해야 해줘""".split()
)
_HOW_TO = re.compile(
    r"\bhow\s+(?:do|does|can|could|should|would|must|might|to|i)\b|\b(?:command|commands|steps|syntax|snippet|manifest|yaml)\b"
    r"|\bshow\s+(?:me\s+)?(?:an?\s+)?(?:example|code|command)|어떻게|방법|하려면|명령|예제|예시",
    re.IGNORECASE,
)
# 설정하나요, 설정하려면 and 설정되는 are about 설정.
_KOREAN_VERB = re.compile(r"([가-힣]{2,}?)(?:하|되|할|한|함|합|했|해|될|된|됨|됩|됐|시키|시킬)[가-힣]{0,5}")

_KOREAN_ENDING = re.compile(
    r"([가-힣]{2,}?)(?:나요|는가요?|는지요?|습니까|니까|까요|려면|으면|어야|아야|어요|아요|지요|죠|입니다|이었다|였다)"
)


class QuestionWord(NamedTuple):
    text: str
    key: str
    script: str
    weight: float
    """The rarer it is in the corpus, the more: its IDF."""


class Terms(NamedTuple):
    """What a text is compared by."""

    stems: frozenset[str]
    text: str
    """In NFC, for words of scripts that have no stems."""


def terms_of(text: str, tokenizer: Tokenizer) -> Terms:
    """With the words inside identifiers: imagePullPolicy is about image, pull and policy."""
    plain = cjk.without_cjk(text)
    inside = list(inner_words(plain))
    stems = tokenizer.stems(plain if not inside else f"{plain}\n{' '.join(inside)}")
    return Terms(frozenset(stems), nfc(text) if cjk.has_cjk(text) else "")


class Question(NamedTuple):
    text: str
    words: tuple[QuestionWord, ...]

    @property
    def weight(self) -> float:
        return sum(word.weight for word in self.words)

    @property
    def wants_steps(self) -> bool:
        return _HOW_TO.search(self.text) is not None

    def coverage(self, terms: Terms) -> float:
        """What share of the informative words a text has, by their weight; 0 for a question without any."""
        return sum(word.weight * share_of(word, terms) for word in self.words) / self.weight if self.words else 0.0

    def missing(self, terms: Iterable[Terms]) -> tuple[str, ...]:
        """The informative words that none of these texts has, the heaviest first."""
        texts = list(terms)
        absent = [word for word in self.words if not any(share_of(word, one) > 0 for one in texts)]
        return tuple(word.text for word in sorted(absent, key=lambda word: -word.weight))


def read_question(text: str, index: LexicalIndex, filters: SearchFilters) -> Question:
    """`filters`: only what of them says which of the libraries, or one's own documents, the words are counted in."""
    corpus = SearchFilters(library=filters.library)
    distinct = {word.key: word for word in map(_bare, content_words(nfc(text), index.tokenizer)) if not _is_asking(word)}
    total = index.size()
    return Question(text, tuple(_weighed(word, index, corpus, total) for word in list(distinct.values())[:_MOST_WORDS]))


def _weighed(word: ContentWord, index: LexicalIndex, corpus: SearchFilters, total: int) -> QuestionWord:
    passages = index.count(Bag((Phrase(word.text),)), match="all", drop_stop_words=False, filters=corpus)
    return QuestionWord(*word, max(_LEAST_WEIGHT, log((total + 1) / (passages + 0.5))))


def _bare(word: ContentWord) -> ContentWord:
    verb = (_KOREAN_VERB.fullmatch(word.text) or _KOREAN_ENDING.fullmatch(word.text)) if word.script == "hangul" else None
    return word._replace(text=verb[1], key=verb[1]) if verb else word


def _is_asking(word: ContentWord) -> bool:
    return word.text in _ASKING or word.key in _ASKING


def share_of(word: QuestionWord, terms: Terms) -> float:
    """Whether a text has this word; of a Korean word, whose ending may differ, how much of it."""
    if word.script == "other":
        return float(word.key in terms.stems)
    if word.text in terms.text:
        return 1.0
    pairs = cjk.pairs(word.text)
    if len(pairs) < 2 or pairs[0] not in terms.text:
        return 0.0
    return sum(pair in terms.text for pair in pairs) / len(pairs)


_SAYING_NOTHING = frozenset(
    """한다 합니다 했다 했습니다 된다 됩니다 되었다 있다 있습니다 없다 없습니다 이다 입니다 않다 않는다 않습니다 않은 아니다 아닙니다
    시에 분에 초에 일에 동안 때문
    but not no never cannot also page passage source document
    documentation warns states stated mentions mentioned notes according""".split()
)
"""Of statements: what their other words are said with. Negations are compared by themselves."""


def claim_words(text: str, tokenizer: Tokenizer) -> Iterator[QuestionWord]:
    """The content words of a statement, each once, all of one weight."""
    seen: set[str] = set()
    for word in map(_bare, content_words(nfc(text), tokenizer)):
        if word.key not in seen and not _is_asking(word) and not word.text.isdigit() and word.text not in _SAYING_NOTHING:
            seen.add(word.key)
            yield QuestionWord(*word, 1.0)
