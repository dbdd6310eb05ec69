"""Korean verbs as they stand in questions: 냈나요 is about the same as 냈다 and 낸, 미뤄졌나요 about the same as 미룬다.

Without a morphological analyser: endings are taken off, and what remains is compared by what no conjugation changes.
"""

from __future__ import annotations

import re
from functools import lru_cache

_ENDING = re.compile(
    r"(?:으?려면|으?려고|[는은던]가요|[는은]지요?|습니까|니까|을?까요|나요|[어아여]야|[어아여]도|지요|죠|[어아여]요|는데요?|[어아]서)$"
)
"""Only what no noun ends in: 휴가 and 창고 are no verbs."""
_TENSE = ("었", "았", "였", "겠")
_FIRST, _LAST = ord("가"), ord("힣")
_VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_PAST = 20
"""ㅆ below a syllable."""
_R_BELOW = 8
"""ㄹ."""
_ALSO = {
    "ㅝ": "ㅜ",
    "ㅘ": "ㅗ",
    "ㅕ": "ㅣ",
    "ㅙ": "ㅚ",
    "ㅓ": "ㅡ",
    "ㅏ": "ㅡ",
    "ㅜ": "ㅝ",
    "ㅗ": "ㅘ",
    "ㅣ": "ㅕ",
    "ㅚ": "ㅙ",
    "ㅡ": "ㅓㅏ",
    "ㅐ": "ㅏ",
}
"""Vowels that a stem has before other endings."""
_GOES_ON = "다고며면서는은을었았였지게기도요니러려자야던아어여"
_NO_STEM = frozenset("이 하 되 있 없 계시 시 알 주 싶".split())


@lru_cache(maxsize=1 << 10)
def verb_stem(word: str) -> str | None:
    """What remains of a verb when its ending is gone; "" of one that says nothing by itself, None of what does not end
    like a verb.
    """
    match = _ENDING.search(word)
    if match is None or match.start() == 0:
        return None
    stem = word[: match.start()]
    while len(stem) > 1 and stem.endswith(_TENSE):
        stem = stem[:-1]
    onset, vowel, below = _parts(stem[-1])
    if below == _PAST:
        stem = stem[:-1] + _syllable(onset, vowel, 0)
    if len(stem) > 1 and stem[-1] in "지져":  # 미뤄지, 만들어지
        stem = stem[:-1]
        stem = stem[:-1] if len(stem) > 1 and stem[-1] in "어아" else stem
    return "" if stem in _NO_STEM else stem


@lru_cache(maxsize=1 << 10)
def forms_of(stem: str) -> re.Pattern[str]:
    """Finds the verb of this stem at the beginning of a word, whatever ends it."""
    before, last = stem[:-1], stem[-1]
    onset, vowel, below = _parts(last)
    written = _VOWELS[vowel]
    vowels = [_VOWELS.index(one) for one in written + _ALSO.get(written, "")] if not below else [vowel]
    syllables = "".join(last if below else f"{_syllable(onset, one, 0)}-{_syllable(onset, one, 27)}" for one in vowels)
    irregular = ""  # 올라 of 오르다: the syllable before it takes the consonant
    if before and last == "라":
        irregular = f"|{re.escape(before[:-1])}{_with_below(before[-1], 0)}[르-릏]"
    elif before and last == "르":
        irregular = f"|{re.escape(before[:-1])}{_with_below(before[-1], _R_BELOW)}[라-랗러-렇]"
    short = f"(?=[{_GOES_ON}]|[^가-힣]|$)" if not before else ""
    return re.compile(rf"(?<![가-힣])(?:{re.escape(before)}[{syllables}]{short}{irregular})")


def _parts(syllable: str) -> tuple[int, int, int]:
    """Numbers of the consonant, the vowel, and what stands below them."""
    code = ord(syllable) - _FIRST
    if not 0 <= code <= _LAST - _FIRST:
        return 0, 0, 0
    return code // 588, code % 588 // 28, code % 28


def _syllable(onset: int, vowel: int, below: int) -> str:
    return chr(_FIRST + onset * 588 + vowel * 28 + below)


def _with_below(syllable: str, below: int) -> str:
    onset, vowel, _ = _parts(syllable)
    return _syllable(onset, vowel, below)
