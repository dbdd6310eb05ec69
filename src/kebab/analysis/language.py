"""The language of a text, told by its script."""

from __future__ import annotations

import re

_SAMPLE = 16384
_LETTERS = re.compile(
    "(?P<hangul>[가-힣\u1100-\u11ff]+)|(?P<kana>[\u3040-\u30ff]+)|(?P<han>[\u4e00-\u9fff\u3400-\u4dbf]+)"
    "|(?P<latin>[A-Za-z\u00c0-\u024f]+)|(?P<other>[^\\W\\d_]+)"
)
# One syllable or ideograph says as much as several Latin letters, and technical text is full of Latin code.
_ENOUGH_CJK = 0.08


def language_of(text: str) -> str:
    """ko, ja, zh, en, or und when there are no letters or they are of another script."""
    sample = text[:_SAMPLE]
    if sample.isascii():
        return "en" if any(character.isalpha() for character in sample) else "und"
    count = dict.fromkeys(("hangul", "kana", "han", "latin", "other"), 0)
    for match in _LETTERS.finditer(sample):
        count[match.lastgroup or "other"] += len(match[0])
    total = sum(count.values())
    if not total:
        return "und"
    cjk = count["hangul"] + count["kana"] + count["han"]
    if cjk >= _ENOUGH_CJK * total:
        if count["hangul"] >= max(count["kana"], cjk / 3):
            return "ko"
        return "ja" if count["kana"] >= 0.05 * cjk else "zh"
    return "en" if count["latin"] >= count["other"] else "und"
