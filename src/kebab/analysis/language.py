"""The language of a text, judged by its script."""

from __future__ import annotations

import re
from functools import cache

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
# One syllable or ideograph says as much as several Latin letters, and technical text is full of Latin code.
_ENOUGH_CJK = 0.08


def language_of(text: str) -> str:
    """ko, ja, zh, en; und for text without letters, or in another script."""
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
    """Whether most letters are Latin, whatever language the text counts as."""
    sample = text[:_SAMPLE]
    foreign = "".join(_FOREIGN.findall(sample))
    plain = len(_ASCII_LETTER.findall(sample))
    if not foreign:
        return plain > 0
    latin = plain + _letters("latin", foreign)
    return 2 * latin > plain + _letters("other", foreign)


def _letters(script: str, text: str) -> int:
    return len(_pattern(script).findall(text))


@cache
def _pattern(script: str) -> re.Pattern[str]:
    """Compiled on first use: a set of thousands of letters takes milliseconds, and most questions need none."""
    return re.compile(_SCRIPTS[script])
