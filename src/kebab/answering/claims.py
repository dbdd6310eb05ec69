"""What a model wrote, cut into claims with the markers they carry."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from kebab.answering.prompt import NO_ANSWER
from kebab.answering.sentences import sentences

_MARKERS = re.compile(r"[ \t]*(?:\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]|【(\d{1,3})[^】]*】)")
_DECLINES = re.compile(
    r"\b(?:sources?|context|documents?|passages?|evidence|information)\b.{0,40}\b(?:not|n't|no)\b.{0,40}"
    r"\b(?:contain|mention|say|provide|include|answer|specify|state|available|enough)"
    r"|\bnot (?:in|found in|mentioned in|covered by|answered by) the (?:evidence|sources?|passages?|context)\b"
    r"|\b(?:cannot|can't|unable to) (?:answer|find|determine)\b"
    r"|(?:자료|출처|문서|정보|근거)[에가는이]?.{0,30}(?:없|않)|답(?:변)?할 수 없|알 수 없",
    re.IGNORECASE,
)
_MOST_OF_A_REFUSAL = 2
"""Sentences; whoever writes more has said something beside that there is no answer."""
_CODE = re.compile(r"```.*?(?:```|$)|`[^`\n]*`", re.DOTALL)


class WrittenClaim(NamedTuple):
    text: str
    """Without its markers."""
    markers: tuple[int, ...]
    end: int
    """Where it ends in what was written, its markers included."""


def declines(text: str) -> bool:
    """Whether it says, in whatever words, that there is no answer. That is no claim, and nothing supports it."""
    if text.strip().strip("`*\"'.") == NO_ANSWER or text.strip().startswith(NO_ANSWER):
        return True
    plain, *_ = _without_markers(text)
    cut = sentences(plain)
    return 0 < len(cut) <= _MOST_OF_A_REFUSAL and _DECLINES.search(cut[0].of(plain)) is not None


def claims_of(text: str) -> list[WrittenClaim]:
    """Sentences, items and blocks of code; what only announces the next one makes no claim."""
    plain, origin, markers = _without_markers(text)
    cut = sentences(plain)
    if not cut:
        return []
    starts = [sentence.start for sentence in cut]
    cited: list[list[int]] = [[] for _ in cut]
    ends = [origin[sentence.end - 1] + 1 for sentence in cut]
    for place, end, numbers in markers:
        owner = max(0, bisect_right(starts, place - 1) - 1)
        cited[owner] += [number for number in numbers if number not in cited[owner]]
        ends[owner] = max(ends[owner], end)
    return [
        WrittenClaim(sentence.of(plain), tuple(numbers), end)
        for sentence, numbers, end in zip(cut, cited, ends, strict=True)
        if numbers or not sentence.of(plain).endswith(":")
    ]


def marked(text: str, marks: Sequence[tuple[int, str]]) -> str:
    """With these marks, each behind the claim that ends there."""
    for end, mark in sorted(marks, reverse=True):
        text = f"{text[:end]} [{mark}]{text[end:]}"
    return text


def _without_markers(text: str) -> tuple[str, list[int], list[tuple[int, int, list[int]]]]:
    """The text without markers, where each of its characters came from, and the markers: their place in it, end in the text, numbers."""
    parts: list[str] = []
    origin: list[int] = []
    found: list[tuple[int, int, list[int]]] = []
    last = 0
    code = [match.span() for match in _CODE.finditer(text)]
    for match in _MARKERS.finditer(text):
        if any(start < match.end() <= end for start, end in code):
            continue  # items[0]
        parts.append(text[last : match.start()])
        origin.extend(range(last, match.start()))
        found.append((len(origin), match.end(), [int(number) for number in re.findall(r"\d+", match[1] or match[2])]))
        last = match.end()
    parts.append(text[last:])
    origin.extend(range(last, len(text)))
    return "".join(parts), origin, found
