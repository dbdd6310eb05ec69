"""The informative words of a Korean question: nouns without particles, 설정 of 설정하나요, verbs by their stem."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from kebab.analysis import korean
from kebab.analysis.korean import forms_of, verb_stem
from kebab.analysis.language import is_stop_word

_RUN = re.compile(r"[가-힣]+")
_ASKS = re.compile(r"무엇|뭐|뭘|뭔|어떤|어떻|어느|왜|언제|어디|누구|누가|누굴|몇|얼마|며칠|무슨")
_HOW_MANY = re.compile(r"몇\s?$")
_WHICH = re.compile(r"(?:무슨|어느|어떤)\s$")
"""Words such as "which": the noun behind them is asked about, however short it is."""
_SELF = re.compile(r"(?:나|내|저|제|우리|저희|너|당신)(?:는|은|가|를|을|의|도|에게|한테)?|우리\S?")
# What a question is made with, and no answer has to repeat.
_ASKING = frozenset(
    """경우 가능 궁금 까닭 나요 되나요 되는지 되나 뜻 말 방법 방식 뭔가 비교 사용 설명 설명해 설명해줘 알고 알려 알려주세요 어떤가요 의미
    이유 있는지 있습니까 종류 주세요 차이 차이점 하는지 하나 하려면 해야 해줘 필요 있어 없어 있어요 없어요 해요 대해 대한 지금 현재
    수 것 곳 때 법 데 적 줄 중 등 할 한 될 된 안 못 더 다 좀 꼭 또 그 이 저 거 게 건 걸 해도 하면 되면 돼요 됩니까""".split()
)
# 설정하나요, 설정하려면 and 설정되는 are about 설정.
_DOES = re.compile(r"([가-힣]{2,}?)(?:하|되|할|한|함|합|했|해|될|된|됨|됩|됐|돼|시키|시킬)[가-힣]{0,5}")
_ENDING = re.compile(
    r"([가-힣]{2,}?)(?:나요|는가요?|는지요?|습니까|니까|까요|려면|으면|어야|아야|어요|아요|지요|죠|입니다|이었다|였다)"
)
_IS = re.compile(
    r"([가-힣]+?)(?:인가요?|이에요|예요|입니까|일까요?|이야|야|이죠|죠|인지|이었나요|였나요|여야|이어야|이란|란)"
)
_MAY = re.compile(r"([가-힣]+)도(?=\s(?:되|돼|됩|괜찮))")
_WOULD = re.compile(r"\s+(?:수|때|것|게|지|줄|적)(?![가-힣])")
"""Nouns that show that a verb precedes them: 올 수, 쓸 때."""
_TRAITS = frozenset(
    "문제 상태 결과 내용 정보 부분 기능 종류 크기 개수 정도 상황 과정 기준 조건 최대 최소 기본 전체 다음 이번 지난".split()
)
"""Nouns for properties, which a question may ask about and an answer may say in other words."""
_DOING = re.compile(r"\s(?:데|것|법|방법|곳|동안|중)(?:[에은는이가을를도]|에는|에도)?(?![가-힣])")
"""Nouns behind a verb that ends like a noun with its particle: 맞추는 데."""
_LONGEST_PARTICLE = 3
_PARTICLE = "은는이가을를의에와과도만로"


_FORMS_OF_SYLLABLE = 28
_ENDS_BEFORE_NOUN = (4, 8)
"""ㄴ and ㄹ, by their numbers among the final consonants of a syllable."""


class KoreanWord(NamedTuple):
    text: str
    pattern: re.Pattern[str] | None = None
    """The pattern that finds the word; None if it may be anywhere in a text."""
    weak: bool = False


def korean_words(text: str) -> Iterator[KoreanWord]:
    """The informative words in order; the text is in NFC."""
    for match in _RUN.finditer(text):
        word = match[0]
        if _ASKS.match(word) or _SELF.fullmatch(word) or word in _ASKING or _HOW_MANY.search(text[: match.start()]):
            continue
        if text[match.start() - 1 : match.start()].isalnum() and len(word) <= _LONGEST_PARTICLE:
            continue  # of SK에, 15일
        if (may := _MAY.match(text, match.start())) and not word.endswith(("어도", "아도", "여도")):
            word = may[1] + "아도"  # 써도 되나요, 와도 되나요: as if nothing were contracted
        if len(word) > 2 and word.endswith("는") and _DOING.match(text, match.end()) and not _DOES.fullmatch(word):
            yield KoreanWord(word[:-1], forms_of(word[:-1]), weak=True)
            continue
        kind_of = _WHICH.search(text[: match.start()]) is not None
        read = _read(
            word, before_noun=_WOULD.match(text, match.end()) is not None, is_last=not text[match.end() :].strip(" ?!.")
        )
        if read is not None and read.text not in _ASKING and not is_stop_word(read.text):
            yield read._replace(weak=False) if kind_of else read


def noun_phrases(text: str) -> Iterator[str]:
    """The nouns that a particle marks as the subject of a question, with the nouns before them: 재작년 and 회비 of 재작년 회비는."""
    phrase: list[str] = []
    for match in _RUN.finditer(text):
        word = match[0]
        noun = korean.strip_particle(word)
        before = text[match.start() - 1 : match.start()]
        is_noun = not (
            _ASKS.match(word)
            or _SELF.fullmatch(word)
            or _DOES.fullmatch(word)
            or _IS.fullmatch(word)
            or before.isalnum()
        )
        is_verb = word.endswith("는") and _DOING.match(text, match.end())
        is_short = noun == word and korean.is_particle(word[1:])  # 맥에서
        is_noun = is_noun and not is_verb and not is_short and text[match.end() :].strip(" ?!.") != ""
        if (
            not is_noun
            or (noun == word and _says_which(word))
            or len(noun) < 2
            or noun in _ASKING
            or noun in _TRAITS
            or is_stop_word(noun)
            or verb_stem(word) is not None
        ):
            phrase = []
            continue
        phrase.append(noun)
        if noun != word:
            yield from phrase
            phrase = []


def _says_which(word: str) -> bool:
    """Whether a verb qualifies the noun behind it: 늘어난, 올라갈."""
    return (
        len(word) > 2
        and word[-2] in "어여아려져와워라"
        and (ord(word[-1]) - ord("가")) % _FORMS_OF_SYLLABLE in _ENDS_BEFORE_NOUN
    )


def _read(word: str, *, before_noun: bool, is_last: bool) -> KoreanWord | None:
    if does := _DOES.fullmatch(word):
        return _noun(does[1])
    is_ = _IS.fullmatch(word)
    stem = None if is_ else verb_stem(word + "요" if is_last and word.endswith("나") else word)
    if stem is None and not is_ and word.endswith("면") and len(word) > 1:
        condition = word.removesuffix("면").removesuffix("으")
        return (
            KoreanWord(word, re.compile(f"{word}|{forms_of(condition).pattern}"), weak=True) if condition else None
        )  # 시면; but also 화면
    if stem is not None:
        return KoreanWord(stem, forms_of(stem), weak=True) if stem else None
    noun = _noun(is_[1] if is_ else word)
    return None if noun is not None and noun.weak and before_noun else noun


def _noun(word: str) -> KoreanWord | None:
    noun = korean.strip_particle(word)
    if len(noun) == 1:
        return KoreanWord(noun, _alone(noun), weak=True)
    if len(noun) == 2 and noun == word and noun[1] in _PARTICLE:
        return KoreanWord(noun, _alone(noun[0], noun), weak=True)  # 일은, 물을; but also 회의, 온도
    return KoreanWord(noun)


@cache
def _alone(*words: str) -> re.Pattern[str]:
    """A pattern for a word of one syllable, which is part of many others: it must begin a word."""
    return re.compile("|".join(rf"(?<![가-힣]){word}" if len(word) == 1 else word for word in words))
