"""The language of a text, judged by its script, and the stop words of English and Korean."""

from __future__ import annotations

import re

_SAMPLE = 16384
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_ASCII_LETTER = re.compile("[A-Za-z]")
_SCRIPTS = {
    "hangul": "[가-힣\u1100-\u11ff]",
    "kana": "[\u3040-\u30ff]",
    "han": "[\u4e00-\u9fff\u3400-\u4dbf]",
    "latin": "[\u00c0-\u024f]",
    "other": r"[^\W\d_]",
}
# The least share of CJK letters: low, as a CJK letter equals several Latin ones, and technical text has Latin code.
_ENOUGH_CJK = 0.08


def language_of(text: str) -> str:
    """The language: ko, ja or zh; en for Latin script; und for text without letters or in another script."""
    sample = text[:_SAMPLE]
    foreign = "" if sample.isascii() else "".join(_FOREIGN.findall(sample))
    count = {script: _letters(script, foreign) for script in _SCRIPTS} if foreign else dict.fromkeys(_SCRIPTS, 0)
    cjk = count["hangul"] + count["kana"] + count["han"]
    if not cjk and count["other"] == count["latin"]:
        return "en" if count["latin"] or _ASCII_LETTER.search(sample) else "und"
    latin = count["latin"] + len(_ASCII_LETTER.findall(sample))
    neither = count["other"] - count["latin"] - cjk
    if cjk >= _ENOUGH_CJK * (latin + neither + cjk):
        if count["hangul"] >= max(count["kana"], cjk / 3):
            return "ko"
        return "ja" if count["kana"] >= 0.05 * cjk else "zh"
    return "en" if latin >= neither else "und"


def is_mostly_latin(text: str) -> bool:
    """Whether most letters are Latin, in any language."""
    sample = text[:_SAMPLE]
    foreign = "".join(_FOREIGN.findall(sample))
    plain = len(_ASCII_LETTER.findall(sample))
    if not foreign:
        return plain > 0
    latin = plain + _letters("latin", foreign)
    return 2 * latin > plain + _letters("other", foreign)


def _letters(script: str, text: str) -> int:
    return len(re.findall(_SCRIPTS[script], text))  # compiled on first use: it takes milliseconds


# Articles, pronouns, auxiliaries, question words, the commonest prepositions. Words such as all, only, before and
# between say little in prose but much in questions about code, so they are not stop words.
ENGLISH = frozenset(
    """a am an and are as at be been being but by can could d did didn do does doesn doing don for from had has have
    having he her hers him his how i if in into is isn it its ll m me might must my of on or our ours please re s shall
    she should so such t than that the their theirs them then there these they this those to too us ve was we were what
    when where which who whom whose why will with would you your yours""".split()
)

# Question words and verbs that only form questions. The module `korean` removes particles.
KOREAN = frozenset(
    """무엇 무엇인가 무엇인가요 무엇인지 무엇일까 무엇입니까 무엇이며 무엇을 무엇이 뭐 뭔가요 뭐야 어떤 어떻게 어떠한
    어느 왜 언제 어디 어디서 어디에 어디에서 누구 누가 누구인가 누구인가요 몇 얼마나 대해 대한 대해서 관해 관한 위한
    위해 통해 및 또는 그리고 그 이 저 것 것은 것이 수 때 등 하는 한 할 하기 되는 된 있는 없는 있나 있나요 하나 하나요
    할까 인가 인가요 알려줘 방법은 무슨""".split()
)


def is_stop_word(word: str) -> bool:
    return word.lower() in ENGLISH or word in KOREAN
