"""Cuts what a model wrote into claims with their markers."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kebab.answering.polarity import YES_OR_NO
from kebab.answering.prompt import NO_ANSWER
from kebab.answering.sentences import sentences

_MARKERS = re.compile(r"[ \t]*(?:\[\^?(\d{1,3}(?:\s*[,;\u2013-]\s*\^?\d{1,3})*)\]|【(\d{1,3})[^】]*】)")
_ROUND_MARKERS = re.compile(r"(?<=[^\s(])[ \t]+\((\d{1,2}(?:\s*[,;\u2013-]\s*\d{1,2})*)\)()(?=[.,;:!?]?(?:\s|$))")
"""Markers in round brackets, which count only if an answer has no others."""
_RANGE = re.compile(r"(\d+)\s*[\u2013-]\s*(\d+)")
_WIDEST_RANGE = 20
_SOURCES = r"(?:sources?|contexts?|documents?|passages?|evidence|excerpts?|texts?|information)"
_GIVEN = r"(?:\s+(?:that\s+(?:is|are|was|were)\s+)?(?:provided|given|above|cited|available|here|i have|you gave me))*"
_TELLS = r"(?:contain|mention|say|provide|include|answer|specify|state|cover|address|explain|discuss|describe|tell)"
_DECLINES = re.compile(
    rf"\b{_SOURCES}{_GIVEN}\s+(?:do|does|did)(?:\s+not|n['’]t)\s+(?:\w+ly\s+)?{_TELLS}"
    rf"|\b{_SOURCES}{_GIVEN}\s+(?:is|are)(?:\s+not|n['’]t)\s+(?:enough|sufficient)"
    rf"|\b{_SOURCES}{_GIVEN}\s+(?:contains?|has|have|gives?|provides?|makes?)\s+no\s+(?:information|mention|answer|details?)"
    r"|\b(?:there is|i (?:have|found|see)|found) no (?:information|mention|answer|evidence)\b|\bno information (?:about|on|regarding|is)\b"
    rf"|^\W*(?:(?:this|that|it|the answer)\s+(?:is|was)\s+)?not\s+(?:in|found in|mentioned in|covered by|answered by|stated in)\s+"
    rf"(?:the|these|any of the)\s+{_SOURCES}\b"
    r"|\b(?:i|we|it)\s+(?:cannot|can['’]t|am unable to|am not able to|could not|couldn['’]t)\s+(?:be\s+)?(?:answer|find|determine|tell)"
    r"|\bcannot be (?:answered|determined) from\b"
    r"|(?:자료|출처|문서|근거|정보|내용)(?:들)?(?:에는|에서는|에|에서|만으로는)\s(?!따르면)(?:[^.]{0,30}\s)?"
    r"(?:내용|정보|언급|설명|답|답변|기록)[이가은는도]?\s?(?:없|않|찾을 수 없)"
    r"|(?:자료|출처|문서|근거|정보|내용)[^.]{0,20}(?:나와|언급되어|언급되|포함되어|명시되어|적혀|설명되어)\s?있?지\s?않"
    r"|답(?:변)?(?:을|을\s)?\s?(?:할|드릴|찾을) 수 없|알 수 없(?:습니다|다|어요|음)?\W*$",
    re.IGNORECASE,
)
_MOST_OF_A_REFUSAL = 2
"""The most sentences of a refusal: a longer text says more than that there is no answer."""
_YES_OR_NO = re.compile(rf"\W*{YES_OR_NO}\W*", re.IGNORECASE)
_MARKUP = re.compile(r"\s*(?:#{1,6}\s+|(?:[-*+•>]|\d{1,3}[.)])(?=\s|$))+|[\s|:+=*_~`-]+$|\s+#+\s*$")
_WORD = re.compile(r"\w")
_CODE = re.compile(r"```.*?(?:```|$)|`[^`\n]*`", re.DOTALL)


class WrittenClaim(NamedTuple):
    text: str
    """The text without markers."""
    markers: tuple[int, ...]
    end: int
    """Where the claim with its markers ends in the written text."""
    leads_up: bool = False
    """Whether it only introduces what follows, by its form: a heading, the head of a table, a line that ends with a
    colon.
    """


def declines(text: str) -> bool:
    """Whether a text only says, in whatever words, that there is no answer. That is no claim, and no passage supports
    it.
    """
    if text.strip().strip("`*\"'.") == NO_ANSWER or text.strip().startswith(NO_ANSWER):
        return True
    said = claims_of(text)
    if not 0 < len(said) <= _MOST_OF_A_REFUSAL or _DECLINES.search(said[0].text) is None:
        return False
    return all(not claim.markers or _DECLINES.search(claim.text) for claim in said[1:])


def claims_of(text: str) -> list[WrittenClaim]:
    """All claims of a text: sentences, items, rows, blocks of code, headings and heads of tables."""
    plain, origin, markers = _without_markers(text)
    cut = _every_part(plain)
    if not cut:
        return []
    starts = [part.start for part in cut]
    cited: list[list[int]] = [[] for _ in cut]
    ends = [origin[part.end - 1] + 1 for part in cut]
    for place, end, numbers in markers:
        owner = max(0, bisect_right(starts, place - 1) - 1)
        cited[owner] += [number for number in numbers if number not in cited[owner]]
        ends[owner] = max(ends[owner], end)
    return [
        WrittenClaim(part.of(plain), tuple(numbers), end, part.leads_up or part.of(plain).endswith((":", "：")))
        for part, numbers, end in zip(cut, cited, ends, strict=True)
    ]


class _Part(NamedTuple):
    start: int
    end: int
    leads_up: bool

    def of(self, text: str) -> str:
        return text[self.start : self.end]


def _every_part(text: str) -> list[_Part]:
    """Everything of an answer that has a word in it: what could be quoted, and headings and heads of tables."""
    found: list[_Part] = []
    last = 0
    for sentence in [*sentences(text), None]:
        start = sentence.start if sentence else len(text)
        for line in re.finditer(r"[^\n]+", text[last:start]):
            left = line[0] if _WORD.search(_MARKUP.sub("", line[0])) else ""
            if left:
                stripped = _MARKUP.match(left)
                begin = last + line.start() + (stripped.end() if stripped else 0)
                found.append(_Part(begin, begin + len(text[begin : last + line.end()].rstrip()), leads_up=True))
        if sentence:
            found.append(_Part(sentence.start, sentence.end, leads_up=False))
            last = sentence.end
    return found


def borrowed_markers(said: Sequence[WrittenClaim], number: int) -> tuple[int, ...]:
    """The markers of the claims that this claim introduces: those up to the next introducing claim."""
    found: dict[int, None] = {}
    for claim in said[number + 1 :]:
        if claim.leads_up and not claim.markers:
            if found:
                break
            continue
        found.update(dict.fromkeys(claim.markers))
    return tuple(found)


def spoken_out(text: str, question: str) -> str:
    """The statement that a yes or no stands for, made from the question."""
    short = _YES_OR_NO.fullmatch(text)
    if short is None:
        return text
    statement = question.strip().rstrip("?？ ")
    return statement if short["yes"] else f"{statement}, not"


def marked(text: str, marks: Sequence[tuple[int, str]]) -> str:
    """The text with a mark behind each claim."""
    for end, mark in sorted(marks, reverse=True):
        text = f"{text[:end]} [{mark}]{text[end:]}"
    return text


def _without_markers(text: str) -> tuple[str, list[int], list[tuple[int, int, list[int]]]]:
    """The text without markers, the original position of each of its characters, and the markers: position, end in the
    original text, numbers.
    """
    parts: list[str] = []
    origin: list[int] = []
    found: list[tuple[int, int, list[int]]] = []
    last = 0
    code = [match.span() for match in _CODE.finditer(text)]
    pattern = _MARKERS if _MARKERS.search(text) else _ROUND_MARKERS
    for match in pattern.finditer(text):
        if any(start < match.end() <= end for start, end in code):
            continue  # items[0]
        parts.append(text[last : match.start()])
        origin.extend(range(last, match.start()))
        found.append((len(origin), match.end(), list(_numbers(match[1] or match[2]))))
        last = match.end()
    parts.append(text[last:])
    origin.extend(range(last, len(text)))
    return "".join(parts), origin, found


def _numbers(written: str) -> Iterator[int]:
    """The numbers in a marker: 1, 3-5."""
    for part in re.split(r"[,;]", written.replace("^", "")):
        ends = _RANGE.search(part)
        first, last = (int(ends[1]), int(ends[2])) if ends else (int(part), int(part))
        yield from range(first, last + 1) if first <= last <= first + _WIDEST_RANGE else (first, last)
